"""Weights as codes of a few bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import _core, _log
from .._core import QuantizedTensor, QuantizeResult
from .._keywords import suggests
from .._support import save_options, texts

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions
    from .._types import Access, Path

__all__ = ["QuantizeResult", "QuantizedTensor", "quantize"]


@suggests
def quantize(
    path: Path,
    out: Path,
    *,
    bits: float = 8,
    group_size: int = 128,
    adaptive: bool = False,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    min_elements: int = 1024,
    max_generations: int | None = None,
    sensitivity: Path | None = None,
    access: Access = "mapped",
    **options: Unpack[SaveOptions],
) -> QuantizeResult:
    """Writes a .thalia file with its weights as codes of a few bits, as `thalia quantize` does.

    Lossy, and marked so in the file. Readers give weights back in the type that they had. What an
    optimizer keeps, small tensors and matrices of connections stay as they are.

    bits: of a code, 1 to 8; with `adaptive` the mean, which need not be whole.
    group_size: weights that share a minimum and a scale: a multiple of 8 up to 65,536; 0 for all.
    adaptive: each group gets the bits that take most error away.
    include: patterns of the only tensors to quantize, whatever their role.
    exclude: patterns of tensors to leave; "*" stands for any characters, "?" for one.
    min_elements: smaller tensors are left.
    max_generations: how often weights may be rounded, restored and rounded again; the state's own
        limit, or 10.
    sensitivity: a .thalia or safetensors file with a tensor of the same name and size for weights
        whose errors are to be multiplied by it, such as the root of the mean squared gradient.
        These get groups of different widths, as with `adaptive`.
    options: of the file, SaveOptions; a file at `out` is not replaced unless asked for.
    Raises NotFoundError for a pattern that fits no tensor, ExistsError, UsageError for an option
    that cannot be, or weights that were rounded too often; UnsupportedError for a delta; IoError,
    FormatError, IntegrityError. On an error nothing is left at `out`.
    """
    return _log.done(
        "quantized",
        out,
        _core.quantize(
            path,
            out,
            bits,
            group_size,
            adaptive,
            texts(include),
            texts(exclude),
            min_elements,
            max_generations,
            sensitivity,
            access,
            save_options(options, out, (path,) if sensitivity is None else (path, sensitivity)),
        ),
    )
