"""Can processes on this machine talk to each other as training over several of them does?"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

LIMIT = 10.0
"""Seconds for two members of a group to find each other."""


def gloo_problem() -> str:
    """Why two members of a group cannot add their numbers over the network; empty where they can.

    Both live in this process. They use the store, the sockets and the name of the machine as processes do.
    """
    if not dist.is_available() or not dist.is_gloo_available():
        return "this torch is built without gloo"
    outcomes: dict[int, str] = {}
    limit = timedelta(seconds=LIMIT)
    try:
        server = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    except RuntimeError as error:
        return _first_line(error)

    def join(rank: int) -> None:
        try:
            store = TCPStore("localhost", server.port, is_master=False, timeout=limit)
            group: Any = dist.ProcessGroupGloo(store, rank, 2, limit)
            number = torch.ones(1)
            group.allreduce([number]).wait()
            outcomes[rank] = "" if float(number) == 2.0 else "a sum comes out wrong"
        except RuntimeError as error:
            outcomes[rank] = _first_line(error)

    members = [threading.Thread(target=join, args=(rank,), daemon=True) for rank in range(2)]
    for member in members:
        member.start()
    for member in members:
        member.join(LIMIT + 5)
    return next(filter(None, outcomes.values()), "" if len(outcomes) == 2 else "they did not find each other")


def _first_line(error: RuntimeError) -> str:
    return str(error).splitlines()[0]
