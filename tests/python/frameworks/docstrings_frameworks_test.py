"""The docstrings of what needs a framework, and their examples."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docstrings import PACKAGE, examples, run, undocumented, untold_errors, untyped_options, without_repr
from docstrings_test import ELSEWHERE
from thalia_checkpoint.dcp import ThaliaStorageWriter
from thalia_checkpoint.lightning import ThaliaAsyncCheckpointIO
from thalia_checkpoint.mithril.torch import MithrilSavePlanner
from thalia_checkpoint.transformers import ThaliaCallback

MODULES = [f"{PACKAGE}.{name}" for name in ("accelerate", "dcp", "lightning", "mithril.torch", "torch", "transformers")]
MODEL = "import torch; model = torch.nn.Linear(4, 2); optimizer = torch.optim.AdamW(model.parameters()); step = 1\n"
TRAINED = MODEL + "model(torch.ones(1, 4)).sum().backward(); optimizer.step()\n"
BORING = "from lightning.pytorch.demos.boring_classes import BoringModel; model = BoringModel()\n"
GPT2 = """
import torch
from transformers import AutoModelForCausalLM, GPT2Config, TrainingArguments
model = AutoModelForCausalLM.from_config(GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64))
args = TrainingArguments("out", max_steps=2, report_to=[], use_cpu=True)
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 4
"""
#: What each takes for given.
BEFORE = {
    "accelerate": "from accelerate import Accelerator; accelerator = Accelerator(cpu=True)\n",
    "brain.CurriculumTrainer": """
import numpy as np
from thalia_checkpoint.brain import CurriculumTrainer, StageConfig
brain = {"regions": {"cortex": {"weights": {"w": np.ones((4, 3), np.float32)}}}, "training_steps": 1}
stages = [StageConfig(epochs=1)] * 2
def train(brain, config, epoch): return {"loss": 1.0}
""",
    "dcp": TRAINED + "state = {'model': model.state_dict()}\n",
    "lightning": BORING,
    "orbax": "import jax.numpy as jnp, pathlib\n"
    "folder = pathlib.Path('run').absolute(); step = 1; state = {'w': jnp.ones(4)}\n",
    "safe_open": MODEL
    + "from thalia_checkpoint import safe_open\nfrom thalia_checkpoint.torch import save_file\n"
    + "save_file(model.state_dict(), 'model.thalia')\n",
    "torch": TRAINED,
    "torch.AsyncCheckpointer": MODEL
    + "from thalia_checkpoint.torch import AsyncCheckpointer\nsteps = 2000\ndef train(step): pass\n",
    "transformers": GPT2,
    "transformers.ThaliaCallback": GPT2
    + "from transformers import Trainer\nfrom thalia_checkpoint.transformers import ThaliaCallback, last_checkpoint\n",
}
#: Of processes that DeepSpeed starts: the manual's example is run by a test of its own. Of classes alone, which
#: other tests make.
NOT_RUN = {"deepspeed", "transformers.ThaliaTrainerMixin"}
EXAMPLE_MODULES = [
    f"{PACKAGE}.{name}" for name in ("accelerate", "dcp", "deepspeed", "lightning", "orbax", "torch", "transformers")
]
EXAMPLES = {name: code for module in EXAMPLE_MODULES for name, code in examples(module)}
EXAMPLES |= {
    name: code for module in (PACKAGE, f"{PACKAGE}.brain") for name, code in examples(module) if name in ELSEWHERE
}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module):
    assert undocumented(module) == []


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_name_the_errors_that_are_raised(module):
    assert untold_errors(module) == []


#: What is no option: states by any name, and arguments of DeepSpeed and of transformers.
ANY_NAME = [
    f"{PACKAGE}.mithril.deepspeed.initialize",
    f"{PACKAGE}.torch.AsyncCheckpointer.save",
    f"{PACKAGE}.torch.AsyncCheckpointer.step",
    f"{PACKAGE}.transformers.from_pretrained",
]


def test_a_checker_of_types_sees_every_misspelt_option():
    others = ("deepspeed", "flax", "mithril.deepspeed", "mithril.orbax", "orbax")
    modules = [*MODULES, *(f"{PACKAGE}.{name}" for name in others)]
    assert sorted(name for module in modules for name in untyped_options(module)) == ANY_NAME


def test_every_class_has_a_repr():
    # A Trainer is transformers', and shows what its Trainer does.
    trainers = [f"{PACKAGE}.transformers.ThaliaTrainer", f"{PACKAGE}.transformers.ThaliaTrainerMixin"]
    modules = [*MODULES, *(f"{PACKAGE}.{name}" for name in ("deepspeed", "flax", "mithril.orbax", "orbax"))]
    assert [name for module in modules for name in without_repr(module)] == trainers


def test_options_are_shown():
    writer = ThaliaStorageWriter("/run", compression="zstd", progress=print)
    assert repr(writer) == "ThaliaStorageWriter(path='/run', compression='zstd', progress=…)"
    assert repr(ThaliaCallback(durability="none")) == "ThaliaCallback(durability='none')"
    assert repr(ThaliaAsyncCheckpointIO()) == "ThaliaAsyncCheckpointIO(when_busy='queue')"
    assert (
        repr(MithrilSavePlanner(compression_level=3)) == "MithrilSavePlanner(compression_level=3, byte_grouping=True)"
    )


def test_every_example_is_run_or_said_not_to_be():
    assert set(EXAMPLES) == set(BEFORE) | NOT_RUN


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = EXAMPLES[name]
    if name == "lightning":
        # A first run leaves what the example goes on from.
        first = code.replace("Trainer(", "Trainer(max_epochs=1, limit_train_batches=2, default_root_dir='root', ")
        first = first.replace(', ckpt_path="run/last.ckpt"', "") + "\ntrainer.save_checkpoint('run/last.ckpt')\n"
        run(name, first, BEFORE[name])
        code = code.replace("Trainer(", "Trainer(max_epochs=2, limit_train_batches=2, default_root_dir='root', ")
    run(name, code, BEFORE[name])
    assert list(tmp_path.iterdir())
