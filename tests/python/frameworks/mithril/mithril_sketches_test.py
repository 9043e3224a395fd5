"""The examples of mithril's specification as it has them, with our modules under the names of its own."""

import re
import sys
import types

import pytest
import thalia_checkpoint.mithril
import thalia_checkpoint.mithril.torch
import torch
from safetensors.torch import save_file

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is")

KEYS = """
import mithril.checkpoint as ckpt

# Create compressor with local storage
compressor = ckpt.Compressor(
    storage="local:///tmp/checkpoints",
    delta_enabled=True,
    byte_grouping=True,
    compression_level=3,
)

# Compress and save PyTorch checkpoint
state_dict = model.state_dict()
meta = compressor.save(state_dict, key="step_1000", previous_key="step_900")
print(f"Compressed {meta.original_size} -> {meta.compressed_size} ({meta.ratio:.1f}x)")

# Load checkpoint
loaded = compressor.load("step_1000")
model.load_state_dict(loaded)

# Integration with PyTorch DCP
from mithril.checkpoint.torch import MithrilSavePlanner, MithrilLoadPlanner

# Use as custom planner with torch.distributed.checkpoint
torch.distributed.checkpoint.save(
    state_dict,
    storage_writer=...,
    planner=MithrilSavePlanner(compressor),
)
"""

PLANNERS = """
# User-facing API
from mithril.checkpoint.torch import MithrilSavePlanner, MithrilLoadPlanner
import torch.distributed.checkpoint as dcp

# Save with compression
dcp.save(
    state_dict,
    storage_writer=dcp.FileSystemWriter(path),
    planner=MithrilSavePlanner(compression_level=3),
)

# Load with decompression
dcp.load(
    state_dict,
    storage_reader=dcp.FileSystemReader(path),
    planner=MithrilLoadPlanner(),
)
"""

SAFETENSORS = """
# Read safetensors, compress, save as mithril format
from mithril.checkpoint import Compressor
from safetensors import safe_open

compressor = Compressor(storage="local:///checkpoints")

# Load from safetensors
with safe_open("model.safetensors", framework="pt") as f:
    state_dict = {k: f.get_tensor(k) for k in f.keys()}

# Save compressed
compressor.save(state_dict, key="model_v1")
"""


@pytest.fixture(autouse=True)
def mithril(monkeypatch):
    package = types.ModuleType("mithril")
    package.checkpoint = thalia_checkpoint.mithril
    monkeypatch.setitem(sys.modules, "mithril", package)
    for name, module in list(sys.modules.items()):
        if name == "thalia_checkpoint.mithril" or name.startswith("thalia_checkpoint.mithril."):
            own = name.replace("thalia_checkpoint.mithril", "mithril.checkpoint")
            monkeypatch.setitem(sys.modules, own, module)


def run(sketch, tmp_path, **names):
    """With folders that can be written to, and a writer where the sketch leaves one open."""
    sketch = re.sub(r"local:///(tmp/)?checkpoints", f"local://{tmp_path}/checkpoints", sketch)
    sketch = sketch.replace(
        "storage_writer=...", f"storage_writer=torch.distributed.checkpoint.FileSystemWriter({str(tmp_path / 'dcp')!r})"
    )
    exec(compile(sketch, "sketch", "exec"), names)
    return names


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8, dtype=torch.bfloat16))


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_checkpoints_under_keys(tmp_path, capsys):
    import torch.distributed.checkpoint as dcp

    mine = model()
    expected = {name: tensor.clone() for name, tensor in mine.state_dict().items()}
    thalia_checkpoint.mithril.Compressor(tmp_path / "checkpoints").save(mine.state_dict(), "step_900")
    names = run(KEYS, tmp_path, model=mine, torch=torch)
    assert names["meta"].previous_key == "step_900" and names["meta"].ratio > 5
    assert same(names["loaded"], expected) and same(mine.state_dict(), expected)
    assert capsys.readouterr().out.startswith(f"Compressed {names['meta'].original_size} -> ")
    found = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    planner = thalia_checkpoint.mithril.torch.MithrilLoadPlanner()
    dcp.load(found, storage_reader=dcp.FileSystemReader(tmp_path / "dcp"), planner=planner)
    assert same(found, expected)


def test_planners(tmp_path):
    import torch.distributed.checkpoint as dcp
    from thalia_checkpoint.mithril.torch import MithrilLoadPlanner

    state = model().state_dict()
    expected = {name: tensor.clone() for name, tensor in state.items()}
    run(PLANNERS, tmp_path, state_dict=state, path=tmp_path / "out")
    assert same(state, expected)
    found = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    dcp.load(found, storage_reader=dcp.FileSystemReader(tmp_path / "out"), planner=MithrilLoadPlanner())
    assert same(found, expected)


def test_files_of_safetensors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_file(model().state_dict(), "model.safetensors")
    names = run(SAFETENSORS, tmp_path)
    assert same(names["compressor"].load("model_v1"), model().state_dict())
