"""safetensors' tests of its Python package: the import is this package.

What this package has under the names of safetensors' modules takes their place. A name that it lacks
is missing, as it would be in a program whose import was changed.
"""

import importlib
import sys
import types

import thalia_checkpoint
import thalia_checkpoint.numpy
import thalia_checkpoint.torch

#: Where the names of safetensors itself are.
TOP = (thalia_checkpoint, thalia_checkpoint.torch, thalia_checkpoint.numpy)
RENAMED = {"SafetensorError": "ThaliaError"}
#: Helpers of safetensors.torch that are in none of its documents.
PRIVATE = ("storage_ptr", "storage_size")


class Swapped(types.ModuleType):
    """A module whose names are those of some of this package."""

    def __init__(self, name, modules):
        super().__init__(name)
        self.__path__ = []
        self._modules = modules

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        for module in self._modules:
            for known in (name, RENAMED.get(name, name)):
                if hasattr(module, known):
                    return getattr(module, known)
        if name.startswith("_") or name in PRIVATE:
            return _is_private(name)
        raise AttributeError(f"thalia_checkpoint has no {name}")


def _is_private(name):
    """Its tests fail, and not the import of those beside them."""

    def call(*_, **__):
        raise NotImplementedError(f"{name} is safetensors' own")

    return call


sys.modules["safetensors"] = Swapped("safetensors", TOP)
for part in ("torch", "numpy", "flax", "jax"):
    try:
        module = importlib.import_module(f"thalia_checkpoint.{part}")
    except ImportError:
        continue
    sys.modules[f"safetensors.{part}"] = Swapped(f"safetensors.{part}", (module,))
