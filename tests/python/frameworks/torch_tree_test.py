"""The tree of a state in a file's metadata: any of its members may be anything."""

import copy
import io
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from thalia_checkpoint._leaves import tree_rules
from thalia_checkpoint.torch import _tree as _torch_tree
from thalia_checkpoint.torch._decode import decode
from thalia_checkpoint.torch._encode import encode

JUNK = [
    None, True, -1, 2**70, 1e308, "", "x", [], {}, [[]], [1], [[1, 2]], {"dict": [[1]]}, {"tensor": 3},
    {"tensor": []}, {"complex": []}, {"complex": ["x"]}, {"size": [2**70]}, {"size": [-1]}, {"dtype": "nn"},
    {"dtype": 7}, {"device": "gpu9"}, {"int": "9" * 5000}, {"set": [{"list": []}]}, {"view": 1},
    {"deque": 1}, {"deque": [], "maxlen": -1}, {"counter": [1]}, {"path": 1}, {"bytesio": ["YQ==", 2**70]},
]  # fmt: skip


def places(node, path=()):
    """The way to each member of a tree."""
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*path, key)
        yield from places(inner, (*path, key))


def replaced(tree, path, value):
    tree = copy.deepcopy(tree)
    node = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return tree


@pytest.fixture(scope="module")
def saved():
    flat = torch.arange(10.0)
    state = {
        "model": {"w": torch.nn.Parameter(torch.ones(2, 3)), "head": flat[:6], "tail": flat[4:]},
        "nested": [1, (2, 3.5), {"x"}, frozenset(), torch.Size([2])],
        "leaves": [complex(1, 2), 1 << 70, float("inf"), b"ab", torch.float16, torch.device("cpu"), None],
        "standard": [Counter({2: 1}), deque([flat[:2]], maxlen=3), Path("a/b"), io.BytesIO(b"ab")],
        "arrays": [np.arange(3), np.float32(2)],
    }
    encoded = encode(state)
    arrays = {t.name: np.frombuffer(t.data, np.uint8) for t in encoded.tensors}
    return encoded.tree, arrays


def names(tree):
    with tree_rules():
        return list(_torch_tree.names(tree))


def test_a_tree_with_anything_in_it_is_an_error_of_ours_or_a_state(saved):
    tree, arrays = saved
    refused = 0
    ways = list(places(tree))
    assert len(ways) > 70
    for path in ways:
        for junk in JUNK:
            hostile = replaced(tree, path, junk)
            for read in (
                lambda tree: decode(tree, lambda n: torch.from_numpy(arrays[n].copy()), lambda n: arrays[n]),
                names,
            ):
                try:
                    read(hostile)
                except thalia.FormatError as error:
                    assert str(error).startswith("metadata.thalia_checkpoint: the tree breaks the rules")
                    refused += 1
    assert refused > 1000


def test_a_module_takes_no_tree_that_breaks_the_rules(tmp_path):
    flat = torch.arange(10.0)
    state = {
        "w": torch.ones(2, 3),
        "head": flat[:6],
        "tail": flat[4:],
        "_extra_state": {"a": (1, None)},
        "more": [flat],
    }
    tree = encode({"model": state}).tree
    told = [["model", {"dict": [["", {"dict": [["version", 1]]}]]}]]
    path, outcomes = tmp_path / "s.thalia", set()
    module = torch.nn.BatchNorm1d(3)  # looks at the version
    for name, size in (("w", (2, 3)), ("head", 6), ("tail", 6)):
        module.register_parameter(name, torch.nn.Parameter(torch.zeros(size)))
    hostile = [(replaced(tree, way, junk), told) for way in places(tree) for junk in JUNK]
    hostile += [(tree, replaced(told, way, junk)) for way in places(told) for junk in JUNK]
    for member, attributes in hostile:
        with thalia.Writer(path, durability="none", checksum="none") as writer:
            writer.metadata = {"thalia_checkpoint": {"version": 1, "tree": member}, "pt": {"attributes": attributes}}
            for tensor in encode({"model": state}).tensors:
                writer.add_bytes(*tensor, region="r")
        try:
            thalia_torch.load_into(module, path, prefix="model.", strict=False)
            outcomes.add("loaded")
        except (thalia.FormatError, thalia.UsageError) as error:
            outcomes.add(type(error).__name__)
    assert outcomes == {"loaded", "FormatError", "UsageError"} and len(hostile) > 1000


@pytest.mark.parametrize(
    "member", [None, 3, [], "x", {}, {"version": 2, "tree": None}, {"version": 1, "tree": {"dict": [1]}}]
)
def test_a_member_that_is_no_tree_is_refused_by_all_that_read_it(member, tmp_path):
    path = tmp_path / "s.thalia"
    with thalia.Writer(path, durability="none") as writer:
        writer.add("weight", np.ones((2, 2), np.float32))
        writer.metadata = {"thalia_checkpoint": member}
    calls = [lambda: thalia_torch.load(path), lambda: thalia_torch.load_into(torch.nn.Linear(2, 2, bias=False), path)]
    for call in calls:
        if member is None:  # as if there was none
            call()
            continue
        with pytest.raises(thalia.FormatError, match="thalia_checkpoint"):
            call()


def test_what_lies_apart_in_one_storage_is_stored_under_its_own_names(tmp_path):
    flat = torch.arange(1000, dtype=torch.float32)
    model = torch.nn.Linear(4, 2)
    model.weight.data = flat[:8].view(2, 4)  # as flattened parameters lie
    model.bias.data = flat[990:992]
    path = tmp_path / "s.thalia"
    thalia_torch.save(model.state_dict(), path)
    with thalia.open(path) as file:
        assert {name: tensor.shape for name, tensor in file.tensors.items()} == {"weight": (2, 4), "bias": (2,)}
    other = torch.nn.Linear(4, 2)
    thalia_torch.load_into(other, path)
    torch.testing.assert_close(other.bias.data, torch.tensor([990.0, 991.0]), rtol=0, atol=0)


def test_what_lies_in_each_other_shares_memory_again(tmp_path):
    flat = torch.arange(20.0)
    state = {
        "a": flat[:6],
        "b": flat[4:9],
        "c": flat[8:10],
        "apart": flat[15:],
        "columns": flat[10:14].view(2, 2)[:, 1],
    }
    thalia_torch.save(state, tmp_path / "s.thalia")
    back = thalia_torch.load(tmp_path / "s.thalia")
    back["b"] += 100
    assert back["a"].tolist() == [0, 1, 2, 3, 104, 105] and back["c"].tolist() == [108, 9]
    assert back["apart"].tolist() == [15, 16, 17, 18, 19] and back["columns"].tolist() == [11, 13]


def test_the_name_of_a_dtype_is_looked_up_in_a_table_and_imports_nothing():
    known = {str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)}
    assert set(_torch_tree._DTYPES) == known
    program = """
import sys
from thalia_checkpoint.torch import _tree as _torch_tree
before = set(sys.modules)
for name in ("_dynamo", "_inductor", "onnx", "nn", "Tensor", "__builtins__"):
    try:
        _torch_tree.dtype_of(name)
    except ValueError:
        continue
    raise SystemExit(f"{name} is a dtype")
raise SystemExit(sorted(set(sys.modules) - before) or 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
