"""Scripts as people have them, run with torch and with the import swapped: what they end with is the same."""

import argparse
import io
import pickle
import random
from collections import Counter, OrderedDict, deque
from datetime import datetime
from pathlib import Path

import fsspec
import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from states import same_state as same
from thalia_checkpoint.mithril import Compressor
from torch import nn

SCRIPTS = {}


def script(function):
    SCRIPTS[function.__name__] = function
    return function


def make(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().sum().backward()
    optimizer.step()


@script
def as_the_examples_of_imagenet_do(lib):
    args = argparse.Namespace(arch="resnet", lr=0.1, data=Path("data"), resume="", gpu=None)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    step(model, optimizer)
    scheduler.step()
    lib.save({"epoch": 3, "state_dict": model.state_dict(), "best_acc1": torch.tensor(0.5), "args": args,
              "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}, "c.pth.tar")  # fmt: skip
    found = lib.load("c.pth.tar", map_location="cpu", weights_only=False)
    model = make(1)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    model.load_state_dict(found["state_dict"])
    optimizer.load_state_dict(found["optimizer"])
    scheduler.load_state_dict(found["scheduler"])
    torch.manual_seed(7)
    step(model, optimizer)
    return model.state_dict(), found["epoch"], found["best_acc1"], vars(found["args"]), scheduler.get_last_lr()


@script
def with_all_arguments_named(lib):
    lib.save(obj=make().state_dict(), f="model.pth")
    return lib.load(f="model.pth", map_location=torch.device("cpu"))


@script
def with_arguments_about_pickles(lib):
    state = {"w": torch.ones(3), "names": ["a"]}
    lib.save(state, "a.pt", pickle_module=pickle, pickle_protocol=2, _use_new_zipfile_serialization=False)
    lib.save(state, "b.pt", pickle_protocol=2)
    return lib.load("a.pt", pickle_module=pickle, weights_only=False), lib.load("b.pt", "cpu", encoding="utf-8")


@script
def through_file_objects(lib):
    buffer = io.BytesIO()
    lib.save(make().state_dict(), buffer)
    buffer.seek(0)
    with fsspec.open("memory://run/model.pt", "wb") as file:
        lib.save({"model": make(1).state_dict()}, file)
    with fsspec.open("memory://run/model.pt", "rb") as file:
        return lib.load(buffer), lib.load(file, map_location=lambda storage, location: storage)["model"]


@script
def of_an_average_and_a_scaler(lib):
    model = make()
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    lib.save({"ema": average.state_dict(), "scaler": scaler.state_dict(), "n": average.n_averaged}, "e.pt")
    found = lib.load("e.pt")
    average.load_state_dict(found["ema"])
    scaler.load_state_dict(found["scaler"])
    return average.state_dict(), scaler.get_scale(), found["n"]


@script
def that_go_on_with_their_random_numbers(lib):
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    generator = torch.Generator().manual_seed(4)
    loader = torch.utils.data.DataLoader(torch.arange(9), 2, shuffle=True, generator=generator)
    next(iter(loader))
    lib.save({"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate(),
              "loader": generator.get_state(), "cuda": torch.cuda.get_rng_state_all()}, "rng.pt")  # fmt: skip
    torch.rand(3), np.random.rand(), random.random(), list(loader)
    found = lib.load("rng.pt", weights_only=False)
    torch.set_rng_state(found["torch"])
    np.random.set_state(found["numpy"])
    random.setstate(found["python"])
    generator.set_state(found["loader"])
    return torch.rand(3), np.random.rand(), random.random(), list(loader)


@script
def with_what_a_configuration_holds(lib):
    lib.save({"args": vars(argparse.Namespace(lr=0.1, betas=(0.9, 0.99), name=None)), "path": Path("a/b"),
              "seen": Counter("aab"), "last": deque([1, 2], maxlen=5), "at": datetime(2026, 1, 2), "tags": {"x"},
              "order": OrderedDict(b=1, a=2), 1: "a number", (1, 2): "a tuple", "nothing": None, "dtype": torch.half,
              "shape": torch.Size([1, 2]), "device": torch.device("cpu"), "array": np.arange(3)}, "c.pt")  # fmt: skip
    return lib.load("c.pt", weights_only=False)


@script
def mapped_into_a_model_without_elements(lib):
    lib.save(make().state_dict(), "m.pt")
    with torch.device("meta"):
        model = make()
    model.load_state_dict(lib.load("m.pt", mmap=True, weights_only=True), assign=True)
    return model.state_dict()


@script
def of_tied_weights_and_extra_state(lib):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head, self.seen = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False), None
            self.head.weight = self.embed.weight

        def get_extra_state(self):
            return self.seen

        def set_extra_state(self, state):
            self.seen = state

    model = Tied()
    model.seen = {"tokens": 3, "names": ["a", ("b",)]}
    lib.save(model.state_dict(), "t.pt")
    found = lib.load("t.pt")
    found["embed.weight"].add_(1)
    other = Tied()
    other.load_state_dict(found)
    return found, other.seen


@script
def of_every_dtype(lib):
    dtypes = [torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint64,
              torch.bool, torch.complex64, torch.complex128]  # fmt: skip
    lib.save([torch.ones(3).to(dtype) for dtype in dtypes] + [torch.empty(0, 5), torch.tensor(3)], "d.pt")
    return lib.load("d.pt")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_ends_with_the_same(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ends = []
    for lib in (torch, thalia_torch):
        torch.manual_seed(0)
        ends.append(SCRIPTS[name](lib))
    assert same(*ends)


class Looked(dict):
    """As many configurations are."""

    __getattr__ = dict.__getitem__


class Growing(dict):
    """As addict's: asking for an attribute makes it."""

    def __getattr__(self, name):
        return self.setdefault(name, Growing())


class Holder:
    """Its attributes are the members of a dictionary that it has."""

    def __init__(self, **members):
        self.__dict__["members"] = members

    def __getattr__(self, name):
        return self.__dict__["members"][name]


@pytest.mark.parametrize("kind", [Looked, Growing])
def test_attributes_that_are_keys_are_not_asked_for(kind, tmp_path):
    config = kind(lr=0.1, model=kind(width=np.ones(2)))
    for lib in (thalia, thalia_torch):
        lib.save({"config": config}, tmp_path / "c.thalia")
        assert same(lib.load(tmp_path / "c.thalia"), {"config": {"lr": 0.1, "model": {"width": np.ones(2)}}})
    compressor = Compressor()
    compressor.save({"w": torch.ones(2), "config": kind(lr=0.1)}, key="a")
    assert compressor.load("a")["config"] == {"lr": 0.1}
    assert list(config) == ["lr", "model"] and list(config["model"]) == ["width"]
    with pytest.raises(thalia.UnsupportedError, match=r"config: cannot save .*Holder"):
        thalia_torch.save({"config": Holder(lr=0.1)}, tmp_path / "c.thalia")


def test_tensors_that_no_file_holds_may_be_converted(tmp_path):
    class Own(torch.Tensor):
        pass

    state = {"sparse": torch.eye(3).to_sparse(), "own": torch.ones(2).as_subclass(Own),
             "codes": torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8), "one": torch.ones(1)}  # fmt: skip
    asked = []

    def convert(value):
        asked.append(value)
        if isinstance(value, Own):
            return value.as_subclass(torch.Tensor)
        return value.to_dense() if value.is_sparse else {"codes": value.int_repr(), "scale": value.q_scale()}

    thalia_torch.save(state, tmp_path / "f.thalia", convert=convert)
    expected = {"sparse": torch.eye(3), "own": torch.ones(2), "one": torch.ones(1),
                "codes": {"codes": torch.full((2,), 2, dtype=torch.int8), "scale": 0.5}}  # fmt: skip
    assert same(dict(sorted(thalia_torch.load(tmp_path / "f.thalia").items())), dict(sorted(expected.items())))
    assert [type(value) for value in asked].count(Own) == 1 and len(asked) == 3
    for name, instead in (("sparse", "to_dense"), ("codes", "dequantize")):
        with pytest.raises(thalia.UnsupportedError, match=rf"{name}: got a tensor .*\({instead}\(\) gives one\)"):
            thalia_torch.save({name: state[name]}, tmp_path / "f.thalia")


def test_what_is_no_file_is_told(tmp_path):
    for wrong in (None, 3, ["f.thalia"]):
        for lib in (thalia, thalia_torch):
            with pytest.raises(TypeError, match="expected a path, bytes or a file object"):
                lib.load(wrong)
    with pytest.raises(TypeError, match=r"load\(\) got a file twice"):
        thalia_torch.load("a", f="b")
    with pytest.raises(TypeError, match=r"save\(\) got a file twice"):
        thalia_torch.save({}, tmp_path / "a", f=tmp_path / "b")
    with pytest.raises(TypeError, match="'pickle_modul', did you mean 'pickle_module'"):
        thalia_torch.load("a", pickle_modul=pickle)
    for state in ({"w": torch.ones(1)}, {"step": 1}):
        with pytest.raises(thalia.UsageError, match=r"obj: got 'f\.pt', and the object in the path's place"):
            thalia_torch.save("f.pt", state)
    assert list(tmp_path.iterdir()) == []


def test_a_tensor_of_its_own_memory_comes_back_contiguous(tmp_path):
    state = {"turned": torch.randn(3, 4).t(), "last": torch.randn(1, 3, 4, 4).to(memory_format=torch.channels_last)}
    thalia_torch.save(state, tmp_path / "f.thalia")
    found = thalia_torch.load(tmp_path / "f.thalia")
    assert all(torch.equal(found[name], state[name]) and found[name].is_contiguous() for name in state)
