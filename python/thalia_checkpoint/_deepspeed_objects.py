"""Objects that are in states of DeepSpeed, as dictionaries in a tree, and back.

{"thalia_checkpoint.deepspeed": [NAME, STATE]}: the name of a class that is listed here, and the
attributes of the object, or the value of an enumeration. A file names no other class, and nothing of
it is imported.
"""

from __future__ import annotations

import argparse
import enum
import os
from typing import Any

from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
from deepspeed.runtime.zero.config import ZeroStageEnum
from deepspeed.utils import fragment_address

from ._types import Path
from .errors import FormatError, make_error

_KEY = "thalia_checkpoint.deepspeed"
# The classes in states of ZeRO's optimizers. Megatron-DeepSpeed adds its arguments, a Namespace.
_CLASSES: dict[str, Any] = {
    cls.__name__: cls for cls in (DynamicLossScaler, LossScaler, ZeroStageEnum, argparse.Namespace, fragment_address)
}


def as_dictionary(value: Any) -> dict[str, Any] | None:
    """What is saved of an object; None for one of any other class."""
    name = type(value).__name__
    if _CLASSES.get(name) is not type(value):
        return None
    return {_KEY: [name, value.value if isinstance(value, enum.Enum) else vars(value)]}


def with_objects(state: Any, path: Path) -> Any:
    """A state that was loaded, with the objects in place of their dictionaries.

    path: of the file. Raises FormatError that names it, for a class that is not listed.
    """
    if isinstance(state, dict):
        if list(state) == [_KEY]:
            return _object(with_objects(state[_KEY], path), path)
        for key, value in state.items():
            state[key] = with_objects(value, path)
    elif isinstance(state, list):
        state[:] = [with_objects(value, path) for value in state]
    elif type(state) is tuple:
        return tuple(with_objects(value, path) for value in state)
    return state


def _object(saved: Any, path: Path) -> Any:
    try:
        name, state = saved
        cls = _CLASSES[name]
        if issubclass(cls, enum.Enum):
            return cls(state)
        made = cls.__new__(cls)
        vars(made).update(state)
        return made
    except (KeyError, TypeError, ValueError) as error:
        raise make_error(
            FormatError,
            f"{os.fspath(path)}: {_KEY}: got {saved!r}, expected one of {', '.join(_CLASSES)}, and its state",
            "bad_value",
            path=os.fspath(path),
            section="metadata",
            field=_KEY,
            value=repr(saved),
        ) from error
