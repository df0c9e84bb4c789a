"""Table files for tests."""

import io

import pyarrow as pa
import pyarrow.feather as feather


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
