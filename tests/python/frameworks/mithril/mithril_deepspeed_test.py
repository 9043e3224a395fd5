"""{"checkpoint": {"use_mithril": true}} in a config of DeepSpeed."""

import base64
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("deepspeed")

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import thalia_checkpoint as thalia
import torch
from deepspeed_test import on_ranks
from documents_test import DEEPSPEED, blocks_of
from thalia_checkpoint.deepspeed import ThaliaAsyncCheckpointEngine, ThaliaCheckpointEngine
from thalia_checkpoint.mithril.deepspeed import configure

# As the specification has it.
SKETCH = """
{
    "checkpoint": {
        "use_mithril": true,
        "mithril_config": {
            "compression_level": 3,
            "byte_grouping": true
        }
    }
}
"""

TRAINING = """
import sys

import torch
from thalia_checkpoint.deepspeed import ThaliaCheckpointEngine
from thalia_checkpoint.mithril.deepspeed import initialize

folder, config = sys.argv[1:]


def engine_of(seed):
    torch.manual_seed(seed)
    engine, optimizer, _, _ = initialize(model=torch.nn.Linear(64, 64), config=config)
    assert type(engine.checkpoint_engine) is ThaliaCheckpointEngine and optimizer is not None
    return engine


engine = engine_of(0)
engine.backward(engine(torch.ones(4, 64)).sum())
engine.step()
engine.save_checkpoint(folder)
other = engine_of(1)
path, _ = other.load_checkpoint(folder)
assert path is not None and other.global_steps == 1
assert all(torch.equal(a, b) for a, b in zip(engine.module.parameters(), other.module.parameters(), strict=True))
"""


def engine(checkpoint):
    """What configure() looks at."""
    config = {} if checkpoint is None else {"checkpoint": checkpoint}
    return SimpleNamespace(config=config, checkpoint_engine="deepspeed's")


def test_ranks_save_and_load_as_the_config_says(tmp_path):
    config = {
        **json.loads(SKETCH),
        "train_micro_batch_size_per_gpu": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "torch_adam": True}},
        "zero_optimization": {"stage": 1},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "training.py").write_text(TRAINING)
    on_ranks(2, tmp_path / "training.py", tmp_path / "run", tmp_path / "config.json")
    files = sorted((tmp_path / "run/global_step1").glob("*.pt"))
    assert len(files) == 3
    for file in files:
        assert thalia.verify(file).ok


def test_the_example_of_the_manual_runs(tmp_path):
    (block,) = (block for block in blocks_of("docs/use/from-mithril.md") if DEEPSPEED in block)
    (tmp_path / "example.py").write_text(f"import os\nos.chdir({str(tmp_path)!r})\n{block}")
    on_ranks(1, tmp_path / "example.py")
    assert (tmp_path / "run/latest").read_text() == "global_step1"


@pytest.mark.parametrize(
    "checkpoint", [None, {}, {"use_mithril": False}, {"mithril_config": {"compression_level": 99}}]
)
def test_engines_whose_config_does_not_ask_for_it_keep_their_own(checkpoint):
    mine = engine(checkpoint)
    assert configure(mine) is False and mine.checkpoint_engine == "deepspeed's"


def test_options_of_the_config_are_those_of_the_files(tmp_path):
    sizes = []
    for options in (
        {},
        {"compression_level": 3},
        {"compression": "none"},
        {"asynchronous": True, "durability": "none"},
    ):
        mine = engine({"use_mithril": True, "mithril_config": options})
        assert configure(mine) is True
        kind = ThaliaAsyncCheckpointEngine if "asynchronous" in options else ThaliaCheckpointEngine
        assert type(mine.checkpoint_engine) is kind
        torch.manual_seed(0)
        path = tmp_path / f"{len(sizes)}.pt"
        mine.checkpoint_engine.save({"module": {"w": torch.randn(300, 300).to(torch.bfloat16)}}, path)
        mine.checkpoint_engine.cleanup()
        sizes.append(path.stat().st_size)
    assert sizes[0] == sizes[3] < sizes[1] < 0.8 * sizes[2]


def test_a_config_is_read_as_deepspeed_reads_it(tmp_path):
    (tmp_path / "config.hjson").write_text(f"# for people\n{SKETCH.replace('3,', '3')}")
    encoded = base64.urlsafe_b64encode(SKETCH.encode()).decode()
    for config in (json.loads(SKETCH), str(tmp_path / "config.hjson"), tmp_path / "config.hjson", encoded):
        mine = SimpleNamespace(config=config, checkpoint_engine="deepspeed's")
        assert configure(mine) is True and type(mine.checkpoint_engine) is ThaliaCheckpointEngine


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({}, r"model_engine\.config: SimpleNamespace has none, expected .*; model_engine\.checkpoint_engine = Thalia"),
        ({"config": None}, r"model_engine\.config: got None"),
        ({"config": "gone/config.json"}, r"model_engine\.config: got 'gone/config\.json'"),
        ({"config": 3}, r"model_engine\.config: got 3"),
    ],
)
def test_an_engine_that_does_not_tell_its_config_is_refused(members, text):
    with pytest.raises(thalia.UnsupportedError, match=text):
        configure(SimpleNamespace(**members))


@pytest.mark.parametrize(
    ("checkpoint", "error", "text"),
    [
        ({"use_mithril": "yes"}, thalia.UsageError, "use_mithril"),
        ({"use_mithril": 1}, thalia.UsageError, "use_mithril"),
        ({"use_mithril": True, "mithril_config": [3]}, thalia.UsageError, "mithril_config"),
        ({"use_mithril": True, "mithril_config": {"compression_level": 23}}, thalia.UsageError, "level"),
        ({"use_mithril": True, "mithril_config": {"byte_grouping": False}}, thalia.UnsupportedError, "byte_grouping"),
        ({"use_mithril": True, "mithril_config": {"compresion_level": 3}}, TypeError, "compression_level"),
    ],
)
def test_what_cannot_be_is_told_before_the_first_checkpoint(checkpoint, error, text):
    mine = engine(checkpoint)
    with pytest.raises(error, match=text):
        configure(mine)
    assert mine.checkpoint_engine == "deepspeed's"
