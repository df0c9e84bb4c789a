"""Download a file over https, with a size limit, a timeout and a progress bar."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from neuralbayes.data.progress import late_bar
from neuralbayes.system.files import atomic_write

TIMEOUT = 10.0  # seconds without a response or data
CHUNK = 2**18


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Allows redirects only to https addresses."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError(f"it redirects to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(url: str, path: Path, *, limit: int, progress: bool = True, timeout: float = TIMEOUT) -> None:
    """Download `url` to `path`, atomically.

    Parameters
    ----------
    url : str
        An https address.
    path : Path
    limit : int
        Maximum size in bytes.
    progress : bool, default=True
        Show a progress bar if it takes longer than two seconds.
    timeout : float, default=10.0
        Seconds without a response or data before giving up.

    Raises
    ------
    OSError
        If the address does not respond, returns an error, disconnects, or sends more than `limit` bytes.
    """
    if not url.startswith("https://"):
        raise ValueError(f"`url` must be an https address, got {url!r}")
    opener = urllib.request.build_opener(_HttpsOnly)
    request = urllib.request.Request(url, headers={"User-Agent": "neuralbayes"})
    try:
        with opener.open(request, timeout=timeout) as answer, atomic_write(path) as temporary:
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            received = 0
            with (
                open(temporary, "wb") as file,
                late_bar(url.rsplit("/", 1)[-1], total, unit="bytes", enabled=progress) as advance,
            ):
                while piece := answer.read(CHUNK):
                    received += len(piece)
                    if received > limit:
                        raise OSError(f"it sends more than the {limit} bytes expected: refused")
                    file.write(piece)
                    advance(len(piece))
            if total is not None and received != total:
                raise OSError(f"the connection broke off after {received} of {total} bytes")
    except urllib.error.HTTPError as error:
        raise OSError(f"it answers {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise OSError(f"no answer ({getattr(error.reason, 'strerror', None) or error.reason})") from error
    except http.client.HTTPException as error:
        raise OSError(f"the answer is broken ({error!r})") from error
