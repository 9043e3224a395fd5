"""Orbax with .thalia files."""

import asyncio
import dataclasses
import os
import signal
import socket
import subprocess
import sys
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
from states import EXAMPLES, last_line_of

pytest.importorskip("orbax.checkpoint")

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
from thalia_checkpoint._files.tensor import Tensor
from thalia_checkpoint.orbax import NAME, ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave

# Before the first array: there is no changing it afterwards.
jax.config.update("jax_num_cpu_devices", 4)

DTYPES = [
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu", "int4", "uint4", "int8", "int32", "uint32", "bool", "complex64",
]  # fmt: skip


class Moments(NamedTuple):
    mu: Any
    nu: Any


class Nothing(NamedTuple):
    pass


def sharding(*axes):
    return NamedSharding(jax.make_mesh((2, 2), ("x", "y")), PartitionSpec(*axes))


def state():
    key = jax.random.key(3)
    return {
        "params": {dtype: (jnp.arange(24).reshape(4, 6) % 7).astype(dtype) for dtype in DTYPES},
        "numpy": [np.linspace(0, 1, 5), np.float64(0.1), np.zeros((0, 3), np.int16)],
        "keys": (key, jax.random.split(jax.random.key(4, impl="rbg"), (2, 2))),
        "scalar": jnp.float32(-0.0),
        "empty": jnp.zeros((0, 2)),
        "values": [1, 2.5, True, "text", None, b"\x00", float("inf"), 2**70, 1j],
        "ordered": OrderedDict(b=1, a=()),
        "numbers": {3: {}, 1: 2},
    }


def same(a, b):
    """Whether two pytrees are equal bit for bit, with the same containers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        return a.dtype == b.dtype and same(jax.random.key_data(a), jax.random.key_data(b))
    if isinstance(a, jax.Array | np.ndarray | np.generic):
        return a.shape == b.shape and a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def save(folder, item, **options):
    ocp.Checkpointer(ThaliaCheckpointHandler(**options)).save(folder, ThaliaSave(item))
    return folder / NAME


def restore(folder, *args, **kwargs):
    return ocp.Checkpointer(ThaliaCheckpointHandler()).restore(folder, args=ThaliaRestore(*args, **kwargs))


def test_a_run_that_was_killed_in_the_middle_goes_on_bit_for_bit(tmp_path, capsys, monkeypatch):
    whole = last_line_of("orbax_training.py", capsys, monkeypatch, tmp_path / "whole", 30)
    command = [sys.executable, str(EXAMPLES / "orbax_training.py"), str(tmp_path / "killed"), "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            if line == "11\n":
                run.send_signal(signal.SIGKILL)
                break
        seen = [int(line) for line in run.stdout]
    assert run.returncode == -signal.SIGKILL
    last = [11, *seen][-1]
    assert last < 30
    steps = [int(name) for name in os.listdir(tmp_path / "killed") if name.isdigit()]
    assert steps and last - 6 <= max(steps) <= last + 1
    assert last_line_of("orbax_training.py", capsys, monkeypatch, tmp_path / "killed", 30) == whole
    ends = [thalia_torch.load(tmp_path / name / "30/default" / NAME) for name in ("whole", "killed")]
    assert same(*ends) and ends[0]["params"]["w1"].shape == (8, 32)


@pytest.mark.parametrize("checkpointer", [ocp.Checkpointer, ocp.AsyncCheckpointer])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_pytree_comes_back_bit_for_bit(tmp_path, checkpointer, compression):
    item = state()
    with checkpointer(ThaliaCheckpointHandler(compression=compression)) as saver:
        saver.save(tmp_path / "a", args=ThaliaSave(item))
    assert os.path.getsize(tmp_path / "a" / NAME) == thalia.info(tmp_path / "a" / NAME).file_bytes
    assert same(item, restore(tmp_path / "a"))
    assert same(item, restore(tmp_path / "a", item))
    found = restore(tmp_path / "a")["numpy"][0]
    found += 1  # its own memory


def test_arrays_lie_in_the_file_without_jax_and_torch(tmp_path):
    path = save(tmp_path / "a", {"w": jnp.ones((2, 3), jnp.bfloat16), "opt_state": {"w": jnp.ones(2)}, "n": 1})
    with thalia.open(path) as file:
        assert {name: (t.dtype, t.role) for name, t in file.tensors.items()} == {
            "w": ("bf16", "weights"),
            "opt_state.w": ("f32", "optimizer"),
        }
    assert thalia_torch.load(path)["opt_state"]["w"].tolist() == [1, 1]


def test_arrays_of_texts_and_times_come_back(tmp_path):
    item = {
        "words": np.array([["a", "bcd"], ["", "äö𝄞"]]),
        "bytes": np.array([b"a\x00b", b""]),
        "times": np.array(["2020-01-01", "NaT"], "M8[D]"),
        "spans": np.array([[1]], "m8[25us]"),
        "time": np.datetime64("2020-01-01T00:00:00", "ns"),
        "none": np.array([], "<U3"),
        "w": jnp.ones(3),
    }
    save(tmp_path / "a", item)
    assert same(restore(tmp_path / "a"), item) and same(restore(tmp_path / "a", item), item)
    objects = {"names": np.array(["x", "yz"], object)}
    save(tmp_path / "b", objects)
    assert restore(tmp_path / "b") == {"names": ["x", "yz"]}
    for target in (jnp.ones((2, 2)), np.zeros((2, 2), "<U9"), np.array(["a", "bcd"])):
        with pytest.raises(thalia.UsageError, match=r"words: (dtype|shape)"):
            restore(tmp_path / "a", {**item, "words": target})
    handler = ocp.Checkpointer(ThaliaCheckpointHandler())
    told = handler.metadata(tmp_path / "a")
    assert "words" in repr(told)


def test_named_tuples_come_back_to_a_target_and_else_as_dictionaries(tmp_path):
    item = {"state": (Moments(jnp.ones(3), {"nu": jnp.zeros(2)}), Nothing(), None)}
    save(tmp_path / "a", item)
    found = restore(tmp_path / "a", item)
    assert same(item, found) and type(found["state"][0]) is Moments
    assert restore(tmp_path / "a")["state"][1:] == ({}, None)
    assert restore(tmp_path / "a")["state"][0].keys() == {"mu", "nu"}


@pytest.mark.parametrize("access", ["none", "lz4"])
def test_each_device_gets_its_slice_of_a_sharded_array(tmp_path, monkeypatch, access):
    array = jnp.arange(64, dtype=jnp.bfloat16).reshape(8, 8)
    keys = jax.random.split(jax.random.key(1), 4)
    item = {"w": jax.device_put(array, sharding("x", "y")), "k": jax.device_put(keys, sharding("x"))}
    save(tmp_path / "a", item, compression=access)
    assert same(restore(tmp_path / "a"), {"w": array, "k": keys})

    read = []
    taken = Tensor.__getitem__
    monkeypatch.setattr(Tensor, "__getitem__", lambda self, index: read.append(index) or taken(self, index))
    for axes in (("x", "y"), ("y",), (None, "x"), ()):
        read.clear()
        target = jax.ShapeDtypeStruct(array.shape, jnp.float32, sharding=sharding(*axes))
        found = restore(tmp_path / "a", {"w": target, "k": item["k"]})
        assert found["w"].sharding == target.sharding and found["k"].sharding == item["k"].sharding
        assert same(found["w"], array.astype(jnp.float32)) and same(found["k"], keys)
        slices = {str(index) for index in target.sharding.devices_indices_map(array.shape).values()}
        assert {str(index) for index in read} >= slices
        if axes == ("x", "y"):
            assert len(slices) == 4 and str((slice(None), slice(None))) not in map(str, read)


def test_restore_args_ask_for_types_dtypes_and_shardings(tmp_path):
    item = {"w": jnp.arange(8.0), "v": np.arange(4.0), "n": 3, "s": "text"}
    save(tmp_path / "a", item)
    mesh = sharding().mesh
    args = {
        "w": ocp.ArrayRestoreArgs(mesh=mesh, mesh_axes=PartitionSpec("x"), dtype=jnp.float16, global_shape=(8,)),
        "v": ocp.RestoreArgs(dtype=np.float32),
        "n": ocp.RestoreArgs(restore_type=int),
        "s": ocp.RestoreArgs(),
    }
    for found in (restore(tmp_path / "a", restore_args=args), restore(tmp_path / "a", item, args)):
        assert found["w"].sharding == sharding("x") and same(found["w"], jnp.arange(8, dtype=jnp.float16))
        assert same(found["v"], np.arange(4, dtype=np.float32)) and (found["n"], found["s"]) == (3, "text")
    target = {"w": jax.device_put(item["w"], sharding("y")), "v": item["v"], "n": 0, "s": ""}
    found = restore(tmp_path / "a", target, ocp.checkpoint_utils.construct_restore_args(target))
    assert found["w"].sharding == sharding("y") and same(found["v"], item["v"]) and found["n"] == 3
    args["w"] = ocp.RestoreArgs(restore_type=np.ndarray)
    assert same(restore(tmp_path / "a", restore_args=args)["w"], np.arange(8, dtype=np.float32))
    with pytest.raises(thalia.UsageError, match=r"item\.w: shape: the file has \[8\], the target \[9\]"):
        args["w"] = ocp.ArrayRestoreArgs(global_shape=(9,), strict=False)
        restore(tmp_path / "a", restore_args=args)
    with pytest.raises(thalia.UsageError, match=r"restore_args: .*at key path") as caught:
        restore(tmp_path / "a", {"w": item["w"]}, args)
    assert caught.value.field == "restore_args"


def test_restore_args_ask_for_types_of_numbers(tmp_path):
    save(tmp_path / "a", {"n": 5, "x": 1.75, "b": True, "s": "text"})
    kinds = {"n": (float, 5.0), "x": (int, 1), "b": (bool, True), "s": (str, "text")}
    found = restore(
        tmp_path / "a", restore_args={n: ocp.RestoreArgs(restore_type=kind) for n, (kind, _) in kinds.items()}
    )
    assert {name: (type(value), value) for name, value in found.items()} == kinds
    args = dict.fromkeys("nxbs", ocp.RestoreArgs(restore_type=np.ndarray)) | {"b": ocp.RestoreArgs()}
    args["x"] = ocp.RestoreArgs(restore_type=np.ndarray, dtype=np.float32)
    found = restore(tmp_path / "a", restore_args=args)
    assert same(found, {"n": np.asarray(5), "x": np.asarray(1.75, np.float32), "b": True, "s": "text"})


def test_a_placeholder_may_stand_for_what_is_not_there(tmp_path):
    save(tmp_path / "a", {"w": jnp.ones(3), "c": {"n": 1}})
    target = {"w": A, "c": {"n": 0, "m": ocp.PLACEHOLDER}, "z": ocp.PLACEHOLDER}
    assert same(restore(tmp_path / "a", target), {**target, "w": jnp.ones(3), "c": {**target["c"], "n": 1}})
    with pytest.raises(thalia.NotFoundError, match="item: y: the file has none"):
        restore(tmp_path / "a", {**target, "y": 0})
    with pytest.raises(thalia.UsageError, match="item: w: the target has none"):
        restore(tmp_path / "a", {"c": target["c"], "y": ocp.PLACEHOLDER, "z": ocp.PLACEHOLDER})


def test_an_array_of_the_item_gives_what_its_restore_args_leave_open(tmp_path):
    save(tmp_path / "a", {"w": jnp.arange(16.0)})
    mesh = sharding().mesh
    args = {"w": ocp.ArrayRestoreArgs(mesh=mesh, mesh_axes=PartitionSpec("x"))}
    found = restore(tmp_path / "a", {"w": jnp.zeros(16, jnp.float16)}, args)
    assert found["w"].sharding == sharding("x") and same(found["w"], jnp.arange(16, dtype=jnp.float16))
    args["w"] = dataclasses.replace(args["w"], dtype=jnp.bfloat16)
    assert restore(tmp_path / "a", {"w": jnp.zeros(16, jnp.float16)}, args)["w"].dtype == jnp.bfloat16
    with pytest.raises(thalia.UsageError, match=r"item\.w: shape: the file has \[16\], the target \[8\]"):
        restore(tmp_path / "a", {"w": jnp.zeros(8)}, args)
    args["w"] = ocp.ArrayRestoreArgs(mesh=mesh, mesh_axes=PartitionSpec("x"), strict=False)
    assert same(restore(tmp_path / "a", {"w": jnp.zeros(8, jnp.float16)}, args)["w"], jnp.arange(16.0))


def test_an_array_that_is_bound_to_a_device_comes_back_to_it_and_no_other_is(tmp_path):
    free, device = jnp.ones(2), jax.devices()[2]
    save(tmp_path / "a", {"free": free, "bound": free})
    found = restore(tmp_path / "a", {"free": free, "bound": jax.device_put(free, device)})
    assert not found["free"].committed and found["bound"].sharding == SingleDeviceSharding(device)


def test_metadata_tell_the_arrays_and_make_a_target(tmp_path):
    item = state()
    save(tmp_path / "a", {**item, "x": jax.device_put(jnp.ones((4, 2)), sharding("x"))})
    found = ocp.Checkpointer(ThaliaCheckpointHandler()).metadata(tmp_path / "a").item_metadata
    assert found["x"] == jax.ShapeDtypeStruct((4, 2), jnp.float32)
    assert found["keys"][1].dtype == item["keys"][1].dtype and found["keys"][1].shape == (2, 2)
    assert found["values"] == item["values"]
    again = restore(tmp_path / "a", found)  # also arrays of numpy of 64 bits, which jax lacks here
    assert same(again.pop("x"), jnp.ones((4, 2))) and same(again, item)
    shapes = jax.tree.map(lambda array: array, found)
    assert type(shapes) is dict and same(restore(tmp_path / "a", shapes)["numpy"], item["numpy"])
    found["numpy"] = ocp.PLACEHOLDER
    assert restore(tmp_path / "a", found)["numpy"] is ocp.PLACEHOLDER


def test_metadata_and_the_arguments_that_orbax_makes_of_them(tmp_path):
    item = {"w": jnp.ones((4, 2)), "key": jax.random.key(3), "list": [np.arange(3), 5], "none": None}
    save(tmp_path / "a", item)
    found = ocp.Checkpointer(ThaliaCheckpointHandler()).metadata(tmp_path / "a").item_metadata
    for target in (found, dict(found)):
        again = restore(tmp_path / "a", target, ocp.checkpoint_utils.construct_restore_args(target))
        assert np.array_equal(again.pop("w"), np.ones((4, 2), np.float32))
        assert same(again, {name: item[name] for name in ("key", "list", "none")})
        alone = restore(tmp_path / "a", None, ocp.checkpoint_utils.construct_restore_args(target))
        assert same(alone["key"], item["key"])


def test_shapes_without_shardings_bring_back_what_was_saved(tmp_path):
    item = {"numpy": np.arange(3), "narrow": np.ones(2, np.float32), "jax": jnp.ones(4), "key": jax.random.key(0)}
    save(tmp_path / "a", item)
    shapes = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), item)
    assert same(restore(tmp_path / "a", shapes), item)
    assert same(restore(tmp_path / "a", jax.tree.map(ocp.utils.to_shape_dtype_struct, item)), item)
    shapes["narrow"] = jax.ShapeDtypeStruct((2,), np.float16, sharding=sharding())
    found = restore(tmp_path / "a", shapes)["narrow"]
    assert same(found, jnp.ones(2, jnp.float16)) and found.sharding == sharding()


@pytest.mark.parametrize("checkpointer", [ocp.Checkpointer, ocp.AsyncCheckpointer])
def test_custom_metadata_are_kept_beside_the_item(tmp_path, checkpointer):
    custom = {"lr": 0.1, "tags": ["a", None], "nested": {"n": 1}}
    with checkpointer(ThaliaCheckpointHandler()) as saver:
        saver.save(tmp_path / "a", args=ThaliaSave({"w": jnp.ones(3)}, custom_metadata=custom))
        saver.save(tmp_path / "b", args=ThaliaSave({"w": jnp.ones(3)}))
        with pytest.raises(TypeError, match="JSON"):
            saver.save(tmp_path / "c", args=ThaliaSave({"w": jnp.ones(3)}, custom_metadata={"p": object()}))
    found = ocp.Checkpointer(ThaliaCheckpointHandler()).metadata(tmp_path / "a").item_metadata
    assert found.custom_metadata == custom and found == {"w": A}
    assert same(restore(tmp_path / "a"), {"w": jnp.ones(3)})
    found = ocp.Checkpointer(ThaliaCheckpointHandler()).metadata(tmp_path / "b").item_metadata
    assert found.custom_metadata is None


@pytest.mark.parametrize("skipped", [None, Nothing(), {}, (), ocp.PLACEHOLDER])
def test_what_a_target_skips_stays_and_is_not_read(tmp_path, monkeypatch, skipped):
    item = {"w": jnp.ones(3), "v": jnp.zeros(2), "k": jax.random.key(0), "n": 1, "masked": Nothing(), "none": None}
    save(tmp_path / "a", item)
    full = ocp.checkpoint_utils.construct_restore_args(item)
    monkeypatch.setattr(
        Tensor, "numpy", lambda self, **_: pytest.fail("read") if self.name == "w" else NUMPY(self, **_)
    )
    for name in ("w", "n", "masked", "none"):
        target = {**item, "w": skipped, name: skipped}
        for args in (None, full, ocp.checkpoint_utils.construct_restore_args(target)):
            found = restore(tmp_path / "a", target, args)
            assert same(found, {**target, "v": item["v"], "k": item["k"]})
    with pytest.raises(thalia.UsageError, match=r"item\.none: "):
        restore(tmp_path / "a", {**item, "none": A})


NUMPY = Tensor.numpy


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_random_keys_come_back_to_what_orbax_makes_of_them(tmp_path, impl):
    item = {"k": jax.random.key(1, impl=impl), "s": jax.random.split(jax.random.key(2, impl=impl), 4)}
    save(tmp_path / "a", item)
    words = {name: jax.random.key_data(key) for name, key in item.items()}
    args = ocp.checkpoint_utils.construct_restore_args(item)  # of the words of the keys
    assert same(restore(tmp_path / "a", item, args), item)
    assert same(restore(tmp_path / "a", restore_args=args), item)
    assert same(restore(tmp_path / "a", {n: jax.ShapeDtypeStruct(w.shape, w.dtype) for n, w in words.items()}), item)
    found = restore(tmp_path / "a", {name: np.asarray(data) for name, data in words.items()})
    assert same(found, {name: np.asarray(data) for name, data in words.items()})
    found = restore(tmp_path / "a", restore_args=jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), item))
    assert same(found, {name: np.asarray(data) for name, data in words.items()})


def test_what_changes_after_a_save_in_the_background_is_saved_as_it_was(tmp_path):
    array, donated, shards = np.ones(1 << 16), jnp.ones(1 << 16), jax.device_put(jnp.ones(1 << 16), sharding("x"))
    with ocp.AsyncCheckpointer(ThaliaCheckpointHandler()) as saver:
        saver.save(tmp_path / "a", args=ThaliaSave([array, donated, shards]))
        array[:] = 2
        for x in (donated, shards):
            jax.jit(lambda x: x + 1, donate_argnums=0)(x).block_until_ready()
            assert x.is_deleted()
    for found in restore(tmp_path / "a"):
        assert np.all(np.asarray(found) == 1)


def test_a_manager_finds_the_handler_by_its_arguments_and_by_its_name(tmp_path):
    item = {"w": jnp.arange(3.0)}
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        args = ocp.args.Composite(model=ThaliaSave(item), note=ocp.args.JsonSave({"lr": 0.1}))
        assert manager.save(1, args=args)
        manager.wait_until_finished()
        assert same(manager.restore(1, args=ocp.args.Composite(model=ThaliaRestore()))["model"], item)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        found = manager.restore(1)
        assert same(found["model"], item) and found["note"] == {"lr": 0.1}
    with ocp.CheckpointManager(tmp_path / "run", item_handlers={"model": ThaliaCheckpointHandler()}) as manager:
        assert manager.item_metadata(1)["model"] == {"w": jax.ShapeDtypeStruct((3,), jnp.float32)}


A, N = jax.ShapeDtypeStruct((3,), jnp.float32), np.zeros(3, np.float32)


@pytest.mark.parametrize(
    "target, error, message",
    [
        (
            {"w": A, "k": ...},
            thalia.UsageError,
            r"a/state.thalia: item: n, l: the target has none; expected w, k, n, l",
        ),
        ({"w": A, "k": A, "n": 1, "x": A}, thalia.NotFoundError, r"item: x: the file has none; expected w, k, n, l"),
        ({"w": {"v": A}}, thalia.UsageError, r"item\.w: structure: .* array float32\[3\], .* dict"),
        ({"w": 3}, thalia.UsageError, r"item\.w: value: the file has an array float32\[3\], the target int"),
        ({"w": np.zeros((3, 1))}, thalia.UsageError, r"item\.w: shape: the file has \[3\], the target \[3, 1\]"),
        ({"k": A}, thalia.UsageError, r"item\.k: shape: the file has \[\], the target \[3\]"),
        ({"k": jax.ShapeDtypeStruct((), jnp.uint32)}, thalia.UsageError, r"item\.k: dtype: .*key<fry>, .* uint32"),
        ({"k": np.uint32(0)}, thalia.UsageError, r"item\.k: dtype: .*key<fry>"),
        ({"n": A}, thalia.UsageError, r"item\.n: value: the file has int, the target ShapeDtypeStruct"),
        ({"l": None}, thalia.UsageError, r"item\.l: value: the file has list, the target None"),
        ({"l": [1]}, thalia.UsageError, r"item\.l: 1: the target has none; expected 0, 1"),
        ({"l": [1, 2, 3]}, thalia.NotFoundError, r"item\.l: 2: the file has none; expected 0, 1"),
        ({"l": 1}, thalia.UsageError, r"item\.l: value: the file has list, the target int"),
        ({"l": Moments(1, 2)}, thalia.NotFoundError, r"item\.l: mu, nu: the file has none"),
        ({"w": jax.ShapeDtypeStruct((3,), np.float64)}, thalia.UnsupportedError, r"item\.w: dtype: .*float64"),
    ],
)
def test_a_target_that_does_not_fit_is_told_with_its_place(tmp_path, target, error, message):
    save(tmp_path / "a", {"w": jnp.ones(3), "k": jax.random.key(0), "n": 1, "l": [1, 2]})
    whole = {"w": ..., "k": ..., "n": ..., "l": ...}
    with pytest.raises(error, match=message) as caught:
        restore(tmp_path / "a", {**whole, **target} if len(target) == 1 else target)
    assert caught.value.field is not None


def test_no_dtype_is_narrowed_unasked(tmp_path):
    with jax.enable_x64(True):
        save(tmp_path / "a", {"w": jnp.ones(3, jnp.float64)})
        assert restore(tmp_path / "a")["w"].dtype == jnp.float64
    with pytest.raises(thalia.UnsupportedError, match=r"state\.thalia: w: dtype: .*float64"):
        restore(tmp_path / "a")
    assert restore(tmp_path / "a", {"w": A})["w"].dtype == jnp.float32


def test_damage_is_told_where_it_is_read_and_nowhere_else(tmp_path):
    item = {"a": jnp.arange(1 << 18), "b": jnp.arange(1 << 18) + 1}
    path = save(tmp_path / "a", item)
    with thalia.open(path) as file:
        offset = file["b"]._source.offset
    with open(path, "r+b") as out:
        out.seek(offset + 5000)
        out.write(b"\xff")
    for target in (None, item, {**item, "b": jax.device_put(item["b"], sharding("x"))}):
        with pytest.raises(thalia.IntegrityError):
            restore(tmp_path / "a", target)
    assert same(restore(tmp_path / "a", {"a": item["a"], "b": ocp.PLACEHOLDER})["a"], item["a"])
    os.truncate(path, 5000)
    with pytest.raises(thalia.FormatError, match=NAME):
        restore(tmp_path / "a")
    os.unlink(path)
    with pytest.raises(FileNotFoundError, match=NAME):
        restore(tmp_path / "a")


@pytest.mark.parametrize(
    "member, message",
    [
        (None, "version"),
        ({"version": 2, "tree": None}, "version"),
        ({"version": 1, "tree": {"array": "none"}}, "the tree breaks the rules"),
        ({"version": 1, "tree": {"pickle": "x"}}, "the tree breaks the rules"),
        ({"version": 1, "tree": {"array": "w"}, "jax": {"w": "no-such-generator"}}, "the tree breaks the rules"),
        ({"version": 1, "tree": {"array": "w"}, "jax": 3}, "the tree breaks the rules"),
    ],
)
def test_a_file_without_a_pytree_is_refused(tmp_path, member, message):
    path = save(tmp_path / "a", {"w": jnp.ones(3)})
    with thalia.Writer(path) as writer:
        writer.add("w", np.ones(3, np.uint32))
        writer.metadata = {} if member is None else {"thalia_checkpoint": member}
    with pytest.raises(thalia.FormatError, match=rf"state\.thalia: metadata\.thalia_checkpoint.*{message}"):
        restore(tmp_path / "a")


@pytest.mark.parametrize("checkpointer", [ocp.Checkpointer, ocp.AsyncCheckpointer])
def test_what_cannot_be_saved_is_named_and_nothing_is_left(tmp_path, checkpointer):
    with checkpointer(ThaliaCheckpointHandler()) as saver:
        for step, (value, message) in enumerate(
            (
                (range(3), r"a\.1: cannot save builtins\.range .*; expected arrays of jax"),
                ({1, 2}, r"a\.1: cannot save builtins\.set"),
                (np.array([object()]), r"a\.1\.0: cannot save builtins\.object"),
                (A, r"a\.1: cannot save .*ShapeDtypeStruct"),
            )
        ):
            # Each in a folder of its own: Orbax may still write its own files of the save before in the background.
            with pytest.raises(thalia.UnsupportedError, match=message):
                saver.save(tmp_path / str(step), args=ThaliaSave({"a": [1, value]}))
    # Who saves in the background has cleared away by now.
    assert not list(tmp_path.rglob(NAME)) and not any((tmp_path / str(step)).exists() for step in range(4))
    with pytest.raises(thalia.UnsupportedError, match="a URL"):
        ThaliaCheckpointHandler().save("gs://bucket/x", ThaliaSave({}))
    with pytest.raises(thalia.UnsupportedError, match="a URL"):
        asyncio.run(ThaliaCheckpointHandler().async_save("gs://bucket/x", ThaliaSave({})))


def test_a_container_that_holds_itself_is_refused(tmp_path):
    around = []
    around.append(around)
    with pytest.raises(thalia.UnsupportedError, match="a container that holds itself"):
        save(tmp_path / "a", {"a": around})


def test_a_save_that_fails_in_the_background_is_told_and_leaves_no_step(tmp_path):
    class Failed(Exception):
        pass

    def fails(done, total):
        raise Failed

    saver = ocp.AsyncCheckpointer(ThaliaCheckpointHandler(progress=fails))
    saver.save(tmp_path / "a", args=ThaliaSave({"w": jnp.ones(1 << 20)}))
    with pytest.raises(Failed):
        saver.wait_until_finished()
    assert not (tmp_path / "a").exists() and not list(tmp_path.rglob(NAME))


TWO = """
import sys
import jax
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import thalia_checkpoint as thalia
from thalia_checkpoint.orbax import ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave
for call in (lambda h: h.save("folder", ThaliaSave({})), lambda h: h.restore("folder", ThaliaRestore())):
    try:
        call(ThaliaCheckpointHandler())
    except thalia.UnsupportedError as error:
        print(error.field, error.value)
"""


def test_two_processes_are_refused(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    command = [sys.executable, "-c", TWO, address]
    runs = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        for rank in range(2)
    ]
    for run in runs:
        out, errors = run.communicate(timeout=120)
        assert out == "process_count 2\n" * 2, errors
