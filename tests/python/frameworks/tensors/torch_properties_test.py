"""Whatever tree is saved comes back, with its containers, its scalars and what shares memory."""

import math
import struct
import tempfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import thalia_checkpoint.torch as ours
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

CHECKED = settings(max_examples=60, deadline=None, derandomize=True, database=None)
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["", ".", "a.b", "0", "a/b", "tensor", "a#2"]
)
KEYS = TEXTS | st.integers() | st.booleans() | st.none() | st.tuples(st.integers(), TEXTS)
ARRAYS = [np.arange(6).reshape(2, 3), np.zeros((0, 2), np.float16), np.float32(1.5), np.array(True)]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | TEXTS
    | st.binary(max_size=9)
    | st.sampled_from([torch.bfloat16, torch.device("cpu"), torch.Size([2, 3])])
)


@st.composite
def pools(draw):
    """Tensors that lie in a few storages: whole, parts, other layouts and types, parameters."""
    torch.manual_seed(draw(st.integers(0, 1000)))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        whole = (torch.rand(shape) * 9).to(draw(st.sampled_from(DTYPES)))
        found += [
            whole,
            whole.mT if whole.ndim > 1 else whole,
            whole.flatten(),
            whole.reshape(-1)[1:],
            whole[..., None],
        ]
        if whole.is_floating_point():
            found += [torch.nn.Parameter(whole, requires_grad=draw(st.booleans())), whole.detach()]
        if whole.numel():
            found.append(whole.contiguous().view(-1).view(torch.uint8))
    return found


class Place:
    """Where a tensor of a pool goes in a tree."""

    def __init__(self, number):
        self.number = number


TREES = st.recursive(
    LEAVES | st.integers(0, 30).map(Place) | st.sampled_from(ARRAYS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.lists(st.tuples(KEYS, inner), max_size=3).map(OrderedDict)
        | st.sets(st.integers() | TEXTS, max_size=3)
        | st.frozensets(st.binary(max_size=3), max_size=2)
    ),
    max_leaves=8,
)


def filled(tree, pool):
    if isinstance(tree, Place):
        return pool[tree.number % len(pool)]
    if isinstance(tree, dict):
        return type(tree)((key, filled(value, pool)) for key, value in tree.items())
    return type(tree)(filled(value, pool) for value in tree) if type(tree) in (list, tuple) else tree


def check(a, b, tensors):
    """That they are the same; the tensors of both are added in pairs."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad
        bits = [each.detach().contiguous().view(-1).view(torch.uint8) for each in (a, b)]
        assert torch.equal(*bits)
        tensors.append((a, b))
    elif isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert list(map(repr, a)) == list(map(repr, b))
        for one, other in zip(a.values(), b.values(), strict=True):
            check(one, other, tensors)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            check(one, other, tensors)
    elif isinstance(a, float):
        assert struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    elif isinstance(a, complex):
        check(a.real, b.real, tensors)
        check(a.imag, b.imag, tensors)
    else:
        assert a == b


def distances(tensors):
    """How far apart those lie that share a storage; empty ones share nothing."""
    full = [tensor for tensor in tensors if tensor.numel()]
    return [
        a.data_ptr() - b.data_ptr() if a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() else None
        for i, a in enumerate(full)
        for b in full[:i]
    ]


@CHECKED
@given(TREES, pools())
def test_any_tree_comes_back(tree, pool):
    tree = filled(tree, pool)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.thalia"
        ours.save(tree, path, durability="none")
        for options in ({}, {"mmap": True}):
            found, tensors = ours.load(path, **options), []
            check(tree, found, tensors)
            if not options:
                assert distances([a for a, _ in tensors]) == distances([b for _, b in tensors])
        ours.save(found, path, durability="none")
        check(tree, ours.load(path), [])


@CHECKED
@given(
    st.dictionaries(TEXTS, pools().map(lambda pool: pool[0]), max_size=4), st.sampled_from(["safetensors", "thalia"])
)
def test_any_dictionary_of_tensors_comes_back(tensors, ending):
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"f.{ending}"
        ours.save_file(tensors, path, durability="none")
        check(dict(sorted(tensors.items())), dict(sorted(ours.load_file(path).items())), [])
