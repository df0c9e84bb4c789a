"""The library works without features that only POSIX systems have, as on Windows."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest

HELD = """
import os

def held(path):
    # Whether this process has a file open or mapped: Windows neither renames, replaces nor deletes such a file.
    path = os.path.realpath(path)
    numbers = os.listdir("/proc/self/fd")
    opened = {os.readlink(f"/proc/self/fd/{n}") for n in numbers if os.path.lexists(f"/proc/self/fd/{n}")}
    with open("/proc/self/maps") as maps:
        return path in opened or any(line.rstrip().endswith(path) for line in maps if path in line)

def refusing(real):
    def call(path, *more, **options):
        for one in (path, *more[:1]):
            if isinstance(one, (str, os.PathLike)) and os.path.isfile(one) and held(one):
                raise PermissionError(13, "used by another process", os.fspath(one))
        return real(path, *more, **options)
    return call

for name in ("replace", "rename", "unlink", "remove"):
    setattr(os, name, refusing(getattr(os, name)))
"""
"""Code that makes files as hard to replace as on Windows, if Linux shows which are open."""

SCRIPT = """
import sys
import filelock, lightning_fabric, pooch, rich, safetensors, sklearn.decomposition, sklearn.neighbors, torch
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None  # `import` of it raises ImportError
import os, signal
for name in ("fork", "getuid", "geteuid", "getloadavg", "sysconf", "sched_getaffinity", "killpg", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGALRM", "SIGCHLD", "setitimer", "alarm"):
    if hasattr(signal, name):
        delattr(signal, name)
import json
import numpy as np
import neuralbayes as nb
from neuralbayes.cli import main
images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)
found = {"rows": len(nb.ManifoldLabeler(2, max_iter=5, random_state=0).fit(images.reshape(40, -1) / 255.0).labels_)}
found["images"] = len(nb.InformationClusterer(2, max_iter=4, n_hidden=8, random_state=0).fit(images).labels_)
found["encoder"] = list(nb.MIMEncoder((4,), max_epochs=1, random_state=0).fit_transform(images.reshape(40, -1)).shape)
nb.pretrain(images, nb.PretrainConfig(encoder="tiny", epochs=1, batch_size=20, microbatch_size=20), out="run")
points = np.eye(3).repeat(9, 0)
np.savetxt("rows.csv", np.r_[points, 9 + points], delimiter=",", header="a,b,c", comments="")
np.save("images.npy", images)
CLUSTER = ["cluster", "rows.csv", "--clusters", "2", "--out", "clusters", "--quiet"]
EMBED = ["embed", "run", "images.npy", "--out", "features.npy", "--quiet"]
REPORT = ["report", "clusters", "rows.csv", "--quiet"]
commands = [CLUSTER, [*CLUSTER, "--force"], REPORT, REPORT, EMBED, [*EMBED, "--force"]]
found["commands"] = [main(words) for words in commands]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_fits_without_what_windows_does_not_have(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    script = (HELD if Path("/proc/self/maps").exists() else "") + SCRIPT
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "rows": 40,
        "images": 40,
        "encoder": [40, 4],
        "commands": [0] * 6,
    }
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "peak_memory_mb" not in result  # the size is unknown
    assert result["steps"] == 2
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    assert [path for path in written if not is_name_on_windows(path.name)] == []
    assert len({str(path).casefold() for path in written}) == len(written)  # case does not count


def is_name_on_windows(name):
    return not (
        re.search(r'[<>:"|?*\\\x00-\x1f]', name) or name.endswith((" ", ".")) or PureWindowsPath(name).is_reserved()
    )
