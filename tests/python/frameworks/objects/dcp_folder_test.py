"""Folders of torch.distributed.checkpoint where a file is expected, and a model alone out of them."""

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy
import thalia_checkpoint.torch as thalia_torch
import torch
import torch.distributed.checkpoint as dcp
from states import same_state as same
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter, consolidate
from transformers import AutoModelForCausalLM, GPT2Config

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is")


def state():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return {
        "model": dict(model.state_dict()), "optimizer": optimizer.state_dict(), "step": 3, "rng": torch.get_rng_state(),
        "nested": [1, {"a": torch.arange(5)}], "empty": torch.zeros(0, 2), "half": torch.ones(2, dtype=torch.bfloat16),
        "wide": torch.arange(3_000_000, dtype=torch.float32).view(torch.int16),
    }  # fmt: skip


def save(value, folder, **options):
    dcp.save(value, storage_writer=ThaliaStorageWriter(folder, **options))


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_load_gives_the_state_that_was_saved(compression, tmp_path):
    first = state()
    save(first, tmp_path / "run", compression=compression)
    consolidate(tmp_path / "run", tmp_path / "one.thalia")
    found = thalia_torch.load(tmp_path / "run")
    assert same({name: found[name] for name in first}, first) and len(found) == len(first)
    assert same(found, thalia_torch.load(tmp_path / "one.thalia"))
    found = thalia_torch.load(str(tmp_path / "run"), map_location="meta")
    assert found["wide"].is_meta and found["step"] == 3
    empty = state()
    dcp.load(empty, storage_reader=ThaliaStorageReader(tmp_path / "run"))
    assert same(empty, first)


def test_the_checkpoint_before_is_read_where_a_save_was_killed(tmp_path):
    save(state(), tmp_path / "run")
    before = thalia_torch.load(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / ".run.old")
    assert same(thalia_torch.load(tmp_path / "run"), before)


def test_damage_is_found(tmp_path):
    save(state(), tmp_path / "run")
    path = tmp_path / "run" / "rank-0.thalia"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(thalia.IntegrityError):
        thalia_torch.load(tmp_path / "run")
    path.unlink()
    with pytest.raises(thalia.MissingFileError):
        thalia_torch.load(tmp_path / "run")
    (tmp_path / "run" / "checkpoint.json").write_text("{}")
    with pytest.raises(thalia.FormatError):
        thalia_torch.load(tmp_path / "run")


@pytest.mark.parametrize("ours", [True, False])
def test_what_reads_one_file_names_what_reads_the_folder(ours, tmp_path):
    folder = tmp_path / "run"
    writer = ThaliaStorageWriter(folder) if ours else dcp.FileSystemWriter(folder)
    dcp.save({"model": {"w": torch.ones(2)}}, storage_writer=writer)
    module = torch.nn.Linear(2, 2)
    calls = [thalia.open, thalia.load, thalia.info, thalia.verify, thalia_numpy.load_file, thalia_torch.load_file]
    calls += [
        lambda path: thalia_torch.load_into(module, path),
        lambda path: thalia.convert(path, tmp_path / "a.thalia"),
    ]
    calls += [] if ours else [thalia_torch.load]
    reader = "ThaliaStorageReader" if ours else "FileSystemReader"
    for call in calls:
        with pytest.raises(thalia.UnsupportedError, match=rf"dcp\.load\(state, storage_reader={reader}") as caught:
            call(folder)
        assert ("consolidate" if ours else "dcp_to_torch_save") in str(caught.value)
    assert thalia.detect_format(folder) is None  # a model may be written there


def test_a_model_beside_such_a_file_is_the_model(tmp_path):
    thalia_torch.save_file({"w": torch.ones(2)}, tmp_path / "model.safetensors")
    (tmp_path / "checkpoint.json").write_text("{}")
    assert list(thalia_torch.load(tmp_path)) == ["w"] and list(thalia.open(tmp_path)) == ["w"]


def test_the_model_alone_becomes_what_hugging_face_reads(tmp_path):
    config = GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=32, n_positions=8)
    model = AutoModelForCausalLM.from_config(config)
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters())
    save({"model": compiled.state_dict(), "optimizer": optimizer.state_dict(), "step": 1}, tmp_path / "run")
    folder = tmp_path / "folder"
    config.save_pretrained(folder)
    consolidate(tmp_path / "run", folder / "model.safetensors", prefix="model.", strip="_orig_mod.")
    with thalia.safe_open(folder / "model.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "pt"} and set(file.keys()) == set(model.state_dict())
    theirs, loading = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(loading[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert same(dict(theirs.state_dict()), dict(model.state_dict()))


def test_names_lose_the_prefix_and_what_is_taken_out(tmp_path):
    class Extra(torch.nn.Linear):
        def get_extra_state(self):
            return {"seen": 3, "w": torch.ones(1)}

        def set_extra_state(self, extra):
            self.extra = extra

    module = torch.nn.Sequential(Extra(2, 2), torch.nn.BatchNorm1d(2))
    wrapped = {f"module.{name.replace('0.', '0._fsdp.')}": value for name, value in module.state_dict().items()}
    save({"net": wrapped, "other": torch.ones(1), "submodule.x": torch.ones(1)}, tmp_path / "run")
    consolidate(tmp_path / "run", tmp_path / "a.thalia", prefix="net.", strip=("module.", "_fsdp."))
    found = thalia_torch.load(tmp_path / "a.thalia")
    assert set(found) == set(module.state_dict())
    assert found.pop("0._extra_state") == {"seen": 3, "w": torch.ones(1)}
    assert all(torch.equal(value, module.state_dict()[name]) for name, value in found.items())
    other = torch.nn.Sequential(Extra(2, 2), torch.nn.BatchNorm1d(2))
    assert thalia_torch.load_into(other, tmp_path / "a.thalia").fits and other[0].extra["seen"] == 3
    consolidate(tmp_path / "run", tmp_path / "b.thalia", strip="module.")
    found = thalia_torch.load(tmp_path / "b.thalia")
    assert set(found) == {"submodule.x", "other", "net"} and "0._fsdp.weight" in found["net"]


def test_names_that_cannot_be_are_refused(tmp_path):
    save({"a": {"w": torch.ones(2), "x.w": torch.ones(2)}}, tmp_path / "run")
    for options, what in (
        ({"prefix": "b."}, r"which no name begins with; expected one of a\."),
        ({"prefix": "a.", "strip": "x."}, "would both be called"),
        ({"prefix": "a.w"}, "up to a point"),
        ({"prefix": "a"}, "up to a point"),
    ):
        with pytest.raises(thalia.UsageError, match=what):
            consolidate(tmp_path / "run", tmp_path / "one.thalia", **options)
    assert not (tmp_path / "one.thalia").exists()
