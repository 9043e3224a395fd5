"""The logger "thalia_checkpoint": what was saved and read, how large it is and how long that took.

Who never imports logging has no logger, and nobody that asks for none pays for a text.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, TypeVar

from ._core import human_bytes, printable

if TYPE_CHECKING:
    from logging import Logger

    from ._types import Path

_Result = TypeVar("_Result")
#: As logging has them.
_DEBUG, _INFO = 10, 20


def done(what: str, path: Path | int | None, result: _Result) -> _Result:
    """Tells on INFO that a file was written, with the bytes and the seconds that the result has of it."""
    if path is not None:
        nbytes: int = getattr(result, "file_bytes", 0) or getattr(result, "output_bytes", 0)
        saved(what, path, nbytes, getattr(result, "seconds", 0.0))
    return result


def saved(what: str, path: Path | int, nbytes: int, seconds: float) -> None:
    """The same of bytes and seconds that another says."""
    if (logger := _logger(_INFO)) is not None:
        _tell(logger, _INFO, what, path, nbytes, seconds)


def since(begin: float, what: str, path: Path, nbytes: int | None = None) -> None:
    """The same of what began then, as time.perf_counter() has it; on DEBUG without the bytes."""
    level = _DEBUG if nbytes is None else _INFO
    if (logger := _logger(level)) is not None:
        _tell(logger, level, what, path, nbytes or 0, time.perf_counter() - begin)


def debug(text: str, *values: object) -> None:
    """A sentence on DEBUG; the values are its, as of logging."""
    if (logger := _logger(_DEBUG)) is not None:
        logger.debug(text, *(printable(value) if isinstance(value, str) else value for value in values))


def _logger(level: int) -> Logger | None:
    logging: Any = sys.modules.get("logging")
    logger: Logger | None = None if logging is None else logging.getLogger(__package__)
    return logger if logger is not None and logger.isEnabledFor(level) else None


def _tell(logger: Logger, level: int, what: str, path: Path | int, nbytes: int, seconds: float) -> None:
    shown = f"descriptor {path}" if isinstance(path, int) else printable(os.fspath(path))
    if nbytes:
        logger.log(level, "%s %s: %s in %.3f s", what, shown, human_bytes(nbytes), seconds)
    else:
        logger.log(level, "%s %s in %.3f s", what, shown, seconds)
