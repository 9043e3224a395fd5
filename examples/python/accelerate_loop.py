"""Trains with accelerate: run it again with the same file, and it goes on where it stopped.

On several processes: accelerate launch --cpu --num_processes 2 accelerate_loop.py FILE
"""

import os
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from thalia_checkpoint.accelerate import load_state, save_state

path, dies_at = sys.argv[1], int((*sys.argv, "-1")[2])
accelerator = Accelerator(cpu=True)
set_seed(0, device_specific=True)  # other dropout in every process
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
rows = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), 16, shuffle=True)
model, optimizer, scheduler, data = accelerator.prepare(model, optimizer, scheduler, data)
epochs = torch.optim.lr_scheduler.LambdaLR(torch.optim.SGD(torch.nn.Linear(1, 1).parameters()), lambda _: 1.0)
accelerator.register_for_checkpointing(epochs)  # anything with a state
if os.path.exists(path):
    load_state(accelerator, path)
for epoch in range(epochs.last_epoch, 5):
    for (batch,) in data:
        loss = model(batch).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    if epoch == dies_at:
        os._exit(1)
    epochs.step()
    save_state(accelerator, path)
accelerator.print(sum(p.double().sum().item() for p in model.parameters()))
accelerator.end_training()
