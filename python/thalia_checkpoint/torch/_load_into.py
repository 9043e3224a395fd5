"""Tensors of a file right into a module."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal

import torch

from .. import _log
from .._files.open import open as open_file
from .._files.streams import Source, path_of
from .._keywords import suggests
from .._types import Path
from ..errors import UsageError, make_error
from ._fill import Filling
from ._known_names import known_names
from ._misfit import LoadReport, difference, misfit, no_module, nothing_loaded
from ._module import ModulePlaces, module_places
from ._state import Entry, FileState, Rename


@suggests
def load_into(
    module: torch.nn.Module,
    path: Source,
    *,
    prefix: str = "",
    rename: Rename | Literal["auto"] | None = None,
    strict: bool = True,
    assign: bool = False,
    mmap: bool = False,
    memory_bytes: int | None = None,
) -> LoadReport:
    """Reads a module's parameters and buffers from a file, each right into its place on any device.
    A model in several files is read by its folder or its index, and bytes and file objects as load() reads them.
    The module is then as
    module.load_state_dict(load(path)) leaves it, extra state included.

    Tensors are read ahead past the page cache, as File.stream() reads them, and converted to the
    dtypes of the module. What is contiguous on the CPU and of the file's dtype is read without a copy
    between. Beside the module there are `memory_bytes` in memory, or twice the largest tensor if
    that is more. Those of a .safetensors file are read where the system has it mapped. What a
    _load_from_state_dict(), a set_extra_state() or hooks of the module's own may see is read into memory
    first, and given to them by its load_state_dict().

    prefix: before the module's names in the file: "model." for what save({"model": …}) wrote.
    rename: makes the module's names of those of the file that are left without the prefix:
        {"module.": ""} takes a beginning away, {"": "_orig_mod."} puts one in front, of several the
        first that fits; or a function, which gives None for what is not to be loaded. "auto" looks past
        what torch.compile(), data parallelism and peft put into names, in the file and in the module, and past
        "model.", "state_dict.", "model_state_dict." and "base_model." before all names, in one of the
        two, if more names are found so.
    strict: raises UsageError that lists all that is missing, unexpected, or of another shape or a
        dtype that does not fit, before anything is changed. Else what fits is loaded. What code of
        the module's own decides about is known, and listed, when it has run.
    assign: the module gets tensors of its own on the CPU, with the dtypes of the file, in place of
        those that it has, which may be on the device meta; with `mmap` in a private mapping of
        the file, for inference. Tied parameters stay tied.
    memory_bytes: of tensors that are read ahead; 128 MiB, and 4 MiB or more.

    Raises IoError, FormatError; UsageError where nothing of the file is the module's, with `strict` or
    not, for parameters on the device meta without `assign`, for what is no module, and
    where "auto" finds two ways that are as good;
    IntegrityError for damage. After damage, and where reading fails, any of the parameters and buffers
    may hold what they had, what the file has, or bytes of it that nothing has checked: load again,
    or give them new values. With `assign` the module is as it was.
    """
    if not isinstance(module, torch.nn.Module):
        raise no_module(module)
    with path_of(path) as place:
        return _load_into(module, place, prefix, rename, strict, assign, mmap, memory_bytes)


def _load_into(
    module: torch.nn.Module,
    path: Path,
    prefix: str,
    rename: Rename | Literal["auto"] | None,
    strict: bool,
    assign: bool,
    mmap: bool,
    memory_bytes: int | None,
) -> LoadReport:
    with open_file(path, access="writable" if assign and mmap else "mapped") as file:
        state = FileState(file, prefix, None if rename == "auto" else rename)
        places = module_places(module, state.own_names())
        way = None
        if rename == "auto":
            way = known_names(path, state.names, [*places.tensors, *places.extra], prefix)
            if way is not None:
                _log.debug("%s: names of the module are those after %r, without wrappers", str(path), way.prefix)
                prefix = way.prefix
                state = FileState(file, prefix, way.rename)
                places = module_places(module, state.own_names())
        found = state.entries(places)
        own_names = [*places.tensors, *places.extra]

        def check(report: LoadReport) -> None:
            fits = way is not None or (report.fits and report.loaded)
            hint = "" if fits else difference(state.names, own_names, prefix)
            if (strict and not report.fits) or (report.mismatched and not report.loaded):
                raise misfit(path, report, hint)
            if own_names and not report.loaded:
                raise nothing_loaded(path, state.names, own_names, hint)

        wrong = _mismatches(places, found, assign)
        report = _compare(places, found, wrong)
        if not places.is_open(found) or (strict and not report.fits):
            check(report)
        if not assign:
            _need_memory(places.tensors, report.loaded)
        filling = Filling(module, places, found, set(wrong), state, path, strict, assign, mmap, memory_bytes)
        begin = time.perf_counter()
        loaded = f"loaded {len(report.loaded)} of {len(own_names)} names into a module from"
        if not places.has_code:
            filling.by_torch(report.loaded)
            _log.since(begin, loaded, path)
            return report
        report = filling.by_module(report)
        _log.since(begin, loaded, path)
        check(report)
        return report


def _compare(places: ModulePlaces, found: Mapping[str, Entry], wrong: Mapping[str, str]) -> LoadReport:
    """What the names tell; nothing of those that code of the module's own decides about."""
    known = [name for name in (*places.tensors, *places.extra) if not places.is_deferred(name)]
    # Files of safetensors have tied tensors under one of their names.
    there = {id(tensor) for name, tensor in places.tensors.items() if name in found and name not in wrong}
    there_not = [name for name in known if name not in found and id(places.tensors.get(name)) not in there]
    expected = {*known}
    return LoadReport(
        loaded=[name for name in known if name in found and name not in wrong],
        missing=there_not,
        unexpected=[name for name in found if name not in expected and not places.is_deferred(name)],
        mismatched=[f"{name}: {what}" for name, what in wrong.items()],
    )


def _mismatches(places: ModulePlaces, found: Mapping[str, Entry], assign: bool) -> dict[str, str]:
    """By name, why values of the file cannot be tensors of the module."""
    found_wrong = {}
    for name, tensor in places.tensors.items():
        if name in found and not places.is_deferred(name) and (what := _mismatch(tensor, found[name], assign)):
            found_wrong[name] = what
    return found_wrong


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
