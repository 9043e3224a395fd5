"""Models and trainings of Hugging Face's transformers.

    from thalia_checkpoint.transformers import ThaliaTrainer, from_pretrained, last_checkpoint, save_pretrained

    trainer = ThaliaTrainer(model, args, train_dataset=data)
    trainer.train(resume_from_checkpoint=last_checkpoint(args.output_dir))

    save_pretrained(model, "folder")
    model = from_pretrained(AutoModelForCausalLM, "folder", mmap=True)

No pickle is read or written.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path as FilePath
from typing import Any

from transformers import AutoConfig, PreTrainedModel, Trainer

from . import torch as thalia_torch
from ._file import Path
from ._file import open as open_file
from ._random_state import random_state, set_random_state
from .errors import ThaliaError

__all__ = ["ThaliaTrainer", "from_pretrained", "last_checkpoint", "save_pretrained"]

_WEIGHTS = "model.thalia"
_TRAINING = "training.thalia"


def save_pretrained(model: PreTrainedModel, folder: Path, **options: Any) -> None:
    """Writes a model's configuration, and its weights as folder/model.thalia, tied ones once.

    options: those of SaveOptions. Raises IoError; UnsupportedError for a dtype that no file holds.
    """
    os.makedirs(folder, exist_ok=True)
    model.config.save_pretrained(folder)
    if model.can_generate() and model.generation_config is not None:
        model.generation_config.save_pretrained(folder)
    thalia_torch.save(model.state_dict(), os.path.join(folder, _WEIGHTS), **options)


def from_pretrained(cls: Any, folder: Path, *, mmap: bool = False) -> Any:
    """The model that save_pretrained() wrote, in evaluation mode; one of a folder with safetensors
    files, whole or in shards, as transformers loads it.

    cls: a model class, or an Auto class such as AutoModelForCausalLM.
    mmap: weights lie in a private mapping of the file, and are read when touched: for inference.
    Raises UsageError that lists the weights that do not fit; IoError, FormatError, IntegrityError.
    """
    path = os.path.join(folder, _WEIGHTS)
    if not os.path.exists(path):
        return cls.from_pretrained(folder)
    config = AutoConfig.from_pretrained(folder)
    model = cls.from_config(config) if hasattr(cls, "from_config") else cls(config)
    thalia_torch.load_into(model, path, assign=True, mmap=mmap)
    model.tie_weights()
    return model.eval()


class ThaliaTrainer(Trainer):  # type: ignore[misc, unused-ignore]
    """A Trainer whose checkpoints have no pickles: the states of optimizer, scheduler and random number
    generators are .thalia files, the weights safetensors as before.

    With DeepSpeed or FSDP these save the optimizer in their own way.
    """

    # transformers has no public way to replace these.

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.is_deepspeed_enabled or self.is_fsdp_enabled:
            super()._save_optimizer_and_scheduler(output_dir)
        elif self.args.should_save:
            state = {"optimizer": self.optimizer, "scheduler": self.lr_scheduler}
            os.makedirs(output_dir, exist_ok=True)
            thalia_torch.save(state, os.path.join(output_dir, _TRAINING))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        path = None if checkpoint is None else os.path.join(checkpoint, _TRAINING)
        if path is None or not os.path.exists(path):
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        state = thalia_torch.load(path)
        # Of the types that they are declared with, DeepSpeed's stand-ins have no load_state_dict().
        parts: list[tuple[Any, Any]] = [
            (self.optimizer, state["optimizer"]),
            (self.lr_scheduler, state["scheduler"]),
        ]
        for part, saved in parts:
            if part is not None:
                part.load_state_dict(saved)

    def _random_path(self, folder: str) -> str:
        process = f"-{self.args.process_index}" if self.args.world_size > 1 else ""
        return os.path.join(folder, f"random{process}.thalia")

    def _save_rng_state(self, output_dir: str) -> None:
        os.makedirs(output_dir, exist_ok=True)
        thalia_torch.save(random_state(), self._random_path(output_dir))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is None or not os.path.exists(self._random_path(checkpoint)):
            super()._load_rng_state(checkpoint)
            return
        set_random_state(thalia_torch.load(self._random_path(checkpoint)))


def last_checkpoint(folder: Path) -> str | None:
    """The latest checkpoint of a training that is whole: a process that died while it saved leaves one
    that is not, which is passed over. None where there is none.
    """
    found = []
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            if match := re.fullmatch(r"checkpoint-(\d+)", name):
                found.append((int(match[1]), FilePath(folder) / name))
    for _, checkpoint in sorted(found, reverse=True):
        if _is_whole(checkpoint):
            return str(checkpoint)
    return None


def _is_whole(checkpoint: FilePath) -> bool:
    # Its last file is that of the Trainer's own state; a file with a part of its bytes does not open.
    try:
        json.loads((checkpoint / "trainer_state.json").read_text("utf-8"))
        files = [*checkpoint.glob("*.safetensors"), *checkpoint.glob("*.thalia")]
        for path in files:
            open_file(path).close()
    except (OSError, ValueError, ThaliaError):
        return False
    return bool(files)
