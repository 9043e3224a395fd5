"""Tensors of a file on demand, of which a part stays in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .. import _core
from .._core import ParamInfo, ParamStatistics
from .._files.any_file import AnyFile
from .._files.flat import FlatSource
from .._files.source import Buffer
from .._files.tensor import Tensor
from .._keywords import suggests
from .._missing import not_found
from .._support import OpenHere, paths
from ..errors import NotFoundError, UsageError, make_error

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import Access, Path, Verification

__all__ = [
    "ParamInfo",
    "ParamResolver",
    "ParamSource",
    "ParamStatistics",
    "base_param_id",
    "param_key",
    "stream_params",
]

_Form = TypeVar("_Form")


def base_param_id(name: str) -> str:
    """The id that gpt.rs gives a parameter of this name: 32 hexadecimal digits. Raises UsageError for a
    name that is not ASCII, which has none."""
    return _core.base_param_id(name)


def param_key(model: int, id: str) -> str:
    """The key of a parameter of one model of a process: 32 hexadecimal digits.

    model: ParamSource.model, or any number of 128 bits. id: of base_param_id(). Raises UsageError.
    """
    return _core.param_key(_model_text(model), id)


def _model_text(model: int) -> str:
    if not 0 <= model < 1 << 128:
        raise _wrong("model", str(model), "0 to 2^128 - 1")
    return f"{model:032x}"


def _wrong(field: str, value: str, expected: str) -> Exception:
    text = f"{field} {value}; expected {expected}"
    return make_error(UsageError, text, "bad_argument", field=field, value=value, expected=expected)


class ParamResolver:
    """Forms that are derived from parameters, packed, transposed, of another type: each is made once, and
    kept by the parameter's key and its own name, so that one resolver serves all models of a process.

    Nothing goes by itself: forget() and clear() let go. Any number of threads may use one: different
    forms are made at once, and one that several ask for is made once, while the others wait.
    """

    def __init__(self) -> None:
        self._raw = _core.ParamResolver()

    def resolve(self, key: str, form: str, make: Callable[[], _Form]) -> _Form:
        """What make() returned when this form of this parameter was first asked for.

        key: ParamInfo.key, or of param_key(). make() may resolve other forms, but none that waits for
        this one. Raises what make() raises, and then nothing is kept; UsageError for a text that is not a
        key, and where make() asks for what it makes.
        """
        return cast("_Form", self._raw.resolve(key, form, make))

    def forget(self, key: str) -> int:
        """Lets go of all forms of a parameter, as after its numbers were changed; returns their number.
        Raises UsageError for a text that is not a key."""
        return self._raw.forget(key)

    def clear(self) -> int:
        """Lets go of all forms, and returns their number."""
        return self._raw.clear()

    def __len__(self) -> int:
        """Forms that are kept."""
        return self._raw.size()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<ParamResolver: {len(self)} forms>"


@suggests
class ParamSource(OpenHere):
    """The tensors of a file, of any format, one at a time, with a part of them kept in memory.

    A tensor that was read is kept if it is pinned, or if there is a budget. To make room those that
    were used longest ago go, never pinned ones. Any number of threads may use one: several tensors
    are read at once, and one that several ask for is read once. stream_params() makes it.
    """

    def __init__(self, raw: _core.ParamSource, resolver: ParamResolver) -> None:
        self._raw = raw
        self.resolver = resolver
        """Where derived() keeps forms."""
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

    @property
    def model(self) -> int:
        """The model that the keys of the parameters belong to: 1, 2, 3 and so on in a process unless it was given."""
        return int(self._raw.model, 16)

    def load(self, name: str | None = None, *, id: str | None = None, key: str | None = None) -> npt.NDArray[Any]:
        """All elements of a tensor, and the zeros of a sparse one; read-only if they are what is kept.

        The tensor's name, or its id or key as in ParamInfo: one of the three.

        Raises NotFoundError; UsageError unless one is given, and for a text that is not an id or a key;
        FormatError, IntegrityError, IoError. The next call tries again.
        """
        param = self._find(name, id, key)
        return Tensor(_Loaded(param, self._raw.load(param.name))).dense()

    def _find(self, name: str | None, id: str | None, key: str | None) -> ParamInfo:
        given = {what: value for what, value in (("name", name), ("id", id), ("key", key)) if value is not None}
        if len(given) != 1:
            raise _wrong("name", " and ".join(given) or "none", "one of name, id and key")
        if name is not None:
            if name not in self.params:
                raise not_found(f"{name}: no such tensor", name, self.params, tensor=name)
            return self.params[name]
        found = self._raw.find(id, key)
        if found is None:
            ((field, value),) = given.items()
            text = f"no tensor of the file has the {field} {value}"
            raise make_error(NotFoundError, text, "not_found", field=field, value=value)
        return found

    def derived(self, name: str, form: str, make: Callable[[npt.NDArray[Any]], _Form]) -> _Form:
        """What make(load(name)) returned when this form of the tensor was first asked for; later, the
        tensor is not read. The resolver keeps it under the parameter's key.

        Raises as load() and ParamResolver.resolve(); UsageError for a name that is not ASCII.
        """
        param = self._find(name, None, None)
        key = param.key or param_key(self.model, base_param_id(name))
        return self.resolver.resolve(key, form, lambda: make(self.load(name)))

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
    model: int | None = None,
    resolver: ParamResolver | None = None,
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
    model: what the keys of the parameters follow from, with their ids; another for each model of the
        process. None: one that no other call has had.
    resolver: of derived(), if several models share one.
    access, verification, threads, search, dequantize, legacy: as of open(), where `file` is a path.

    Raises as open(); UsageError for a share outside of 0 to 1, a model outside of 0 to 2^128 - 1, and a
    file that was closed.
    """
    if isinstance(file, AnyFile):
        raw = file._raw
    else:
        raw = _core.AnyFile.open(file, access, verification, threads, paths(search), dequantize, legacy, False)
    return ParamSource(
        _core.ParamSource.open(
            raw,
            budget_bytes,
            budget_share,
            budget_cap_bytes,
            prefetch_layers,
            small_bytes,
            None if model is None else _model_text(model),
        ),
        resolver or ParamResolver(),
    )
