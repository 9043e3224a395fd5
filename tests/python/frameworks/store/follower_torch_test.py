"""A follower that changes a model of torch in place, and hands out tensors of torch."""

import copy
import itertools
import subprocess
import sys

import numpy as np
import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint import store
from thalia_checkpoint import torch as thalia_torch

CHAIN = {"deltas": {"policy": "every", "full_every": 256}, "phases": [{"name": "train", "retention": {}}]}
SOON = 60.0
#: Trains a model of its own, a step a checkpoint, until it is told to end.
TRAINER = """
import sys
import torch
from thalia_checkpoint import store

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 1)).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with store.RunWriter(sys.argv[1], durability="none") as run:
    for step, _ in enumerate(sys.stdin, 1):
        optimizer.zero_grad()
        model(torch.randn(32, 8, dtype=torch.bfloat16)).square().mean().backward()
        optimizer.step()
        run.save_object(step, {"model": model.state_dict(), "step": step}, delta=True)
        print(step, flush=True)
"""


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(16, 8, dtype=torch.bfloat16)
        self.head = torch.nn.Linear(8, 16, bias=False, dtype=torch.bfloat16)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)

    def forward(self, tokens):
        return self.head(self.embedding(tokens)) * self.scale


def trained(model, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.copy_(torch.randn(tensor.shape))
    return model


def is_same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_a_training_in_another_process_changes_the_served_model_in_place(tmp_path):
    folder = tmp_path / "run"
    store.create_run(folder, CHAIN)
    layers = (torch.nn.Linear(8, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 1))
    served = torch.nn.Sequential(*layers).to(torch.bfloat16).eval()
    addresses = [parameter.data_ptr() for parameter in served.parameters()]
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    inputs = torch.randn(4, 8, dtype=torch.bfloat16)
    outputs = []
    with thalia.Follower(folder) as follower:
        follower.add_module(served, prefix="model.")
        for step in range(1, 6):
            process.stdin.write("\n")
            process.stdin.flush()
            before = served(inputs)
            assert follower.prepare(SOON).step == step
            assert torch.equal(served(inputs), before)
            update = follower.apply()
            assert update.deltas == (step > 1) and not update.fell_back
            outputs.append(served(inputs))
            whole = copy.deepcopy(served)
            whole.load_state_dict(state_of(folder))
            assert is_same(whole, served) and torch.equal(whole(inputs), outputs[-1])
        assert all(not torch.equal(a, b) for a, b in itertools.pairwise(outputs))
        assert addresses == [parameter.data_ptr() for parameter in served.parameters()]
        process.stdin.close()
        assert process.wait() == 0
        state = follower.current()
        tensor = state["model.0.weight"].torch()
        assert tensor.dtype == torch.bfloat16 and torch.equal(tensor, served[0].weight)
        tensor.zero_()
        assert not torch.equal(tensor, served[0].weight)
    process.stdout.close()


def state_of(folder):
    run = store.Run(folder)
    loaded = run.restore(folder.parent / "whole.thalia", replace=True)
    assert loaded.entry == run.latest()
    return thalia_torch.load(folder.parent / "whole.thalia")["model"]


@pytest.mark.parametrize("save", ["object", "state_dict", "both"])
def test_tied_parameters_are_one_memory(tmp_path, save):
    store.create_run(tmp_path / "run", CHAIN)
    served, training = trained(Tied(), 1), trained(Tied(), 2)
    scratch = served.scratch.clone()
    with store.RunWriter(tmp_path / "run") as run, thalia.Follower(tmp_path / "run") as follower:
        follower.add_module(served)
        for step in (1, 2):
            trained(training, step + 5)
            if save == "object":
                run.save_object(step, training.state_dict(), delta=True)
            else:
                writer = run.new_checkpoint(step)
                state = {name: tensor for name, tensor in training.state_dict().items()}
                if save == "state_dict":
                    del state["embedding.weight"]
                for name, tensor in state.items():
                    writer.add(name, tensor)
                run.save(writer, delta=True)
            update = follower.wait(SOON)
            assert update.deltas == step - 1 and not update.fell_back
            assert is_same(served, training) and served.head.weight is served.embedding.weight
    assert torch.equal(served.scratch, scratch)
    tokens = torch.arange(4)
    assert torch.equal(served(tokens), training(tokens))


def test_a_state_dict_is_memory_and_gradients_go_on(tmp_path):
    store.create_run(tmp_path / "run", CHAIN)
    served, training = trained(Tied(), 1), trained(Tied(), 2)
    with store.RunWriter(tmp_path / "run") as run:
        run.save_object(1, training.state_dict())
        follower = thalia.Follower(tmp_path / "run", memory=served.state_dict())
        follower.wait(SOON)
    assert is_same(served, training)
    served(torch.arange(4)).float().sum().backward()
    assert served.embedding.weight.grad is not None


def test_a_module_that_goes_leaves_its_memory_to_the_follower(tmp_path):
    store.create_run(tmp_path / "run", CHAIN)
    training = trained(Tied(), 2)
    with store.RunWriter(tmp_path / "run") as run:
        run.save_object(1, training.state_dict())
    follower = thalia.Follower(tmp_path / "run")
    follower.add_module(trained(Tied(), 1))
    follower.wait(SOON)
    assert torch.equal(follower.current()["scale"].torch(), training.scale)
    assert follower.current()["scale"].torch(device="cpu").shape == ()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda model: model.to(torch.float32), "got f32, expected bf16"),
        (lambda model: setattr(model, "head", torch.nn.Linear(16, 8, bias=False)), "head.weight"),
        (lambda model: setattr(model, "more", torch.nn.Linear(2, 2)), r"more\.weight.*no tensor for this memory"),
        (lambda model: model.to("meta"), "meta"),
        (lambda model: setattr(model, "lazy", torch.nn.LazyLinear(2)), "lazy"),
        (
            lambda model: setattr(model, "flipped", torch.nn.Parameter(torch.zeros(2, 3).T)),
            "flipped: .*expected a contiguous one",
        ),
        (
            lambda model: setattr(model, "sparse", torch.nn.Parameter(torch.zeros(2, 3).to_sparse())),
            "sparse: .*expected a dense one",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_changed(tmp_path, change, error):
    store.create_run(tmp_path / "run", CHAIN)
    with store.RunWriter(tmp_path / "run") as run:
        run.save_object(1, trained(Tied(), 2).state_dict())
    model = trained(Tied(), 1)
    kept = model.embedding.weight.detach().clone()
    change(model)
    follower = thalia.Follower(tmp_path / "run")
    with pytest.raises(thalia.ThaliaError, match=error):
        follower.add_module(model)
        follower.wait(SOON)
    if not model.embedding.weight.is_meta:
        assert torch.equal(model.embedding.weight, kept.to(model.embedding.weight.dtype))
    assert follower.current() is None
    with pytest.raises(thalia.UsageError):
        thalia.Follower(tmp_path / "run").add_module({"w": np.zeros(3)})
