"""Tensors of torch as memory that a follower changes."""

from __future__ import annotations

from typing import Any

import torch

from ..store._memory import unfit
from ._misfit import no_module
from ._module import module_places
from ._tensors import bytes_of, stored_as


class _Any:
    """Holds all names: what a module would make up, were it not there, is there."""

    def __contains__(self, name: object) -> bool:
        return True


def module_tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Its parameters and buffers, by the names of its state dict. Raises UsageError for what is no module."""
    if not isinstance(module, torch.nn.Module):
        raise no_module(module)
    return module_places(module, _Any()).tensors


def own_elements(name: str, tensor: torch.Tensor) -> tuple[str, tuple[int, ...], Any]:
    """The dtype and the shape that a file has of it, and its bytes in place. Raises UsageError; as stored_as()."""
    wanted = "a tensor that has its elements itself"
    if torch.nn.parameter.is_lazy(tensor):  # it cannot be detached
        raise unfit(name, f"a {type(tensor).__qualname__}", wanted)
    plain = tensor.detach()  # the same memory, without what autograd would record
    if type(plain) is not torch.Tensor:
        raise unfit(name, f"a {type(tensor).__qualname__}", wanted)
    dtype, shape = stored_as(name, tensor)
    if not plain.is_cpu:
        raise unfit(name, f"a tensor on {plain.device}", "one on the CPU; hold the state, and copy_() of it")
    if not plain.is_contiguous() or plain.is_conj() or plain.is_neg():
        raise unfit(name, "a tensor that is not in memory as it looks", "a contiguous one")
    return dtype, tuple(shape), bytes_of(plain.view(torch.uint8) if dtype == "f4_e2m1" else plain).reshape(-1)
