"""Tensors of a file on their way into a module, once it is known what goes where."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch

from .._files.any_file import AnyFile, verify_ahead
from .._files.file import File
from .._files.memory import claim
from .._files.tensor import Tensor
from .._types import Path
from ._misfit import LoadReport, misfit
from ._module import ModulePlaces, module_places
from ._state import Entry, FileState
from ._tensors import bytes_of, element_dtype, fits, mapped_tensor, overlapping, streamed, tensor_of, torch_shape
from ._tree import ATTRIBUTE


class Filling(NamedTuple):
    """What load_into() was asked for, and found."""

    module: torch.nn.Module
    places: ModulePlaces
    found: Mapping[str, Entry]
    wrong: set[str]
    """Names of what is mismatched, and left out."""
    state: FileState
    path: Path
    strict: bool
    assign: bool
    mmap: bool
    memory_bytes: int | None

    def by_torch(self, names: Iterable[str]) -> None:
        """Into a module that has torch's own code alone."""
        own = self.places.tensors
        # If several names are one tensor in the module, the last is taken.
        names = list({id(own[name]): name for name in names}.values())
        straight = self._straight(names, names)
        new = self._read_whole(straight)
        value = self._decoder()
        new |= {name: value(self.found[name]) for name in names if name not in straight}
        if self.assign:
            _assign(self.module, own, new)
        elif new:
            self.module.load_state_dict(new, strict=False)

    def by_module(self, report: LoadReport) -> LoadReport:
        """Lets the module's load_state_dict() take it all, and asks it what it took.

        report: what is known of it. Raises UsageError for what its code refuses.
        """
        own = self.places.tensors
        straight: dict[str, Tensor] = {}
        if self.assign and self.mmap:
            for part in {id(entry.part): entry.part for entry in self.found.values()}.values():
                verify_ahead(part)
        if not self.assign:
            # What no code sees before torch loads it is read into its place, and loaded as itself.
            uses = Counter(map(id, own.values()))
            names = [name for name in report.loaded if name in own and not self.places.is_touched(name)]
            alone = [name for name in names if uses[id(own[name])] == 1 and not own[name].is_inference()]
            straight = self._straight(alone, own)
            self._read_whole(straight)
        versions = {name: own[name]._version for name in straight}
        result, values = self._load_state_dict(report, straight)
        # Each was copied to itself. If it was changed beside that, nobody knows what it was then.
        if any(own[name]._version != version + 1 for name, version in versions.items()):
            result, values = self._load_state_dict(report, {})
        after = module_places(self.module, values)
        missing = [name for name in getattr(result, "missing_keys", ()) if name not in self.wrong]
        # To a tensor without elements torch copies nothing, with a warning.
        missing += [
            name
            for name, tensor in after.tensors.items()
            if tensor.is_meta and isinstance(values.get(name), torch.Tensor) and not values[name].is_meta
        ]
        unexpected = list(dict.fromkeys([*report.unexpected, *getattr(result, "unexpected_keys", ())]))
        known = [*after.tensors, *after.extra]
        return LoadReport(
            loaded=[name for name in known if name in values and name not in missing]
            + [name for name in values if name not in known and name not in unexpected],
            missing=list(dict.fromkeys(missing)),
            unexpected=unexpected,
            mismatched=report.mismatched,
        )

    def _load_state_dict(self, report: LoadReport, straight: Mapping[str, Tensor]) -> tuple[Any, dict[str, Any]]:
        """What load_state_dict() returns, and what it was given."""
        own, value = self.places.tensors, self._decoder()
        left_out = {*report.unexpected, *self.wrong}
        values: OrderedDict[str, Any] = OrderedDict(
            (name, own[name] if name in straight else value(entry))
            for name, entry in self.found.items()
            if name not in left_out
        )
        if metadata := self.state.metadata():
            setattr(values, ATTRIBUTE, metadata)
        _tie(own, values, self.assign)
        options: dict[str, Any] = {"assign": True} if self.assign else {}
        # One of its own may do anything with it.
        is_own = type(self.module).load_state_dict is not torch.nn.Module.load_state_dict
        try:
            return self.module.load_state_dict(values, strict=self.strict and is_own, **options), values
        except RuntimeError as error:
            first, *lines = str(error).split("\n\t")
            if not first.startswith("Error(s) in loading state_dict"):
                raise
            raise misfit(self.path, report._replace(mismatched=[*report.mismatched, *lines])) from error

    def _decoder(self) -> Callable[[Entry], Any]:
        return self.state.decoder(mapped_tensor if self.assign and self.mmap else tensor_of)

    def _straight(self, names: Iterable[str], among: Iterable[str]) -> dict[str, Tensor]:
        """Those that are read right into their places, which no other of the module's tensors has a part in.

        among: the names of those that may.
        """
        own = self.places.tensors
        straight: dict[str, Tensor] = {}
        for name in names:
            tensor = self.found[name].tensor
            if tensor is not None and torch_shape(tensor) == tuple(own[name].shape):
                straight[name] = tensor
        if not self.assign:
            # What several have in common is written in the order of the module, not of the file.
            plain = [
                name
                for name in among
                if not torch.nn.parameter.is_lazy(own[name]) and type(own[name].detach()) is torch.Tensor
            ]
            for group in overlapping([own[name] for name in plain]):
                for i in group:
                    straight.pop(plain[i], None)
        return straight

    def _read_whole(self, tensors: Mapping[str, Tensor]) -> dict[str, torch.Tensor]:
        """Into their places; to be assigned, into memory of their own, or none but a mapping."""
        new: dict[str, torch.Tensor] = {}
        for part in {id(self.found[name].part): self.found[name].part for name in tensors}.values():
            its = {name: tensor for name, tensor in tensors.items() if self.found[name].part is part}
            if self.assign:
                new |= _read(part, its, self.mmap, self.memory_bytes)
            else:
                _read_in_place(part, its, self.places.tensors, self.memory_bytes)
        return new


def _tie(own: Mapping[str, torch.Tensor], values: dict[str, Any], assign: bool) -> None:
    """Gives all names of one tensor of the module a value, where one of them has it; to assign, the same."""
    of_tensor: dict[int, list[str]] = {}
    for name, tensor in own.items():
        of_tensor.setdefault(id(tensor), []).append(name)
    for names in of_tensor.values():
        there = [name for name in names if isinstance(values.get(name), torch.Tensor)]
        if len(names) < 2 or not there:
            continue
        last, tensor = values[there[-1]], own[names[0]]
        if assign and isinstance(tensor, torch.nn.Parameter):
            last = torch.nn.Parameter(last.detach(), tensor.requires_grad)
        values.update({name: last for name in names if assign or name not in values})


def _assign(module: torch.nn.Module, own: Mapping[str, torch.Tensor], read: Mapping[str, torch.Tensor]) -> None:
    new = {
        id(own[name]): torch.nn.Parameter(tensor.detach(), own[name].requires_grad)
        if isinstance(own[name], torch.nn.Parameter)
        else tensor
        for name, tensor in read.items()
    }
    # All names of those that are tied.
    state = {name: new[id(tensor)] for name, tensor in own.items() if id(tensor) in new}
    module.load_state_dict(state, strict=False, assign=True)


def _read(
    file: File | AnyFile, tensors: Mapping[str, Tensor], mmap: bool, memory_bytes: int | None
) -> dict[str, torch.Tensor]:
    """Tensors in memory of their own, or in a mapping."""
    if mmap:
        if len(tensors) >= len(file.tensors):
            verify_ahead(file)
        return {name: mapped_tensor(tensor) for name, tensor in tensors.items()}
    if not isinstance(file, File):
        return {name: tensor_of(tensor) for name, tensor in tensors.items()}
    claim(tensors.values())
    new = {name: torch.empty(torch_shape(tensor), dtype=element_dtype(tensor)) for name, tensor in tensors.items()}
    _stream(file, tensors, new, memory_bytes)
    return new


def _read_in_place(
    file: File | AnyFile, tensors: Mapping[str, Tensor], own: Mapping[str, torch.Tensor], memory_bytes: int | None
) -> None:
    if isinstance(file, File):
        _stream(file, tensors, own, memory_bytes)
        return
    for name, tensor in tensors.items():
        _read_into(own[name].detach(), tensor)


def _stream(
    file: File, tensors: Mapping[str, Tensor], targets: Mapping[str, torch.Tensor], memory_bytes: int | None
) -> None:
    """Reads tensors into those of their names, none of which share memory; without a copy between if they fit."""
    # What the file has once for several is read once.
    of_tensor: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        of_tensor.setdefault(id(tensor), []).append(name)
    groups = list(of_tensor.values())
    into = [next((targets[name] for name in group if fits(targets[name], tensors[name])), None) for group in groups]
    for i, read in streamed(file, [tensors[group[0]] for group in groups], into, memory_bytes):
        for name in groups[i]:
            if targets[name] is not read:
                targets[name].detach().copy_(read)
        del read


def _read_into(target: torch.Tensor, tensor: Tensor) -> None:
    if fits(target, tensor):
        tensor._source.read(bytes_of(target))
    else:
        target.copy_(tensor_of(tensor))
