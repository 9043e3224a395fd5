"""Files of other formats, against the libraries that they come from: what open() gives."""

import gc
import json
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
import thalia_checkpoint as thalia
from gguf import quants
from onnx import numpy_helper
from other_formats import DATA, FILES, every_format, of_gguf, onnx_arrays, opened, same

LOOM = DATA / "loom/dtype"


@every_format
def test_every_format_opens(format):
    file, tensor = opened(format)
    assert isinstance(file, thalia.AnyFile)
    assert file.format == format == thalia.detect_format(file.path)
    assert list(file) == list(file.tensors) and tensor.name in file and len(file) == thalia.info(file.path).tensor_count
    assert file.metadata["format"] == format.replace("gptrsten", "gptrs") and file.metadata is not file.metadata
    assert file.training_steps is None and file.file_bytes == thalia.info(file.path).file_bytes
    assert file.losses == thalia.info(file.path).beside
    assert repr(file).startswith("<AnyFile ") and tensor.region == "" and tensor.role is None
    whole = tensor.numpy()
    assert whole.shape == tensor.shape and whole.nbytes == tensor.nbytes == len(tensor.raw())
    # What is no view of the file is the caller's own.
    assert whole.flags.writeable == (not tensor.is_mapped)
    same(np.asarray(tensor), whole)
    same(np.from_dlpack(tensor), whole)


@every_format
def test_slices_are_those_of_the_whole(format):
    _, tensor = opened(format)
    whole = tensor.numpy()
    for index in (0, slice(1, None), slice(None, None, 2), ..., (..., 0), (slice(0, 1), ...), [0]):
        same(tensor[index], whole[index])
    with pytest.raises(IndexError):
        tensor[len(whole)]


@every_format
def test_arrays_outlive_the_file(format):
    file, tensor = opened(format)
    before = tensor.numpy(writable=True)
    array, part = tensor.numpy(), tensor[0]
    file.close()
    del file
    gc.collect()
    same(array, before)
    same(part, before[0])
    same(tensor.numpy(), before)  # as does the tensor


@every_format
def test_writing_changes_memory_alone(format):
    path = DATA / FILES[format][0]
    content = path.read_bytes() if path.is_file() else None
    for access in ("copied", "writable"):
        file, tensor = opened(format, access=access)
        array = tensor.numpy(writable=True)
        array[...] = 1
        same(opened(format, access=access)[1].numpy(), opened(format)[1].numpy())
        in_place = tensor.numpy()
        assert in_place.flags.writeable == (access == "writable" or not tensor.is_mapped)
        if in_place.flags.writeable:
            in_place[...] = 0
            assert not in_place.any() and (tensor.numpy().any() != tensor.is_mapped)
        file.close()
    assert content is None or path.read_bytes() == content


@every_format
def test_threads_share_a_file(format):
    file, _ = opened(format)
    expected = {name: tensor.dense() for name, tensor in file.items()}
    wrong = []

    def read():
        for _ in range(5):
            wrong.extend(name for name, t in file.items() if t.dense().tobytes() != expected[name].tobytes())

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@every_format
def test_no_such_tensor(format):
    file, _ = opened(format)
    with pytest.raises(thalia.NotFoundError, match="nothing") as caught:
        file["nothing"]
    assert isinstance(caught.value, KeyError) and caught.value.tensor == "nothing"
    assert file.get("nothing") is None


# Against the libraries of the formats.


@pytest.mark.parametrize("name", ["stored.npz", "deflated.npz"])
def test_npz_is_as_numpy_has_it(name):
    with np.load(DATA / "npz" / name) as reference, thalia.open(DATA / "npz" / name) as file:
        assert set(file) == set(reference)
        for key, tensor in file.items():
            same(tensor.numpy(), np.ascontiguousarray(reference[key]).reshape(reference[key].shape))
    same(thalia.open(DATA / "npz/array.npy")["array"].numpy(), np.load(DATA / "npz/array.npy"))


def test_gguf_is_as_its_package_has_it():
    path = DATA / "gguf/key_values.gguf"
    file, reference = thalia.open(path), of_gguf(path)
    assert list(file) == list(reference) and file.types == {} and file.version == "3"
    for name, tensor in file.items():
        data = reference[name].data
        if tensor.dtype == "bf16":
            data = data.view(tensor.numpy().dtype)
        same(tensor.numpy(), data.reshape(tensor.shape))
        assert tensor._source.offset == reference[name].data_offset


def test_blocks_of_gguf_are_their_codes_or_their_elements():
    path = DATA / "gguf/blocks.gguf"
    reference = of_gguf(path)
    with thalia.open(path) as codes, thalia.open(path, dequantize=True) as elements:
        assert codes.types == {name: of.tensor_type.name for name, of in reference.items()}
        assert elements.types == {} and list(codes) == list(elements) == list(reference)
        for name, of in reference.items():
            same(codes[name].numpy(), of.data)
            with np.errstate(all="ignore"):
                expected = quants.dequantize(of.data, of.tensor_type)
            found = elements[name].numpy()
            assert (found.dtype, found.shape) == (np.float32, expected.shape)
            np.testing.assert_array_equal(found, expected)
            same(elements[name][1:, 3:7], found[1:, 3:7])


@pytest.mark.parametrize("name", ["raw.onnx", "typed.onnx", "external.onnx"])
def test_onnx_is_as_its_package_has_it(name):
    path = DATA / "onnx" / name
    reference = onnx_arrays(path)
    with thalia.open(path) as file:
        assert list(file) == list(reference)
        for key, tensor in file.items():
            same(tensor.numpy(), reference[key])
            same(tensor[1:, ::2], reference[key][1:, ::2])  # packed elements too
            same(tensor[2, 1], reference[key][2, 1])


def test_sparse_tensors_of_onnx():
    model = onnx.load(DATA / "onnx/sparse.onnx")
    with thalia.open(DATA / "onnx/sparse.onnx") as file:
        for of in model.graph.sparse_initializer:
            tensor = file[of.values.name]
            places, values = numpy_helper.to_array(of.indices), numpy_helper.to_array(of.values)
            if places.ndim == 1:
                places = np.stack(np.unravel_index(places, of.dims), 1)
            expected = np.zeros(tuple(of.dims), values.dtype)
            expected[tuple(places.T)] = values
            assert tensor.encoding == "coo"
            np.testing.assert_array_equal(tensor.coo().indices, places.T)
            same(tensor.coo().values, values)
            same(tensor.dense(), expected)
            with pytest.raises(thalia.UsageError, match="encoding"):
                tensor.numpy()
        arrays = tensor.coo()
    same(arrays.values, values)
    with thalia.open(DATA / "pt/sparse.pt") as file:
        assert {name: tensor.encoding for name, tensor in file.items()}["csr"] == "csr"
        pointers, columns, values = file["csr"].csr()
        assert len(pointers) == file["csr"].shape[0] + 1 and len(columns) == len(values)
        assert np.count_nonzero(file["csr"].dense()) == np.count_nonzero(values)


def test_what_torch_saved_is_read_without_it():
    told = json.loads((DATA / "pt/expected.json").read_text())
    with thalia.open(DATA / "pt/train.pt") as file:
        assert [(t.name, t.dtype, list(t.shape)) for t in file.values()] == [
            (of["name"], of["dtype"], of["shape"]) for of in told["train.pt"]
        ]
        tree = file.metadata["thalia_checkpoint"]["tree"]["dict"]
        assert "optimizer" in dict((key, node) for key, node in tree if isinstance(key, str))
    with thalia.open(DATA / "pt/quantized.pt") as codes, thalia.open(DATA / "pt/quantized.pt", dequantize=True) as file:
        assert codes.types["t"] == "qint8" and codes["t"].dtype == "i8" and file["t"].dtype == "f32"
    for name, what in (("module.pt", "torch.nn.modules.linear.Linear"), ("namespace.pt", "argparse.Namespace")):
        with pytest.raises(thalia.UnsupportedError, match=what):
            thalia.open(DATA / "pt" / name)


@pytest.mark.parametrize("dtype", ["float32", "int4", "fp8e4m3", "ternary", "bfloat16"])
def test_networks_of_loom_are_alike_in_both_formats(dtype):
    with thalia.open(LOOM / f"{dtype}.entity") as entity, thalia.open(LOOM / f"{dtype}.json") as text:
        assert entity.types == text.types and list(entity) == list(text)
        for name, tensor in entity.items():
            assert tensor.is_mapped and not text[name].is_mapped
            same(tensor.numpy(), text[name].numpy())
    with thalia.open(LOOM / f"{dtype}.entity", dequantize=True) as file:
        assert file.types == {} and file["layers.0"].size == 15


@pytest.mark.parametrize("kind", ["int4", "int8", "nf4_g64"])
def test_what_mithril_quantized_comes_back(kind):
    path = DATA / f"mithril/quant_{kind}.zst"
    codes = thalia.open(path)
    assert list(codes.types) == ["codes"] and codes["codes"].shape == (16, 16)
    same(codes["codes"][3:5, 1::2], codes["codes"].numpy()[3:5, 1::2])
    (restored,) = thalia.open(path, dequantize=True).values()
    expected = np.fromfile(DATA / f"mithril/quant_{kind}.dequant.f32", "<f4")
    np.testing.assert_array_equal(restored.numpy().astype(np.float32).reshape(-1), expected)


def test_other_files_of_mithril():
    file = thalia.open(DATA / "mithril/small.mst")
    raw = {"w.f32": "raw.f32", "w.bf16": "raw.bf16", "ids": "raw.i64"}
    for name, stored in raw.items():
        content = (DATA / "mithril" / stored).read_bytes()
        assert content.startswith(file[name].raw().tobytes())
    folder = DATA / "mithril/orbax_ck"
    (array,) = thalia.open(folder).values()
    same(array.numpy(), np.load(folder / "state/params/w/0.npy"))


def test_files_that_are_too_old_need_to_be_asked_for():
    for name in ("legacy_v1.gptrschk", "legacy_v1.gptrsten"):
        path = DATA / "gptrs" / name
        with pytest.raises(thalia.UnsupportedError, match="on request") as caught:
            thalia.open(path)
        assert caught.value.field == "version" and caught.value.path == str(path)
        assert len(thalia.open(path, legacy=True)) > 0


def test_errors_name_the_file_and_the_field(tmp_path):
    for name, field in (("bad_truncated_data", "byte_len"), ("bad_len_shape_mismatch", "byte_len")):
        path = DATA / f"gptrs/{name}.gptrschk"
        with pytest.raises(thalia.FormatError, match=field) as caught:
            thalia.open(path)
        assert caught.value.path == str(path) and caught.value.field == field and caught.value.tensor == "w"
    for format, (name, _) in FILES.items():
        if format in ("mithril-orbax", "loom-json"):
            continue
        cut = tmp_path / Path(name).name
        padding = 64 if format == "gguf" else 0
        cut.write_bytes((DATA / name).read_bytes()[: -7 - padding])
        with pytest.raises(thalia.ThaliaError, match=cut.name) as caught:
            for tensor in thalia.open(cut).values():
                tensor.dense()
        assert isinstance(caught.value, thalia.FormatError | thalia.IntegrityError) and caught.value.path == str(cut)
    with pytest.raises(thalia.MissingFileError, match=r"none\.gguf"):
        thalia.open(tmp_path / "none.gguf")


def test_damage_is_told_where_it_is_read(tmp_path):
    data = bytearray((DATA / "mithril/small.mst").read_bytes())
    damaged = tmp_path / "d.mst"
    wrong = set()
    for place in range(len(data) - 40, len(data), 8):
        damaged.write_bytes(bytes([*data[:place], data[place] ^ 255, *data[place + 1 :]]))
        try:
            file = thalia.open(damaged)
            for tensor in file.values():
                tensor.numpy()
        except (thalia.FormatError, thalia.IntegrityError) as error:
            wrong.add(type(error))
            assert error.path == str(damaged)
    assert wrong
