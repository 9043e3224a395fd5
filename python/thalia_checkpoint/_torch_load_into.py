"""Tensors of a file right into a module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from . import _torch_tree
from ._file import File, FlatFile, Path
from ._leaves import checked
from ._shards import open as open_file
from ._shards import parts, verify_ahead
from ._tensor import Tensor
from ._torch_tensors import bytes_of, element_dtype, fits, mapped_tensor, overlapping, streamed, tensor_of
from .errors import UsageError, make_error


class LoadReport(NamedTuple):
    """What load_into() found."""

    loaded: list[str]
    missing: list[str]
    """Of the module, and neither in the file nor tied to one that is."""
    unexpected: list[str]
    """Of the file, and not in the module."""
    mismatched: list[str]
    """With both shapes: "weight: [3, 4] in the file, [3, 5] in the module"; or with the dtype that does not fit."""


def load_into(
    module: torch.nn.Module,
    path: Path,
    *,
    prefix: str = "",
    strict: bool = True,
    assign: bool = False,
    mmap: bool = False,
    memory_bytes: int | None = None,
) -> LoadReport:
    """Reads a module's parameters and buffers from a file, each right into its place on any device.
    Of a model in several files: from its folder or its index.

    Tensors are read ahead past the page cache, as File.stream() reads them, and converted to the
    dtypes of the module. What is contiguous on the CPU and of the file's dtype is read without a copy
    between. Beside the module there are `memory_bytes` in memory, or twice the largest tensor where
    that is more. Those of a .safetensors file are read where the system has it mapped.

    prefix: in front of the module's names in the file: "model." for what save({"model": …}) wrote.
    strict: raises UsageError that lists all that is missing, unexpected, or of another shape or a
        dtype that does not fit, before anything is changed. Else what fits is loaded.
    assign: the module gets tensors of its own on the CPU, with the dtypes of the file, in place of
        those that it has, which may be on the device meta; with `mmap` in a private mapping of
        the file, for inference. Tied parameters stay tied.
    memory_bytes: of tensors that are read ahead; 128 MiB, and 4 MiB or more.

    Raises IoError, FormatError; UsageError for parameters on the device meta without `assign`;
    IntegrityError for damage. After damage, and where reading fails, any of the parameters and buffers
    may hold what they had, what the file has, or bytes of it that nothing has checked: load again,
    or give them new values. With `assign` the module is as it was.
    """
    own = dict(module.state_dict(keep_vars=True))
    with open_file(path, access="writable" if assign and mmap else "mapped") as file:
        found, lies_in = {}, {}
        for part in parts(file):
            for name, tensor in part.tensors.items():
                if name.startswith(prefix):
                    own_name = name.removeprefix(prefix)
                    found[own_name], lies_in[own_name] = tensor, part
        for name, first in _aliases(file, prefix).items():
            if first in found:
                found[name], lies_in[name] = found[first], lies_in[first]
        report = _compare(own, found, assign)
        if strict and (report.missing or report.unexpected or report.mismatched):
            raise misfit(path, report)
        if not assign:
            _need_memory(own, report.loaded)
        # Of those that are one tensor in the module, the last.
        names = list({id(own[name]): name for name in report.loaded}.values())
        read: dict[str, torch.Tensor] = {}
        for part in parts(file):
            its = [name for name in names if lies_in[name] is part]
            if assign:
                read |= _read(part, its, found, mmap, memory_bytes)
            else:
                _read_in_place(part, its, found, own, memory_bytes)
        if assign:
            _assign(module, own, read)
    return report


def _need_memory(own: Mapping[str, torch.Tensor], names: list[str]) -> None:
    if on_meta := [name for name in names if own[name].device.type == "meta"]:
        raise make_error(
            UsageError,
            f"on the device meta: {', '.join(on_meta)}; assign=True puts the file's tensors in their place, "
            "module.to_empty(device=…) gives them memory",
            "wrong_state",
            tensor=on_meta[0],
            value="meta",
        )


def _read(
    file: File | FlatFile, names: list[str], found: Mapping[str, Tensor], mmap: bool, memory_bytes: int | None
) -> dict[str, torch.Tensor]:
    """Tensors in memory of their own, or in a mapping."""
    if mmap:
        if len(names) >= len(file.tensors):
            verify_ahead(file)
        return {name: mapped_tensor(found[name]) for name in names}
    if not isinstance(file, File):
        return {name: tensor_of(found[name]) for name in names}
    new = {name: torch.empty(found[name].shape, dtype=element_dtype(found[name])) for name in names}
    _stream(file, new, found, memory_bytes)
    return new


def _stream(
    file: File, targets: Mapping[str, torch.Tensor], found: Mapping[str, Tensor], memory_bytes: int | None
) -> None:
    """Reads tensors into those of their names, without a copy between where they fit."""
    # Several threads write: not to memory that two tensors share. Of a subclass nobody knows where it is.
    plain = [name for name, target in targets.items() if type(target.detach()) is torch.Tensor]
    shared = {plain[i] for group in overlapping([targets[name] for name in plain]) for i in group}
    alone = set(plain) - shared
    # What the file has once for several is read once.
    of_tensor: dict[int, list[str]] = {}
    for name in targets:
        of_tensor.setdefault(id(found[name]), []).append(name)
    groups = list(of_tensor.values())
    into = [
        next((targets[name] for name in group if name in alone and fits(targets[name], found[name])), None)
        for group in groups
    ]
    for i, tensor in streamed(file, [found[group[0]] for group in groups], into, memory_bytes):
        for name in groups[i]:
            if targets[name] is not tensor:
                targets[name].detach().copy_(tensor)
        del tensor


def _read_in_place(
    file: File | FlatFile,
    names: list[str],
    found: Mapping[str, Tensor],
    own: Mapping[str, torch.Tensor],
    memory_bytes: int | None,
) -> None:
    if isinstance(file, File):
        _stream(file, {name: own[name] for name in names}, found, memory_bytes)
        return
    for name in names:
        _read_into(own[name].detach(), found[name])


def _assign(module: torch.nn.Module, own: Mapping[str, torch.Tensor], read: Mapping[str, torch.Tensor]) -> None:
    new = {
        id(own[name]): torch.nn.Parameter(tensor, own[name].requires_grad)
        if isinstance(own[name], torch.nn.Parameter)
        else tensor
        for name, tensor in read.items()
    }
    # All names of those that are tied.
    state = {name: new[id(tensor)] for name, tensor in own.items() if id(tensor) in new}
    module.load_state_dict(state, strict=False, assign=True)


def _aliases(file: Any, prefix: str) -> dict[str, str]:
    """Names that a tree gives to tensors that are stored under another one."""
    tree, _ = _torch_tree.tree_of(file)
    if tree is None:
        return {}
    return {
        name.removeprefix(prefix): first.removeprefix(prefix)
        for name, first in _torch_tree.names(checked(tree, file.path)).items()
        if name != first and name.startswith(prefix)
    }


def _compare(own: Mapping[str, torch.Tensor], found: Mapping[str, Tensor], assign: bool) -> LoadReport:
    wrong = {name: _mismatch(tensor, found[name], assign) for name, tensor in own.items() if name in found}
    loaded = [name for name, what in wrong.items() if what is None]
    # Files of safetensors have tied tensors under one of their names.
    there = {id(own[name]) for name in loaded}
    return LoadReport(
        loaded=loaded,
        missing=[name for name, tensor in own.items() if name not in found and id(tensor) not in there],
        unexpected=[name for name in found if name not in own],
        mismatched=[f"{name}: {what}" for name, what in wrong.items() if what is not None],
    )


def _mismatch(own: torch.Tensor, found: Tensor, assign: bool) -> str | None:
    """Why a tensor of the file cannot be one of the module."""
    if tuple(own.shape) != found.shape:
        return f"{list(found.shape)} in the file, {list(own.shape)} in the module"
    dtype = element_dtype(found)
    if dtype is None:
        return f"{found.dtype} in the file, which torch lacks"
    if assign and own.requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        return f"{found.dtype} in the file, a parameter with a gradient in the module"
    if not assign and dtype.is_complex and not own.dtype.is_complex:
        return f"{found.dtype} in the file, {own.dtype} in the module"
    return None


def misfit(path: Path, report: LoadReport) -> Exception:
    """An error that lists what is missing, unexpected or mismatched."""
    parts = [
        f"{what}: {', '.join(names)}"
        for what, names in (
            ("missing", report.missing),
            ("unexpected", report.unexpected),
            ("mismatched", report.mismatched),
        )
        if names
    ]
    return make_error(
        UsageError,
        f"{os.fspath(path)} does not fit the module; {'; '.join(parts)}",
        "shape_mismatch" if report.mismatched else "not_found",
        path=os.fspath(path),
    )


def _read_into(target: torch.Tensor, tensor: Tensor) -> None:
    if fits(target, tensor):
        tensor._source.read(bytes_of(target))
    else:
        target.copy_(tensor_of(tensor))
