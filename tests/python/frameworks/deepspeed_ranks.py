"""What the ranks do that deepspeed_test.py starts: python deepspeed_ranks.py FUNCTION ARGUMENT…"""

import argparse
import atexit
import os
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import deepspeed
import pytest
import run_rank
import thalia_checkpoint as thalia
import torch
import torch.distributed as dist
from deepspeed.runtime.checkpoint_engine import TorchCheckpointEngine
from states import same_state
from thalia_checkpoint.deepspeed import ThaliaAsyncCheckpointEngine, ThaliaCheckpointEngine

ENGINES = {"now": ThaliaCheckpointEngine, "beside": ThaliaAsyncCheckpointEngine}
TRAININGS = [
    (stage, dtype, how) for stage in (0, 1, 2, 3) for dtype, how in (("float32", "now"), ("bfloat16", "beside"))
]


def engine_of(stage=1, dtype="float32", checkpoint_engine=None):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    config = {
        "train_batch_size": 8,
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
        "zero_optimization": {"stage": stage},
        "bf16": {"enabled": dtype == "bfloat16"},
    }
    engine, *_ = deepspeed.initialize(model=model, config=config)
    if checkpoint_engine is not None:
        engine.checkpoint_engine = checkpoint_engine
    return engine


def train(engine, until):
    dtype = next(engine.module.parameters()).dtype
    while engine.global_steps < until:
        batch = torch.randn(8, 8, generator=torch.Generator().manual_seed(engine.global_steps))
        loss = engine(batch[engine.global_rank :: engine.world_size].to(dtype)).square().mean()
        engine.backward(loss)
        engine.step()


def finish(engine):
    if isinstance(engine.checkpoint_engine, ThaliaAsyncCheckpointEngine):
        engine.checkpoint_engine.wait()


def save_pickles(engine, folder):
    ours, engine.checkpoint_engine = engine.checkpoint_engine, TorchCheckpointEngine()
    engine.save_checkpoint(folder)
    engine.checkpoint_engine = ours


def begin_and_die(folder):
    for stage, dtype, how in TRAININGS:
        engine = engine_of(stage, dtype, ENGINES[how]())
        train(engine, 3)
        save_pickles(engine, f"{folder}/{stage}-{how}/theirs")
        engine.save_checkpoint(f"{folder}/{stage}-{how}/ours")
        train(engine, 6)
        save_pickles(engine, f"{folder}/{stage}-{how}/whole")
        finish(engine)
    os._exit(9)


def go_on(folder):
    for stage, dtype, how in TRAININGS:
        engine = engine_of(stage, dtype, ENGINES[how]())
        path, _ = engine.load_checkpoint(f"{folder}/{stage}-{how}/ours")
        assert path is not None and engine.global_steps == 3
        train(engine, 6)
        save_pickles(engine, f"{folder}/{stage}-{how}/again")


def latest_waits(folder):
    """A save of the second rank, held up, holds up `latest` in the first."""
    latest, rank, held = Path(folder, "latest"), int(os.environ["RANK"]), threading.Event()

    def late(done, total):
        time.sleep(0.5)
        assert not latest.exists()

    engine = engine_of(checkpoint_engine=ThaliaCheckpointEngine(progress=late if rank == 1 else None))
    engine.save_checkpoint(folder)
    assert latest.read_text() == "global_step0"

    engine.checkpoint_engine = ThaliaAsyncCheckpointEngine(
        progress=(lambda done, total: held.wait()) if rank == 1 else None
    )
    engine.save_checkpoint(folder, tag="beside")
    train(engine, 3)
    assert latest.read_text() == "global_step0"
    held.set()
    for step in range(4, 500):
        train(engine, step)
        if latest.read_text() == "beside":
            break
        time.sleep(0.01)
    assert latest.read_text() == "beside" and engine.checkpoint_engine.get_commit_info() is None

    # The next checkpoint ends the one before; wait() the last.
    engine.save_checkpoint(folder, tag="first")
    engine.save_checkpoint(folder, tag="second", save_latest=False)
    assert latest.read_text() == "first"
    engine.checkpoint_engine.wait()
    assert latest.read_text() == "first"
    engine.save_checkpoint(folder, tag="third")
    engine.save_16bit_model(folder)
    assert latest.read_text() == "third"
    saved = ThaliaCheckpointEngine().load(f"{folder}/pytorch_model.bin")
    assert same_state(saved, engine.module.state_dict())


class Refused(Exception):
    pass


def failures_are_told(folder):
    """What fails in the second rank ends the checkpoint in both, and `latest` stays."""
    for how in ENGINES:
        failure_is_told(f"{folder}/{how}", how)


def failure_is_told(folder, how):
    latest, rank = Path(folder, "latest"), int(os.environ["RANK"])
    engine = engine_of(checkpoint_engine=ENGINES[how]())
    engine.save_checkpoint(folder, tag="good", client_state={"args": argparse.Namespace(lr=0.1, dtype=torch.half)})
    finish(engine)

    def refuse(done, total):
        raise Refused("no")

    engine.checkpoint_engine._options = {"progress": refuse} if rank == 1 else {}
    with pytest.raises(
        Refused if rank == 1 else thalia.ThaliaError, match="no" if rank == 1 else "^rank 1: Refused: no$"
    ):
        engine.save_checkpoint(folder, tag="bad")
        finish(engine)
    engine.checkpoint_engine._options = {}
    with pytest.raises(thalia.ThaliaError, match=r"data\.0: cannot save fractions\.Fraction"):
        engine.save_checkpoint(folder, tag="bad", client_state={"data": [Fraction(1, 3)]})
        finish(engine)
    assert latest.read_text() == "good"

    path, client_state = engine.load_checkpoint(folder)
    assert path is not None and client_state["args"] == argparse.Namespace(lr=0.1, dtype=torch.half)
    engine.save_checkpoint(folder, tag="better")
    finish(engine)
    assert latest.read_text() == "better"


def end_without_waiting(folder):
    atexit.unregister(run_rank.end)
    engine = engine_of(2, checkpoint_engine=ThaliaAsyncCheckpointEngine())
    engine.save_checkpoint(folder, client_state={"ballast": torch.ones(1 << 24)})


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    dist.destroy_process_group()
