"""save() and load() of whole objects where there is no torch."""

import argparse
import collections
import dataclasses
import datetime
import enum
import io
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import thalia_checkpoint as thalia


class Mode(enum.Enum):
    FAST = "fast"


@dataclasses.dataclass
class Config:
    lr: float = 0.1
    mode: Mode = Mode.FAST


class Part:
    def __init__(self):
        self.w = np.arange(3.0)

    def state_dict(self):
        return {"w": self.w, "steps": 4}


STATE = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "step": 3,
    "scalar": np.float64(2.5),
    "flags": np.array([True, False]),
    "names": np.array(["a", "bcd"]),
    "nested": [1, (2.5, None), {"x"}, frozenset([1]), b"ab", 1 << 70, float("inf"), 1 + 2j],
    "seen": collections.Counter("aab"),
    "last": collections.deque([1, 2], maxlen=2),
    "path": pathlib.Path("a/b"),
    "at": datetime.date(2026, 1, 2),
    "args": argparse.Namespace(a=1),
    5: "number",
    "empty": np.zeros((0, 3), np.int8),
}


def same(a, b):
    if isinstance(a, np.ndarray | np.generic):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_an_object_comes_back_from_its_file(tmp_path):
    path = tmp_path / "s.thalia"
    assert thalia.save(STATE, path) is None
    for mmap in (False, True):
        back = thalia.load(path, mmap=mmap)
        assert same(back, STATE) and back["w"].flags.writeable is not mmap
    data = thalia.save(STATE)
    assert type(data) is bytes and same(thalia.load(data), STATE) and same(thalia.load(memoryview(data)), STATE)
    for root in (np.arange(3), 5, None, [], "x", ({},)):
        assert same(thalia.load(thalia.save(root)), root)


def test_file_objects_are_written_and_read(tmp_path):
    buffer = io.BytesIO()
    thalia.save(STATE, buffer, compression="zstd")
    buffer.seek(0)
    assert same(thalia.load(buffer), STATE)
    with open(tmp_path / "a", "wb") as file:
        thalia.save(STATE, file)
    with open(tmp_path / "a", "rb") as file:
        back = thalia.load(file, mmap=True)
    os.unlink(tmp_path / "a")
    assert same(back, STATE)


def test_objects_become_their_state_and_plain_data():
    back = thalia.load(thalia.save({"part": Part(), "config": Config(), "mode": Mode.FAST}))
    expected = {"part": {"w": np.arange(3.0), "steps": 4}, "config": {"lr": 0.1, "mode": "fast"}, "mode": "fast"}
    assert same(back, expected)


def test_arrays_of_others_and_tensors_of_files_are_taken(tmp_path):
    thalia.save({"w": np.arange(4.0)}, tmp_path / "a.thalia")

    class Shared:
        def __init__(self, array):
            self._array = array
            self.__dlpack_device__ = array.__dlpack_device__

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

    with thalia.open(tmp_path / "a.thalia") as file:
        back = thalia.load(thalia.save({"mine": Shared(np.arange(3)), "stored": file.tensors["w"]}))
    assert back["mine"].tolist() == [0, 1, 2] and back["stored"].tolist() == [0, 1, 2, 3]


def test_what_cannot_be_saved_is_named_and_convert_helps(tmp_path):
    path = tmp_path / "s.thalia"
    for value, what in (
        (object(), "builtins.object"),
        (range(2), "list"),
        (np.array(object()), "object"),
        (Part, "type"),
    ):
        with pytest.raises(thalia.UnsupportedError, match=what) as caught:
            thalia.save({"deep": [value]}, path)
        assert "deep.0" in str(caught.value) and not path.exists()
        assert str(caught.value).endswith("; convert= may make one of these of it")
    thalia.save({"deep": [range(2)]}, path, convert=lambda value: list(value) if isinstance(value, range) else None)
    assert thalia.load(path) == {"deep": [[0, 1]]}
    with pytest.raises(TypeError, match="did you mean 'convert'"):
        thalia.save({}, path, convart=str)
    with pytest.raises(thalia.ExistsError):
        thalia.save({}, path, replace=False)


def test_metadata_are_beside_it(tmp_path):
    path = tmp_path / "s.thalia"
    thalia.save(STATE, path, metadata={"run": {"id": 7}})
    assert thalia.open(path).metadata["run"] == {"id": 7} and same(thalia.load(path), STATE)
    with pytest.raises(thalia.UsageError, match="member 'pt'"):
        thalia.save(STATE, path, metadata={"pt": 1})
    with pytest.raises(TypeError, match="JSON"):
        thalia.save(STATE, path, metadata={"a": object()})


def test_files_without_a_tree_are_dictionaries_of_arrays(tmp_path):
    from thalia_checkpoint.numpy import save_file

    arrays = {"a": np.ones((2, 2)), "b.c": np.arange(3)}
    for name in ("a.safetensors", "a.thalia"):
        save_file(arrays, tmp_path / name)
        assert same(dict(sorted(thalia.load(tmp_path / name).items())), arrays)
    thalia.convert(tmp_path / "a.safetensors", tmp_path / "a.npz")
    assert same(dict(sorted(thalia.load(tmp_path / "a.npz").items())), arrays)


HOSTILE = [
    None,
    3,
    {"version": 2},
    {"version": 1, "tree": {"array": "no"}},
    {"version": 1, "tree": {"tensor": []}},
    {"version": 1, "tree": {"list": 1}},
    {"version": 1, "tree": {"a": 1, "b": 2}},
    {"version": 1, "tree": [1]},
    {"version": 1, "tree": {"size": 1}},
    {"version": 1, "tree": {"scalar": 3}},
    *(
        {
            "version": 1,
            "tree": {"tensor": "w", "view": {"dtype": "float32", "offset": 0, "shape": [2], "stride": [1]} | wrong},
        }
        for wrong in (
            {"shape": [7]},
            {"stride": [6]},
            {"offset": 6},
            {"offset": -1},
            {"shape": [-1]},
            {"shape": [2, 2]},
            {"shape": 3},
            {"dtype": "float64", "shape": [4]},
            {"shape": [1.5]},
            {"offset": "x"},
            {"dtype": []},
            {"stride": [2**70]},
        )
    ),
]


@pytest.mark.parametrize("member", HOSTILE[1:], ids=str)
def test_a_tree_that_breaks_the_rules_is_refused(member, tmp_path):
    with thalia.Writer(tmp_path / "s.thalia") as writer:
        writer.add("w", np.arange(6, dtype=np.float32), region="r")
        writer.metadata = {"thalia_checkpoint": member}
    with pytest.raises(thalia.FormatError):
        thalia.load(tmp_path / "s.thalia")


def test_damage_is_found(tmp_path):
    data = bytearray(thalia.save({"w": np.ones(100_000)}))
    data[len(data) // 2] ^= 1
    for mmap in (False, True):
        with pytest.raises(thalia.IntegrityError):
            thalia.load(bytes(data), mmap=mmap)


def test_numpy_alone_is_needed():
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "ml_dtypes", "jax"}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import numpy, thalia_checkpoint as thalia
assert thalia.load(thalia.save({"a": numpy.arange(3), "b": [1]}))["a"].tolist() == [0, 1, 2]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
