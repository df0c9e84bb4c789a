"""Jobs that take no time, in a separate file, so a worker process that imports it loads no torch."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

LABELS = {"a": "job a", "b": "job b", "c": "job c"}


@dataclass(frozen=True)
class Do:
    """The work of a worker: note its process id, cause the trouble of the job, then return a result."""

    folder: Path
    trouble: str = ""

    def __call__(self, job, trial):
        print("not a result")
        first = not (self.folder / job).exists()
        noted = self.folder / f"{job}.part"
        noted.write_text(str(os.getpid()))
        noted.replace(self.folder / job)  # at once: a test waits for the file and then reads it
        if job == "b" and self.trouble == "fail":
            raise ValueError("wrong")
        if job == "a" and (self.trouble == "die" or (self.trouble == "die once" and first)):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "take long":
            time.sleep(600)
        return {"value": 1.0, "threads": os.environ["OMP_NUM_THREADS"], "rank": os.environ.get("RANK")}


def die(*work):
    os._exit(7)
