"""A training of several processes: trainer_ranks.py FOLDER cut, or resume.

With the callback and with the mixin, each in a folder of its own. `cut` trains to the end in FOLDER/WAY/whole, and
stops after a checkpoint in FOLDER/WAY/cut, where `resume` goes on. FOLDER/written-RANK has what each process wrote.
"""

import logging
import os
import sys
from pathlib import Path

import torch
import transformers_trainer_test as tests
from thalia_checkpoint.transformers import ThaliaCallback, ThaliaTrainer, last_checkpoint
from transformers import Trainer, TrainerCallback

WAYS = {"callback": (Trainer, lambda: [ThaliaCallback(durability="none")]), "mixin": (ThaliaTrainer, list)}


class Seeds(TrainerCallback):
    """Each process has dropout of its own, and where it is resumed, another at first."""

    def on_train_begin(self, args, state, control, **_):
        torch.manual_seed(state.global_step + args.process_index)


def train(folder, cls, callbacks, **how):
    tests.train(folder, cls, [Seeds(), *callbacks()], num_train_epochs=6, logging_strategy="steps", logging_steps=1,
                ddp_backend="gloo", **how)  # fmt: skip


def main(folder, what):
    assert os.environ["WORLD_SIZE"] == "2"
    folder.mkdir(exist_ok=True)
    written = logging.getLogger("thalia_checkpoint")
    written.setLevel(logging.INFO)
    written.addHandler(logging.FileHandler(folder / f"written-{os.environ['RANK']}"))
    for name, (cls, callbacks) in WAYS.items():
        if what == "cut":
            train(folder / name / "whole", cls, callbacks)
            train(folder / name / "cut", cls, callbacks, stop=7)
        else:
            last = last_checkpoint(folder / name / "cut")
            assert last.endswith("checkpoint-6"), last
            train(folder / name / "cut", cls, callbacks, resume=last)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
