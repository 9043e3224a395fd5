"""A name that is not there: the error says which one was probably meant."""

import importlib
import inspect
import json
import pickle
import time
import types
from functools import partial

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.brain import BrainCheckpoint
from thalia_checkpoint.mithril import Compressor
from thalia_checkpoint.numpy import save_file
from thalia_checkpoint.store import RunWriter


@pytest.fixture
def path(tmp_path):
    with thalia.Writer(tmp_path / "f.thalia") as writer:
        writer.add("encoder/weight", np.ones(3))
        writer.add("encoder/bias", np.ones(3))
        writer.add("decoder/kernel", np.ones(3))
    return tmp_path / "f.thalia"


def said(call):
    with pytest.raises(KeyError) as error:
        call()
    assert isinstance(error.value, thalia.NotFoundError) and error.value.code == "not_found"
    return str(error.value)


@pytest.mark.parametrize(
    "ask, meant",
    [
        (lambda file: file["encodr"], "encoder"),
        (lambda file: file["kernl"], "kernel"),
        (lambda file: file["encoder/wieght"], "encoder/weight"),
        (lambda file: file["encoder"]["wieght"], "weight"),
        (lambda file: file.region("decodr"), "decoder"),
        (lambda file: file.tensor("kernle"), "kernel"),
        (lambda file: file.tensors["wieght"], "weight"),
        (lambda file: list(file.stream(["wieght"])), "weight"),
    ],
)
def test_of_a_file(path, ask, meant):
    with thalia.open(path) as file:
        assert said(lambda: ask(file)).endswith(f", did you mean '{meant}'?")


def test_of_other_files(tmp_path):
    save_file({"weight": np.ones(3), "bias": np.ones(2)}, tmp_path / "f.safetensors")
    np.savez(tmp_path / "f.npz", weight=np.ones(3))
    (tmp_path / "s").mkdir()
    save_file({"weight": np.ones(3)}, tmp_path / "s" / "a.safetensors")
    (tmp_path / "s" / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"weight": "a.safetensors"}})
    )
    for name in ("f.safetensors", "f.npz", "s"):
        opened = thalia.open(tmp_path / name)
        for names in (opened, opened.tensors):
            assert said(partial(names.__getitem__, "wieght")).endswith(", did you mean 'weight'?")
    with thalia.safe_open(tmp_path / "f.safetensors", framework="numpy") as file:
        assert said(lambda: file.get_tensor("bais")) == "File does not contain tensor bais, did you mean 'bias'?"
    params = thalia.stream_params(tmp_path / "f.safetensors")
    assert said(lambda: params.load("wieght")) == "wieght: no such tensor, did you mean 'weight'?"


def test_where_nothing_is_near_nothing_is_said(path):
    with thalia.open(path) as file:
        assert said(lambda: file["something else"]) == f"{path}: no such region or tensor: 'something else'"
        assert said(lambda: file.tensors["xyz"]) == "xyz: no such tensor"


def test_of_a_writer(tmp_path):
    with thalia.Writer(tmp_path / "f.thalia") as writer:
        writer.region("encoder")
        writer.region("decoder")
        assert said(lambda: writer.connect("encoder", "decodr", np.ones(2))).endswith(", did you mean 'decoder'?")


def test_of_a_region_of_a_brain(tmp_path):
    BrainCheckpoint.save({"regions": {"cortex": {"weights": {"w": np.ones(2)}}}}, tmp_path / "b.thalia")
    with pytest.raises(thalia.NotFoundError, match=r"no region 'cortx'.*, did you mean 'cortex'\?"):
        BrainCheckpoint.load(tmp_path / "b.thalia", regions=["cortx"])


@pytest.mark.parametrize("value", ["zstd", None])
def test_of_a_keyword(tmp_path, value):
    for call in (
        lambda **options: thalia.Writer(tmp_path / "f.thalia", **options),
        lambda **options: save_file({}, tmp_path / "f.thalia", **options),
        lambda **options: save_file({}, tmp_path / "f.safetensors", **options),
    ):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'compresion', did you mean 'compression'\?"):
            call(compresion=value)
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'nothing'$"):
            call(nothing=value)


@pytest.mark.parametrize(
    "call, meant",
    [
        (lambda path: thalia.open(path, acces="copied"), "access"),
        (lambda path: thalia.open(acces="copied"), "access"),
        (lambda path: thalia.open(path).stream(memory_byte=1), "memory_bytes"),
        (lambda path: thalia.open(path)["kernel"].numpy(writeable=True), "writable"),
        (lambda path: thalia.safe_open(path, framwork="numpy"), "framework"),
        (lambda path: thalia.Writer(path, compresion="zstd"), "compression"),
        (lambda path: thalia.Writer(path).add("w", np.ones(1), rol="bias"), "role"),
        (lambda path: thalia.AsyncSaver(whenbusy="skip"), "when_busy"),
        (lambda path: thalia.verify(path, quik=True), "quick"),
        (lambda path: thalia.merge([path], f"{path}.out", acces="copied"), "access"),
        (lambda path: thalia.merge([path], f"{path}.out", compresion="zstd"), "compression"),
        (lambda path: thalia.LowRank(maxrank=3), "max_rank"),
        (lambda path: save_file({}, path, metdata={}), "metadata"),
        (lambda path: RunWriter(path, durabilty="none"), "durability"),
        (lambda path: RunWriter.prune(None, dryrun=True), "dry_run"),
        (lambda path: BrainCheckpoint.save({"regions": {}}, path, include_homeostatics=True), "include_homeostatic"),
        (lambda path: Compressor(path, delta_enable=True), "delta_enabled"),
    ],
)
def test_of_a_keyword_of_any_function(path, call, meant):
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '\w+'.*[dD]id you mean '{meant}'\?$"):
        call(path)


def test_only_what_a_function_was_called_with_is_looked_at(path):
    def progress(done, total):
        save_file({}, path.parent / "g.thalia", durabilty="none")

    with pytest.raises(TypeError, match=r"'durabilty', did you mean 'durability'\?$"):
        save_file({"w": np.ones(1)}, path, progress=progress)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'path'$"):
        thalia.open(access="copied")
    with pytest.raises(TypeError, match=r"open\(\) got an unexpected keyword argument 'nothing'$"):
        thalia.open(path, nothing=1)


def test_a_misspelt_argument_beside_options(path, tmp_path):
    for call, meant in (
        (lambda: thalia.convert(pth=path, out=tmp_path / "o.npz"), "path"),
        (lambda: thalia.convert(path, outt=tmp_path / "o.npz"), "out"),
        (lambda: save_file({}, filname=tmp_path / "o"), "filename"),
        (lambda: BrainCheckpoint.save(brian={}, path=path), "brain"),
    ):
        with pytest.raises(TypeError, match=rf"missing 1 required .*; got '\w+', did you mean '{meant}'\?$"):
            call()
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'out'$"):
        thalia.convert(path, compression="zstd")


def modules():
    for name in ("", ".numpy", ".torch", ".store", ".brain", ".dcp", ".mithril", ".accelerate", ".transformers",
                 ".lightning", ".orbax", ".deepspeed", ".flax",
                 ".mithril.torch", ".mithril.deepspeed", ".mithril.orbax"):  # fmt: skip
        try:
            yield importlib.import_module(f"thalia_checkpoint{name}")
        except ImportError:
            continue


def with_options(holder, names):
    """Names and functions that take options."""
    for name in names:
        found = getattr(holder, name)
        kinds = (types.FunctionType, types.MethodType)
        if isinstance(found, kinds) and found.__module__.startswith("thalia_checkpoint"):
            code = inspect.unwrap(found).__code__
            signature = inspect.signature(found)
            options = [p for p in signature.parameters.values() if p.default is not p.empty or p.kind is p.VAR_KEYWORD]
            if options and code.co_name != "__create_fn__":
                yield f"{holder.__name__}.{name}", found, options


def public():
    """What users call with options: functions and methods, and classes but for those of results, whose
    fields have no defaults; and no method of which another package is the caller."""
    for module in modules():
        yield from with_options(module, module.__all__)
        for name in module.__all__:
            cls = getattr(module, name)
            if not isinstance(cls, type) or not cls.__module__.startswith("thalia_checkpoint"):
                continue
            foreign = [base for base in cls.__mro__[1:-1] if not base.__module__.startswith("thalia_checkpoint")]
            own = [each for each in vars(cls) if each == "__init__" or not each.startswith("_")]
            own = [each for each in own if each == "__init__" or not any(each in vars(base) for base in foreign)]
            yield from with_options(cls, own)


def test_every_public_function_suggests():
    found = {name: (function, options) for name, function, options in public()}
    assert len(found) > 60
    for name, (function, options) in found.items():
        assert hasattr(function, "__wrapped__"), f"{name}() lacks @suggests"
        assert inspect.signature(function) == inspect.signature(function.__wrapped__)
        assert function.__doc__ == function.__wrapped__.__doc__
        if any(option.kind is option.VAR_KEYWORD for option in options):
            continue
        longest = max((option.name for option in options), key=len)
        with pytest.raises(TypeError, match=rf"[dD]id you mean '{longest}'\?"):
            function(**{f"{longest}x": None})


def test_functions_are_pickled_by_their_names():
    for name, function, _ in public():
        if isinstance(function, types.FunctionType):
            assert pickle.loads(pickle.dumps(function)) is function, name


def test_asking_whether_a_name_is_there_compares_none(tmp_path):
    save_file({f"layers.{i}.weight": np.ones(1) for i in range(8000)}, tmp_path / "f.thalia", durability="none")
    with thalia.open(tmp_path / "f.thalia") as file:
        tensors = file.tensors
        begin = time.process_time()
        for i in range(20_000):
            assert f"layers.{i}.wieght" not in tensors and tensors.get(f"layers.{i}.wieght") is None
        assert time.process_time() - begin < 2  # two seconds are a dozen comparisons with all
        assert tensors.get("layers.1.weight").shape == (1,) and tensors.get("x", 3) == 3
