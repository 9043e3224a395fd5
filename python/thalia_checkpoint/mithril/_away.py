"""Work on another thread, for coroutines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from .._core import Stop

_Result = TypeVar("_Result")


async def away(work: Callable[[Stop], _Result]) -> _Result:
    """What work(stop) returns or raises. A task that is cancelled meanwhile requests the stop, and ends when the
    work has ended."""
    stop = Stop()
    running = asyncio.get_running_loop().run_in_executor(None, work, stop)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.request()
        with contextlib.suppress(Exception):
            await running
        raise
