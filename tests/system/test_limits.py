"""Limits of control groups, as set by containers and batch systems."""

from neuralbayes.system.limits import cpu_quota, memory_limit


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_smallest_quota_on_the_way_up_counts(tmp_path):
    write(tmp_path, cpu__max="max 100000\n")
    write(tmp_path / "job", cpu__max="150000 100000\n")
    write(tmp_path / "job" / "step", cpu__max="400000 100000\n")
    assert cpu_quota(tmp_path, "/job/step") == 1.5
    assert cpu_quota(tmp_path, "/") is None


def test_quotas_of_version_1_count_too(tmp_path):
    write(tmp_path, cpu__cfs_quota_us="200000\n", cpu__cfs_period_us="100000\n")
    assert cpu_quota(tmp_path, "/docker/not-seen-from-inside") == 2.0
    write(tmp_path, cpu__cfs_quota_us="-1\n")
    assert cpu_quota(tmp_path, "/") is None


def test_the_memory_of_a_container_is_its_limit(tmp_path):
    write(tmp_path / "job", memory__max="1000\n", memory__current="400\n")
    assert memory_limit(tmp_path, "/job") == (1000, 400)
    write(tmp_path / "job", memory__max="max\n")
    assert memory_limit(tmp_path, "/job") is None
