"""The memory limit of control groups, as set by containers and batch systems."""

from neuralbayes.system.limits import memory_limit


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_memory_of_a_container_is_its_limit(tmp_path):
    write(tmp_path / "job", memory__max="1000\n", memory__current="400\n")
    assert memory_limit(tmp_path, "/job") == (1000, 400)
    write(tmp_path / "job", memory__max="max\n")
    assert memory_limit(tmp_path, "/job") is None
