"""What a file holds, from its bytes and as bytes: nothing of it is lost, and no file is written."""

import gc
import os
from collections import Counter

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy
import thalia_checkpoint.torch as thalia_torch
import torch
from states import same_state


def state():
    base = torch.arange(24.0).reshape(4, 6)
    model = torch.nn.Linear(6, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(base).sum().backward()
    optimizer.step()
    return {
        "whole": base, "row": base[1], "columns": base[:, 2:4], "step": 3, "rate": 1e-3, "name": "run",
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "seen": Counter({2: 1}),
        "array": np.arange(3), "nested": [(1, torch.zeros(0)), {"empty": {}}],
    }  # fmt: skip


ROOTS = [state(), [torch.ones(2), 3, None], torch.arange(3), (), 5, {"a": torch.ones(2)}]


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: type(root).__name__)
@pytest.mark.parametrize("name", ["s.thalia", "s.thalia.zst", "s.thalia.lz4", "s.pt"])
def test_bytes_give_what_their_file_gives(root, name, tmp_path):
    path = tmp_path / name
    if ".pt" in name:
        torch.save(root, tmp_path / "s.pt")
    else:
        thalia_torch.save(root, tmp_path / "s.thalia", compression="zstd" if name == "s.thalia" else None)
    if name.endswith(("zst", "lz4")):
        thalia.compress(path.with_suffix(""), path)
    for source in (path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes())):
        found = thalia_torch.load(source)
        assert same_state(found, thalia_torch.load(path))
        if ".pt" not in name:
            assert same_state(found, root)
    mapped = thalia_torch.load(path.read_bytes(), mmap=True)
    assert same_state(mapped, thalia_torch.load(path))


def test_views_share_memory_again(tmp_path):
    thalia_torch.save(state(), tmp_path / "s.thalia")
    found = thalia_torch.load((tmp_path / "s.thalia").read_bytes())
    found["whole"][1, 2] = 100
    assert found["row"][2] == 100 and found["columns"][1, 0] == 100


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: type(root).__name__)
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_an_object_becomes_the_bytes_of_its_file(root, compression, tmp_path):
    options = {"reproducible": True, "timestamp": 7, "compression": compression}
    thalia_torch.save(root, tmp_path / "s.thalia", **options)
    data = thalia_torch.save(root, format="thalia", **options)
    assert data == (tmp_path / "s.thalia").read_bytes()
    assert same_state(thalia_torch.load(data), root)


def test_no_file_is_written_and_no_folder_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(tmp_path)
    gc.collect()  # files of tests before this one
    before = set(os.listdir("/proc/self/fd"))
    tensors = {"a": torch.ones(2, 3), "b": torch.zeros(4, dtype=torch.int8)}
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    made = [thalia_torch.save(state(), format="thalia")]
    for format in ("safetensors", "thalia"):
        made += [thalia_torch.save(tensors, {"k": "v"}, format=format), thalia_numpy.save(arrays, format=format)]
        assert same_state(thalia_torch.load(made[-2]), tensors)
        assert same_state(thalia_numpy.load(made[-1]), arrays)
    assert same_state(thalia_torch.load(made[0])["optimizer"]["state"][0]["step"], torch.tensor(1.0))
    assert os.listdir(tmp_path) == [] and set(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_bytes_is_refused_with_the_way_on():
    with pytest.raises(ValueError, match=r"Key `step` is invalid.*format='thalia'"):
        thalia_torch.save({"w": torch.ones(2), "step": 3})
    with pytest.raises(thalia.UsageError, match="format: got 'pt'"):
        thalia_torch.save({"w": torch.ones(2)}, format="pt")
    with pytest.raises(thalia.FormatError):
        thalia_torch.load(b"junk" * 20)
    with pytest.raises(thalia.UnsupportedError, match="a"):
        thalia_torch.save({"a": len}, format="thalia")


@pytest.mark.parametrize("load", [thalia_torch.load, thalia_numpy.load])
@pytest.mark.parametrize("data", [b"", b"THAL" + bytes(200), b"abc" * 50])
def test_errors_of_bytes_name_no_path(load, data):
    with pytest.raises(thalia.FormatError, match=r"^the bytes: header") as error:
        load(data)
    assert error.value.path is None
