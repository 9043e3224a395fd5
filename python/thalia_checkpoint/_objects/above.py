"""What is in the packages for torch and for distributed checkpoints, and needed below them: it is handed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_declare: Callable[[], Callable[..., Any]] | None = None
_load_folder: Callable[[], Callable[..., Any]] | None = None


def hand_in(declare: Callable[[], Callable[..., Any]], load_folder: Callable[[], Callable[..., Any]]) -> None:
    """Both are called when they are first needed, and may import torch."""
    global _declare, _load_folder
    _declare, _load_folder = declare, load_folder


def declare_in_torch() -> Callable[..., Any]:
    """declare() of the package for torch."""
    assert _declare is not None  # the package hands it in
    return _declare()


def folder_loader() -> Callable[..., Any]:
    """load_folder() of the package for distributed checkpoints."""
    assert _load_folder is not None
    return _load_folder()
