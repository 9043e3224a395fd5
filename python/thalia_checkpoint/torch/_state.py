"""What of a file a module is loaded from: the state dict that load() would give, without its tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from .._files.any_file import AnyFile, parts
from .._files.file import File
from .._files.tensor import Tensor
from .._leaves import NO_LEAF, checked, tree_rules, value_of
from .._objects.tree import tree_of
from ..errors import UsageError, make_error
from . import _tree
from ._decode import Decoder
from ._module import EXTRA_STATE, ModulePlaces
from ._tensors import element_dtype, torch_shape

Rename = Mapping[str, str] | Callable[[str], str | None]


class Entry(NamedTuple):
    """A value of the state dict."""

    tensor: Tensor | None
    """The tensor of the file that it is, whole; None for a part of one, and for what is no tensor."""
    part: File | AnyFile
    """Where it lies."""
    node: Any
    """The node of the tree that the file has; None if it has none."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """None for what is no tensor."""
        if self.tensor is not None:
            return torch_shape(self.tensor)
        with tree_rules():
            return tuple(self.node["view"]["shape"]) if _tree.is_tensor(self.node) else None

    @property
    def dtype(self) -> tuple[str, torch.dtype | None]:
        """What the file calls it, and torch."""
        if self.tensor is not None:
            return self.tensor.dtype, element_dtype(self.tensor)
        with tree_rules():
            dtype = _tree.dtype_of(self.node["view"]["dtype"])
            return str(dtype), dtype


class FileState:
    """The names of a file under a prefix, without it and renamed, and what they stand for."""

    def __init__(self, file: File | AnyFile, prefix: str, rename: Rename | None) -> None:
        """Raises FormatError for a tree that breaks the rules; UsageError for another rename."""
        self.path = file.path
        self._prefix = prefix
        self._rename = _renaming(rename)
        self._parts = parts(file)
        tree, self._attributes = tree_of(file)
        self._tree = None if tree is None else checked(tree, self.path)
        with tree_rules(self.path):
            if self._tree is not None and _tree.members(self._tree) is None:
                self._tree = None  # one value: no state dict
            self.names = list(file.tensors) if self._tree is None else list(_tree.names(self._tree))
            """The names of all tensors, as the file has them."""
        self._by_name: dict[str, Tensor] = {}
        if self._tree is not None:
            self._by_name = {tensor.name: tensor for tensor in file.tensors.values()}

    def own_names(self) -> set[str]:
        """The names of the tensors under the prefix, as the module calls them."""
        found = (self._own(name) for name in self.names if name.startswith(self._prefix))
        return {name for name in found if name is not None}

    def entries(self, places: ModulePlaces) -> dict[str, Entry]:
        """Values by the names that they have in the module, in the order of the file.

        Containers in the state dict come apart, save where the module takes one whole. Raises
        FormatError; UsageError where two get one name.
        """
        found: dict[str, Entry] = {}
        if self._tree is None:
            for part in self._parts:
                for name, tensor in part.tensors.items():
                    if name.startswith(self._prefix) and (own := self._own(name)) is not None:
                        _add(found, own, Entry(tensor, part, None))
            return found
        with tree_rules(self.path):
            for name, node in self._values(places):
                _add(found, name, self._entry(node))
        return found

    def decoder(self, read: Callable[[Tensor], torch.Tensor]) -> Callable[[Entry], Any]:
        """Gives what load() would for an entry; parts of one stored tensor share its memory."""
        decoder = Decoder(lambda name: read(self._by_name[name]), lambda name: self._by_name[name].numpy(writable=True))

        def value(entry: Entry) -> Any:
            if entry.tensor is not None:
                return read(entry.tensor)
            with tree_rules(self.path):
                return decoder.value(entry.node)

        return value

    def metadata(self) -> dict[str, Any]:
        """What torch keeps as _metadata of the state dict: by the paths of modules, their versions."""
        found: dict[str, Any] = {}
        if self._tree is None:
            return found
        with tree_rules(self.path):
            for path, node in _tree.listed(self._attributes):
                versions = value_of(node, lambda _: NO_LEAF)
                for own, version in versions.items() if isinstance(versions, dict) else ():
                    # The path of a module is what is left of the name of a member of it.
                    name = ".".join(filter(None, (path, str(own), _MEMBER)))
                    renamed = self._own(name) if name.startswith(self._prefix) else None
                    # torch trusts them.
                    is_version = isinstance(version, dict) and isinstance(version.get("version"), int | None)
                    if is_version and renamed is not None and renamed.endswith(_MEMBER):
                        found[renamed.removesuffix(_MEMBER).removesuffix(".")] = version
        return found

    def _own(self, name: str) -> str | None:
        return self._rename(name.removeprefix(self._prefix))

    def _entry(self, node: Any) -> Entry:
        tensor = None
        if _tree.is_tensor(node) and "view" not in node:
            tensor = self._by_name[next(node[kind] for kind in _tree.TENSORS if kind in node)]
        return Entry(tensor, self._parts[0], node)

    def _values(self, places: ModulePlaces) -> Iterator[tuple[str, Any]]:
        """Names and nodes of the state dict."""

        def under(path: str, node: Any) -> Iterator[tuple[str, Any]]:
            """What the prefix begins with, or what begins with it."""
            for key, inner in _tree.members(node) or ():
                name = f"{path}{key}"
                if name.startswith(self._prefix):
                    yield from taken(name, inner, True)
                elif self._prefix.startswith(f"{name}."):
                    yield from under(f"{name}.", inner)

        def taken(name: str, node: Any, known: bool) -> Iterator[tuple[str, Any]]:
            """known: it is in the state dict of a module, and not in anything else that the file holds."""
            own = self._own(name)
            inner = _tree.members(node)
            if own is not None and (inner is None or _takes_whole(places, own)):
                # Outside the state dict of a module, tensors are enough.
                if known or _tree.is_tensor(node) or own in places.tensors or _takes_whole(places, own):
                    yield own, node
            elif inner is not None and (own in places.paths or any(_tree.names(node))):
                for key, value in inner:
                    yield from taken(f"{name}.{key}", value, own in places.paths)
            elif own is not None and known:
                yield own, node

        yield from under("", self._tree)


#: A name that no module's member has.
_MEMBER = "\0"


def _takes_whole(places: ModulePlaces, name: str) -> bool:
    """Whether the module takes a value of any kind under this name."""
    return (
        name in places.extra
        or (name not in places.paths and places.is_deferred(name))
        or (name == EXTRA_STATE or name.endswith(f".{EXTRA_STATE}"))
    )


def _add(found: dict[str, Entry], name: str, entry: Entry) -> None:
    if name in found:
        raise make_error(
            UsageError,
            f"two tensors of the file are called {name!r} in the module",
            "bad_argument",
            field="rename",
            tensor=name,
            value=name,
            expected="names that differ",
        )
    found[name] = entry


def _renaming(rename: Rename | None) -> Callable[[str], str | None]:
    if rename is None:
        return lambda name: name
    if not isinstance(rename, Mapping):
        if not callable(rename):
            raise make_error(
                UsageError,
                f"rename: got {rename!r}, expected a dictionary, a function or 'auto'",
                "bad_argument",
                field="rename",
                value=repr(rename),
            )
        return rename
    beginnings = dict(rename)

    def changed(name: str) -> str:
        for old, new in beginnings.items():
            if name.startswith(old):
                return new + name.removeprefix(old)
        return name

    return changed
