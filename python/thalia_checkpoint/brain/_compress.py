"""A brain's checkpoint compressed as a whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._keywords import suggests
from .._operations.convert import migrate
from .._operations.wrap import WrapResult, compress
from .._types import Path
from ..errors import UsageError, make_error

if TYPE_CHECKING:
    from typing import Unpack

    from ._options import WrapOptions


@suggests
def compress_checkpoint(
    input_path: Path,
    output_path: Path,
    algorithm: Literal["zstd", "lz4"] | None = None,
    level: int | None = None,
    **options: Unpack[WrapOptions],
) -> WrapResult:
    """Compresses a checkpoint of any kind as a whole; it loads as before.

    algorithm: by itself as output_path ends, in .zst or .lz4; of a file of the original program it has
    to be that. level: 1 to 22 of zstd, 1 to 12 of lz4. options: those of compress(); a file at
    output_path is replaced unless replace=False.
    Raises UsageError, IoError. A delta is to stay in its folder: it finds its base from there.
    """
    given: dict[str, Any] = {"replace": True, **options}
    if _core.detect_format(input_path) != "thalia-0.1":
        return compress(input_path, output_path, compression=algorithm, compression_level=level, **given)
    # It reads one frame alone, and a checksum after it.
    codec = _core.frames_of_name(output_path)
    if codec is None or algorithm not in (None, codec):
        raise make_error(
            UsageError,
            f"{os.fspath(output_path)}: expected a name that ends in .zst or .lz4, as the algorithm says",
            "bad_argument",
            path=os.fspath(output_path),
            field="output_path",
        )
    result = migrate(input_path, output_path, to="0.1", compression_level=level, **given)
    return WrapResult(codec, 1, result.input_bytes, result.output_bytes, result.seconds)
