"""Warnings at the line that called this package."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

#: Where frames are passed over: a context manager is entered by a line of contextlib.
_INSIDE = (os.path.dirname(__file__) + os.sep, contextlib.__file__)


def warn_caller(text: str) -> None:
    """A UserWarning at the innermost line outside, however deep in this package it comes about."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)
