"""What of a tree holds no tensors: values as NODEs of JSON, and back. No torch is needed.

docs/use/python.md, "What a tree looks like".
"""

from __future__ import annotations

import base64
import datetime
import enum
import io
import math
import pathlib
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeGuard

from .errors import FormatError, UnsupportedError, make_error

#: The member of a file's metadata that holds the tree.
MEMBER = "thalia_checkpoint"
VERSION = 1
#: Containers in each other. Each is up to three levels of JSON, of which a file may have 256.
DEPTH = 80
#: The most bits of an integer. Python does not read longer ones from a text.
INT_BITS = 14_000
#: The most keys that Python takes to the same place of a table, where each is compared with all before it.
ALIKE = 256
#: What leaf_node() gives for a value that is no leaf.
NO_LEAF = object()
#: The members of a NODE that say what class its value had, and which member of an enumeration it was.
CLASS, NAME = "class", "name"


def leaf_node(value: Any) -> Any:
    """The NODE of null, a boolean, text, number, bytes, path, time or stream in memory; NO_LEAF for anything else.

    A text that UTF-8 has no bytes for is not a leaf, nor is an integer of more than INT_BITS bits. A value
    of a class that is made of text or numbers, such as numpy.str_ or an IntEnum, is kept as the text or
    number.
    """
    kind = type(value)
    if kind is dict or kind is list or kind is tuple:  # most of what is no leaf
        return NO_LEAF
    if value is None or kind is bool or (kind is str and is_text(value)):
        return value
    if kind is int and value.bit_length() <= INT_BITS:
        return value if abs(value) < 1 << 53 else {"int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": _base64(value)}
    if isinstance(value, pathlib.PurePath):
        return {"path": str(value)} if is_text(str(value)) else NO_LEAF
    if isinstance(value, io.BytesIO):
        return NO_LEAF if value.closed else {"bytesio": [_base64(value.getbuffer()), value.tell()]}
    base = _base_of(value)
    if base is not None:
        return leaf_node(base)
    return _written(value, kind)


def _written(value: Any, kind: type) -> Any:
    """The NODE of what has a text of its own, by the name of its class, as few programs import all of these."""
    found = _TEXTS.get(f"{kind.__module__}.{kind.__qualname__}")
    if found is not None:
        node = {found[0]: found[1](value)}
        return node if is_text(node[found[0]]) else NO_LEAF
    if kind is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    return NO_LEAF


def _base64(data: Any) -> str:
    return base64.b64encode(data).decode("ascii")


#: What holds the text of a value, and how it is made.
_TEXTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "datetime.datetime": ("datetime", lambda value: value.isoformat()),
    "datetime.date": ("date", lambda value: value.isoformat()),
    "datetime.time": ("time", lambda value: value.isoformat()),
    "decimal.Decimal": ("decimal", str),
    "uuid.UUID": ("uuid", str),
}


def _base_of(value: Any) -> str | int | float | None:
    """What a value of a class of texts or numbers is without that class; None for any other."""
    if isinstance(value, str) and type(value) is not str:
        return str.__str__(value)
    if isinstance(value, int) and type(value) is not int:
        return int.__index__(value)
    # numpy's are numbers of their own.
    if isinstance(value, float) and type(value) is not float and not hasattr(value, "dtype"):
        return float.__float__(value)
    return None


def deque_node(value: deque[Any], nodes: list[Any]) -> dict[str, Any]:
    """The NODE of a deque, given those of its members."""
    return {"deque": nodes} if value.maxlen is None else {"deque": nodes, "maxlen": value.maxlen}


def plain(value: Any) -> Any:
    """The container that a value of a class of containers is without that class: of a namedtuple the
    tuple. NO_LEAF for any other value, and for plain ones."""
    for cls in (OrderedDict, Counter, dict, list, tuple, set, frozenset, deque):
        if isinstance(value, cls) and type(value) is not cls:
            return deque(value, value.maxlen) if isinstance(value, deque) else cls(value)
    return NO_LEAF


def method_of(value: object, name: str) -> Callable[[], Any] | None:
    """A method of an object; None if it has none. A dictionary whose keys are its attributes is not asked for one that
    its class does not have: that may make the key, or raise."""
    if isinstance(value, type) or (isinstance(value, Mapping) and not hasattr(type(value), name)):
        return None
    try:
        found = getattr(value, name, None)
    except LookupError:  # of an object that looks its attributes up in a dictionary
        return None
    return found if callable(found) else None


def is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text that a file can hold: one without half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def described(value: object) -> str:
    """What an error says of a value that no file holds, and what to save in its place."""
    if isinstance(value, str | pathlib.PurePath):
        return "a text that UTF-8 has no bytes for"
    if isinstance(value, int):
        return f"an integer of more than {INT_BITS} bits"
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    for cls, instead in _INSTEAD.items():
        if isinstance(value, cls) if isinstance(cls, type) else name == cls:
            return f"{name} ({instead} can be saved)"
    return name


#: By classes, or names of those that need not be imported: what to save of one that no file holds.
_INSTEAD: dict[type | str, str] = {
    "fractions.Fraction": "its str()",
    io.BytesIO: "its bytes, before it is closed,",
    io.StringIO: "its getvalue()",
    enum.Enum: "its value",
    memoryview: "its tobytes()",
    io.IOBase: "its name, or its contents,",
    Mapping: "dict() of it",
    Iterable: "list() of it",
}


class Walk:
    """Through a value that becomes a tree: what names its tensors have, and which containers are open."""

    def __init__(self, expected: str) -> None:
        """expected: what can be saved, for messages."""
        self._expected = expected
        self._names: set[str] = set()
        self._open: set[int] = set()  # containers that this one lies in

    def name(self, path: tuple[str, ...]) -> str:
        """For a tensor at that path; no other's."""
        name = ".".join(path) or "tensor"
        unique, n = name, 1
        while unique in self._names:
            n += 1
            unique = f"{name}#{n}"
        self._names.add(unique)
        return unique

    @contextmanager
    def inside(self, container: Any, path: tuple[str, ...]) -> Iterator[None]:
        """Raises UnsupportedError for a container that holds itself, and for too many in each other."""
        if id(container) in self._open:
            raise self.cannot(path, "a container that holds itself")
        if len(self._open) >= DEPTH:
            raise self.cannot(path, f"more than {DEPTH} containers in each other")
        self._open.add(id(container))
        try:
            yield
        finally:
            self._open.discard(id(container))

    def cannot(self, path: tuple[str, ...], what: str) -> Exception:
        """UnsupportedError that names the place."""
        where = ".".join(path) or "the object itself"
        return make_error(
            UnsupportedError,
            f"{where}: cannot save {what}; expected {self._expected}",
            "unsupported_feature",
            field=where,
            value=what,
        )


def checked(tree: Any, where: str) -> Any:
    """The root NODE of what a file's metadata has under MEMBER. Raises FormatError that names the file."""
    if isinstance(tree, dict) and tree.get("version") == VERSION:
        return tree.get("tree")
    raise make_error(
        FormatError,
        f"{where}: metadata.{MEMBER}.version: expected {VERSION}",
        "unsupported_version",
        path=where,
        section="metadata",
    )


def set_members(value: set[Any] | frozenset[Any]) -> list[Any]:
    """In an order that does not depend on the process."""
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=repr)


def _stream(parts: Any) -> io.BytesIO:
    data, position = parts
    stream = io.BytesIO(base64.b64decode(data))
    stream.seek(position)
    return stream


def _decimal(text: Any) -> Any:
    import decimal

    return decimal.Decimal(_text(text))


def _uuid(text: Any) -> Any:
    import uuid

    return uuid.UUID(_text(text))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is no text")


def _timedelta(parts: Any) -> datetime.timedelta:
    days, seconds, microseconds = parts
    return datetime.timedelta(days, seconds, microseconds)


def _as_it_is(value: Any) -> Any:
    """What is no object of JSON, and no array."""
    if isinstance(value, dict | list):
        raise TypeError("an object or an array as a value")
    return value


#: What makes a value of what a NODE's one member holds.
LEAVES: dict[str, Callable[[Any], Any]] = {
    "value": _as_it_is,
    "int": int,
    "float": float,
    "bytes": base64.b64decode,
    "bytesio": _stream,
    "complex": lambda parts: complex(float(parts[0]), float(parts[1])),
    "path": pathlib.Path,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": _timedelta,
    "decimal": _decimal,
    "uuid": _uuid,
}
#: The same of those that hold pairs of keys and values.
MAPPINGS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "ordered": OrderedDict,
    "counter": lambda pairs: Counter(dict(pairs)),
}
#: Their kinds by their classes.
KINDS: dict[type, str] = {dict: "dict", defaultdict: "dict", OrderedDict: "ordered", Counter: "counter"}


def dict_of(kind: str, pairs: list[tuple[Any, Any]]) -> Any:
    """The dictionary of one of MAPPINGS. Raises FormatError for keys that hash alike."""
    _check_hashes([key for key, _ in pairs])
    return MAPPINGS[kind](pairs)


def _set_of(cls: Callable[[list[Any]], Any]) -> Callable[[Iterable[Any]], Any]:
    def make(members: Iterable[Any]) -> Any:
        known = list(members)
        _check_hashes(known)
        return cls(known)

    return make


def _check_hashes(keys: list[Any]) -> None:
    """The hashes of texts are a secret of the process; those of numbers and tuples are not: anybody who writes
    a file can choose as many as it takes to keep its reader busy for hours."""
    if len(keys) <= ALIKE or all(type(key) is str for key in keys):
        return
    ((_, most),) = Counter(map(hash, keys)).most_common(1)
    if most > ALIKE:
        raise make_error(
            FormatError,
            f"metadata.{MEMBER}: {most} keys of one dictionary hash alike, expected at most {ALIKE}",
            "limit_exceeded",
            section="metadata",
            field=MEMBER,
            value=str(most),
            expected=f"at most {ALIKE}",
        )


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": _set_of(set),
    "frozenset": _set_of(frozenset),
}


@contextmanager
def tree_rules(path: str | None = None) -> Iterator[None]:
    """For what reads a tree, each of whose members may be anything: what it raises is the tree's fault.

    path: of the file. Raises FormatError in its place.
    """
    try:
        yield
    except FormatError:
        raise  # of the file that the tree is of
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise make_error(
            FormatError,
            f"{f'{path}: ' if path else ''}metadata.{MEMBER}: the tree breaks the rules: {error}",
            "bad_value",
            path=path,
            section="metadata",
            field=MEMBER,
        ) from None  # its text may be a name of the file's, as it is there


def _namespace() -> Any:
    import argparse

    return argparse.Namespace()


#: All classes that a name in a file leads to. Nothing else of it is looked for, or imported.
_RESTORED: dict[str, Callable[[], Any]] = {"argparse.Namespace": _namespace, "types.SimpleNamespace": SimpleNamespace}


def restored(name: Any, found: Any) -> Any:
    """What a NODE with this class stands for, given the value without it."""
    make = _RESTORED.get(name)
    if make is None:
        return found
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{name} of something else than attributes")
    made = make()
    vars(made).update(found)
    return made


def bare(node: dict[str, Any]) -> dict[str, Any]:
    """A NODE without what it says of the class of its value."""
    return {kind: inner for kind, inner in node.items() if kind not in (CLASS, NAME)} if CLASS in node else node


def value_of(node: Any, special: Callable[[dict[str, Any]], Any], depth: int = 0) -> Any:
    """What a NODE stands for, within tree_rules().

    special: makes what is no leaf and no container; NO_LEAF for these.
    """
    if depth > DEPTH:
        raise ValueError(f"more than {DEPTH} containers in each other")
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if CLASS in node:
        return restored(node[CLASS], value_of(bare(node), special, depth))
    if "deque" in node:
        return deque((value_of(v, special, depth + 1) for v in node["deque"]), node.get("maxlen"))
    found = special(node)
    if found is not NO_LEAF:
        return found
    ((kind, inner),) = node.items()
    if kind in MAPPINGS:
        return dict_of(kind, [(value_of(k, special, depth + 1), value_of(v, special, depth + 1)) for k, v in inner])
    if kind in CONTAINERS:
        return CONTAINERS[kind](value_of(v, special, depth + 1) for v in inner)
    return LEAVES[kind](inner)
