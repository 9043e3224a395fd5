"""A name that is not there: the error says which one was probably meant."""

import json
import time
from functools import partial

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.brain import BrainCheckpoint
from thalia_checkpoint.numpy import save_file


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


def test_asking_whether_a_name_is_there_compares_none(tmp_path):
    save_file({f"layers.{i}.weight": np.ones(1) for i in range(8000)}, tmp_path / "f.thalia", durability="none")
    with thalia.open(tmp_path / "f.thalia") as file:
        tensors = file.tensors
        begin = time.monotonic()
        for i in range(20_000):
            assert f"layers.{i}.wieght" not in tensors and tensors.get(f"layers.{i}.wieght") is None
        assert time.monotonic() - begin < 2  # two seconds are a dozen comparisons with all
        assert tensors.get("layers.1.weight").shape == (1,) and tensors.get("x", 3) == 3
