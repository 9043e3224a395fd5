"""Trains a sharded transformer, and goes on where it was killed: torchrun --nproc-per-node 2 distributed.py FOLDER

Alone: python distributed.py FOLDER. The number of ranks may be another each time. A second argument
is the step at which it is killed."""

import os
import signal
import sys
from typing import Any

import torch
import torch.distributed as dist
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

path, dies_at = f"{sys.argv[1]}/checkpoint", int((*sys.argv, "-1")[2])
if "RANK" not in os.environ:
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="0")
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True)
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)


def state(step: int) -> dict[str, Any]:
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


start = 0
if ThaliaStorageReader.validate_checkpoint_id(path):
    found = state(0)
    load(found, storage_reader=ThaliaStorageReader(path))
    set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optimizer"])
    start = found["step"]
for step in range(start, 20):
    batch = torch.randn(8, 16, 32, generator=torch.Generator().manual_seed(step))
    loss = (model(batch) - batch.flip(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 5 == 0:
        save(state(step + 1), storage_writer=ThaliaStorageWriter(path))
    if dist.get_rank() == 0:
        print(f"step {step}: loss {loss.item():.9f}", flush=True)
    if step == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # gloo's threads may outlive the interpreter, and then abort the process
