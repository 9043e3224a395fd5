"""What a notebook shows of files and reports: plain tables, which have the colours of the page that they are on.

Names and texts come from files that anybody wrote: each is cut, made printable and escaped. A table has
the first rows of many, and looks at no more than these.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ._core import human_bytes, printable
from .errors import ThaliaError

if TYPE_CHECKING:
    from ._files.tensor import Tensor

#: Rows of a table.
ROWS = 50
#: Rows of a table in a report, and columns of any.
_FEW = 20
#: Characters of a cell.
_WIDTH = 120
#: Elements of a container in a cell.
_ELEMENTS = 8
#: Containers in each other in a cell.
_DEPTH = 3


class Shown:
    """A report of this package's own; those of the library have the same method."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return of_result(self)


def of_tensors(title: str, tensors: Iterable[Tensor], count: int, *, named: Sequence[str] = ()) -> str:
    """A table of the first tensors of `count`. named: their names, if these are not the tensors' own."""

    def rows() -> Iterator[Sequence[object]]:
        for i, tensor in enumerate(tensors):
            shape = list(tensor.shape)
            stored = ", ".join(codec for codec in tensor.codecs if codec != "none")
            kind = " ".join(filter(None, ["" if tensor.encoding == "dense" else tensor.encoding, stored]))
            name = named[i] if i < len(named) else tensor.path
            yield name, tensor.dtype, shape, human_bytes(tensor.nbytes), human_bytes(tensor.stored_bytes), kind

    return _table(title, ("name", "dtype", "shape", "size", "stored", "as"), rows(), count, ROWS)


def of_rows(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of what is no tensor."""
    return _table(title, heads, rows, len(rows), ROWS)


def of_result(result: Any) -> str:
    """The fields of a report; those that are lists of others in tables of their own."""
    rows: list[tuple[str, object]] = []
    tables: list[str] = []
    for name in _fields(result):
        value = getattr(result, name)
        if isinstance(value, tuple | list) and len(value) and _fields(value[0]):
            rows.append((name, len(value)))
            fields = _fields(value[0])[:_FEW]
            records = ([getattr(each, field, None) for field in fields] for each in value)
            tables.append(_table(name, fields, records, len(value), _FEW))
        elif isinstance(value, tuple | list) and len(value) > 1 and isinstance(value[0], str):
            rows.append((name, len(value)))
            tables.append(_table(name, ("",), ([each] for each in value), len(value), _FEW))
        else:
            rows.append((name, value))
    title = type(result).__name__
    return "".join([_table(title, ("field", "value"), rows, len(rows), ROWS), *tables])


def of_repr(value: object) -> str:
    """Its repr(), where there is no table of it."""
    return f"<code>{_escaped(repr(value))}</code>"


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], count: int, most: int) -> str:
    parts = [f"<table><caption>{_escaped(title)}</caption>"]
    if any(heads):
        parts.append(f"<thead><tr>{''.join(f'<th>{_escaped(head)}</th>' for head in heads)}</tr></thead>")
    parts.append("<tbody>")
    shown = 0
    try:
        for row in islice(rows, most):
            parts.append(f"<tr>{''.join(f'<td>{_escaped(_short(cell))}</td>' for cell in row)}</tr>")
            shown += 1
    except ThaliaError as error:  # of a damaged file: what is known is shown
        parts.append(_last(heads, str(error)))
        shown = count
    if shown < count:
        parts.append(_last(heads, f"… and {count - shown} more"))
    parts.append("</tbody></table>")
    return "".join(parts)


def _last(heads: Sequence[str], text: str) -> str:
    return f'<tr><td colspan="{len(heads)}">{_escaped(text)}</td></tr>'


def _escaped(text: str) -> str:
    cut = text if len(text) <= 3 * _WIDTH else f"{text[: 3 * _WIDTH]}…"
    import html  # its table of names takes as long to import as most of the package

    return html.escape(printable(cut))


def _fields(value: object) -> tuple[str, ...]:
    """Names of the fields of a result, of a dataclass and of a named tuple."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    names: Any = getattr(kind, "_fields", None) or getattr(kind, "__match_args__", ())
    return tuple(names)


def _short(value: object, depth: int = _DEPTH) -> str:
    """A text of bounded length, made of no more of the value than it shows."""
    if isinstance(value, str):
        return value if len(value) <= _WIDTH else f"{value[:_WIDTH]}…"
    if value is None or isinstance(value, bool | float):
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_WIDTH else "a long number"
    if isinstance(value, os.PathLike):
        return _short(os.fspath(value))
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    many = value if isinstance(value, Mapping | Sequence | set | frozenset) else None
    if fields := _fields(value):
        parts = (
            [f"{name}={_short(getattr(value, name, None), depth - 1)}" for name in fields[:_ELEMENTS]] if depth else []
        )
        return _joined(parts, len(fields), f"{type(value).__name__}(", ")")
    if many is None:
        return f"a {type(value).__name__}"
    if not depth:
        return f"{len(many)} elements"
    if isinstance(many, Mapping):
        pairs = [f"{_short(key, 0)}: {_short(many[key], depth - 1)}" for key in islice(many, _ELEMENTS)]
        return _joined(pairs, len(many), "{", "}")
    return _joined([_short(each, depth - 1) for each in islice(many, _ELEMENTS)], len(many), "[", "]")


def _joined(parts: Sequence[str], count: int, begin: str, end: str) -> str:
    more = ["…"] if len(parts) < count else []
    return f"{begin}{', '.join([*parts, *more])}{end}"
