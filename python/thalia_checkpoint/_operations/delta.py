"""Deltas: what changed since another checkpoint, and full files of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from .. import _core, _log
from .._core import (
    DeltaResult,
    LeftOutTensor,
    LoraAdapterResult,
    LowRankMatrix,
    RebasedFile,
    RebaseResult,
    ResolveResult,
    WeightDeltaResult,
    printable,
)
from .._keywords import suggests
from .._support import paths, save_options, texts
from .._warn import warn_caller

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions
    from .._progress import Progress
    from .._types import Access, Path

__all__ = [
    "DeltaResult",
    "LeftOutTensor",
    "LoraAdapterResult",
    "LowRank",
    "LowRankMatrix",
    "RebaseResult",
    "RebasedFile",
    "ResolveResult",
    "WeightDeltaResult",
    "delta",
    "lora_adapter",
    "rebase",
    "resolve",
    "weight_delta",
]


@suggests
@dataclass(frozen=True)
class LowRank:
    """Changes of weight matrices as a few products of vectors: lossy.

    Only if that takes fewer bytes than an exact way; all else is stored exactly.
    """

    bits_per_element: float = 0.5
    """Bits of codes that a matrix may take, an element; above 0."""
    max_rank: int = 64
    """Products at most."""
    max_relative_error: float = 1.0
    """A matrix is stored exactly where more than this part of its change is lost: 0 to 1."""
    include: tuple[str, ...] = ()
    """Patterns of the tensors to store so; by default weights and embeddings."""
    min_elements: int = 4096
    """Smaller matrices are stored exactly."""
    max_generations: int | None = None
    """How often weights may be rounded so; the state's own limit, or 10."""


@suggests
def delta(
    base: Path,
    new: Path,
    out: Path,
    *,
    threshold: float = 0.0,
    exclude: Iterable[str] = (),
    low_rank: bool | LowRank = False,
    pack: bool = True,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    compression: Literal["none", "plane_entropy", "packed_exponents", "zstd", "lz4"] | None = None,
    compression_level: int | None = None,
    checksum: Literal["block_tree", "sha256", "crc32", "none"] | None = None,
    leaves: Literal["xxh3_128", "sha256"] | None = None,
    timestamp: int | None = None,
    durability: Literal["full", "data", "none"] | None = None,
    replace: bool = False,
    reproducible: bool = False,
    threads: int = 0,
    memory_bytes: int | None = None,
    progress: Progress | None = None,
) -> DeltaResult:
    """Writes what `new` has that `base` has not to `out`, as `thalia delta` does.

    The delta finds `base` by its path from the delta's folder, and needs exactly this file; `base`
    and `new` may be deltas themselves. Without `threshold` and `low_rank` nothing is lost.

    threshold: weights that moved by less keep the base's value.
    exclude: patterns of tensors that are stored exactly all the same.
    pack: a small delta is stored without what follows from the rest of it, docs/format/packed.md.
    search: folders in which bases are looked for that are not where their delta says.
    compression: by itself plane_entropy, or with a level zstd. This and the arguments after it are
        those of SaveOptions; a file at `out` is not replaced unless asked for.
    Raises NotFoundError for a pattern that fits no tensor, ExistsError, UsageError for an option
    that cannot be; IoError where a base is missing, IntegrityError if it is another file;
    FormatError, UnsupportedError. On an error nothing is left at `out`.
    """
    given: dict[str, Any] = {
        "compression": compression,
        "compression_level": compression_level,
        "checksum": checksum,
        "leaves": leaves,
        "timestamp": timestamp,
        "durability": durability,
        "replace": replace,
        "reproducible": reproducible,
        "threads": threads,
        "memory_bytes": memory_bytes,
        "progress": progress,
    }
    products = LowRank() if low_rank is True else low_rank or None
    return _log.done(
        "saved delta",
        out,
        _core.delta(
            base,
            new,
            out,
            threshold,
            texts(exclude),
            None if products is None else asdict(products),
            pack,
            access,
            paths(search),
            save_options(given, out, (base, new)),
        ),
    )


@suggests
def resolve(
    path: Path,
    out: Path,
    *,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    **options: Unpack[SaveOptions],
) -> ResolveResult:
    """Writes the state of the delta `path` as a full file, as `thalia resolve` does.

    Texts are equal, and tensors equal byte for byte.

    search: folders in which bases are looked for that are not where their delta says.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises ExistsError, UsageError; IoError where a base is missing, IntegrityError if it is
    another file, or damaged; FormatError. On an error nothing is left at `out`.
    """
    return _log.done(
        "resolved", out, _core.resolve(path, out, access, paths(search), save_options(options, out, (path,)))
    )


@suggests
def rebase(
    path: Path,
    *older: Path,
    others: Iterable[Path] = (),
    max_depth: int = 64,
    pack: bool = True,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    durability: Literal["full", "data", "none"] | None = None,
    threads: int = 0,
) -> RebaseResult:
    """Turns a chain of deltas in place, as `thalia rebase` does: `path`, its newest file, becomes full, and each
    older file an exact delta of the next newer. Names, texts and states stay.

    Every file can be restored at each moment, after a crash too; what ended early is begun again with
    all files named, the newest first.

    older: files that become deltas, full or deltas now; without them all that `path` is based on.
    others: deltas of these files in other folders, which keep their bases as those do that lie beside them.
    max_depth: a file that would be deeper is full. 1 to 255.
    pack: small deltas, as delta() does.
    search: folders in which bases are looked for that are not where their delta says.
    Raises IoError where a base is missing, IntegrityError if it is another file, or damaged; FormatError;
    UnsupportedError for quantized tensors; UsageError: all before anything is changed. A checkpoint of a run is
    for RunWriter.rebase().
    """
    given: dict[str, Any] = {"durability": durability, "threads": threads}
    result = _core.rebase(
        [path, *older], paths(others), max_depth, pack, access, paths(search), save_options(given, path, ())
    )
    return _log.done("rebased", path, result)


@suggests
def weight_delta(
    base: Path,
    new: Path,
    out: Path,
    *,
    kind: Literal["slime", "trl"],
    encoding: Literal["xor", "overwrite", "gap_delta", "raw"] | None = None,
    checksum: Literal["xxh3-128", "blake3", "adler32"] | None = None,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    durability: Literal["full", "data", "none"] | None = None,
    replace: bool = False,
    threads: int = 0,
) -> WeightDeltaResult:
    """Writes what `new` has that `base` has not as another trainer publishes it to its servers.

    As `thalia delta --as` does. Both are models of any format with the same tensors. open() reads
    what is written, and what the other trainer writes.

    kind: slime, whose `out` is the folder `weight_vNNNNNN` of the version, or trl, whose `out` is
        the file `step_NNNNNN.safetensors`.
    encoding: of slime xor, the default, or overwrite; of trl gap_delta, the default, or raw.
    checksum: of slime, by itself xxh3-128.
    Raises ExistsError, UsageError where the models differ in more than elements; FormatError,
    UnsupportedError. On an error nothing is left at `out`.
    """
    given: dict[str, Any] = {"durability": durability, "replace": replace, "threads": threads}
    return _log.done(
        "saved weight delta",
        out,
        _core.weight_delta(
            base,
            new,
            out,
            kind,
            encoding or "",
            checksum or "",
            access,
            paths(search),
            save_options(given, out, (base, new)),
        ),
    )


@suggests
def lora_adapter(
    base: Path,
    new: Path,
    out: Path,
    *,
    max_rank: int = 64,
    max_relative_error: float = 1.0,
    leave_out: bool = False,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    durability: Literal["full", "data", "none"] | None = None,
    replace: bool = False,
    threads: int = 0,
) -> LoraAdapterResult:
    """Writes what `new` has that `base` has not as a LoRA adapter, a folder that peft loads beside `base`: lossy.

    As `thalia delta --low-rank --as peft` does. Both are models of any format, with the names that the
    parameters have in the model that the adapter is for.

    max_rank: of a matrix.
    max_relative_error: below 1, each matrix gets the lowest rank that loses no more of its change; an
        error where max_rank does not suffice.
    leave_out: leaves what changed and an adapter cannot hold as it is in `base`, with a UserWarning:
        norms, biases, embeddings. Without it that is an UnsupportedError with the names.
    Raises ExistsError, UsageError where no matrix changed; FormatError, UnsupportedError. On an error
    nothing is left at `out`.
    """
    given: dict[str, Any] = {"durability": durability, "replace": replace, "threads": threads}
    result = _core.lora_adapter(
        base,
        new,
        out,
        max_rank,
        max_relative_error,
        leave_out,
        access,
        paths(search),
        save_options(given, out, (base, new)),
    )
    for tensor in result.left_out:
        warn_caller(f"{printable(tensor.name)} changed and is left out of the adapter: {tensor.reason}")
    return _log.done("saved adapter", out, result)
