"""What a module takes out of a state dict, and which code of its own takes part when it does."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.instancenorm import _InstanceNorm

#: What load_state_dict() of a module calls, of itself and of those that it is made of.
_METHODS = ("_load_from_state_dict", "load_state_dict")
_HOOKS = ("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
EXTRA_STATE = "_extra_state"


class ModulePlaces(NamedTuple):
    """Where load_state_dict() puts tensors, and by which names."""

    tensors: dict[str, torch.Tensor]
    """Parameters and buffers by name, in its order."""
    extra: list[str]
    """Names of what goes to set_extra_state()."""
    deferred: set[str]
    """Names, and paths of modules, about which, and about all beneath them, code of the module's own
    decides: it may take, rename or make them up, and what fits is known when it has run."""
    paths: set[str]
    """Paths of all modules; that of the outermost is ""."""

    @property
    def has_code(self) -> bool:
        """Whether anything but torch's own code sees what is loaded."""
        return bool(self.deferred or self.extra)

    def is_touched(self, name: str) -> bool:
        """Whether code of the module's own may see the tensor before torch loads it: a set_extra_state() sees
        those beneath."""
        above = {extra.removesuffix(EXTRA_STATE)[:-1] for extra in self.extra} - {name.rpartition(".")[0]}
        return self.is_deferred(name) or any(path in above for path in _outer(name))

    def is_open(self, names: Iterable[str]) -> bool:
        """Whether code of the module's own may still take what else nothing does."""
        return bool(self.deferred) and any(map(self.is_deferred, names))

    def is_deferred(self, name: str) -> bool:
        """Whether code of the module's own decides about the name."""
        return bool(self.deferred) and (name in self.deferred or any(path in self.deferred for path in _outer(name)))


def module_places(module: torch.nn.Module, names: Container[str]) -> ModulePlaces:
    """As _load_from_state_dict() finds them, not as state_dict() does, which may hand out copies.

    names: what the state dict has.
    """
    places = ModulePlaces({}, [], set(), set())
    todo: list[tuple[torch.nn.Module, str]] = [(module, "")]
    if type(module).load_state_dict is not torch.nn.Module.load_state_dict or _swaps():
        places.deferred.add("")
    while todo:
        inner, prefix = todo.pop()
        path = prefix[:-1]
        places.paths.add(path)
        places.deferred.update(_deferred(inner, prefix, names))
        if type(inner).set_extra_state is not torch.nn.Module.set_extra_state:
            places.extra.append(prefix + EXTRA_STATE)
        for name, tensor in _own_tensors(inner):
            places.tensors[prefix + name] = tensor
            if torch.nn.parameter.is_lazy(tensor):
                places.deferred.add(path)
        children = [(child, f"{prefix}{name}.") for name, child in inner._modules.items() if child is not None]
        todo += reversed(children)
    return places


def _own_tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield name, buffer


def _deferred(module: torch.nn.Module, prefix: str, names: Container[str]) -> Iterable[str]:
    """Names and paths for which the effect of loading is not known: code that is not torch's runs."""
    own, loads = module.__dict__, type(module)._load_from_state_dict
    has_own = any(name in own for name in _METHODS) or not isinstance(own.get("_parameters"), dict)
    if has_own or any(own.get(hooks) for hooks in _HOOKS):
        return (prefix[:-1],)
    if loads in _KNOWN:
        return _KNOWN[loads](module, prefix, names)
    return () if loads is torch.nn.Module._load_from_state_dict else (prefix[:-1],)


def _of_norm(module: Any, prefix: str, names: Container[str]) -> Iterable[str]:
    # By the version of the state dict, it makes a count of batches up.
    count = f"{prefix}num_batches_tracked"
    return (count,) if module.track_running_stats and count not in names else ()


def _of_instance_norm(module: Any, prefix: str, names: Container[str]) -> Iterable[str]:
    if module.track_running_stats:
        return _of_norm(module, prefix, names)
    # By the version, these are an error.
    return [name for name in (f"{prefix}running_mean", f"{prefix}running_var") if name in names]


#: torch's own, and what they decide about.
_KNOWN: dict[Any, Callable[[Any, str, Container[str]], Iterable[str]]] = {
    _NormBase._load_from_state_dict: _of_norm,
    _InstanceNorm._load_from_state_dict: _of_instance_norm,
}


def _outer(name: str) -> Iterator[str]:
    """The beginnings of a name that can be a module's path, the longest first."""
    while name:
        name = name.rpartition(".")[0]
        yield name


def _swaps() -> bool:
    """Whether torch was told to give parameters other contents as a whole."""
    swaps: bool = torch.__future__.get_swap_module_params_on_conversion()
    return swaps
