"""Files that are damaged, or carry what appends left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .. import _core, _log
from .._core import CompactResult, LostTensor, RecoverResult, SalvageResult
from .._keywords import suggests
from .._support import save_options

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions
    from .._types import Access, Path

__all__ = [
    "CompactResult",
    "LostTensor",
    "RecoverResult",
    "SalvageResult",
    "compact",
    "recover",
    "salvage",
]


@suggests
def recover(path: Path, *, wait: bool = False, access: Access = "mapped", threads: int = 0) -> RecoverResult:
    """Repairs a file whose header a crash left torn, as `thalia recover` does.

    The newest copy of a header whose checksum holds is written over it; nothing else is changed. A
    header that holds is left alone.

    wait: until another process that changes the file is done, else that is an IoError.
    threads: 0 for one a core.
    Raises IntegrityError where no copy will do, and nothing is changed; UnsupportedError, IoError.
    """
    return _core.recover(path, wait, access, threads)


@suggests
def salvage(
    path: Path,
    out: Path,
    *,
    side_file: Path | None = None,
    access: Access = "mapped",
    **options: Unpack[SaveOptions],
) -> SalvageResult:
    """Writes what is left of a damaged or cut .thalia file, as `thalia salvage` does.

    `out` has each tensor that is still the one that was written, by its digest; the result lists
    what is lost, and why. `path` stays as it is.

    side_file: a .thalia.meta that convert() wrote of the file; by itself PATH.meta if there is
        one.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises IntegrityError where nothing can be got; UnsupportedError for a delta or a wrapped file;
    ExistsError, UsageError, IoError. On an error nothing is left at `out`.
    """
    inputs = (path,) if side_file is None else (path, side_file)
    save = save_options(options, out, inputs)
    return _log.done("salvaged", out, _core.salvage(path, out, "" if side_file is None else side_file, access, save))


@suggests
def compact(
    path: Path,
    out: Path | None = None,
    *,
    wait: bool = False,
    access: Access = "mapped",
    durability: Literal["full", "data", "none"] | None = None,
    replace: bool = False,
    threads: int = 0,
    memory_bytes: int | None = None,
) -> CompactResult:
    """Writes a file anew without the dead bytes that appends left, as `thalia compact` does.

    Tensors stay as they are stored, and every byte is verified on the way. Without `out` the new
    file takes the old one's place whole; open readers keep the old one.

    wait: until another process that changes the file is done, else that is an IoError.
    replace: a file that is at `out` already.
    threads: 0 for one a core.
    Raises ExistsError, IntegrityError, FormatError, IoError; UnsupportedError for a delta. The old
    file is in place then.
    """
    given = {
        "durability": durability,
        "replace": replace or out is None,
        "threads": threads,
        "memory_bytes": memory_bytes,
    }
    save = save_options(given, path if out is None else out, () if out is None else (path,))
    to = path if out is None else out
    return _log.done("compacted", to, _core.compact(path, to, wait, access, save))
