"""Table files for tests."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather

NUMBERS = np.array([[0.5, -1.0], [2.0, 3.25], [4.0, 5.0]])


def write_file(path, numbers=NUMBERS):
    match path.suffix.lower():
        case ".csv":
            pd.DataFrame(numbers, columns=["a", "b"]).to_csv(path, index=False)
        case ".tsv":
            pd.DataFrame(numbers, columns=["a", "b"]).to_csv(path, index=False, sep="\t")
        case ".parquet":
            pd.DataFrame(numbers, columns=["a", "b"]).to_parquet(path)
        case ".npy":
            with open(path, "wb") as file:
                np.save(file, numbers)
        case ".npz":
            with open(path, "wb") as file:
                np.savez(file, only=numbers)
    return path


def zst(data):
    return pa.compress(data, "zstd", asbytes=True)


def workbook(rows, title="Sheet1", others=()):
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    for name, other in others:
        sheet = book.create_sheet(name)
        for row in other:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def arrow(columns, **options):
    file = io.BytesIO()
    feather.write_feather(pa.table(columns), file, **options)
    return file.getvalue()
