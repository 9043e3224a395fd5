"""Compressor: whole states under keys of a storage."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._core import CheckpointMeta, Stop
from .._files.dtypes import shaped
from .._files.elements import elements
from .._files.named import Named
from .._keywords import suggests
from .._leaves import MEMBER, VERSION, checked
from .._operations.delta import LowRank
from .._support import from_json
from ..errors import UnsupportedError, UsageError, make_error
from ._away import away
from ._quantization import QuantizationConfig
from ._storage import Asked

if TYPE_CHECKING:
    from .._types import Path
    from ._storage import StorageBackend


@suggests
@dataclass(frozen=True)
class CompressorConfig:
    """The options of a Compressor, which explains them."""

    delta_enabled: bool = True
    byte_grouping: bool = True
    compression_level: int | None = None
    quantization: QuantizationConfig | None = None
    low_rank: LowRank | None = None
    max_chain: int = 16
    threads: int = 0


@dataclass(frozen=True)
class CompressedCheckpoint:
    """What Compressor.compress() made of a state."""

    meta: CheckpointMeta
    data: memoryview
    """An MCKP file."""


@suggests
class Compressor:
    """Saves and loads state dicts in a storage. Any number of threads may use one.

    A checkpoint that others were taken against must stay: who deletes or replaces it loses them.
    """

    def __init__(
        self,
        storage: Path | StorageBackend = "mem://",
        *,
        delta_enabled: bool = True,
        byte_grouping: bool = True,
        compression_level: int | None = None,
        quantization: QuantizationConfig | int | None = None,
        low_rank: LowRank | bool | None = None,
        max_chain: int = 16,
        threads: int = 0,
    ) -> None:
        """storage: "local:///absolute/folder", a path of a folder, "mem://", which is gone with this, or an object
            with the methods of StorageBackend. A folder is made with the first save.
        delta_enabled: False: previous keys are not looked at.
        byte_grouping: bytes of floating point numbers are grouped by their place where zstd
            compresses them, as it does differences.
        compression_level: everything is compressed by zstd, at this level from 1 to 22. None:
            plane_entropy, which is made for weights, and zstd for differences.
        quantization: weights become codes of a few bits, which is lossy; a number is that of the bits.
        low_rank: differences of weights become sums of a few products where that takes fewer bytes, which is lossy;
            True for LowRank().
        max_chain: differences in a row; the checkpoint after them is stored by itself.
        threads: 0 for one a core.
        Raises UsageError for a storage, a level or bits that do not exist; UnsupportedError for another scheme;
        TypeError for a storage that lacks a method.
        """
        if isinstance(storage, str | os.PathLike):
            uri = os.fspath(storage)
            self._storage: str | StorageBackend = uri if "://" in uri else "local://" + os.path.abspath(uri)
            reached: str | Asked = self._storage
        else:
            self._storage = storage
            reached = Asked(storage)
        if isinstance(quantization, int) and not isinstance(quantization, bool):
            quantization = QuantizationConfig(bits=quantization)
        if not isinstance(quantization, QuantizationConfig | None):
            got = type(quantization).__qualname__
            raise TypeError(f"quantization: got {got}, expected a QuantizationConfig, a number of bits or None")
        products = LowRank() if low_rank is True else low_rank or None
        if not isinstance(products, LowRank | None):
            raise TypeError(f"low_rank: got {type(products).__qualname__}, expected a LowRank, True or None")
        self._config = CompressorConfig(
            delta_enabled, byte_grouping, compression_level, quantization, products, max_chain, threads
        )
        self._core = self._made(reached)

    @property
    def config(self) -> CompressorConfig:
        """What the constructor was given."""
        return self._config

    def _made(self, storage: str | Asked) -> _core.Compressor:
        config = self._config
        return _core.Compressor(
            storage,
            config.delta_enabled,
            config.byte_grouping,
            config.compression_level,
            config.max_chain,
            config.threads,
            None if config.quantization is None else config.quantization._core_config(),
            None if config.low_rank is None else asdict(config.low_rank),
        )

    def _in_loop(self) -> _core.Compressor:
        """For a coroutine, whose loop runs those of the storage."""
        if isinstance(self._storage, str):
            return self._core
        return self._made(Asked(self._storage, asyncio.get_running_loop()))

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
        Raises UsageError for what is no key, where a previous checkpoint would be replaced, and of a state that was
        quantized too often; IoError where the previous one is missing; UnsupportedError that names what cannot be
        saved; what the storage raises.
        """
        prepared = _prepared(state_dict, metadata, step, copy=False)
        return self._core.save(prepared, key, previous_key or "", Stop())

    async def asave(
        self,
        state_dict: Mapping[str, Any],
        key: str,
        previous_key: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        step: int | None = None,
    ) -> CheckpointMeta:
        """save() on another thread, of a copy that is made first: tensors may be changed while it goes on.

        A task that is cancelled ends the save; what was there stays, unless the new checkpoint is whole already.
        """
        prepared = _prepared(state_dict, metadata, step, copy=True)
        core = self._in_loop()
        return await away(lambda stop: core.save(prepared, key, previous_key or "", stop))

    def load(self, key: str, *, device: Any = None) -> dict[str, Any]:
        """The state dict of that key, bit for bit unless it was quantized: of torch tensors if it was saved of such,
        on `device` (by default the CPU), else of numpy arrays.

        Raises IoError if it, or a checkpoint that it was taken against, is missing;
        IntegrityError where one was damaged or replaced; FormatError; what the storage raises.
        """
        return _state(self._core.load(key, Stop()), key, device)

    async def aload(self, key: str, *, device: Any = None) -> dict[str, Any]:
        """load() on another thread."""
        core = self._in_loop()
        return await away(lambda stop: _state(core.load(key, stop), key, device))

    def compress(
        self,
        state_dict: Mapping[str, Any],
        previous_key: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        step: int | None = None,
    ) -> CompressedCheckpoint:
        """What save() would store, in memory, for who keeps it himself. Raises as save()."""
        prepared = _prepared(state_dict, metadata, step, copy=False)
        meta, data = self._core.compress(prepared, previous_key or "", Stop())
        return CompressedCheckpoint(meta, memoryview(data))

    def decompress(self, compressed: Any, *, device: Any = None) -> dict[str, Any]:
        """The state of what compress() made, or of the bytes of an MCKP file. The checkpoint that it was taken
        against is looked for in the storage. Raises as load()."""
        data = compressed.data if isinstance(compressed, CompressedCheckpoint) else compressed
        return _state(self._core.decompress(data, Stop()), "the checkpoint", device)

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

    def __reduce__(self) -> tuple[Any, ...]:
        # What is in memory of this process alone has no place in another one.
        if isinstance(self._storage, str) and self._storage.startswith("mem:"):
            raise TypeError("cannot pickle a Compressor of mem://, which is in the memory of its process")
        return _restored, (type(self), self._storage, self._config)

    def __repr__(self) -> str:
        return f"Compressor({self._storage!r})"


def _restored(cls: type[Compressor], storage: Any, config: CompressorConfig) -> Compressor:
    return cls(
        storage,
        delta_enabled=config.delta_enabled,
        byte_grouping=config.byte_grouping,
        compression_level=config.compression_level,
        quantization=config.quantization,
        low_rank=config.low_rank,
        max_chain=config.max_chain,
        threads=config.threads,
    )


def _prepared(
    state_dict: Mapping[str, Any], metadata: Mapping[str, Any] | None, step: int | None, *, copy: bool
) -> _core.PreparedCheckpoint:
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
        from ..torch._encode import encode  # needs torch

        encoded = encode(dict(state_dict), converts=False)
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
    return _core.PreparedCheckpoint([tuple(t) for t in tensors], text, step, copy)


def _state(restored: Any, where: str, device: Any) -> dict[str, Any]:
    stored, text, _ = restored
    tree = from_json(text, where).get(MEMBER)
    if tree is None and device is None:
        return {name: _array(dtype, shape, data) for name, dtype, shape, data in stored}
    from ..torch._decode import decode  # needs torch
    from ..torch._tensors import tensor_from

    by_name = {name: (dtype, shape, data) for name, dtype, shape, data in stored}
    if tree is None:
        return {name: tensor_from(name, *of, device=device) for name, of in by_name.items()}
    state: dict[str, Any] = decode(
        checked(tree, where),
        lambda name: tensor_from(name, *by_name[name], device=device),
        lambda name: _array(*by_name[name]),
    )
    return state


def _array(dtype: str, shape: tuple[int, ...], data: Any) -> npt.NDArray[Any]:
    return shaped(dtype, shape, np.frombuffer(data, np.uint8))
