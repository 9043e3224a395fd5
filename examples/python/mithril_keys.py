"""Trains, and keeps each step as a difference to the one before: run it again, and it goes on where it stopped."""

import os
import sys

import torch
from thalia_checkpoint.mithril import Compressor

folder, steps, dies_at = sys.argv[1], int(sys.argv[2]), int((*sys.argv, "-1")[3])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters())
compressor = Compressor(storage=folder)
done = max((int(key.removeprefix("step_")) for key in compressor.keys()), default=0)
if done:
    state = compressor.load(f"step_{done:06}")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])
for step in range(done + 1, steps + 1):
    optimizer.zero_grad()
    model(torch.randn(32, 16)).square().mean().backward()
    optimizer.step()
    if step == dies_at:
        os._exit(1)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
    compressor.save(state, f"step_{step:06}", f"step_{step - 1:06}" if step > 1 else None)
print(sum(p.double().sum().item() for p in model.parameters()))
