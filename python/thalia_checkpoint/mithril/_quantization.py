"""Weights as codes of a few bits: which of a checkpoint, and those of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._files.dtypes import numpy_dtype, shaped
from .._files.elements import Elements, elements
from .._keywords import suggests
from .._support import made_as, texts
from ..errors import UnsupportedError, UsageError, make_error


@suggests
@dataclass(frozen=True)
class QuantizationConfig:
    """Which tensors of a checkpoint become codes, and of how many bits. Lossy.

    Weights and embeddings become codes, by their names; biases, what an optimizer keeps, and tensors with numbers
    that are not finite stay as they are.

    Raises UsageError for bits that cannot be.
    """

    bits: int = 8
    """The size of a code, 1 to 8; with sensitivities the mean of all weights."""
    exclude: Iterable[str] = ()
    """Patterns of tensors that stay exact: "*" stands for any characters, "?" for one."""
    sensitivity: Mapping[str, Any] | Callable[[str], Any] | None = None
    """How much an error of each weight counts: arrays or tensors of the size of the weights, by their names, or a
    function of a name that returns one, or None where nothing is known. Each tensor then gets its own number of
    bits. The function is called on a thread of the library."""
    max_generations: int = 10
    """How often a state may be stored so, restored and stored so again. Compressor.metadata() has the count, as
    "lossy_generation": give these metadata to save() to go on with it."""

    def __post_init__(self) -> None:
        _core.check_codes(self.bits, 0, False)
        object.__setattr__(self, "exclude", tuple(texts(self.exclude)))

    def _core_config(self) -> _core.QuantizationConfig:
        return _core.QuantizationConfig(self.bits, list(self.exclude), self._ask(), self.max_generations)

    def _ask(self) -> Callable[[str], Elements | None] | None:
        known = self.sensitivity
        if known is None:
            return None
        find = known.get if isinstance(known, Mapping) else known

        def ask(name: str) -> Elements | None:
            found = find(name)
            return None if found is None else _elements(f"sensitivity of {name}", found)

        return ask


class QuantizedTensor:
    """What AdaptiveQuantizer.quantize() made of a tensor. Can be pickled."""

    __slots__ = ("_codes", "_of_torch")

    def __init__(self, codes: _core.TensorCodes, of_torch: bool) -> None:
        self._codes = codes
        self._of_torch = of_torch

    @property
    def data(self) -> memoryview:
        """The codes: of each group from a whole byte on, the first in the lowest bits of a byte."""
        return memoryview(self._codes.codes)

    @property
    def min(self) -> float | npt.NDArray[Any]:
        """The number that code 0 stands for; of several groups an array."""
        return self._parameters(self._codes.minima)

    @property
    def scale(self) -> float | npt.NDArray[Any]:
        """The distance of the numbers of two codes; of several groups an array."""
        return self._parameters(self._codes.scales)

    @property
    def bits(self) -> int | npt.NDArray[np.uint8]:
        """The size of a code; where each group has its own, an array."""
        return self._codes.bits or np.frombuffer(memoryview(self._codes.widths), np.uint8)

    @property
    def mean_bits(self) -> float:
        """The mean of the sizes of all codes."""
        return self._codes.mean_bits

    @property
    def group_size(self) -> int:
        """How many numbers share a minimum and a scale; 0: all."""
        return self._codes.group_size

    @property
    def dtype(self) -> str:
        """The type of the numbers: "f32", "f16", "bf16" or "f64"."""
        return self._codes.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers."""
        return tuple(self._codes.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the codes and what belongs to them."""
        return len(memoryview(self._codes.payload))

    @property
    def max_error(self) -> float:
        """The largest error of a number."""
        return self._codes.max_error

    @property
    def rms_error(self) -> float:
        """The root of the mean squared error."""
        return self._codes.rms_error

    def _parameters(self, data: Any) -> float | npt.NDArray[Any]:
        found = np.frombuffer(memoryview(data), numpy_dtype(self._codes.parameter_dtype))
        return found if self.group_size else float(found[0]) if len(found) else 0.0

    def __repr__(self) -> str:
        return (
            f"QuantizedTensor({self.dtype} {list(self.shape)}, {self.mean_bits:.3g} bits, "
            f"max_error={self.max_error:.3g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        codes = self._codes
        facts = codes.dtype, self.shape, codes.bits, codes.group_size, bytes(codes.payload)
        return _restored, (*facts, codes.mean_bits, codes.max_error, codes.rms_error, self._of_torch)


def _restored(*state: Any) -> QuantizedTensor:
    return QuantizedTensor(_core.kept_codes(*state[:-1]), state[-1])


@suggests
class AdaptiveQuantizer:
    """Makes codes of a few bits of one tensor, for who stores it himself; Compressor takes a QuantizationConfig.

    target_bits: of a code, 1 to 8; with sensitivities the mean.
    max_restarts: how often numbers may be restored from codes and become codes again.
    group_size: how many numbers share a minimum and a scale: a multiple of 8 up to 65,536, or 0 for all of them. By
        default 0, and 128 with sensitivities.

    Raises UsageError for arguments that cannot be.
    """

    def __init__(self, target_bits: int = 8, max_restarts: int = 10, *, group_size: int | None = None) -> None:
        if max_restarts < 0:
            text = f"max_restarts: got {max_restarts}, expected 0 or more"
            raise make_error(UsageError, text, "bad_argument", field="max_restarts", value=str(max_restarts))
        _core.check_codes(target_bits, group_size or 0, False)
        self.target_bits = target_bits
        self.max_restarts = max_restarts
        self.group_size = group_size

    def __repr__(self) -> str:
        return made_as(self, target_bits=self.target_bits, max_restarts=self.max_restarts, group_size=self.group_size)

    def quantize(self, data: Any, sensitivity: Any = None, *, restarts: int = 0) -> QuantizedTensor:
        """The codes of an array or a tensor of f32, f16, bf16 or f64.

        sensitivity: how much an error of each number counts, as many of them as of these. Groups of numbers then get
            different bits, so that the sum of squares of error times sensitivity is the least.
        restarts: how often the numbers were restored from codes before.

        Raises UnsupportedError for another type, and for numbers that are not finite; UsageError for sensitivities
        of another number, and after more than max_restarts.
        """
        if restarts > self.max_restarts:
            raise make_error(
                UsageError,
                f"restarts: got {restarts}, expected at most max_restarts, {self.max_restarts}",
                "wrong_state",
                field="restarts",
                value=str(restarts),
                expected=str(self.max_restarts),
            )
        found = _elements("data", data)
        if found.dtype not in ("f32", "f16", "bf16", "f64"):
            raise make_error(
                UnsupportedError,
                f"data: got {found.dtype}, expected f32, f16, bf16 or f64",
                "unsupported_dtype",
                field="data",
                value=found.dtype,
            )
        known = None if sensitivity is None else _elements("sensitivity", sensitivity)
        group_size = self.group_size if self.group_size is not None else 0 if known is None else 128
        adaptive = known is not None
        codes = _core.quantize_tensor(found, known, self.target_bits, group_size, adaptive, 0)
        if codes is None:
            raise make_error(
                UnsupportedError,
                "data: got a number that is not finite, or numbers too far apart",
                "bad_value",
                field="data",
            )
        return QuantizedTensor(codes, type(data).__module__.partition(".")[0] == "torch")

    def dequantize(self, tensor: QuantizedTensor) -> Any:
        """The numbers that codes stand for, in the type that they had: a tensor of torch, if one was quantized, else
        an array of numpy."""
        codes = tensor._codes
        data = codes.restored(0)
        if not tensor._of_torch:
            return shaped(codes.dtype, tensor.shape, np.frombuffer(memoryview(data), np.uint8))
        from ..torch._tensors import tensor_from  # needs torch

        return tensor_from("data", codes.dtype, tensor.shape, data, device=None)


def _elements(name: str, value: Any) -> Elements:
    if callable(getattr(value, "detach", None)):  # torch's, of any device
        value = value.detach().cpu()
    return elements(name, value)
