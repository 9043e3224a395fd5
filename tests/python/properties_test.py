"""Whatever is saved comes back: names, types, shapes, texts, slices and deltas that hypothesis thinks of."""

import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import thalia_checkpoint as thalia
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from thalia_checkpoint.numpy import load, load_file, save, save_file

CHECKED = settings(max_examples=60, deadline=None, derandomize=True, database=None)
NAMES = ["<f8", "<f4", "<f2", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "?", "<c8", "<c16"]
SAFETENSORS = [name for name in NAMES if name != "<c16"]
EXTRA = [np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
#: Parts of names that have a meaning somewhere, and any text.
PARTS = st.sampled_from(
    ["layers", "0", "weight", ".", "..", "/", " ", "#2", "optimizer", "ä", "\u202e", "\n", "🦙", "%", "\\"]
)
TEXTS = st.lists(PARTS, max_size=5).map("".join) | st.text(st.characters(codec="utf-8"), max_size=20)


@st.composite
def arrays(draw, dtypes=(*NAMES, *EXTRA), shapes=SHAPES):
    """Of any bits, so that there are all kinds of NaN; bools of 0 and 1 alone."""
    dtype, shape = np.dtype(draw(st.sampled_from(dtypes))), draw(shapes)
    size = int(np.prod(shape)) * dtype.itemsize
    data = np.random.default_rng(draw(st.integers(0, 1 << 30))).integers(0, 256, size, np.uint8)
    return (data & 1 if dtype.kind == "b" else data).view(dtype).reshape(shape)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@CHECKED
@given(st.dictionaries(TEXTS, arrays(shapes=hnp.array_shapes(max_dims=1, max_side=3)), max_size=6))
def test_any_names_come_back(tensors):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.thalia"
        save_file(tensors, path, durability="none")
        found = load_file(path)
        assert set(found) == set(tensors)
        assert all(same(found[name], array) for name, array in tensors.items())


@CHECKED
@given(arrays(), st.sampled_from([None, "zstd", "lz4", "plane_entropy", "packed_exponents", "auto"]))
def test_any_array_comes_back_bit_for_bit(array, compression):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.thalia"
        save_file({"w": array, "again": np.tile(array, 50)}, path, durability="none", compression=compression)
        for mmap in (False, True):
            found = load_file(path, mmap=mmap)
            assert same(found["w"], array) and same(found["again"], np.tile(array, 50))
        assert thalia.verify(path).ok


@CHECKED
@given(
    st.dictionaries(TEXTS.filter(lambda name: name != "__metadata__"), arrays((*SAFETENSORS, *EXTRA)), max_size=4),
    st.none() | st.dictionaries(TEXTS, TEXTS, max_size=4),
)
def test_safetensors_and_their_metadata_come_back(tensors, metadata):
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("safetensors", "thalia"):
            path = Path(folder) / f"f.{ending}"
            save_file(tensors, path, metadata=metadata, durability="none")
            with thalia.safe_open(path, framework="np") as file:
                assert set(file.keys()) == set(tensors)
                assert (file.metadata() or None) == (metadata or None)
                assert all(same(file.get_tensor(name), array) for name, array in tensors.items())
        found = load(save(tensors, metadata))
        assert all(same(found[name], array) for name, array in tensors.items())


@CHECKED
@given(st.data(), arrays(NAMES), st.sampled_from(["a.thalia", "z.thalia", "a.safetensors", "b.delta.thalia"]))
def test_any_slice_is_numpys(data, array, name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if name.endswith(".safetensors") and array.dtype == "<c16":
            return
        if "delta" in name:
            base = Path(folder) / "base.thalia"
            for file, values in ((base, array), (path.with_name("new.thalia"), array[::-1] if array.ndim else array)):
                save_file({"w": values}, file, durability="none")
            array = load_file(path.with_name("new.thalia"))["w"]
            thalia.delta(base, path.with_name("new.thalia"), path, durability="none")
        else:
            save_file({"w": array}, path, durability="none", **({"compression": "lz4"} if name[0] == "z" else {}))
        with thalia.open(path) as file, thalia.safe_open(path, framework="np") as flat:
            for _ in range(4):
                index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True))
                expected = np.asarray(array[index])
                assert same(np.asarray(file.tensors["w"][index]), expected)
                assert same(np.asarray(flat.get_slice("w")[index]), expected)


@CHECKED
@given(st.lists(arrays(), min_size=1, max_size=4), st.integers(0, 1 << 30), st.integers(1, 3))
def test_chains_of_random_changes_come_back(start, seed, length):
    rng = np.random.default_rng(seed)

    def changed(array):
        """Some bytes of it, all, none, another shape, or another array."""
        kind = rng.integers(6)
        if kind == 0:
            return array
        if kind == 1:
            return rng.normal(size=(2, 3)).astype(np.float32)
        if kind == 2:
            return array.reshape(-1)
        data = np.frombuffer(array.tobytes(), np.uint8).copy()
        hit = rng.random(data.size) < (0.05, 0.5, 1)[kind - 3]
        data[hit] = rng.integers(0, 2 if array.dtype.kind == "b" else 256, hit.sum())
        return data.view(array.dtype).reshape(array.shape)

    with tempfile.TemporaryDirectory() as folder:
        last, state = Path(folder) / "0.thalia", {f"w{i}": array for i, array in enumerate(start)}
        save_file(state, last, durability="none")
        for i in range(length):
            state = {name: changed(array) for name, array in state.items() if len(state) == 1 or rng.random() < 0.9}
            if rng.random() < 0.3:
                state[f"new{i}"] = np.arange(5.0)
            full, delta = Path(folder) / "full.thalia", Path(folder) / f"{i + 1}.delta.thalia"
            save_file(state, full, durability="none")
            thalia.delta(last, full, delta, durability="none")
            last = delta
        found = load_file(last)
        assert set(found) == set(state) and all(same(found[name], array) for name, array in state.items())
        thalia.resolve(last, Path(folder) / "resolved.thalia", durability="none")
        assert thalia.diff(full, Path(folder) / "resolved.thalia").same
