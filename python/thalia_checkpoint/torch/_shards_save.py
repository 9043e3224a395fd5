"""Saves the weights of a model to a folder, in one file or in several with an index."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import torch

from .. import _core
from .._files.named import Format, save_named
from .._support import io_errors, sync
from .._types import Path
from ..errors import ExistsError, UsageError, make_error
from ._tensors import named

INDEX = ".index.json"
#: What a model's files are called, in the order in which a folder opens as one of them.
NAMES = [f"model.{kind}{ending}" for kind in ("thalia", "safetensors") for ending in ("", INDEX)]
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SHARD = re.compile(r"(model(?:-\d+)?)-\d{5,}-of-\d{5,}\.(?:thalia|safetensors)(?:\.sha256)?")
#: What a killed save leaves.
_UNFINISHED = re.compile(r"\.model.*\.(?:thalia-tmp|saving)")


def save_shards(
    tensors: Mapping[str, torch.Tensor],
    folder: Path,
    max_shard_size: int | str,
    format: Format,
    options: Mapping[str, Any],
) -> None:
    """Saves tensors as folder/model.FORMAT, or in files of at most `max_shard_size` bytes with their
    index; a tensor that is larger has a file of its own.

    What the folder had stays whole until the last step puts the new weights in place; then it goes.

    max_shard_size: bytes, or a text such as "5GB". options: those of SaveOptions.
    Raises UsageError for another size or format; ExistsError with replace=False; IoError.
    """
    limit = _bytes(max_shard_size)
    if format not in ("thalia", "safetensors"):
        raise _bad("format", format, "thalia or safetensors")
    folder = os.fspath(folder)
    # Of two saves there at once, the later one finds the model of the other whole, and replaces it.
    with _core.HeldFolder.hold(folder, {"durability": options.get("durability")}):
        _replace(tensors, _split(tensors, limit), folder, format, options)


def _replace(
    tensors: Mapping[str, torch.Tensor],
    shards: list[list[str]],
    folder: str,
    format: Format,
    options: Mapping[str, Any],
) -> None:
    with io_errors():
        there = os.listdir(folder)
    if options.get("replace") is False and (old := [name for name in NAMES if name in there]):
        path = os.path.join(folder, old[0])
        raise make_error(ExistsError, f"{path} is there already, and not replaced: replace=False", "exists", path=path)
    if len(shards) == 1:
        names = [f"model.{format}"]
        _save(tensors, shards[0], os.path.join(folder, names[0]), options)
    else:
        # Other names than an earlier save's, whose files are in use until its index is replaced.
        taken = {match[1] for name in there if (match := SHARD.fullmatch(name))}
        stem = next(stem for i in count() if (stem := f"model-{i}" if i else "model") not in taken)
        names = [f"{stem}-{i + 1:05d}-of-{len(shards):05d}.{format}" for i in range(len(shards))]
        index = f"model.{format}{INDEX}"
        _save_all(tensors, dict(zip(names, shards, strict=True)), folder, index, options)
        names.append(index)
    _remove_others(folder, {ours for name in names for ours in (name, f"{name}.sha256")}, _is_durable(options))


def _save_all(
    tensors: Mapping[str, torch.Tensor],
    shards: Mapping[str, list[str]],
    folder: str,
    index: str,
    options: Mapping[str, Any],
) -> None:
    """The files, and then the index, which is there whole or not at all."""
    durable = _is_durable(options)
    unfinished = f".{index}.saving"
    try:
        for name, its in shards.items():
            _save(tensors, its, os.path.join(folder, name), options)
        _remove(folder, [unfinished])
        # "x": nothing that is there by now is written to, nor what a link leads to.
        with io_errors(), open(os.path.join(folder, unfinished), "x", encoding="utf-8") as file:
            metadata = {"total_size": sum(tensor.nbytes for tensor in tensors.values())}
            shard_of = {tensor: name for name, its in shards.items() for tensor in its}
            json.dump({"metadata": metadata, "weight_map": shard_of}, file, indent=2)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except BaseException:
        _remove(folder, [*shards, *(f"{name}.sha256" for name in shards), unfinished])
        raise
    with io_errors():
        os.replace(os.path.join(folder, unfinished), os.path.join(folder, index))
        if durable:
            sync(folder)


def _save(tensors: Mapping[str, torch.Tensor], names: list[str], path: str, options: Mapping[str, Any]) -> None:
    # Links in a folder of a model are those of a cache, which many models share.
    own = {**options, "follow_link": False}
    # Older versions of transformers read no safetensors file without it.
    save_named([named(name, tensors[name]) for name in names], path, {"format": "pt"}, own)


def _bytes(size: int | str) -> int:
    match = re.fullmatch(r"(\d+)\s*([KMGT]B)?", str(size))
    limit = int(match[1]) * _UNITS.get(match[2], 1) if match else 0
    if limit == 0:
        raise _bad("max_shard_size", size, "a number of bytes from 1, or a text such as 500MB or 5GB")
    return limit


def _bad(field: str, value: object, expected: str) -> Exception:
    text = f"{field}: got {value!r}, expected {expected}"
    return make_error(UsageError, text, "bad_argument", field=field, value=str(value), expected=expected)


def _split(tensors: Mapping[str, torch.Tensor], limit: int) -> list[list[str]]:
    shards: list[list[str]] = [[]]
    used = 0
    for name, tensor in tensors.items():
        if shards[-1] and used + tensor.nbytes > limit:
            shards.append([])
            used = 0
        shards[-1].append(name)
        used += tensor.nbytes
    return shards


def _is_durable(options: Mapping[str, Any]) -> bool:
    return options.get("durability") != "none"


def _remove_others(folder: str, ours: set[str], durable: bool) -> None:
    """Weights of earlier saves, in either format. First what names them, so that none is named and gone, and
    what would be opened before the new ones, which must not come back when the power fails. Of these the one
    that a folder opens as goes last: a save that was killed may have left others."""
    with io_errors():
        there = os.listdir(folder)
        named = [old for name in reversed(NAMES) for old in (f"{name}.sha256", name)]
        first = [name for name in named if name in there and name not in ours]
        _remove(folder, first)
        if first and durable:
            sync(folder)
        then = [name for name in there if SHARD.fullmatch(name) or _UNFINISHED.fullmatch(name)]
        _remove(folder, [name for name in then if name not in ours])


def _remove(folder: str, names: list[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
