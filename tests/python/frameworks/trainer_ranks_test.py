"""ThaliaCallback and ThaliaTrainer with several processes, which torchrun and `accelerate launch` start."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
from states import same_state
from thalia_checkpoint.transformers import ThaliaCallback, last_checkpoint
from trainer_ranks import WAYS
from transformers import Trainer
from transformers_trainer_test import pickles, train

HERE = Path(__file__).parent
TORCHRUN = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
# By itself it starts several processes for GPUs alone; the Trainer is told to take the CPU.
ACCELERATE = ["accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--num_processes", "2",
              "--main_process_port", "0", "--mixed_precision", "no", "--dynamo_backend", "no"]  # fmt: skip
FILES = {"config.json", "generation_config.json", "model.safetensors", "random-0.thalia", "random-1.thalia",
         "trainer_state.json", "training.thalia", "training_args.json"}  # fmt: skip


def run(launcher, *arguments):
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-m", *launcher, HERE / "run_rank.py", HERE / "trainer_ranks.py", *arguments],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder after both; what each process wrote is in it as well."""
    folder = tmp_path_factory.mktemp("ranks")
    run(TORCHRUN, folder, "cut")
    run(ACCELERATE, folder, "resume")
    return folder


@pytest.mark.parametrize("way", WAYS)
def test_a_training_of_two_processes_goes_on_as_if_it_had_not_stopped(trained, way):
    whole, cut = trained / way / "whole", trained / way / "cut"
    assert last_checkpoint(cut) == str(cut / "checkpoint-12")
    for name in ("model.safetensors", "training.thalia", "random-0.thalia", "random-1.thalia"):
        states = [thalia_torch.load(folder / "checkpoint-12" / name) for folder in (whole, cut)]
        assert same_state(*states), name
    first, second = (thalia_torch.load(cut / f"checkpoint-12/random-{process}.thalia") for process in (0, 1))
    assert not same_state(first, second)


@pytest.mark.parametrize("way", WAYS)
def test_each_process_writes_what_is_its_own(trained, way):
    assert pickles(trained) == []
    for folder in ("whole", "cut"):
        for step in (3, 6, 9, 12):
            checkpoint = trained / way / folder / f"checkpoint-{step}"
            assert {path.name for path in checkpoint.iterdir()} == FILES
            for path in checkpoint.glob("*.thalia"):
                assert thalia.verify(path).ok
    first, second = (
        set(re.findall(r"[a-z0-9-]+\.thalia", (trained / f"written-{process}").read_text())) for process in (0, 1)
    )
    assert first == {"training.thalia", "random-0.thalia"} and second == {"random-1.thalia"}


def test_a_checkpoint_without_a_process_is_not_whole(trained, tmp_path):
    shutil.copytree(trained / "callback/whole", tmp_path / "run")
    (tmp_path / "run/checkpoint-12/random-1.thalia").unlink()
    assert last_checkpoint(tmp_path / "run") == str(tmp_path / "run/checkpoint-9")


def test_another_number_of_processes_is_told(trained, tmp_path):
    last = str(trained / "callback/whole/checkpoint-3")
    with pytest.warns(UserWarning, match=r"random\.thalia: no such file, as another number of processes leaves it"):
        resumed = train(tmp_path, Trainer, [ThaliaCallback(checkpoint=last)], resume=last)
    assert resumed.state.global_step == 12
