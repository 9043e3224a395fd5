"""Compressor with state dicts of torch."""

import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint.mithril import Compressor

EXAMPLE = Path(__file__).parents[4] / "examples" / "python" / "mithril_keys.py"


def test_a_training_state_comes_back(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 64, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    compressor = Compressor(tmp_path)
    compressor.save(model.state_dict(), "weights")
    loaded = compressor.load("weights")
    assert set(loaded) == set(model.state_dict())
    assert all(torch.equal(loaded[k], v) for k, v in model.state_dict().items())
    loaded["weight"].zero_()  # memory of its own

    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "tied": model.weight}
    meta = compressor.save(state, "all", previous_key="weights")
    back = compressor.load("all")
    assert back["epoch"] == 3 and back["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    assert torch.equal(back["optimizer"]["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"])
    assert back["tied"].data_ptr() == back["model"]["weight"].data_ptr()
    assert meta.tensors == 8  # the tied one once

    with pytest.raises(thalia.UnsupportedError, match="hook"):
        compressor.save({"hook": lambda: 0}, "x")
    assert "x" not in compressor


def test_arrays_go_where_torch_is_asked_for(tmp_path):
    import numpy as np

    compressor = Compressor(tmp_path)
    compressor.save({"w": np.ones((2, 3), np.float32), "none": np.zeros((0,), np.int8)}, "a")
    state = compressor.load("a", device="cpu")
    assert torch.equal(state["w"], torch.ones(2, 3)) and state["none"].shape == (0,)


def test_the_example_goes_on_where_it_died(tmp_path):
    def run(folder, *arguments):
        return subprocess.run(
            [sys.executable, EXAMPLE, folder, *arguments], capture_output=True, text=True, timeout=120
        )

    whole = run(tmp_path / "whole", "6")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut", "6", "4").returncode == 1
    resumed = run(tmp_path / "cut", "6")
    assert resumed.stdout == whole.stdout != "", resumed.stderr
