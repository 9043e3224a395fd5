"""Tensors of a file right into a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ._file import File, FlatFile, Path
from ._shards import open as open_file
from ._shards import verify_ahead
from ._tensor import Tensor
from ._torch_misfit import LoadReport, difference, misfit, no_module, nothing_loaded
from ._torch_module import ModulePlaces, module_places
from ._torch_state import Entry, FileState, Rename
from ._torch_tensors import bytes_of, element_dtype, fits, mapped_tensor, overlapping, streamed, tensor_of
from ._torch_tree import ATTRIBUTE
from .errors import UsageError, make_error


def load_into(
    module: torch.nn.Module,
    path: Path,
    *,
    prefix: str = "",
    rename: Rename | None = None,
    strict: bool = True,
    assign: bool = False,
    mmap: bool = False,
    memory_bytes: int | None = None,
) -> LoadReport:
    """Reads a module's parameters and buffers from a file, each right into its place on any device.
    Of a model in several files: from its folder or its index. The module is then as
    module.load_state_dict(load(path)) leaves it, extra state included.

    Tensors are read ahead past the page cache, as File.stream() reads them, and converted to the
    dtypes of the module. What is contiguous on the CPU and of the file's dtype is read without a copy
    between. Beside the module there are `memory_bytes` in memory, or twice the largest tensor where
    that is more. Those of a .safetensors file are read where the system has it mapped. Where a part of
    the module has a _load_from_state_dict(), a set_extra_state() or hooks of its own, all is read
    into memory, and the module's load_state_dict() takes it from there.

    prefix: in front of the module's names in the file: "model." for what save({"model": …}) wrote.
    rename: makes the module's names of those of the file that are left without the prefix:
        {"module.": ""} takes a beginning away, {"": "_orig_mod."} puts one in front, of several the
        first that fits; or a function, which gives None for what is not to be loaded.
    strict: raises UsageError that lists all that is missing, unexpected, or of another shape or a
        dtype that does not fit, before anything is changed. Else what fits is loaded. What code of
        the module's own decides about is known, and listed, when it has run.
    assign: the module gets tensors of its own on the CPU, with the dtypes of the file, in place of
        those that it has, which may be on the device meta; with `mmap` in a private mapping of
        the file, for inference. Tied parameters stay tied.
    memory_bytes: of tensors that are read ahead; 128 MiB, and 4 MiB or more.

    Raises IoError, FormatError; UsageError where nothing of the file is the module's, with `strict` or
    not, for parameters on the device meta without `assign`, and for what is no module;
    IntegrityError for damage. After damage, and where reading fails, any of the parameters and buffers
    may hold what they had, what the file has, or bytes of it that nothing has checked: load again,
    or give them new values. With `assign` the module is as it was.
    """
    if not isinstance(module, torch.nn.Module):
        raise no_module(module)
    with open_file(path, access="writable" if assign and mmap else "mapped") as file:
        state = FileState(file, prefix, rename)
        places = module_places(module, state.own_names())
        found = state.entries(places)
        own_names = [*places.tensors, *places.extra]

        def check(report: LoadReport) -> None:
            hint = "" if report.fits and report.loaded else difference(state.names, own_names, prefix)
            if (strict and not report.fits) or (report.mismatched and not report.loaded):
                raise misfit(path, report, hint)
            if own_names and not report.loaded:
                raise nothing_loaded(path, state.names, own_names, hint)

        report = _compare(places, found, assign)
        if not places.is_open(found) or (strict and not report.fits):
            check(report)
        if not assign:
            _need_memory(places.tensors, report.loaded)
        value = state.decoder(mapped_tensor if assign and mmap else tensor_of)
        if places.has_code:
            if assign and mmap:
                verify_ahead(file)
            report = _load_by_module(module, places, found, report, value, state.metadata(), path, strict, assign)
            check(report)
        else:
            loaded = {name: found[name] for name in report.loaded}
            _load_plain(module, places.tensors, loaded, value, assign, mmap, memory_bytes)
    return report


def _compare(places: ModulePlaces, found: Mapping[str, Entry], assign: bool) -> LoadReport:
    """What the names tell; nothing of those that code of the module's own decides about."""
    own = {name: tensor for name, tensor in places.tensors.items() if not places.is_deferred(name)}
    extra = [name for name in places.extra if not places.is_deferred(name)]
    wrong = {name: _mismatch(tensor, found[name], assign) for name, tensor in own.items() if name in found}
    # Files of safetensors have tied tensors under one of their names.
    there = {id(tensor) for name, tensor in places.tensors.items() if name in found and wrong.get(name) is None}
    return LoadReport(
        loaded=[name for name, what in wrong.items() if what is None] + [name for name in extra if name in found],
        missing=[name for name, tensor in own.items() if name not in found and id(tensor) not in there]
        + [name for name in extra if name not in found],
        unexpected=[name for name in found if name not in own and name not in extra and not places.is_deferred(name)],
        mismatched=[f"{name}: {what}" for name, what in wrong.items() if what is not None],
    )


def _mismatch(own: torch.Tensor, found: Entry, assign: bool) -> str | None:
    """Why a value of the file cannot be a tensor of the module."""
    if (shape := found.shape) is None:
        return "no tensor in the file"
    # As old versions of torch had scalars.
    if tuple(own.shape) != shape and not (own.ndim == 0 and shape == (1,)):
        return f"{list(shape)} in the file, {list(own.shape)} in the module"
    name, dtype = found.dtype
    if dtype is None:
        return f"{name} in the file, which torch lacks"
    if assign and own.requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        return f"{name} in the file, a parameter with a gradient in the module"
    if not assign and dtype.is_complex and not own.dtype.is_complex:
        return f"{name} in the file, {own.dtype} in the module"
    return None


def _need_memory(own: Mapping[str, torch.Tensor], names: list[str]) -> None:
    if on_meta := [name for name in names if name in own and own[name].device.type == "meta"]:
        raise make_error(
            UsageError,
            f"on the device meta: {', '.join(on_meta)}; assign=True puts the file's tensors in their place, "
            "module.to_empty(device=…) gives them memory",
            "wrong_state",
            tensor=on_meta[0],
            value="meta",
        )


def _load_by_module(
    module: torch.nn.Module,
    places: ModulePlaces,
    found: Mapping[str, Entry],
    report: LoadReport,
    value: Callable[[Entry], Any],
    metadata: dict[str, Any],
    path: Path,
    strict: bool,
    assign: bool,
) -> LoadReport:
    """Lets the module's load_state_dict() take it all, and asks it what it took."""
    wrong = {what.partition(": ")[0] for what in report.mismatched}
    values: OrderedDict[str, Any] = OrderedDict(
        (name, value(entry)) for name, entry in found.items() if name not in wrong and name not in report.unexpected
    )
    if metadata:
        setattr(values, ATTRIBUTE, metadata)
    _tie(places.tensors, values, assign)
    options: dict[str, Any] = {"assign": True} if assign else {}
    # One of its own may do anything with it.
    options["strict"] = strict and type(module).load_state_dict is not torch.nn.Module.load_state_dict
    try:
        result: Any = module.load_state_dict(values, **options)
    except RuntimeError as error:
        first, *lines = str(error).split("\n\t")
        if not first.startswith("Error(s) in loading state_dict"):
            raise
        raise misfit(path, report._replace(mismatched=[*report.mismatched, *lines])) from error
    after = module_places(module, values)
    missing = [name for name in getattr(result, "missing_keys", ()) if name not in wrong]
    # To a tensor without elements torch copies nothing, with a warning.
    missing += [
        name for name, tensor in after.tensors.items() if name in values and tensor.is_meta and not values[name].is_meta
    ]
    unexpected = list(dict.fromkeys([*report.unexpected, *getattr(result, "unexpected_keys", ())]))
    own = [*after.tensors, *after.extra]
    return LoadReport(
        loaded=[name for name in own if name in values and name not in missing]
        + [name for name in values if name not in own and name not in unexpected],
        missing=list(dict.fromkeys(missing)),
        unexpected=unexpected,
        mismatched=report.mismatched,
    )


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


def _load_plain(
    module: torch.nn.Module,
    own: Mapping[str, torch.Tensor],
    found: Mapping[str, Entry],
    value: Callable[[Entry], Any],
    assign: bool,
    mmap: bool,
    memory_bytes: int | None,
) -> None:
    """Into a module that has torch's own code alone."""
    # Of those that are one tensor in the module, the last.
    names = list({id(own[name]): name for name in found}.values())
    stored = {name: found[name].tensor for name in names}
    whole: dict[str, Tensor] = {
        name: tensor for name, tensor in stored.items() if tensor is not None and tensor.shape == tuple(own[name].shape)
    }
    if not assign:
        # What several tensors of the module have in common is written in its order, not the file's.
        plain = [name for name in names if type(own[name].detach()) is torch.Tensor]
        for group in overlapping([own[name] for name in plain]):
            for i in group:
                whole.pop(plain[i], None)
    new: dict[str, torch.Tensor] = {}
    for part in {id(found[name].part): found[name].part for name in whole}.values():
        its = {name: tensor for name, tensor in whole.items() if found[name].part is part}
        if assign:
            new |= _read(part, its, mmap, memory_bytes)
        else:
            _read_in_place(part, its, own, memory_bytes)
    new |= {name: value(found[name]) for name in names if name not in whole}
    if assign:
        _assign(module, own, new)
    elif new:
        module.load_state_dict(new, strict=False)


def _read(
    file: File | FlatFile, tensors: Mapping[str, Tensor], mmap: bool, memory_bytes: int | None
) -> dict[str, torch.Tensor]:
    """Tensors in memory of their own, or in a mapping."""
    if mmap:
        if len(tensors) >= len(file.tensors):
            verify_ahead(file)
        return {name: mapped_tensor(tensor) for name, tensor in tensors.items()}
    if not isinstance(file, File):
        return {name: tensor_of(tensor) for name, tensor in tensors.items()}
    new = {name: torch.empty(tensor.shape, dtype=element_dtype(tensor)) for name, tensor in tensors.items()}
    _stream(file, tensors, new, memory_bytes)
    return new


def _read_in_place(
    file: File | FlatFile, tensors: Mapping[str, Tensor], own: Mapping[str, torch.Tensor], memory_bytes: int | None
) -> None:
    if isinstance(file, File):
        _stream(file, tensors, own, memory_bytes)
        return
    for name, tensor in tensors.items():
        _read_into(own[name].detach(), tensor)


def _stream(
    file: File, tensors: Mapping[str, Tensor], targets: Mapping[str, torch.Tensor], memory_bytes: int | None
) -> None:
    """Reads tensors into those of their names, none of which share memory; without a copy between where they fit."""
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


def _read_into(target: torch.Tensor, tensor: Tensor) -> None:
    if fits(target, tensor):
        tensor._source.read(bytes_of(target))
    else:
        target.copy_(tensor_of(tensor))
