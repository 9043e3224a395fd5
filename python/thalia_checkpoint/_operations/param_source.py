"""Tensors of a file on demand, of which a part stays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import ParamInfo, ParamStatistics
from .._files.any_file import AnyFile
from .._files.flat import FlatSource
from .._files.source import Buffer
from .._files.tensor import Tensor
from .._keywords import suggests
from .._missing import not_found
from .._support import paths

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import Access, Path, Verification

__all__ = ["ParamInfo", "ParamSource", "ParamStatistics", "stream_params"]


@suggests
class ParamSource:
    """The tensors of a file, of any format, one at a time, with a part of them kept in memory.

    A tensor that was read is kept if it is pinned, or if there is a budget. To make room those that
    were used longest ago go, never pinned ones. Any number of threads may use one: several tensors
    are read at once, and one that several ask for is read once. stream_params() makes it.
    """

    def __init__(self, raw: _core.ParamSource) -> None:
        self._raw = raw
        self.params: dict[str, ParamInfo] = {param.name: param for param in raw.params}
        """By their names, in the order of the file."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors."""
        return self._raw.total_bytes

    @property
    def budget_bytes(self) -> int | None:
        """The most bytes of the tensors that stay in memory; None: there is no limit."""
        return self._raw.budget_bytes

    def load(self, name: str) -> npt.NDArray[Any]:
        """All elements of a tensor, and the zeros of a sparse one; read-only if they are what is kept.

        Raises NotFoundError; FormatError, IntegrityError, IoError. The next call tries again.
        """
        if name not in self.params:
            raise not_found(f"{name}: no such tensor", name, self.params, tensor=name)
        return Tensor(_Loaded(self.params[name], self._raw.load(name))).dense()

    def prefetch(self, *, threads: int = 0) -> None:
        """Loads the tensors of the first `prefetch_layers` layers as far as they fit, layer by layer; what
        is kept already is not read. Raises as load(). Ctrl-C ends it."""
        self._raw.prefetch(threads)

    @property
    def statistics(self) -> ParamStatistics:
        """Up to now."""
        return self._raw.statistics

    def __repr__(self) -> str:
        return f"<ParamSource: {len(self.params)} tensors>"


class _Loaded(FlatSource):
    """A tensor in memory."""

    __slots__ = ("_arrays", "_stored_bytes", "encoding", "wide_indices")

    def __init__(self, of: ParamInfo, arrays: Sequence[Buffer]) -> None:
        super().__init__(0, of.name, of.dtype, of.shape, arrays[0])
        self.encoding = of.encoding
        self.wide_indices = of.wide_indices
        self._arrays = arrays
        self._stored_bytes = of.stored_bytes

    @property
    def stored_bytes(self) -> int:
        return self._stored_bytes

    def sparse(self) -> Sequence[Buffer]:
        return self._arrays


@suggests
def stream_params(
    file: Path | AnyFile,
    *,
    budget_bytes: int | None = None,
    budget_share: float | None = None,
    budget_cap_bytes: int | None = None,
    prefetch_layers: int = 0,
    small_bytes: int | None = None,
    access: Access = "mapped",
    verification: Verification = "on_first_touch",
    threads: int = 0,
    search: Iterable[Path] = (),
    dequantize: bool = False,
    legacy: bool = False,
) -> ParamSource:
    """The tensors of a file when they are needed: for a model that does not fit into memory and is run
    through layer by layer.

    file: of any format, or the folder or index of a safetensors model; by its path, or open already.
    budget_bytes: of tensors that stay. The smallest of the limits that are given counts; without one
        there is no limit, and only pinned tensors stay.
    budget_share: the same as a share of all tensors' bytes, 0 to 1.
    budget_cap_bytes: what the machine allows, whatever is asked for.
    prefetch_layers: tensors of layers below this number are pinned; prefetch() loads them.
    small_bytes: tensors of at most so many bytes are pinned.
    access, verification, threads, search, dequantize, legacy: as of open(), where `file` is a path.

    Raises as open(); UsageError for a share outside of 0 to 1, and for a file that was closed.
    """
    if isinstance(file, AnyFile):
        raw = file._raw
    else:
        raw = _core.AnyFile.open(file, access, verification, threads, paths(search), dequantize, legacy, False)
    return ParamSource(
        _core.ParamSource.open(raw, budget_bytes, budget_share, budget_cap_bytes, prefetch_layers, small_bytes)
    )
