"""Whole files in compressed frames, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .. import _core, _log
from .._core import WrapResult
from .._keywords import suggests
from .._support import save_options

if TYPE_CHECKING:
    from .._progress import Progress
    from .._types import Access, Path

__all__ = ["WrapResult", "compress", "decompress"]


@suggests
def compress(
    path: Path,
    out: Path,
    *,
    compression: Literal["zstd", "lz4"] | None = None,
    compression_level: int | None = None,
    frame_bytes: int = 4 << 20,
    durability: Literal["full", "data", "none"] | None = None,
    replace: bool = False,
    threads: int = 0,
    progress: Progress | None = None,
) -> WrapResult:
    """Writes a whole file, of any kind, as zstd or lz4 frames, as `thalia compress` does.

    Readers open the result as it is, and decode only the frames they need; decompress(), `zstd -d`
    or `lz4 -d` give back the exact file.

    compression: by itself as `out` ends, in .zst or .lz4.
    compression_level: 1 to 22 of zstd, 3 by itself; 1 to 12 of lz4, 1 by itself.
    frame_bytes: of the file in a frame, 4 KiB to 1 GiB: the least that a reader decodes.
    replace: a file that is at `out` already.
    threads: 0 for one a core.
    progress: called with bytes of the file that are done and in all; what it raises ends the work.
    Raises ExistsError, UsageError, IoError. On an error nothing is left at `out`.
    """
    given = {
        "compression": compression,
        "compression_level": compression_level,
        "durability": durability,
        "replace": replace,
        "threads": threads,
        "progress": progress,
    }
    return _log.done("compressed", out, _core.compress(path, out, frame_bytes, save_options(given, out, (path,))))


@suggests
def decompress(
    path: Path,
    out: Path,
    *,
    access: Access = "mapped",
    durability: Literal["full", "data", "none"] | None = None,
    replace: bool = False,
    threads: int = 0,
    progress: Progress | None = None,
) -> WrapResult:
    """Writes what the frames of a zstd or lz4 file hold, as `thalia decompress` does.

    Any program may have written them; the kind is found by content. The arguments are those of compress().
    Raises FormatError for a file that begins with no frame, or is damaged; ExistsError, UsageError,
    IoError. On an error nothing is left at `out`.
    """
    given = {
        "durability": durability,
        "replace": replace,
        "threads": threads,
        "progress": progress,
    }
    return _log.done("decompressed", out, _core.decompress(path, out, access, save_options(given, out, (path,))))
