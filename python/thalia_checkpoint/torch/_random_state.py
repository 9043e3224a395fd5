"""The states of a process's random number generators, as values that a checkpoint can hold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from ..errors import FormatError, make_error


def random_state() -> dict[str, Any]:
    """The states of the generators of Python, numpy and torch, and of every device of CUDA if there are any."""
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """What random_state() gave. Raises FormatError for anything else."""
    try:
        random.setstate(state["python"])
        np.random.set_state(state["numpy"])
        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])
    except (LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise make_error(
            FormatError, f"states of random number generators: {error!r}; expected what was saved", "bad_value"
        ) from error
