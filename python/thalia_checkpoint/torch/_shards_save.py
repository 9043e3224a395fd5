"""Saves the weights of a model to a folder, in one file or in several with an index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from .. import _core
from .._files.named import Format, check_format
from .._types import Path
from ..errors import UsageError, make_error
from ._tensors import named, stored_as

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


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
    docs/format/safetensors.md, "Writing a model".

    max_shard_size: bytes, or a text such as "5GB". options: those of SaveOptions.
    Raises UsageError for another size or format; ExistsError with replace=False; IoError.
    """
    weights = list(tensors.items())
    _core.save_model(
        folder,
        check_format(format),
        [(name, *stored_as(name, tensor)) for name, tensor in weights],
        # Older versions of transformers read no safetensors file without it.
        [("format", "pt")],
        _bytes(max_shard_size),
        # Those of other devices are in memory a file at a time.
        lambda places: [named(*weights[i]).data for i in places],
        dict(options),
    )


def _bytes(size: int | str) -> int:
    match = re.fullmatch(r"(\d+)\s*([KMGT]B)?", str(size))
    limit = int(match[1]) * _UNITS.get(match[2], 1) if match else 0
    if limit == 0:
        expected = "a number of bytes from 1, or a text such as 500MB or 5GB"
        text = f"max_shard_size: got {size!r}, expected {expected}"
        raise make_error(UsageError, text, "bad_argument", field="max_shard_size", value=str(size), expected=expected)
    return limit
