"""Names that are not there: what is said of them, and look-ups that say nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar, overload

from . import _core
from .errors import NotFoundError, make_error

#: Names that are compared with one that was mistyped.
_MOST = 10_000
_Value = TypeVar("_Value")
_Other = TypeVar("_Other")


def not_found(text: str, name: str, names: Iterable[str], **facts: str) -> Exception:
    """A NotFoundError that says which of the names was probably meant.

    facts: attributes of the error.
    """
    hint = _core.suggestion(name, list(islice(names, _MOST)))
    return make_error(NotFoundError, f"{text}{hint}", "not_found", **facts)


class ByName(Mapping[str, _Value]):
    """A mapping whose __contains__() is cheap: get() asks it, and compares no names."""

    @overload
    def get(self, key: str, default: None = None, /) -> _Value | None: ...
    @overload
    def get(self, key: str, default: _Value | _Other, /) -> _Value | _Other: ...
    def get(self, key: str, default: Any = None, /) -> Any:
        """What has the name, or the default."""
        return self[key] if key in self else default
