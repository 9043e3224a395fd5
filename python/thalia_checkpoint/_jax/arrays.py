"""Arrays of jax and numpy on their way into a file, and out of one with the sharding asked for."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .._files.dtypes import numpy_dtype
from .._files.tensor import Tensor
from .._objects.text_arrays import of_numbers, of_stored
from ..errors import UnsupportedError, UsageError, make_error


@dataclasses.dataclass(frozen=True)
class Stored:
    """An array of a file, of which nothing has been read."""

    tensor: Tensor
    kind: type
    """What was saved: jax.Array, np.ndarray or np.generic."""
    key: str | None
    """The name of the generator of random keys, whose words the tensor has in its last dimension; else None."""
    shape: tuple[int, ...]
    dtype: Any
    texts: str | None = None
    """The dtype of an array of texts or times, as the file names it; the tensor has its numbers."""


class Wanted(NamedTuple):
    """What a stored array is to become; None is as it was saved, of `sharding` the default device."""

    kind: type | None = None
    shape: tuple[int, ...] | None = None
    dtype: Any = None
    sharding: Any = None


def is_key(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jax.dtypes.prng_key))


def stored(tensor: Tensor, kind: type, key: str | None, texts: str | None = None) -> Stored:
    if texts is not None:
        dtype, shape = of_stored(tensor.shape, texts)
        return Stored(tensor, kind, None, shape, dtype, texts)
    if key is None:
        return Stored(tensor, kind, key, tensor.shape, numpy_dtype(tensor.dtype))
    words = _struct(tensor.shape, numpy_dtype(tensor.dtype))
    keys = jax.eval_shape(lambda data: jax.random.wrap_key_data(data, impl=key), words)
    return Stored(tensor, kind, key, keys.shape, keys.dtype)


def shape_of(array: Stored) -> Any:
    """A jax.ShapeDtypeStruct, also of an array of numpy, whose dtype jax may lack."""
    return _struct(array.shape, array.dtype)


def on_host(array: jax.Array, *, copy: bool) -> npt.NDArray[Any]:
    """All elements in memory of the CPU; without `copy` where they lie, if one device has them there."""
    if len(array.sharding.device_set) == 1:
        return np.array(array, copy=True) if copy else np.asarray(array)
    # np.asarray() would leave a second copy with the array.
    out = np.empty(array.shape, array.dtype)
    for shard in array.addressable_shards:
        if shard.replica_id == 0:
            out[shard.index] = np.asarray(shard.data)
    return out


def restored(found: Stored, wanted: Wanted, where: str) -> Any:
    """The array, in memory of its own. Each device's slice of a sharded one is read by itself.

    where: names the array in messages. Raises UsageError for another shape, and for a dtype that
    it cannot be converted to; UnsupportedError for a dtype of 64 bits where jax has none.
    """
    kind = wanted.kind or found.kind
    if found.key is not None:
        found, wanted = _of_words(found, wanted, kind)
    if wanted.shape not in (None, found.shape):
        raise mismatch(where, "shape", list(found.shape), list(wanted.shape or ()), "shape_mismatch")
    dtype = found.dtype if wanted.dtype is None else wanted.dtype
    if found.texts is not None:
        if kind is jax.Array or dtype != found.dtype:
            raise mismatch(where, "dtype", found.dtype, dtype if kind is not jax.Array else kind.__name__)
        texts = of_numbers(_whole(found.tensor, numpy_dtype(found.tensor.dtype)), found.texts)
        return texts[()] if kind is np.generic else texts
    if found.key is not None or jnp.issubdtype(dtype, jax.dtypes.extended):
        if dtype != found.dtype or kind is not jax.Array:
            raise mismatch(where, "dtype", found.dtype, dtype if kind is jax.Array else kind.__name__)
        words = _in_jax(found.tensor, numpy_dtype(found.tensor.dtype), wanted.sharding)
        return jax.random.wrap_key_data(words, impl=found.key)
    dtype = np.dtype(dtype)
    if kind is jax.Array:
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise make_error(
                UnsupportedError,
                f"{where}: dtype: jax has no {dtype} unless jax_enable_x64 is set; expected that, or a target of "
                "another dtype",
                "unsupported_dtype",
                field="dtype",
                value=str(dtype),
            )
        return _in_jax(found.tensor, dtype, wanted.sharding)
    array = _whole(found.tensor, dtype)
    return array[()] if kind is np.generic else array


def _of_words(found: Stored, wanted: Wanted, kind: type) -> tuple[Stored, Wanted]:
    """What is meant by a target that has the shape and dtype of the words of random keys.

    Orbax tells keys so, and makes its RestoreArgs of them so: of jax it is the keys, of numpy the words.
    """
    words = numpy_dtype(found.tensor.dtype)
    if wanted.shape not in (None, found.tensor.shape) or wanted.dtype not in (None, words):
        return found, wanted
    if kind is not jax.Array:
        return Stored(found.tensor, found.kind, None, found.tensor.shape, words), wanted
    return found, wanted._replace(shape=None, dtype=None)


def _in_jax(tensor: Tensor, dtype: Any, sharding: Any) -> Any:
    # Never the mapping itself: a device of the CPU would take it for its own memory.
    if sharding is None:
        return jax.device_put(_whole(tensor, dtype))
    return jax.make_array_from_callback(tensor.shape, sharding, lambda index: tensor[index].astype(dtype))


def _whole(tensor: Tensor, dtype: Any) -> npt.NDArray[Any]:
    return np.asarray(tensor.numpy(writable=True), dtype)


def _struct(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call, unused-ignore]


def mismatch(where: str, field: str, value: Any, expected: Any, code: str = "bad_argument") -> Exception:
    """UsageError for a target that is not what the file holds."""
    return make_error(
        UsageError,
        f"{where}: {field}: the file has {value}, the target {expected}",
        code,
        field=field,
        value=str(value),
        expected=str(expected),
    )
