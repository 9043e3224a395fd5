"""Checkpoints under keys, each as a difference to a previous one: mithril's API.

    from thalia_checkpoint.mithril import Compressor

    compressor = Compressor(storage="local:///tmp/checkpoints")
    meta = compressor.save(model.state_dict(), key="step_1000", previous_key="step_900")
    print(f"{meta.original_size} -> {meta.compressed_size} ({meta.ratio:.1f}x)")
    model.load_state_dict(compressor.load("step_1000"))

What is stored are MCKP files, docs/format/mckp.md. No pickle is read or written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import CheckpointMeta
from ._files.dtypes import shaped
from ._files.elements import elements
from ._files.named import Named
from ._keywords import suggests
from ._leaves import MEMBER, VERSION, checked
from ._support import from_json
from .errors import UnsupportedError, UsageError, make_error

if TYPE_CHECKING:
    from ._types import Path

__all__ = ["CheckpointMeta", "Compressor"]


@suggests
class Compressor:
    """Saves and loads state dicts in a storage. Any number of threads may use one.

    A checkpoint that others were taken against must stay: who deletes or replaces it loses them.
    """

    def __init__(
        self,
        storage: Path,
        *,
        delta_enabled: bool = True,
        byte_grouping: bool = True,
        compression_level: int | None = None,
        max_chain: int = 16,
        threads: int = 0,
    ) -> None:
        """storage: "local:///absolute/folder", a path of a folder, or "mem://", which is gone with this.
            The folder is made with the first save.
        delta_enabled: False: previous keys are not looked at.
        byte_grouping: bytes of floating point numbers are grouped by their place where zstd
            compresses them, as it does differences.
        compression_level: everything is compressed by zstd, at this level from 1 to 22. None:
            plane_entropy, which is made for weights, and zstd for differences.
        max_chain: differences in a row; the checkpoint after them is stored by itself.
        threads: 0 for one a core.
        Raises UsageError for a storage or a level that does not exist; UnsupportedError for another scheme.
        """
        uri = os.fspath(storage)
        if "://" not in uri:
            uri = "local://" + os.path.abspath(uri)
        self._core = _core.Compressor(uri, delta_enabled, byte_grouping, compression_level, max_chain, threads)

    def save(
        self,
        state_dict: Mapping[str, Any],
        key: str,
        previous_key: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        step: int | None = None,
    ) -> CheckpointMeta:
        """Stores a state dict, whole and on the disk when this returns; before, what was there stays.

        state_dict: numpy arrays by their names; or what thalia_checkpoint.torch.save() takes: torch
            tensors of any device, nested, with numbers and texts.
        key: names joined by "/", none of which begins with ".".
        previous_key: of a checkpoint that is there: tensors of the same dtype and shape are stored
            as differences to its tensors, if that is smaller.
        metadata: members that JSON can hold; loaded with metadata().
        Raises UsageError for what is no key, and where a previous checkpoint would be replaced;
        IoError where the previous one is missing; UnsupportedError that names what cannot be saved.
        """
        texts: dict[str, Any] = dict(metadata or {})
        if MEMBER in texts:
            raise make_error(
                UsageError,
                f"metadata.{MEMBER}: the name is taken",
                "bad_argument",
                field=f"metadata.{MEMBER}",
                expected="another name",
            )
        if all(isinstance(v, np.ndarray | np.generic) and not isinstance(v, np.character) for v in state_dict.values()):
            tensors = [Named(name, *elements(name, value)) for name, value in state_dict.items()]
        else:
            from .torch._encode import encode  # needs torch

            encoded = encode(dict(state_dict))
            tensors = list(encoded.tensors)
            texts[MEMBER] = {"version": VERSION, "tree": encoded.tree}
        try:
            text = json.dumps(texts, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise make_error(
                UnsupportedError,
                f"metadata: {error}; expected what JSON can hold",
                "unsupported_feature",
                field="metadata",
            ) from None
        return self._core.save([tuple(t) for t in tensors], text, step, key, previous_key or "")

    def load(self, key: str, *, device: Any = None) -> dict[str, Any]:
        """The state dict of that key, bit for bit: of torch tensors if it was saved of such, on
        `device` (by default the CPU), else of numpy arrays.

        Raises IoError if it, or a checkpoint that it was taken against, is missing;
        IntegrityError where one was damaged or replaced; FormatError.
        """
        stored, text, _ = self._core.load(key)
        tree = from_json(text, key).get(MEMBER)
        if tree is None and device is None:
            return {name: _array(dtype, shape, data) for name, dtype, shape, data in stored}
        from .torch._decode import decode  # needs torch
        from .torch._tensors import tensor_from

        by_name = {name: (dtype, shape, data) for name, dtype, shape, data in stored}
        if tree is None:
            return {name: tensor_from(name, *of, device=device) for name, of in by_name.items()}
        state: dict[str, Any] = decode(
            checked(tree, key),
            lambda name: tensor_from(name, *by_name[name], device=device),
            lambda name: _array(*by_name[name]),
        )
        return state

    def metadata(self, key: str) -> tuple[dict[str, Any], int | None]:
        """The metadata and the step that save() was given, from the checkpoint's header alone.

        Raises IoError if it is missing; FormatError, IntegrityError.
        """
        text, step = self._core.metadata(key)
        members: dict[str, Any] = from_json(text, key)
        members.pop(MEMBER, None)
        return members, step

    def keys(self) -> list[str]:
        """All keys of the storage, sorted. Raises IoError."""
        return self._core.keys()

    def __contains__(self, key: str) -> bool:
        return self._core.exists(key)

    def delete(self, key: str) -> bool:
        """Removes a checkpoint; False if there was none. Raises UsageError for what is no key; IoError."""
        return self._core.erase(key)


def _array(dtype: str, shape: tuple[int, ...], data: Any) -> npt.NDArray[Any]:
    return shaped(dtype, shape, np.frombuffer(data, np.uint8))
