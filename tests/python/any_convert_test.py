"""Conversions between formats; tensors on demand; texts of safetensors files."""

import gc
import pickle
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors.numpy
import thalia_checkpoint as thalia
from other_formats import DATA, every_format, of_gguf, onnx_arrays, opened, same
from thalia_checkpoint.numpy import load_file, save_file


@pytest.fixture
def weights(tmp_path):
    rng = np.random.default_rng(3)
    arrays = {
        "layers.0.weight": rng.normal(size=(8, 64)).astype(np.float32),
        "layers.1.weight": rng.normal(size=(8, 64)).astype(np.float32),
        "steps": np.arange(3, dtype=np.int32),
    }
    path = tmp_path / "w.safetensors"
    save_file(arrays, path, metadata={"by": "a test"})
    return path, arrays


@pytest.mark.parametrize("format", ["gguf", "onnx", "pt", "npz", "gptrs", "mst", "mckp", "thalia"])
def test_to_a_format_and_back(weights, tmp_path, format):
    path, arrays = weights
    other, back = tmp_path / "other", tmp_path / "back.safetensors"
    result = thalia.convert(path, other, to=format)
    assert result.tensors == 3 and thalia.detect_format(other) == format
    with thalia.open(other) as file:
        assert set(file.tensors) == set(arrays)
        for name, array in arrays.items():
            same(file.tensors[name].numpy(), array)
    thalia.convert(other, back)
    if not result.losses:
        assert back.read_bytes() == path.read_bytes()
    assert load_file(back).keys() == arrays.keys() == safetensors.numpy.load_file(back).keys()


def test_the_other_libraries_read_what_is_written(weights, tmp_path):
    path, arrays = weights
    for name in ("a.npz", "a.gguf", "a.onnx"):
        thalia.convert(path, tmp_path / name)
    with np.load(tmp_path / "a.npz") as found:
        for name, array in arrays.items():
            same(found[name], array)
    for found in (
        {name: tensor.data for name, tensor in of_gguf(tmp_path / "a.gguf").items()},
        onnx_arrays(tmp_path / "a.onnx"),
    ):
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            same(found[name].reshape(array.shape), array)


def test_orbax_folders_are_written_and_opened(weights, tmp_path):
    path, arrays = weights
    folder = tmp_path / "folder"
    thalia.convert(path, folder, to="mithril-orbax")
    with thalia.open(folder) as file:
        assert file.format == "mithril-orbax" and set(file) == set(arrays)
        for name, array in arrays.items():
            same(file[name].numpy(), array)


def test_losses_are_told_or_refused(weights, tmp_path):
    path, _ = weights
    out = tmp_path / "w.npz"
    with pytest.raises(thalia.UnsupportedError, match="lossless") as caught:
        thalia.convert(path, out, lossless=True)
    assert "metadata" in caught.value.value and caught.value.path == str(path) and not out.exists()
    assert any("metadata" in loss for loss in thalia.convert(path, out).losses)
    assert thalia.convert(path, tmp_path / "w.gguf", lossless=True).losses == ()


def test_shards_open_as_one_model(weights, tmp_path):
    path, arrays = weights
    folder = tmp_path / "model"
    result = thalia.convert(path, folder, to="safetensors", shard_bytes=2500)
    assert result.tensors == 3
    assert sorted(p.name for p in folder.iterdir()) == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ]
    named = tmp_path / "other"
    thalia.convert(path, named / "w.safetensors.index.json", shard_bytes=2500)
    for model in (folder, folder / "model.safetensors.index.json", named, named / "w.safetensors.index.json"):
        with thalia.open(model) as file:
            assert set(file.tensors) == set(arrays)
            for name, array in arrays.items():
                same(file.tensors[name].numpy(), array)
        assert thalia.convert(model, tmp_path / "one.npz", replace=True).tensors == 3
    assert len(thalia.open(folder).files) > 2
    assert load_file(named).keys() == arrays.keys()


def test_dequantize_of_a_conversion(tmp_path):
    path = DATA / "gguf/blocks.gguf"
    thalia.convert(path, tmp_path / "codes.npz")
    thalia.convert(path, tmp_path / "elements.npz", dequantize=True)
    elements = thalia.open(path, dequantize=True)
    with np.load(tmp_path / "codes.npz") as codes, np.load(tmp_path / "elements.npz") as found:
        for name, tensor in thalia.open(path).items():
            same(codes[name], tensor.numpy())
            np.testing.assert_array_equal(found[name], elements[name].numpy())
    # The codes find back into their types.
    thalia.convert(path, tmp_path / "c.thalia")
    assert thalia.diff(path, tmp_path / "c.thalia").same
    thalia.convert(tmp_path / "c.thalia", tmp_path / "back.gguf")
    assert thalia.open(tmp_path / "back.gguf").types == thalia.open(path).types


def test_legacy_files_and_types_that_a_program_does_not_read(tmp_path):
    old = DATA / "gptrs/legacy_v1.gptrsten"
    with pytest.raises(thalia.UnsupportedError, match="on request"):
        thalia.convert(old, tmp_path / "new.npz")
    thalia.convert(old, tmp_path / "new.npz", legacy=True)
    assert set(load_file(tmp_path / "new.npz")) == set(thalia.open(old, legacy=True))
    for look in (thalia.info, lambda path, **options: thalia.diff(path, path, **options)):
        with pytest.raises(thalia.UnsupportedError, match="on request"):
            look(old)
    assert thalia.info(old, legacy=True).version == "1"
    assert thalia.verify(old, legacy=True).ok
    assert thalia.diff(old, tmp_path / "new.npz", legacy=True).same

    save_file({"w": np.ones(3, np.float16)}, tmp_path / "h.safetensors")
    with pytest.raises(thalia.UnsupportedError, match="f16"):
        thalia.convert(tmp_path / "h.safetensors", tmp_path / "h.gptrschk")
    thalia.convert(tmp_path / "h.safetensors", tmp_path / "h.gptrschk", all_types=True)
    assert thalia.open(tmp_path / "h.gptrschk")["w"].dtype == "f16"


def test_a_name_that_is_no_format(weights, tmp_path):
    with pytest.raises(thalia.UsageError, match="gguf") as caught:
        thalia.convert(weights[0], tmp_path / "x", to="ggml")
    assert caught.value.field == "to"


# Tensors on demand.


@every_format
def test_parameters_are_those_of_the_file(format):
    file, _ = opened(format)
    for source in (thalia.stream_params(file), thalia.stream_params(file.path)):
        assert list(source.params) == list(file)
        for name, tensor in file.items():
            told = source.params[name]
            assert (told.name, told.dtype, told.shape, told.nbytes) == (name, tensor.dtype, tensor.shape, tensor.nbytes)
            assert source.load(name).tobytes() == tensor.dense().tobytes()
        assert source.total_bytes == sum(of.nbytes for of in source.params.values())


def test_a_budget_keeps_what_comes_again(weights):
    path, arrays = weights
    source = thalia.stream_params(path, budget_bytes=2200)
    first = source.load("layers.0.weight")
    same(first, arrays["layers.0.weight"])
    assert not first.flags.writeable and source.load("layers.0.weight").ctypes.data == first.ctypes.data
    source.load("layers.1.weight")
    told = source.statistics
    assert (told.hits, told.misses, told.evictions, told.resident_tensors) == (1, 2, 1, 1)
    assert told.loaded_bytes == 4096 and told.resident_bytes == 2048 and source.budget_bytes == 2200
    del source
    gc.collect()
    same(first, arrays["layers.0.weight"])  # lives on with anybody who has it


def test_layers_are_loaded_ahead(weights):
    source = thalia.stream_params(weights[0], prefetch_layers=1, small_bytes=12)
    assert {name: (of.layer, of.pinned) for name, of in source.params.items()} == {
        "layers.0.weight": (0, True),
        "layers.1.weight": (1, False),
        "steps": (None, True),
    }
    assert all(len(of.id) == 32 for of in source.params.values())
    source.prefetch()
    source.load("layers.0.weight")
    assert source.statistics.hits == 1 and source.statistics.pinned_bytes >= 2048


def test_parameters_that_cannot_be(weights, tmp_path):
    path, _ = weights
    source = thalia.stream_params(path)
    with pytest.raises(thalia.NotFoundError, match="nothing"):
        source.load("nothing")
    for share in (-0.5, 1.5, float("nan")):
        with pytest.raises(thalia.UsageError, match="budget_share"):
            thalia.stream_params(path, budget_share=share)
    file = thalia.open(DATA / "npz/stored.npz")
    file.close()
    with pytest.raises(thalia.UsageError, match="closed"):
        thalia.stream_params(file)
    sparse = thalia.stream_params(DATA / "onnx/sparse.onnx")
    same(sparse.load("linear"), thalia.open(DATA / "onnx/sparse.onnx")["linear"].dense())
    blocks = thalia.stream_params(DATA / "gguf/blocks.gguf", dequantize=True)
    assert {of.dtype for of in blocks.params.values()} == {"f32"}


def test_a_parameter_is_loaded_by_its_id_and_its_key(weights):
    path, arrays = weights
    source, other = thalia.stream_params(path), thalia.stream_params(path, model=2**127 + 5)
    assert other.model == 2**127 + 5 and source.model != thalia.stream_params(path).model
    for name, array in arrays.items():
        told = source.params[name]
        assert told.id == thalia.base_param_id(name)
        assert told.key == thalia.param_key(source.model, told.id)
        same(source.load(id=told.id), array)
        same(source.load(key=told.key), array)
        assert told.id == other.params[name].id and told.key != other.params[name].key
        with pytest.raises(thalia.NotFoundError, match="key"):
            other.load(key=told.key)
    assert pickle.loads(pickle.dumps(told)) == told
    # Of gpt.rs itself.
    assert thalia.base_param_id("lm_head") == "a962c72e0d59ef7a13ff91bdee235d58"
    assert thalia.param_key(1, thalia.base_param_id("lm_head")) == "bc874dba78a0af10e0bf65eac431acd0"


def test_ids_that_cannot_be(weights):
    source = thalia.stream_params(weights[0])
    with pytest.raises(thalia.UsageError, match="one of name, id and key"):
        source.load()
    with pytest.raises(thalia.UsageError, match="one of name, id and key"):
        source.load("steps", id=source.params["steps"].id)
    for text in ("", "A" * 32, "0" * 31, "g" * 32, "\ud800"):
        with pytest.raises(thalia.UsageError, match="32"):
            source.load(id=text)
        with pytest.raises(thalia.UsageError, match="32"):
            source.resolver.resolve(text, "form", object)
        with pytest.raises(thalia.UsageError, match="32"):
            thalia.param_key(1, text)
    with pytest.raises(thalia.NotFoundError, match="0000"):
        source.load(id="0" * 32)
    with pytest.raises(TypeError):
        source.load(id=b"0" * 32)
    for model in (-1, 1 << 128):
        with pytest.raises(thalia.UsageError, match="model"):
            thalia.stream_params(weights[0], model=model)
    with pytest.raises(thalia.UsageError, match="ASCII"):
        thalia.base_param_id("h\u00e9")


def test_a_derived_form_is_made_once(weights):
    path, arrays = weights
    resolver = thalia.ParamResolver()
    source = thalia.stream_params(path, resolver=resolver)
    made = []

    def transposed(array):
        made.append(array)
        return np.ascontiguousarray(array.T)

    first = source.derived("layers.0.weight", "transposed", transposed)
    same(first, arrays["layers.0.weight"].T.copy())
    assert source.derived("layers.0.weight", "transposed", transposed) is first and len(made) == 1
    assert source.statistics.misses == 1
    assert source.derived("layers.0.weight", "sum", np.sum) == pytest.approx(arrays["layers.0.weight"].sum())
    # Another model has forms of its own, in the same resolver.
    other = thalia.stream_params(path, resolver=resolver)
    assert other.derived("layers.0.weight", "transposed", transposed) is not first and len(made) == 2
    assert len(resolver) == 3 and "3 forms" in repr(resolver)
    key = source.params["layers.0.weight"].key
    assert resolver.resolve(key, "transposed", pytest.fail) is first
    assert resolver.forget(key) == 2 and len(resolver) == 1
    assert source.derived("layers.0.weight", "transposed", transposed) is not first
    assert resolver.clear() == 2 and resolver and not len(resolver)
    with pytest.raises(thalia.NotFoundError):
        source.derived("nothing", "transposed", transposed)


def test_a_form_that_fails_or_needs_itself_is_not_kept(weights):
    source = thalia.stream_params(weights[0])
    key, resolver = source.params["steps"].key, source.resolver
    for error in (ValueError("no"), KeyboardInterrupt()):

        def fail(error=error):
            raise error

        with pytest.raises(type(error)) as caught:
            resolver.resolve(key, "form", fail)
        assert caught.value is error
    with pytest.raises(thalia.UsageError, match="to make itself"):
        resolver.resolve(key, "form", lambda: resolver.resolve(key, "form", object))
    with pytest.raises(TypeError):
        resolver.resolve(key, "form", None)
    assert len(resolver) == 0
    assert resolver.resolve(key, "form", lambda: resolver.resolve(key, "inner", lambda: 20) + 1) == 21
    gone = weakref.ref(resolver.resolve(key, "object", lambda: type("Any", (), {})()))
    assert gone() is not None
    resolver.clear()
    gc.collect()
    assert gone() is None


def test_threads_that_ask_for_one_form_wait_for_it(weights):
    source = thalia.stream_params(weights[0])
    started, made = threading.Barrier(8), []

    def make(array):
        made.append(time.sleep(0.2))
        return object()

    def ask(_):
        started.wait(60)
        return source.derived("layers.0.weight", "form", make)

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(8)))
    assert len(found) == 1 and len(made) == 1


# Texts of safetensors files.


def test_texts_are_changed_and_tensors_stay(weights):
    path, arrays = weights
    size = path.stat().st_size
    assert thalia.edit_safetensors_metadata(path, {"by": "a test"}) == "unchanged"
    assert thalia.edit_safetensors_metadata(path, {"by": "b test"}) in ("in_place", "cloned")
    assert path.stat().st_size == size
    assert thalia.open(path).metadata["safetensors"]["metadata"] == {"by": "b test"}
    done = thalia.edit_safetensors_metadata(path, {"by": None, "long": "x" * 5000}, in_place=False, durability="none")
    assert done in ("rewritten", "cloned")
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"long": "x" * 5000}
        for name, array in arrays.items():
            same(file.get_tensor(name), array)
    with pytest.raises(thalia.UsageError):
        thalia.edit_safetensors_metadata(path, {"a": "\udc80"})
    with pytest.raises(thalia.MissingFileError):
        thalia.edit_safetensors_metadata(path.with_name("none.safetensors"), {})


def test_what_shares_memory_is_there_under_every_name(tmp_path):
    for path in (DATA / "pt" / "shared.pt", DATA / "pt" / "views.pt", DATA / "pt" / "train.pt"):
        with thalia.open(path) as apart, thalia.open(path, shared_memory=True) as shared:
            assert len(apart) >= len(shared) > 0
            for target in ("m.safetensors", "m.npz", "m.onnx"):
                thalia.convert(path, tmp_path / target, replace=True)
                with thalia.open(tmp_path / target) as found:
                    assert set(found) == set(apart)
                    for name, tensor in apart.items():
                        same(found[name].numpy(), tensor.numpy())
            thalia.convert(path, tmp_path / "m.thalia", replace=True)
            thalia.convert(tmp_path / "m.thalia", tmp_path / "m.npz", replace=True)
            with np.load(tmp_path / "m.npz") as found:
                for name, tensor in apart.items():
                    same(found[name], tensor.numpy())


def test_checksums_of_other_formats_are_compared(tmp_path):
    damaged = {}
    with thalia.open(DATA / "pt" / "train.pt") as file:
        name = next(name for name, tensor in file.items() if tensor.nbytes >= 16)
        payload = file[name].numpy().tobytes()
    for path in (DATA / "pt" / "train.pt", tmp_path / "t.npz"):
        if not path.exists():
            thalia.convert(DATA / "pt" / "train.pt", path)
        data = bytearray(path.read_bytes())
        data[data.index(payload)] ^= 4
        damaged[path.suffix] = tmp_path / f"damaged{path.suffix}"
        damaged[path.suffix].write_bytes(data)
    for path in damaged.values():
        with pytest.raises(thalia.IntegrityError):
            thalia.open(path)[name].numpy()
        with pytest.raises(thalia.IntegrityError):
            thalia.open(path, verification="at_open")
        with pytest.raises(thalia.IntegrityError):
            thalia.stream_params(path).load(name)
        assert thalia.open(path, verification="off")[name].numpy().tobytes() != payload
