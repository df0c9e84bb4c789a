"""What a model folder names is neither run nor opened, whatever stands there; own code runs as it is written."""

import copy
import importlib.util
import json
import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb
from neuralbayes.system.code import named_object

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 3)) + 8 * np.eye(3)[np.arange(60) % 3], columns=["a", "b", "c"])
TEXTS = [f"{words} {i}" for i in range(20) for words in ("an apple pie", "a red car", "blue sky")]
IMAGES = RNG.integers(0, 255, (30, 12, 12, 1), dtype=np.uint8)
ODD = [None, True, -1, 10**400, 1e308, "", "\ud800", "\x1b]0;x\x07<script>", [[1]], [], {"a": {}}]
READ = [{"size": 10**9}, {"size": [10**6, 10**6]}, {"limit": {}}, {"encoding": "zlib_codec"}, {"sep": 1}, {"evil": 1}]
opened: list[str] = []
sys.addaudithook(lambda event, details: opened.append(str(details[0])) if event in ("open", "import") else None)


def count_letters(texts):
    return np.array([[len(text), text.count("a")] for text in texts])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A saved clustering of each kind, and data for it."""
    folder = tmp_path_factory.mktemp("models")
    nb.cluster(FRAME, 3).save(folder / "row")
    nb.cluster(TEXTS, 3, features=count_letters).save(folder / "text")
    nb.cluster(IMAGES, 2, features="pixels").save(folder / "image")
    FRAME.to_csv(folder / "rows.csv", index=False)
    return folder, {"row": str(folder / "rows.csv"), "text": TEXTS, "image": IMAGES}


def places(value, before=()):
    """The keys that lead to each value of a JSON document."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*before, key)
        yield from places(inner, (*before, key))


def changed(document, keys, value):
    document = copy.deepcopy(document)
    inner = document
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return document


def use(folder, document, data, kind):
    """Load a model with another description, and label and show data with it."""
    (folder / "model.json").write_text(document if isinstance(document, str) else json.dumps(document))
    with suppress(ValueError, OSError, MemoryError):
        found = nb.load(folder)
        if isinstance(found, nb.Clustering):
            found.summary()
            again = found.on(data, features=count_letters if kind == "text" else None)
            assert "<script>" not in again._repr_html_()
            again.table()


@pytest.mark.parametrize("kind", ["row", "text", "image"])
@pytest.mark.filterwarnings("ignore")
def test_any_value_in_what_a_model_remembers_is_used_or_refused(models, tmp_path, kind):
    folder, data = models
    for path in (folder / kind).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = json.loads((folder / kind / "model.json").read_text())
    evil, secret = tmp_path / "evil.py", tmp_path / "secret.csv"
    evil.write_text("raise SystemExit('it ran')")
    secret.write_text("a,b,c\n1,2,3\n" * 9)
    values = [*ODD, f"{evil}:run", str(secret)]
    opened.clear()
    for keys in [("about",), *(("about", *keys) for keys in places(whole["about"]))]:
        for value in [*values, *(READ if keys[-1] in ("read", "recipe") else ())]:
            use(tmp_path, changed(whole, keys, value), data[kind], kind)
    for key, value in [("features", f"{evil}:run"), ("features", str(secret)), ("data", str(secret)), ("key", "x")]:
        use(tmp_path, changed(whole, ("about", "recipe", key), value), data[kind], kind)
    for inside in ("[" * 100_000 + "]" * 100_000, "1" + "0" * 5000, "NaN"):
        use(tmp_path, json.dumps(whole).replace('"recipe": {', f'"recipe": {{"z": {inside}, ', 1), data[kind], kind)
    assert not [name for name in opened if "evil" in name or "secret" in name]


def test_what_a_model_remembers_of_its_clusters_is_checked_when_it_is_loaded(models, tmp_path):
    folder, _ = models
    for path in (folder / "row").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = json.loads((folder / "row" / "model.json").read_text())
    for value in ("xyz", [1, 2, 3], [{}] * 3, whole["about"]["summary"]["clusters"][::-1]):
        document = changed(whole, ("about", "summary", "clusters"), value)
        (tmp_path / "model.json").write_text(json.dumps(document))
        with pytest.raises(ValueError, match=r"model\.json does not describe a clustering"):
            nb.load(tmp_path)


@pytest.mark.parametrize("key", ["9" * 5000, "\u0661", "01", "-1", "0.5"])
def test_names_of_clusters_that_are_not_there_are_refused_by_the_name_of_the_file(models, tmp_path, key):
    for path in (models[0] / "row").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "names.json").write_text(json.dumps({key: "x"}))
    with pytest.raises(ValueError, match=r"names\.json must name clusters from 0 to 2"):
        nb.load(tmp_path)


def test_own_code_is_run_as_it_is_written_and_leaves_no_bytecode(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    mine = tmp_path / "mine_of_a_test.py"
    mine.write_text("def f(): return 'old'")
    stale = importlib.util.cache_from_source(str(mine))
    spec = importlib.util.spec_from_file_location("mine_of_a_test", mine)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))  # Python writes bytecode, which a change outdates
    assert (tmp_path / "__pycache__").is_dir()
    source = mine.read_bytes().replace(b"old", b"new")
    status = mine.stat()
    mine.write_bytes(source)
    os.utime(mine, ns=(status.st_atime_ns, status.st_mtime_ns))  # of the same size and time: Python would trust it
    assert named_object(f"{mine}:f", "objective")() == "new"
    os.remove(stale)
    assert named_object(f"{mine}:f", "objective")() == "new"
    assert list((tmp_path / "__pycache__").iterdir()) == []


def test_no_process_imports_modules_of_the_current_folder(models, tmp_path):
    folder, _ = models
    for name in ("torch", "multiprocessing", "selectors", "random"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'it_ran')!r}, 'w')")
    (tmp_path / "parts").mkdir()
    for i in range(2):
        FRAME.to_parquet(tmp_path / "parts" / f"{i}.parquet")
    command = tmp_path / "bin" / "neuralbayes"  # Python looks for modules in its folder
    command.parent.mkdir()
    command.write_text("import sys\nfrom neuralbayes.cli import main\nif __name__ == '__main__': sys.exit(main())")
    words = [sys.executable, command, "predict", str(folder / "row"), str(tmp_path / "parts")]  # by two workers
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    code = "from neuralbayes.system.devices import bfloat16_is_faster; bfloat16_is_faster()"
    subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, check=True, timeout=300)
    assert not (tmp_path / "it_ran").exists()
