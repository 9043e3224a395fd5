"""Files that are damaged, or carry what appends left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .. import _core
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


@dataclass(frozen=True)
class RecoverResult:
    """What recover() found and did."""

    restored: bool
    """A copy of the header was written over it; False where it holds, and nothing was changed."""
    fault: str
    """What was wrong with the header; empty where it holds."""
    record_offset: int
    """The place of the copy that was taken, in bytes from the start of the file."""
    records: int
    """Copies that hold as a header, of all generations."""
    damaged_blocks: int
    """Damaged blocks of the state that was restored; verify() says what is in them."""
    generation: int
    """The generation of the file now: 1 after a save, one more with each append."""
    file_bytes: int
    """The size of the file now."""
    debris_bytes: int
    """Behind them; readers ignore these."""
    closing_checksum: str
    """The file's identity, in hexadecimal."""


@dataclass(frozen=True)
class LostTensor:
    """A tensor whose bytes are not those that were written."""

    name: str
    """REGION/NAME, SOURCE->TARGET.weights; a number where names are lost."""
    bytes: int
    """Of its elements; 0 where that is not known."""
    reason: str


@dataclass(frozen=True)
class SalvageResult:
    """What salvage() got out of a file."""

    source: Literal["header", "commit_record", "side_file"]
    """Where names and places of tensors were taken from."""
    fault: str
    """What was wrong with the file's own header and tables; empty where they hold."""
    tables_verified: bool
    """Names hold by the file's checksums; else they are well formed, and no more is known."""
    generation: int
    """Of the state that was saved."""
    input_bytes: int
    output_bytes: int
    regions: int
    tensors: int
    lost: tuple[LostTensor, ...]
    lost_texts: tuple[str, ...]
    """Metadata, and texts of regions."""
    seconds: float

    @property
    def whole(self) -> bool:
        """Nothing is lost."""
        return not self.lost and not self.lost_texts


@dataclass(frozen=True)
class CompactResult:
    """What compact() wrote."""

    input_bytes: int
    output_bytes: int
    regions: int
    tensors: int
    closing_checksum: str
    """The file's identity, in hexadecimal."""
    seconds: float


@suggests
def recover(path: Path, *, wait: bool = False, access: Access = "mapped", threads: int = 0) -> RecoverResult:
    """Repairs a file whose header a crash left torn, as `thalia recover` does.

    The newest copy of a header whose checksum holds is written over it; nothing else is changed. A
    header that holds is left alone.

    wait: until another process that changes the file is done, else that is an IoError.
    threads: 0 for one a core.
    Raises IntegrityError where no copy will do, and nothing is changed; UnsupportedError, IoError.
    """
    return RecoverResult(**_core.recover(path, wait, access, threads))


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
    result = _core.salvage(path, out, "" if side_file is None else side_file, access, save)
    result["lost"] = tuple(LostTensor(**tensor) for tensor in result["lost"])
    result["lost_texts"] = tuple(result["lost_texts"])
    return SalvageResult(**result)


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
    return CompactResult(**_core.compact(path, path if out is None else out, wait, access, save))
