"""Trains with transformers' Trainer: run it again with the same folder, and it goes on where it stopped."""

import os
import sys
from typing import Any

import torch
from thalia_checkpoint.transformers import ThaliaTrainer, last_checkpoint
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)

folder, dies_at = sys.argv[1], int((*sys.argv, "-1")[2])


class Rows(Dataset[dict[str, torch.Tensor]]):
    def __init__(self) -> None:
        self.tokens = torch.randint(64, (32, 16), generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[row], "labels": self.tokens[row]}


class Death(TrainerCallback):
    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step == dies_at:
            os._exit(1)


set_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=16, vocab_size=64))
args = TrainingArguments(
    folder, num_train_epochs=4, per_device_train_batch_size=8, save_steps=3, save_total_limit=2,
    use_cpu=True, report_to="none", disable_tqdm=True, logging_strategy="no",
)  # fmt: skip
trainer = ThaliaTrainer(model, args, train_dataset=Rows(), callbacks=[Death()])
trainer.max_shard_size = "50KB"  # the weights in several files, as of a large model
trainer.train(resume_from_checkpoint=last_checkpoint(folder))
print(trainer.state.global_step, sum(p.double().sum().item() for p in model.parameters()))
