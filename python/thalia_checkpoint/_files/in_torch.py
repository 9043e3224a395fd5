"""Tensors of files as torch's. What makes them is in a package above, and is handed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from .tensor import Tensor


class TorchTensors(Protocol):
    """What makes them."""

    def tensor_of(self, tensor: Tensor, *, device: torch.device | str | None = None) -> torch.Tensor:
        """All elements, in memory of their own."""
        ...

    def slice_of(self, tensor: Tensor, index: Any, *, device: torch.device | str | None = None) -> torch.Tensor:
        """The elements that tensor[index] has, in memory of their own."""
        ...


_give: Callable[[], TorchTensors] | None = None


def hand_in(give: Callable[[], TorchTensors]) -> None:
    """give: called when a tensor of torch is first asked for; it may import torch."""
    global _give
    _give = give


def torch_tensors() -> TorchTensors:
    """What was handed in. Raises ImportError without torch."""
    assert _give is not None  # the package does so before anybody has a tensor
    return _give()
