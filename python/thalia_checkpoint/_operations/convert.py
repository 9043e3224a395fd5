"""Whole files anew: in other formats, parts of one, several in one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from .. import _core, _log
from .._core import ConvertResult, MigrateResult, RoundedNumbers, Rounding
from .._keywords import suggests
from .._support import paths, save_options, texts
from .._warn import warn_caller
from ..errors import NotFoundError, UsageError, make_error

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions
    from .._types import Access, Path

__all__ = [
    "ConvertResult",
    "MigrateResult",
    "RoundedNumbers",
    "Rounding",
    "convert",
    "extract",
    "extract_brain",
    "merge",
    "migrate",
]

Format = Literal[
    "thalia", "safetensors", "thalia-0.1", "mckp", "mst", "mithril-quantized", "mithril-orbax", "gptrs",
    "gptrsten", "entity", "loom-json", "pt", "npz", "npy", "gguf", "onnx",
]  # fmt: skip


@suggests
def convert(
    path: Path,
    out: Path,
    *,
    from_: Format | None = None,
    to: Format | None = None,
    grouping: Literal["auto", "none"] | int = "auto",
    precision: str = "keep",
    dense: bool = False,
    dequantize: bool = False,
    lossless: bool = False,
    legacy: bool = False,
    all_types: bool = False,
    shard_bytes: int | None = None,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    **options: Unpack[SaveOptions],
) -> ConvertResult:
    """Writes a checkpoint in another format, as `thalia convert` does. A delta is converted as its state.

    Nothing is lost unless `precision` asks for it; what `out` cannot hold is listed in the result.

    from_: the format of `path`; by itself found by its content.
    to: the format of `out`; by itself found by its name's ending. An `out` named NAME.meta is the
        side file of a .thalia file: all that it says, without payloads.
    grouping: how tensors of a format without regions are grouped: "auto" by the name up to its
        first number, "none" as one region, or by so many parts of the name.
    precision: types of floating point tensors: "keep", "fp32", "fp16", "bf16", "mixed", or
        KEY=PRECISION,… with categories and patterns: "weights=fp16,traces/*=bf16".
    dense: write all elements of sparse tensors where `out` has no sparse encodings.
    dequantize: elements in place of the codes of formats with types of their own, as GGUF's blocks.
    lossless: write nothing where `out` cannot hold all that `path` has: raise UnsupportedError.
    legacy: take files that the programs of their formats no longer do.
    all_types: also types that the format of `out` has and its program does not read.
    shard_bytes: of safetensors, bytes of tensors in a file; `out` is then a folder, or its index.
    search: folders in which bases are looked for that are not where their delta says.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises NotFoundError for a pattern that fits no tensor, ExistsError, UsageError;
    UnsupportedError where `out` cannot hold a tensor; IoError, FormatError, IntegrityError. On an
    error nothing is left at `out`.
    """
    kind, depth = ("depth", grouping) if isinstance(grouping, int) else (grouping, 0)
    if kind == "depth" and depth < 1:
        raise make_error(
            UsageError,
            f"grouping: got {depth}, expected a number of name parts from 1",
            "bad_argument",
            field="grouping",
            value=str(depth),
            expected="a number of name parts from 1",
        )
    return _warned(
        "converted",
        out,
        _core.convert(
            path,
            out,
            from_,
            to,
            kind,
            depth,
            precision,
            {
                "dense": dense,
                "dequantize": dequantize,
                "lossless": lossless,
                "legacy": legacy,
                "all_types": all_types,
                "shard_bytes": shard_bytes,
            },
            access,
            paths(search),
            save_options(options, out, (path,)),
        ),
    )


@suggests
def extract(
    path: Path,
    regions: Iterable[str],
    out: Path,
    *,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    **options: Unpack[SaveOptions],
) -> ConvertResult:
    """Copies some regions, and the connections among them, as `thalia extract` does.

    regions: names, or patterns of them: "*" stands for any characters, "?" for one.
    search: folders in which bases are looked for that are not where their delta says.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises NotFoundError for a name or pattern that fits no region, ExistsError, UsageError;
    IoError, FormatError, IntegrityError. On an error nothing is left at `out`.
    """
    save = save_options(options, out, (path,))
    names = _region_names(path, texts(regions), access, paths(search))
    return _warned("extracted", out, _core.extract(path, names, out, access, paths(search), save))


@suggests
def extract_brain(
    path: Path,
    prefix: str,
    out: Path,
    *,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    **options: Unpack[SaveOptions],
) -> ConvertResult:
    """Copies one brain of an ensemble, as `thalia extract --prefix` does: with the names, the metadata, the growth
    history and the training steps that it had alone. No file is read whole.

    prefix: that merge(prefixes=…) or brain.save_ensemble() gave it.
    search: folders in which bases are looked for that are not where their delta says.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises NotFoundError for a prefix that is not there; UsageError ("wrong_state") for a file that is no ensemble;
    ExistsError; IoError, FormatError, IntegrityError. On an error nothing is left at `out`.
    """
    save = save_options(options, out, (path,))
    return _warned("extracted", out, _core.extract_brain(path, prefix, out, access, paths(search), save))


@suggests
def merge(
    inputs: Iterable[Path],
    out: Path,
    *,
    prefer: Literal["first", "last"] | Path | None = None,
    prefixes: Iterable[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    **options: Unpack[SaveOptions],
) -> ConvertResult:
    """Copies the regions and connections of several checkpoints into one, as `thalia merge` does.

    What two of them have alike is taken once. Metadata are the first file's and what others add;
    growth histories are joined, and training steps are the greatest. No file is read whole.

    prefer: whose content is taken where files differ: "first" or "last" of those that have it, or
        the path of one of the inputs. Without it a difference is an error.
    prefixes: one for each input, which becomes a brain of its own: region R is "PREFIX" + R in `out`.
        extract_brain() gives the file back, brain.load_ensemble() the states. No prefix is empty, or
        begins with another.
    metadata: of `out`, where there are prefixes; each brain keeps its own.
    search: folders in which bases are looked for that are not where their delta says.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises UsageError, with the code "duplicate" naming what differs, or prefixes that cannot be together;
    ExistsError; IoError, FormatError, IntegrityError, UnsupportedError. On an error nothing is left at `out`.
    """
    files = paths(inputs)
    kind, number = _preference(prefer, files)
    named = [] if prefixes is None else texts(prefixes)
    save = save_options(options, out, files)
    search_in = paths(search)
    return _warned("merged", out, _core.merge(files, out, kind, number, named, metadata, access, search_in, save))


@suggests
def migrate(
    path: Path,
    out: Path,
    *,
    to: Literal["0.1", "1.0"] | str,
    across_major: bool = False,
    access: Access = "mapped",
    search: Iterable[Path] = (),
    **options: Unpack[SaveOptions],
) -> MigrateResult:
    """Writes a checkpoint as a file of another version of the format, as `thalia migrate` does.

    An `out` that ends in .zst or .lz4 is compressed as a whole.

    to: "0.1", the original program's, or "1.0".
    across_major: go down from 1.0 to 0.1, with the losses that the result lists.
    search: folders in which bases are looked for that are not where their delta says.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises UsageError for a loss that was not asked for, ExistsError; UnsupportedError for what
    neither version has a place for; IoError, FormatError, IntegrityError.
    """
    save = save_options(options, out, (path,))
    return _log.done("migrated", out, _core.migrate(path, out, to, across_major, access, paths(search), save))


def _warned(what: str, out: Path, result: ConvertResult) -> ConvertResult:
    for warning in result.warnings:
        warn_caller(warning)
    return _log.done(what, out, result)


def _preference(prefer: Path | None, inputs: list[Path]) -> tuple[str, int]:
    if prefer is None:
        return "none", 0
    if prefer in ("first", "last"):
        return str(prefer), 0
    for number, path in enumerate(inputs):
        if os.path.abspath(path) == os.path.abspath(prefer):
            return "input", number
    raise make_error(
        UsageError,
        f"prefer: {os.fspath(prefer)!r}, expected first, last, one of the files that are merged",
        "bad_argument",
        field="prefer",
        value=os.fspath(prefer),
        expected="first, last, one of the files that are merged",
    )


def _region_names(path: Path, names: list[str], access: str, search: list[Path]) -> list[str]:
    """Patterns replaced by the names of the regions that match them, each once."""
    if not any(re.search(r"[*?]", name) for name in names):
        return names
    file = _core.File.open(path, access, "off", 0, search)
    all_names = [file.region(i).name for i in range(len(file))]
    found: dict[str, None] = {}
    for name in names:
        if name in all_names or not re.search(r"[*?]", name):
            found[name] = None
            continue
        fitting = [region for region in all_names if fits(name, region)]
        if not fitting:
            raise make_error(
                NotFoundError,
                f"{os.fspath(path)}: no region fits {name!r}",
                "not_found",
                path=os.fspath(path),
                field="regions",
                value=name,
            )
        found.update(dict.fromkeys(fitting))
    return list(found)


def fits(pattern: str, name: str) -> bool:
    """As patterns of tensors: "." and "/" are the same, and what follows one of them may fit."""
    parts = {"*": ".*", "?": ".", ".": "[./]", "/": "[./]"}
    expression = "".join(parts.get(character) or re.escape(character) for character in pattern)
    return re.fullmatch(f"(.*[./])?{expression}", name, re.DOTALL) is not None
