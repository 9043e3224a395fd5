"""What the tests of the Python package share."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia


@pytest.fixture
def silent_tracker(monkeypatch):
    """Processes that are started say nothing of semaphores.

    multiprocessing unlinks one of its own and then unregisters it. Where its daemon thread is frozen
    between the two, at the end of a process, the interpreter's tracker warns of it. We have none.
    """
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")


@pytest.fixture
def run_program(tmp_path):
    """Runs the program of this build in `tmp_path`, and returns what it says.

    A sanitizer's runtime is loaded before Python; the program has its own.
    """
    program = os.environ.get("THALIA_PROGRAM") or Path(thalia.__file__).resolve().parents[2] / "src/cli/thalia"
    if not Path(program).exists():
        pytest.skip("the program is not built here")
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def run(*arguments):
        done = subprocess.run(
            [program, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.thalia"


@pytest.fixture
def sample(path):
    """A file with two regions, and what is in it."""
    rng = np.random.default_rng(7)
    arrays = {
        "encoder/weight": rng.normal(size=(6, 5)).astype(np.float32),
        "encoder/bias": rng.normal(size=5),
        "encoder/scalar": np.array(3, np.int64),
        "encoder/empty": np.zeros((0, 4), np.float16),
        "decoder/weight": np.arange(24, dtype=np.int16).reshape(2, 3, 4),
        "decoder/mask": np.array([True, False, True]),
    }
    with thalia.Writer(path, durability="none") as writer:
        for name, array in arrays.items():
            writer.add(name, array)
        writer.metadata = {"step": 12, "nested": {"lr": 0.5}}
        writer.training_steps = 12
    return path, arrays
