"""State of PyTorch: dictionaries of tensors as safetensors.torch has them, and whole checkpoints.

    import thalia_checkpoint.torch as thalia

    thalia.save({"model": model, "optimizer": optimizer, "step": step}, "run.thalia")
    state = thalia.load("run.thalia")
    model.load_state_dict(state["model"])

    thalia.save_file(model.state_dict(), "model.thalia")
    model.load_state_dict(thalia.load_file("model.thalia"))

No pickle is read or written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from .._files.memory import claim
from .._files.named import Named, check_format, committed_bytes, save_named, saved_bytes
from .._files.open import open as open_file
from .._files.safe_open import access_of
from .._files.streams import write_to
from .._files.writer import SaveOptions
from .._keywords import suggests
from .._objects.encoder import nothing
from .._support import collector_paused
from .._types import BinaryWriter, Path, is_writer
from ..errors import UsageError, make_error
from ._checkpointer import AsyncCheckpointer, Resumed
from ._load_into import load_into
from ._misfit import LoadReport
from ._objects import declare, load, one_of
from ._tensors import named, overlapping, tensor_of

if TYPE_CHECKING:
    from typing import Unpack

__all__ = [
    "AsyncCheckpointer",
    "LoadReport",
    "Resumed",
    "load",
    "load_file",
    "load_into",
    "load_model",
    "save",
    "save_file",
    "save_model",
]


class ObjectOptions(SaveOptions, total=False):
    """Those of SaveOptions, and those of torch.save() that say how it pickles, which change nothing here."""

    pickle_module: Any
    pickle_protocol: int
    _use_new_zipfile_serialization: bool
    _disable_byteorder_record: bool


_OF_PICKLES = ("pickle_module", "pickle_protocol", "_use_new_zipfile_serialization", "_disable_byteorder_record")


def _named(tensors: Mapping[str, torch.Tensor]) -> list[Named]:
    if not isinstance(tensors, Mapping):
        raise ValueError(f"expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}. "
                "save(obj, format='thalia') gives the bytes of any object."
            )
        if tensor.layout != torch.strided:
            raise ValueError(f"{name}: a {tensor.layout} tensor; expected a dense one (tensor.to_dense())")
        if tensor.device.type == "meta":
            raise NotImplementedError(f"{name}: a tensor on the device meta has no elements to save")
    names = list(tensors)
    shared = [{names[i] for i in group} for group in overlapping(list(tensors.values()))]
    if shared:
        raise RuntimeError(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential "
            f"differences when loading them again: {shared}. Save one of them, or clones, or use save_model()."
        )
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. "
                "Call `.contiguous()` first to pack it."
            )
    with collector_paused():
        return [named(name, tensor) for name, tensor in tensors.items()]


@suggests
def save_file(
    tensors: Mapping[str, torch.Tensor],
    filename: Path,
    metadata: Mapping[str, str] | None = None,
    **options: Unpack[SaveOptions],
) -> None:
    """Saves tensors of any device under their names: as safetensors where the name ends in
    .safetensors, else as .thalia. The file is there whole, and on the disk, when this returns.

    metadata: texts. options: those of SaveOptions; of safetensors durability, replace and threads.

    Raises, as safetensors does, ValueError for what is no dense contiguous tensor, NotImplementedError
    for one on the device meta and RuntimeError for tensors that share memory, which save_model()
    takes; IoError; UnsupportedError for a dtype that the format lacks.
    """
    save_named(_named(tensors), filename, metadata, options)


@suggests
def load_file(
    filename: Path, device: torch.device | str | int = "cpu", *, backend: str = "mmap"
) -> dict[str, torch.Tensor]:
    """All tensors by their names, on the device. For a model in several files: its folder or its index.

    backend: "mmap" maps the file, "pread" reads it into memory.
    Raises IoError, FormatError, IntegrityError; UnsupportedError for a dtype that torch lacks.
    """
    where = torch.device(device)
    on_host = where.type == "cpu"
    with open_file(filename, access=access_of(backend)) as file:
        tensors = file.tensors
        if on_host:
            claim(tensors.values())
        return {
            name: tensor_of(tensor, device=None if on_host else where, claimed=on_host)
            for name, tensor in tensors.items()
        }


@suggests
def save_model(
    model: torch.nn.Module,
    filename: Path,
    metadata: Mapping[str, str] | None = None,
    force_contiguous: bool = True,
    **options: Unpack[SaveOptions],
) -> None:
    """Saves the state of a module as save_file() does, of tensors that share memory one: the first by name of
    those that are all of it. `metadata` says of each other name which that is.

    force_contiguous: tensors of other strides are packed first. options: as of save_file().
    Raises RuntimeError where none of several is all of what they share; as save_file().
    """
    state = dict(model.state_dict())
    texts = dict(metadata or {})
    for kept, others in _duplicates(state).items():
        for name in others:
            texts.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(state, filename, texts or metadata, **options)


@suggests
def load_model(
    model: torch.nn.Module,
    filename: Path,
    strict: bool = True,
    device: torch.device | str | int = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[set[str], list[str]]:
    """Loads what save_model() saved into a module, as load_state_dict() does. load_into() also reads straight
    into it.

    backend: as of load_file(). Returns names that the file lacks, but for those that share the memory of one
    that it has, and names that the module lacks. Raises RuntimeError with strict if there are any.
    """
    state = load_file(filename, device, backend=backend)
    duplicates = _duplicates(model.state_dict(), preferred=state)
    found = model.load_state_dict(state, strict=False)
    missing, unexpected = set(found.missing_keys), list(found.unexpected_keys)
    for name in (name for others in duplicates.values() for name in others):
        # One that the file has beside the one that is kept would overwrite it.
        missing.remove(name) if name in missing else unexpected.append(name)
    if strict and (missing or unexpected):
        said = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
        for what, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                quoted = ", ".join(f'"{name}"' for name in sorted(names))
                said.append(f"    {what} key(s) in state_dict: {quoted}")
        raise RuntimeError("\n".join(said))
    return missing, unexpected


def _duplicates(state: Mapping[str, torch.Tensor], preferred: Container[str] = ()) -> dict[str, list[str]]:
    """The other names of tensors that share memory, by the name to keep. The tensor to keep is all of the memory.
    A preferred name is kept before others, and then the first by name."""
    names = list(state)
    found: dict[str, list[str]] = {}
    for group in overlapping(list(state.values())):
        shared = sorted(names[i] for i in group)
        whole = [name for name in shared if state[name].nbytes == state[name].untyped_storage().nbytes()]
        if not whole:
            raise RuntimeError(
                f"{', '.join(shared)} share memory, and none of them is all of it: save clones of them, "
                "or the tensor that they are parts of"
            )
        kept = min(whole, key=lambda name: (name not in preferred, name))
        found[kept] = [name for name in shared if name != kept]
    return found


@overload
def save(
    obj: Mapping[str, torch.Tensor],
    path: Mapping[str, str] | None = None,
    *,
    metadata: Mapping[str, str] | None = None,
    format: Literal["safetensors"] = "safetensors",
) -> bytes: ...
@overload
def save(
    obj: Any,
    path: Mapping[str, str] | None = None,
    *,
    format: Literal["thalia"],
    convert: Callable[[Any], Any] | None = None,
    **options: Unpack[SaveOptions],
) -> bytes: ...
@overload
def save(
    obj: Any,
    path: Path | BinaryWriter,
    *,
    metadata: Mapping[str, Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
    **options: Unpack[ObjectOptions],
) -> None: ...
@overload
def save(
    obj: Any,
    *,
    f: Path | BinaryWriter,
    metadata: Mapping[str, Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
    **options: Unpack[ObjectOptions],
) -> None: ...
@suggests
def save(
    obj: Any,
    path: Any = None,
    *,
    f: Any = None,
    metadata: Mapping[str, Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
    **options: Any,
) -> bytes | None:
    """Saves an object to a .thalia file: save(obj, path), as torch.save() is called.

    obj: tensors of any device, numpy arrays, numbers, texts, bytes, lists, tuples, sets and
        dictionaries of these, objects with state_dict() (modules, optimizers, schedulers),
        which become their state, and those of a configuration: docs/use/python.md, "PyTorch", has
        a table. Tensors that share memory are stored once, and come back shared.
        The state of an optimizer has the role "optimizer", which conversions leave exact.
    path: or a file object: open(), io.BytesIO, fsspec, which need not seek. The file is made in memory,
        and written at the object's position. What its write() raises goes through. `f` as well, as torch.save()
        calls it.
    metadata: members of the file's metadata, which JSON can hold: thalia_checkpoint.open(path).metadata has
        them, and load() does not.
    convert: asked for each object that is none of numbers, texts, bytes, tensors, arrays and plain
        containers, and has no state_dict(), and for tensors that are sparse, quantized or of a class of their
        own: gives what to save in its place, or None to leave it.
    options: those of SaveOptions. Those of torch.save() that say how it pickles are taken, without an effect.

    The file is there whole, and on the disk, when this returns. Ctrl-C leaves the old one. A file object
    is neither flushed nor closed, and after an error it has a part.
    Raises UnsupportedError that names the place of anything else; IoError; UsageError for members of
    `metadata` that are not the caller's; TypeError for what JSON cannot hold there.

    Without a path: the bytes of that file with format="thalia", for load(). By itself `format` is
    "safetensors", of a dictionary of tensors alone: what safetensors.torch.save() gives. With texts
    as `metadata`, or in the path's place: the bytes of save_file(obj). No file is written meanwhile.
    """
    instead = convert or nothing
    path = one_of("save", path, f)
    for name in _OF_PICKLES:
        options.pop(name, None)
    if isinstance(path, Mapping):
        if isinstance(obj, str | os.PathLike):
            raise make_error(
                UsageError,
                f"obj: got {os.fspath(obj)!r}, and the object in the path's place; expected save(obj, path)",
                "bad_argument",
                field="obj",
                expected="the object, and then the path",
            )
        if metadata is not None:
            raise make_error(
                UsageError,
                "metadata: got texts twice, the others in the path's place; expected them once",
                "bad_argument",
                field="metadata",
                expected="one dictionary",
            )
        metadata, path = path, None
    if path is None:
        format = check_format(options.pop("format", "safetensors"))
        if metadata is None and format == "thalia":
            return committed_bytes(lambda memory: declare(obj, memory, options, instead))
        return saved_bytes(_named(obj), metadata, format, **options)
    if is_writer(path):
        write_to(path, lambda memory: declare(obj, memory, options, instead, metadata))
    else:
        declare(obj, path, options, instead, metadata).commit()
    return None
