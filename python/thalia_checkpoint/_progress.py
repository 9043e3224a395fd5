"""How far a long call is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: A function that is called with the bytes done and in all, from a thread of the work, and what it
#: raises ends that; or True for a bar of tqdm.
Progress = Callable[[int, int], object] | bool


def callback(progress: Progress | None, title: str) -> Callable[[int, int], object] | None:
    """What the library is to call. Raises ImportError for a bar without tqdm."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    from tqdm.auto import tqdm  # only who asks for a bar needs it

    bar: Any = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(desc=title, total=total, unit="B", unit_scale=True, unit_divisor=1024)
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return show
