"""Checkpoints of torch.distributed.checkpoint in one process: values, damage, slices, one file."""

import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
import torch.distributed.checkpoint as dcp
from states import same_state
from thalia_checkpoint import safe_open
from thalia_checkpoint._distributed import parse as _dcp_parse
from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter, consolidate
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import LoadPlan, SavePlan, TensorWriteData, WriteItem, WriteItemType
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is")


def save(state, path, **options):
    dcp.save(state, storage_writer=ThaliaStorageWriter(path, **{"durability": "none", **options}))


def load(state, path, **options):
    dcp.load(state, storage_reader=ThaliaStorageReader(path, **options))
    return state


def failure(function, *args, **options):
    """What a save or load raised, out of dcp's exception."""
    with pytest.raises(CheckpointException) as caught:
        function(*args, **options)
    ((error, _),) = caught.value.failures.values()
    return error


def everything():
    """One of each that a state may hold."""
    return {
        "dtypes": {
            str(dtype): torch.arange(6).reshape(2, 3).to(dtype)
            for dtype in (
                torch.float64,
                torch.bfloat16,
                torch.float8_e5m2,
                torch.int8,
                torch.uint16,
                torch.bool,
                torch.complex64,
            )
        },
        "transposed": torch.arange(12.0).reshape(3, 4).t(),
        "view": torch.arange(12.0)[3:7:2],
        "complex": (numbers := torch.tensor([1 + 2j])),
        "conjugated": numbers.conj(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "empty": torch.zeros(0, 3),
        "a/name": torch.ones(1),
        "list": [torch.zeros(1), {"deep": torch.ones(1), "n": 2}],
        "values": {
            "none": None,
            "numbers": (True, 1, 1 << 70, 0.1, float("inf"), 1j),
            "text": "ä\n",
            "bytes": b"\x00\xff",
            "size": torch.Size([2]),
            "dtype": torch.bfloat16,
            "numpy": np.random.default_rng(1).normal(size=3),
            "random": np.random.RandomState(3).get_state(),
            "tensors": (torch.arange(3), {"x": torch.ones(2, dtype=torch.bfloat16)}),
        },
    }


def same(a, b):
    if isinstance(a, torch.Tensor):
        return type(b) in (torch.Tensor, type(a)) and a.dtype == b.dtype and bool((a == b).all()) and a.shape == b.shape
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_everything_comes_back(tmp_path, compression):
    state = everything()
    save(state, tmp_path / "run", compression=compression)
    assert thalia.verify(tmp_path / "run" / "rank-0.thalia").ok
    assert same(state, _load_state_dict_from_keys(storage_reader=ThaliaStorageReader(tmp_path / "run")))
    one = _load_state_dict_from_keys("values.random", storage_reader=ThaliaStorageReader(tmp_path / "run"))
    assert same(one, {"values": {"random": state["values"]["random"]}})
    assert consolidate(tmp_path / "run", tmp_path / "one.thalia") == (tmp_path / "one.thalia").stat().st_size
    assert same(state, thalia_torch.load(tmp_path / "one.thalia"))
    consolidate(tmp_path / "run", tmp_path / "other.thalia", compression="zstd", verify=False, access="copied")
    assert same(state, thalia_torch.load(tmp_path / "other.thalia"))
    del state["dtypes"]["torch.uint16"], state["conjugated"], state["complex"], state["dtypes"]["torch.complex64"]
    save(state, tmp_path / "run", compression=compression)
    consolidate(tmp_path / "run", tmp_path / "one.safetensors")
    flat = thalia_torch.load_file(tmp_path / "one.safetensors")
    assert same(flat["dtypes.torch.float8_e5m2"], state["dtypes"]["torch.float8_e5m2"])
    assert same(flat["list.1.deep"], torch.ones(1)) and not any(name.startswith("values") for name in flat)
    with pytest.raises(thalia.ExistsError):
        consolidate(tmp_path / "run", tmp_path / "one.safetensors")
    assert sorted(os.listdir(tmp_path)) == ["one.safetensors", "one.thalia", "other.thalia", "run"]


def test_files_are_free_of_pickle(tmp_path):
    class Planner(DefaultLoadPlanner):
        def load_bytes(self, item, stream):
            # What a planner is given is plain data, which loads without running anything.
            self.seen = [*getattr(self, "seen", []), torch.load(stream, weights_only=True)]

    save({"w": torch.ones(1), "n": 5, "s": ["a", (None,)]}, tmp_path / "run")
    content = b"".join(path.read_bytes() for path in (tmp_path / "run").iterdir())
    assert b"PK\x03\x04" not in content and b"\x80\x02" not in content[:2] and b"data.pkl" not in content
    planner = Planner()
    dcp.load(
        {"w": torch.ones(1), "n": 0, "s": []}, storage_reader=ThaliaStorageReader(tmp_path / "run"), planner=planner
    )
    assert planner.seen == [5, ["a", (None,)]]


def net_and_optimizer():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    return net, torch.optim.AdamW(net.parameters(), lr=0.1)


def train(net, optimizer, step):
    net(torch.full((1, 4), float(step))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_a_module_and_its_optimizer_go_on_bit_for_bit(tmp_path):
    expected = net_and_optimizer()
    for step in range(6):
        train(*expected, step)
    net, optimizer = net_and_optimizer()
    for step in range(3):
        train(net, optimizer, step)
    model_state, optimizer_state = get_state_dict(net, optimizer)
    save({"model": model_state, "optimizer": optimizer_state}, tmp_path / "run")
    net, optimizer = net_and_optimizer()
    model_state, optimizer_state = get_state_dict(net, optimizer)
    state = load({"model": model_state, "optimizer": optimizer_state}, tmp_path / "run")
    set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for step in range(3, 6):
        train(net, optimizer, step)
    for a, b in zip(net.parameters(), expected[0].parameters(), strict=True):
        assert torch.equal(a, b)
    consolidate(tmp_path / "run", tmp_path / "one.thalia")
    net, optimizer = net_and_optimizer()
    state = thalia_torch.load(tmp_path / "one.thalia")
    set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for step in range(3, 6):
        train(net, optimizer, step)
    assert torch.equal(net[0].weight, expected[0][0].weight)


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("make", [torch.optim.AdamW, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)])
def test_an_optimizer_goes_on_from_one_file(tmp_path, make, nested):
    def trained(steps, optimizer, scheduler):
        for _ in range(steps):
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    groups = [{"params": list(net[0].parameters())}, {"params": list(net[1].parameters()), "lr": 0.2}]
    optimizer = make(groups)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [4, 8, 8])
    trained(3, optimizer, scheduler)
    state = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    save(state if nested else state["optimizer"], tmp_path / "run")
    consolidate(tmp_path / "run", tmp_path / "one.thalia")
    whole = thalia_torch.load(tmp_path / "one.thalia")
    loaded = whole["optimizer"] if nested else whole
    assert list(loaded["state"]) == [0, 1, 2, 3] and same_state(loaded["state"], state["optimizer"]["state"])
    other = make([{**group, "params": list(group["params"])} for group in groups])
    other.load_state_dict(loaded)
    assert same_state(other.state_dict()["state"], optimizer.state_dict()["state"])
    if nested:
        milestones = whole["scheduler"]["milestones"]
        assert type(milestones) is Counter and milestones == {4: 1, 8: 2}
        again = torch.optim.lr_scheduler.MultiStepLR(other, [])
        again.load_state_dict(whole["scheduler"])
        rates = []
        for which, its in ((optimizer, scheduler), (other, again)):
            for _ in range(6):
                which.step()
                its.step()
            rates.append([group["lr"] for group in which.param_groups])
        assert rates[0] == rates[1]


def test_texts_that_are_numbers_stay_texts_elsewhere(tmp_path):
    state = {
        "state": {"0": torch.ones(1), "x": torch.ones(2)},
        "param_groups": [{"params": [0]}],
        "other": {"state": {"0": torch.ones(1)}, "param_groups": {"params": ["0"]}},
        "named": {"state": {"w": {"m": torch.ones(1)}}, "param_groups": [{"params": ["w"]}]},
        "milestones": {"3": 1},
    }
    save(state, tmp_path / "run")
    consolidate(tmp_path / "run", tmp_path / "one.thalia")
    assert same(thalia_torch.load(tmp_path / "one.thalia"), state)


def test_tied_weights_are_stored_once(tmp_path):
    weight = torch.randn(1000)
    save({"a": weight, "b": weight, "half": weight[:500], "other": weight.clone()}, tmp_path / "run")
    with thalia.open(tmp_path / "run" / "rank-0.thalia") as file:
        assert sum(tensor.nbytes for tensor in file.tensors.values()) == 4 * 2500
    names = ("a", "b", "half", "other")
    state = load({name: torch.zeros(500 if name == "half" else 1000) for name in names}, tmp_path / "run")
    assert torch.equal(state["b"], weight) and torch.equal(state["half"], weight[:500])


def test_targets_of_any_layout_and_dtype(tmp_path):
    source = {"f": torch.randn(5, 7), "b": torch.randn(5, 7).bfloat16(), "e": torch.randn(5, 7).to(torch.float8_e4m3fn)}
    save(source, tmp_path / "run")
    for make in (
        lambda t: torch.zeros(7, 5, dtype=t.dtype).t(),
        lambda t: torch.zeros(5, 14, dtype=t.dtype)[:, ::2],
        lambda t: torch.zeros(5, 7, dtype=torch.float64),
        lambda t: torch.nn.Parameter(torch.zeros(5, 7)),
    ):
        state = load({name: make(tensor) for name, tensor in source.items()}, tmp_path / "run")
        for name, tensor in source.items():
            assert torch.equal(state[name].detach().double(), tensor.double())


class OtherState:
    pass


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (OtherState(), "deep.value: cannot save dcp_test.OtherState"),
        ((1, [lambda: 0]), "deep.value.1.0: cannot save builtins.function"),
        (torch.ones(2).as_subclass(Subclass), "deep.value: cannot save the tensor subclass Subclass"),
        (torch.eye(3).to_sparse(), "deep.value: got a tensor with the layout torch.sparse_coo, expected a dense one"),
        (torch.zeros(2, device="meta"), "deep.value: got a tensor on the device meta"),
    ],
)
def test_what_cannot_be_held_is_named(tmp_path, value, told):
    save({"deep": {"value": 1}}, tmp_path / "run")
    error = failure(save, {"ok": torch.ones(1), "deep": {"value": value}}, tmp_path / "run")
    assert isinstance(error, thalia.UnsupportedError) and told in str(error)
    assert load({"deep": {"value": 0}}, tmp_path / "run")["deep"]["value"] == 1


@pytest.mark.parametrize("no_dist", [False, True])
def test_one_process_saves_without_collectives(tmp_path, no_dist):
    state = everything()
    writer = ThaliaStorageWriter(tmp_path / "run", durability="none")
    dcp.save(state, storage_writer=writer, no_dist=no_dist, use_collectives=False)
    save(state, tmp_path / "other")
    names = [sorted(os.listdir(tmp_path / name)) for name in ("run", "other")]
    assert names[0] == names[1] == ["checkpoint.json", "rank-0.thalia"]
    for folder in ("run", "other"):
        consolidate(tmp_path / folder, tmp_path / f"{folder}.thalia")
    assert not thalia.diff(tmp_path / "run.thalia", tmp_path / "other.thalia")


def test_tools_of_torch_find_its_own_metadata_where_they_are_asked_for(tmp_path):
    state = {"w": torch.randn(8, 8), "nested": {"b": torch.ones(3, dtype=torch.bfloat16)}, "step": 3}
    run = tmp_path / "run"
    for _ in range(2):  # and such a checkpoint is replaced as any other
        save(state, run, torch_metadata=True)
    assert sorted(os.listdir(run)) == [".metadata", "checkpoint.json", "rank-0.thalia"]
    metadata = dcp.FileSystemReader(run).read_metadata()
    own = ThaliaStorageReader(run).read_metadata()
    assert metadata.state_dict_metadata.keys() == own.state_dict_metadata.keys() == {"w", "nested.b", "step"}
    assert metadata.state_dict_metadata["w"].size == (8, 8)
    assert metadata.state_dict_metadata["nested.b"].properties.dtype == torch.bfloat16
    assert metadata.planner_data == own.planner_data
    found = load({"w": torch.zeros(8, 8), "step": 0}, run)
    assert torch.equal(found["w"], state["w"]) and found["step"] == 3
    (run / ".metadata").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")  # nothing here reads it
    assert load({"w": torch.zeros(8, 8), "step": 0}, run)["step"] == 3
    save(state, run)
    assert ".metadata" not in os.listdir(run)


def test_arguments_that_cannot_be(tmp_path):
    state = {"w": torch.ones(1)}
    with pytest.raises(thalia.UsageError, match="path: got none"):
        dcp.save(state, storage_writer=ThaliaStorageWriter())
    save(state, tmp_path / "run")
    assert isinstance(failure(save, state, tmp_path / "run", replace=False), thalia.ExistsError)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "model.pt").write_text("mine")
    assert "'model.pt'" in str(failure(save, state, tmp_path / "full"))

    class Planner(DefaultSavePlanner):
        lookup_object = None

        def resolve_data(self, item):
            return self.state_dict[item.index.fqn]

    writer = ThaliaStorageWriter(tmp_path / "run")
    error = failure(dcp.save, {"w": torch.ones(1), "n": 5}, storage_writer=writer, planner=Planner())
    assert "n: a value that is no tensor needs a planner with lookup_object()" in str(error)
    with pytest.raises(thalia.UsageError, match="compression: got 'best'"):
        ThaliaStorageWriter(tmp_path / "run", compression="best")
    assert load({"w": torch.zeros(1)}, tmp_path / "run")["w"] == 1
    assert ThaliaStorageReader.validate_checkpoint_id(tmp_path / "run")
    assert not ThaliaStorageReader.validate_checkpoint_id(tmp_path / "full")
    assert not ThaliaStorageWriter.validate_checkpoint_id("s3://bucket/run")


def test_folders_are_found_whatever_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    for name in ("flat", "deep/run/", "./flat/../ünï ✓", "x" * 240, Path("a") / "path", "link", "link/inside"):
        state = {"w": torch.tensor([float(len(str(name)))])}
        writer, reader = ThaliaStorageWriter(name, durability="none"), ThaliaStorageReader(name)
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")  # where they are is settled before
            dcp.save(state, storage_writer=writer)
            loaded = {"w": torch.zeros(1)}
            dcp.load(loaded, storage_reader=reader)
        assert same(loaded, state) and (tmp_path / name / "rank-0.thalia").is_file()
        dcp.save(state, storage_writer=writer)
        if name == "link":
            assert (tmp_path / "link").is_symlink()
            (tmp_path / "target" / "checkpoint.json").unlink()
            (tmp_path / "target" / "rank-0.thalia").unlink()
    assert not any(path.name.endswith((".saving", ".old")) for path in tmp_path.rglob(".*"))


def test_writers_and_readers_pickle(tmp_path):
    writer = ThaliaStorageWriter(tmp_path / "run", compression="zstd", durability="none")
    dcp.save({"w": torch.ones(1)}, storage_writer=pickle.loads(pickle.dumps(writer)))
    writer.prepare_global_plan([])  # holds a lock now
    dcp.save({"w": torch.ones(2)}, storage_writer=pickle.loads(pickle.dumps(writer)))
    reader = pickle.loads(pickle.dumps(ThaliaStorageReader(tmp_path / "run")))
    state = {"w": torch.zeros(2)}
    dcp.load(state, storage_reader=reader)
    assert torch.equal(state["w"], torch.ones(2))


def test_damage_is_told(tmp_path):
    run = tmp_path / "run"
    state = {"w": torch.randn(64, 64), "n": 1}
    save(state, run)
    empty = {"w": torch.zeros(64, 64), "n": 0}
    good = {path.name: path.read_bytes() for path in run.iterdir()}
    raw = good["rank-0.thalia"]
    at = raw.index(state["w"].numpy().tobytes())

    damaged = bytearray(raw)
    damaged[at + 5000] ^= 1
    (run / "rank-0.thalia").write_bytes(damaged)
    error = failure(load, dict(empty), run)
    assert isinstance(error, thalia.IntegrityError) and "w" in str(error)
    unchecked = load(dict(empty, w=torch.zeros(64, 64)), run, verify=False)["w"]
    assert (unchecked != state["w"]).sum() == 1
    with pytest.raises(thalia.IntegrityError):
        consolidate(run, tmp_path / "one.safetensors")
    assert sorted(os.listdir(tmp_path)) == ["run"]

    (run / "rank-0.thalia").write_bytes(raw[:-100])
    assert isinstance(failure(load, dict(empty), run), thalia.FormatError)
    save(state, tmp_path / "twin")
    (run / "rank-0.thalia").write_bytes((tmp_path / "twin" / "rank-0.thalia").read_bytes())
    error = failure(load, dict(empty), run)
    assert isinstance(error, thalia.FormatError) and "belongs to the checkpoint" in str(error)
    os.unlink(run / "rank-0.thalia")
    error = failure(load, dict(empty), run)
    assert isinstance(error, thalia.MissingFileError) and "rank-0.thalia" in str(error)

    (run / "rank-0.thalia").write_bytes(raw)
    text = good["checkpoint.json"].decode()
    for changed in (text[:-9], text.replace("64", "65"), text.replace('"tree": 1', '"tree": 2'), ""):
        (run / "checkpoint.json").write_text(changed)
        assert re.search(r"checkpoint\.json: sha256: got", str(failure(load, dict(empty), run)))
    os.unlink(run / "checkpoint.json")
    assert "No such file" in str(failure(load, dict(empty), run))
    (run / "checkpoint.json").write_text(text)
    assert same(load(dict(empty), run), state)


def test_ranks_that_see_other_folders_are_told(tmp_path):
    writer, planner = ThaliaStorageWriter(tmp_path / "run", durability="none"), DefaultSavePlanner()
    planner.set_up_planner({"w": torch.ones(1)}, is_coordinator=True)
    (plan,), metadata = planner.create_global_plan([planner.create_local_plan()])
    with pytest.raises(thalia.IoError, match="rank 0 does not see the folder"):
        writer.write_data(plan, planner)
    writer.prepare_global_plan([plan])
    results = writer.write_data(plan, planner).value()
    writer.write_data(plan, planner)  # as a rank of a job that was thought dead
    with pytest.raises(thalia.IoError, match="another process wrote it"):
        writer.finish(metadata, [results])
    with pytest.raises(thalia.UsageError, match="no rank wrote it"):
        writer.finish(metadata, [])
    writer.finish(metadata, [writer.write_data(plan, planner).value()])
    assert load({"w": torch.zeros(1)}, tmp_path / "run")["w"] == 1


class Part(DefaultLoadPlanner):
    """Loads a part of "w", as a rank that has no more of it."""

    def __init__(self, offsets, sizes):
        super().__init__()
        self.part = ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))
        self.out = torch.zeros(sizes)

    def create_local_plan(self):
        facts = self.metadata.state_dict_metadata["w"]
        return LoadPlan(create_read_items_for_chunk_list("w", facts, [self.part]))

    def resolve_tensor(self, item):
        return self.out[tuple(slice(o, o + n) for o, n in zip(item.dest_offsets, item.lengths, strict=True))]


def bytes_read():
    return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])


@pytest.mark.parametrize("access", ["mapped", "copied"])
def test_a_slice_reads_no_more(tmp_path, access):
    whole = torch.randn(4096, 2048)
    save({"w": whole}, tmp_path / "run")
    path = tmp_path / "run" / "rank-0.thalia"
    data = bytearray(path.read_bytes())
    at = data.index(whole.numpy()[0].tobytes())
    data[at + 3000 * 2048 * 4] ^= 1  # where nobody looks
    path.write_bytes(data)
    for offsets, sizes in (((1000, 0), (10, 2048)), ((1000, 500), (10, 8)), ((0, 7), (2048, 1))):
        planner = Part(offsets, sizes)
        reader = ThaliaStorageReader(tmp_path / "run", access=access, verify=sizes[0] == 10)
        before = bytes_read()
        dcp.load({"w": whole}, storage_reader=reader, planner=planner)
        read = bytes_read() - before
        assert torch.equal(planner.out, whole[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))])
        if sizes[0] == 10:
            assert read < whole.nbytes // 8
    assert isinstance(
        failure(
            dcp.load, {"w": whole}, storage_reader=reader.__class__(tmp_path / "run"), planner=Part((2900, 0), (200, 9))
        ),
        thalia.IntegrityError,
    )


def test_a_load_does_not_mix_two_checkpoints(tmp_path):
    class Late(DefaultLoadPlanner):
        """Lets another save happen before the data is read."""

        def finish_plan(self, plan):
            save({"w": torch.ones(3)}, tmp_path / "run")
            return super().finish_plan(plan)

    save({"w": torch.zeros(3)}, tmp_path / "run")
    reader = ThaliaStorageReader(tmp_path / "run")
    error = failure(dcp.load, {"w": torch.zeros(3)}, storage_reader=reader, planner=Late())
    assert isinstance(error, thalia.FormatError) and "belongs to the checkpoint" in str(error)

    ranks = [ThaliaStorageReader(tmp_path / "run") for _ in range(3)]
    plans = []
    for rank, reader in enumerate(ranks):
        if rank == 2:
            save({"w": torch.zeros(3)}, tmp_path / "run")
        reader.read_metadata()
        plans.append(reader.prepare_local_plan(LoadPlan([])))
    assert ranks[0].prepare_global_plan(plans[:2]) == plans[:2]
    with pytest.raises(thalia.IoError, match="run: rank 2 sees another checkpoint than rank 0"):
        ranks[0].prepare_global_plan(plans)


def test_consolidating_takes_little_memory(tmp_path):
    code = f"""
        import resource, torch, torch.distributed.checkpoint as dcp
        from thalia_checkpoint.dcp import ThaliaStorageWriter, consolidate
        weight = torch.arange(24 << 20, dtype=torch.float32).reshape(24, -1)
        writer = ThaliaStorageWriter({str(tmp_path / "run")!r}, durability="none", compression="lz4")
        dcp.save({{"w": weight}}, storage_writer=writer)
        kib = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1])
        del weight, writer
        limit = (kib << 10) - (96 << 20) + (64 << 20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        for name in ("one.thalia", "one.safetensors"):
            consolidate({str(tmp_path / "run")!r}, {str(tmp_path)!r} + "/" + name, durability="none",
                        **({{}} if "safe" in name else {{"memory_bytes": 16 << 20}}))
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], check=True)
    expected = torch.arange(24 << 20, dtype=torch.float32).reshape(24, -1)
    assert torch.equal(thalia_torch.load(tmp_path / "one.thalia", mmap=True)["w"], expected)
    assert torch.equal(thalia_torch.load(tmp_path / "one.safetensors", mmap=True)["w"], expected)


def test_no_part_of_a_state_may_be_missing(tmp_path):
    save({"w": torch.ones(4), "n": 5}, tmp_path / "run")
    assert "Missing key" in str(failure(load, {"w": torch.zeros(4), "other": torch.zeros(1)}, tmp_path / "run"))
    assert "Size mismatch" in str(failure(load, {"w": torch.zeros(5)}, tmp_path / "run"))
    planner = DefaultLoadPlanner(allow_partial_load=True)
    state = {"n": 0, "other": 3}
    dcp.load(state, storage_reader=ThaliaStorageReader(tmp_path / "run"), planner=planner)
    assert state == {"n": 5, "other": 3}
    assert json.loads((tmp_path / "run" / "checkpoint.json").read_text())["version"] == 1


def test_a_flat_state_and_two_optimizers(tmp_path):
    planner = DefaultSavePlanner(flatten_state_dict=False)
    writer = ThaliaStorageWriter(tmp_path / "flat", durability="none")
    dcp.save({"w": torch.ones(2), "n": {"a": 1}}, storage_writer=writer, planner=planner)
    state = {"w": torch.zeros(2), "n": None}
    reader = ThaliaStorageReader(tmp_path / "flat")
    dcp.load(state, storage_reader=reader, planner=DefaultLoadPlanner(False, False))
    assert same(state, {"w": torch.ones(2), "n": {"a": 1}})
    optimizers = {name: {"state": {0: {"m": torch.ones(1)}}, "param_groups": [{"lr": 1}]} for name in ("a", "b")}
    save({**optimizers, "state.w": torch.ones(1)}, tmp_path / "two")
    with thalia.open(tmp_path / "two" / "rank-0.thalia") as file:
        roles = {tensor.name: tensor.role for tensor in file.tensors.values()}
    assert roles == {"a.state.0.m": "optimizer", "b.state.0.m": "optimizer", "state.w": "weights"}


def test_warnings_are_dcps_alone(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save({"w": torch.randn(3, 4)}, tmp_path / "run")
        load({"w": torch.zeros(4, 3).t()}, tmp_path / "run")
    assert all("torch.distributed is" in str(warning.message) for warning in caught)


FLOAT4 = getattr(torch, "float4_e2m1fn_x2", None)
needs_pairs = pytest.mark.skipif(FLOAT4 is None, reason="this torch has no pairs of f4_e2m1")


def pairs_of(*shape):
    return torch.randint(256, shape, dtype=torch.uint8).view(FLOAT4)


def same_pairs(a, b):
    return a.dtype == b.dtype == FLOAT4 and torch.equal(a.view(torch.uint8), b.view(torch.uint8))


@needs_pairs
def test_pairs_of_four_bits(tmp_path):
    state = {"f4": pairs_of(3, 5), "vector": pairs_of(7), "empty": pairs_of(0, 2), "value": (pairs_of(2), "text")}
    save(state, tmp_path / "run", torch_metadata=True)
    found = load({**{name: torch.zeros_like(state[name].view(torch.uint8)).view(FLOAT4) for name in ("f4", "vector",
                  "empty")}, "value": None}, tmp_path / "run")  # fmt: skip
    assert all(same_pairs(found[name], state[name]) for name in ("f4", "vector", "empty"))
    assert same_pairs(found["value"][0], state["value"][0]) and found["value"][1] == "text"
    transposed = torch.zeros(5, 3, dtype=torch.uint8).t().view(FLOAT4)
    assert same_pairs(load({"f4": transposed}, tmp_path / "run")["f4"], state["f4"])
    consolidate(tmp_path / "run", tmp_path / "one.thalia")
    one = thalia_torch.load(tmp_path / "one.thalia")
    assert all(same_pairs(one[name], state[name]) for name in ("f4", "vector", "empty"))
    consolidate(tmp_path / "run", tmp_path / "one.safetensors")
    with safe_open(tmp_path / "one.safetensors", framework="pt") as file:
        assert file.get_slice("f4").get_dtype() == "F4" and same_pairs(file.get_tensor("f4"), state["f4"])


class InColumns(DefaultSavePlanner):
    """Writes "f4" as parts of some columns each."""

    def create_local_plan(self):
        whole = self.state_dict["f4"]
        items = []
        for begin, end in ((0, 2), (2, 3), (3, whole.shape[1])):
            chunk = ChunkStorageMetadata(torch.Size((0, begin)), torch.Size((whole.shape[0], end - begin)))
            data = TensorWriteData(chunk=chunk, properties=TensorProperties(dtype=FLOAT4), size=whole.shape)
            items.append(WriteItem(MetadataIndex("f4", chunk.offsets), WriteItemType.SHARD, tensor_data=data))
        self.plan = SavePlan(items, planner_data={"f4": ("f4",)})
        return self.plan

    def resolve_data(self, write_item):
        chunk = write_item.tensor_data.chunk
        return self.state_dict["f4"][:, chunk.offsets[1] : chunk.offsets[1] + chunk.sizes[1]]


@needs_pairs
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_parts_of_pairs_of_four_bits(tmp_path, compression):
    state = {"f4": pairs_of(4, 6)}
    writer = ThaliaStorageWriter(tmp_path / "run", durability="none", compression=compression)
    dcp.save(dict(state), storage_writer=writer, planner=InColumns())
    with thalia.open(tmp_path / "run" / "rank-0.thalia") as file:
        assert [tensor.shape for tensor in file.tensors.values()] == [(4, 4), (4, 2), (4, 6)]
    assert same_pairs(load({"f4": pairs_of(4, 6)}, tmp_path / "run")["f4"], state["f4"])
    consolidate(tmp_path / "run", tmp_path / "one.thalia")
    assert same_pairs(thalia_torch.load(tmp_path / "one.thalia")["f4"], state["f4"])
    path = tmp_path / "run" / "checkpoint.json"
    for old, new in (('"shape": [4, 12]', '"shape": [4, 11]'), ('"offset": [0, 4]', '"offset": [0, 5]')):
        text = path.read_text()
        assert old in text
        body = text[: text.rindex(', "sha256"')].replace(old, new)
        if new.startswith('"offset"'):
            body = body.replace('"shape": [4, 4]', '"shape": [4, 5]').replace('"shape": [4, 2]', '"shape": [4, 1]')
        else:
            body = body.replace('"shape": [4, 6]', '"shape": [4, 5]')
        changed = f'{body}, "sha256": "{hashlib.sha256(body.encode()).hexdigest()}"}}\n'
        with pytest.raises(thalia.FormatError, match="pairs in the last dimension, of every chunk too"):
            _dcp_parse.from_bytes(changed.encode(), str(path))
