"""State of Hugging Face's Accelerator in one file.

    from thalia_checkpoint.accelerate import load_state, save_state

    save_state(accelerator, "run/step-1000.thalia")
    load_state(accelerator, "run/step-1000.thalia")

In place of accelerator.save_state(folder), which writes a folder of pickles that is not put in place
as a whole. No pickle is read or written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator
from accelerate.data_loader import SeedableRandomSampler
from accelerate.utils import DistributedType, gather_object
from torch.utils.data import BatchSampler

from . import torch as thalia_torch
from ._keywords import suggests
from ._support import io_errors
from ._types import Path
from .errors import FormatError, UnsupportedError, UsageError, make_error
from .torch._random_state import random_state, set_random_state

if TYPE_CHECKING:
    from typing import Unpack

    from ._files.writer import SaveOptions

__all__ = ["load_state", "save_state"]

_REPLICATED = ("NO", "MULTI_CPU", "MULTI_GPU")
_PARTS = ("models", "optimizers", "schedulers", "dataloaders", "custom")


@suggests
def save_state(accelerator: Accelerator, path: Path, **options: Unpack[SaveOptions]) -> None:
    """Saves what was given to accelerator.prepare() and register_for_checkpointing(): models,
    optimizers, schedulers, samplers and stateful data loaders; the scaler, the step, and the states
    of the random number generators of every process.

    To be called by every process; the first one writes. options: those of SaveOptions.
    The file is there whole, and on the disk, when this returns in each of them.
    Raises UnsupportedError where the model is sharded (thalia_checkpoint.dcp saves those), and for
    what cannot be saved; IoError. With several processes the others raise UsageError with what the
    first one failed with.
    """
    _require_replicated(accelerator)
    states = gather_object([random_state()])
    with _together(path):
        if accelerator.is_main_process:
            state = {name: [part.state_dict() for part in parts] for name, parts in _parts(accelerator).items()}
            state |= {"random": list(states), "step": accelerator.step}
            if accelerator.scaler is not None:
                state["scaler"] = accelerator.scaler.state_dict()
            with io_errors():
                os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            thalia_torch.save(state, path, **options)


def load_state(accelerator: Accelerator, path: Path) -> None:
    """Loads what save_state() wrote into an accelerator that was prepared with as many models,
    optimizers, schedulers, data loaders and objects, in the same order.

    Random number generators go on from their saved states, if there are as many processes as then; else
    they stay as they are. To be called by every process.

    Raises UsageError that names what there is another number of; UnsupportedError where the model is
    sharded; IoError, FormatError, IntegrityError. If it fails in one process, the others raise
    UsageError with what that one failed with; nothing was changed if the file cannot be read there.
    """
    _require_replicated(accelerator)
    with _together(path):
        parts, state = _read(accelerator, path)
    with _together(path):
        for name, ours in parts.items():
            for part, saved in zip(ours, state[name], strict=True):
                part.load_state_dict(saved)
        if accelerator.scaler is not None and "scaler" in state:
            accelerator.scaler.load_state_dict(state["scaler"])
        accelerator.step = state["step"]
        if len(state["random"]) == accelerator.num_processes:
            set_random_state(state["random"][accelerator.process_index])


def _read(accelerator: Accelerator, path: Path) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """What there is to load into, and what a file has for it."""
    state = thalia_torch.load(path)
    lists = (*_PARTS, "random")
    if not isinstance(state, dict) or "step" not in state or not all(isinstance(state.get(n), list) for n in lists):
        raise make_error(
            FormatError,
            f"{os.fspath(path)}: expected what save_state() writes",
            "bad_value",
            path=os.fspath(path),
        )
    parts = _parts(accelerator)
    for name, ours in parts.items():
        if len(ours) != len(state[name]):
            raise make_error(
                UsageError,
                f"{os.fspath(path)}: {name}: got {len(ours)}, expected {len(state[name])}, as when it was saved",
                "bad_argument",
                path=os.fspath(path),
                field=name,
                value=str(len(ours)),
            )
    return parts, state


@contextmanager
def _together(path: Path) -> Iterator[None]:
    """Waits for all processes, and fails in all of them if it failed in one."""
    failed: Exception | None = None
    try:
        yield
    except Exception as error:
        failed = error
    texts = gather_object([None if failed is None else f"{type(failed).__name__}: {failed}"])
    if failed is not None:
        raise failed
    for process, text in enumerate(texts):
        if text is not None:
            raise make_error(UsageError, f"process {process}: {text}", "bad_argument", path=os.fspath(path))


def _require_replicated(accelerator: Accelerator) -> None:
    kind = DistributedType(accelerator.distributed_type).name
    if kind not in _REPLICATED:
        raise make_error(
            UnsupportedError,
            f"distributed_type: got {kind}, expected one of {', '.join(_REPLICATED)}; "
            "thalia_checkpoint.dcp saves sharded models",
            "unsupported_feature",
            field="distributed_type",
            value=kind,
        )


class _Sampler:
    """Where the shuffling of a data loader, or its own state, has got to."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def _sampler(self) -> Any:
        batches = getattr(self._loader, "sampler", None)
        if not isinstance(batches, BatchSampler):
            batches = getattr(self._loader, "batch_sampler", None)
        # With several processes there is one around another that shares the batches out, which get_sampler() does
        # not look into.
        while (inner := getattr(batches, "batch_sampler", None)) is not None:
            batches = inner
        return getattr(batches, "sampler", None)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {}
        if getattr(self._loader, "use_stateful_dataloader", False):
            state["loader"] = self._loader.state_dict()
        if isinstance(iteration := getattr(self._loader, "iteration", None), int):
            state["iteration"] = iteration  # of which it makes the sampler's epoch
        sampler = self._sampler()
        if isinstance(sampler, SeedableRandomSampler):
            state |= {"epoch": sampler.epoch, "seed": sampler.initial_seed}
        elif isinstance(getattr(sampler, "generator", None), torch.Generator):
            state["generator"] = sampler.generator.get_state()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "loader" in state and getattr(self._loader, "use_stateful_dataloader", False):
            self._loader.load_state_dict(state["loader"])
        if "iteration" in state and hasattr(self._loader, "iteration"):
            self._loader.iteration = state["iteration"]
        sampler = self._sampler()
        if isinstance(sampler, SeedableRandomSampler) and "seed" in state:
            sampler.initial_seed = state["seed"]
            sampler.epoch = state["epoch"]
        elif isinstance(getattr(sampler, "generator", None), torch.Generator) and "generator" in state:
            sampler.generator.set_state(state["generator"])


def _parts(accelerator: Accelerator) -> dict[str, list[Any]]:
    # It has no other way to ask for them.
    return {
        "models": [accelerator.unwrap_model(model) for model in accelerator._models],
        "optimizers": list(accelerator._optimizers),
        "schedulers": list(accelerator._schedulers),
        "dataloaders": [_Sampler(loader) for loader in accelerator._dataloaders],
        "custom": list(accelerator._custom_objects),
    }
