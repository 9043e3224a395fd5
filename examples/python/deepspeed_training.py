"""Trains with DeepSpeed, and goes on where it was killed: torchrun --nproc-per-node 2 deepspeed_training.py FOLDER

A second argument is the step after which it is killed."""

import os
import sys
from typing import Any

import deepspeed
import torch
from thalia_checkpoint.deepspeed import ThaliaAsyncCheckpointEngine

folder, dies_at = sys.argv[1], int((*sys.argv, "-1")[2])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
config = {"train_batch_size": 16, "zero_optimization": {"stage": 2}}
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
engine: Any = deepspeed.initialize(model=model, optimizer=optimizer, config=config)[0]
engine.checkpoint_engine = ThaliaAsyncCheckpointEngine()
engine.load_checkpoint(folder)  # what `latest` names, if it is there
while engine.global_steps < 20:
    batch = torch.randn(16, 8, generator=torch.Generator().manual_seed(engine.global_steps))
    mine = batch[engine.global_rank :: engine.world_size]
    engine.backward((engine(mine) - mine.sum(1, keepdim=True)).square().mean())
    engine.step()
    if engine.global_steps % 5 == 0:
        engine.save_checkpoint(folder)
    if engine.global_steps == dies_at:
        os._exit(9)
engine.checkpoint_engine.wait()
if engine.global_rank == 0:
    print(engine.global_steps, sum(p.double().sum().item() for p in model.parameters()))
torch.distributed.destroy_process_group()
