"""What only POSIX systems have is not needed: the library works where it is missing, as on Windows."""

import json
import os
import subprocess
import sys

SCRIPT = """
import sys
import filelock, lightning_fabric, rich, safetensors, sklearn.decomposition, sklearn.neighbors, torch
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
import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.reproduce.experiment import by
images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)
found = {"rows": len(nb.ManifoldLabeler(2, max_iter=5, random_state=0).fit(images.reshape(40, -1) / 255.0).labels_)}
found["images"] = len(nb.InformationClusterer(2, max_iter=4, n_hidden=8, random_state=0).fit(images).labels_)
found["encoder"] = list(nb.MIMEncoder((4,), max_epochs=1, random_state=0).fit_transform(images.reshape(40, -1)).shape)
nb.pretrain(images, nb.PretrainConfig(encoder="tiny", epochs=1, batch_size=20, microbatch_size=20), out="run")
print(json.dumps(found))
"""


def test_fits_without_what_windows_does_not_have(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"rows": 40, "images": 40, "encoder": [40, 4]}
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "peak_memory_mb" not in result  # nobody says how much it was
    assert result["steps"] == 2
