"""info, verify and diff of files of every format, as the program tells it."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.numpy import save_file

DATA = Path(__file__).resolve().parents[1] / "data"
FORMATS = {"thalia": ".thalia", "safetensors": ".safetensors", "mckp": ".mckp"}


@pytest.fixture
def files(tmp_path):
    """The same tensors in every format that is written."""
    rng = np.random.default_rng(4)
    tensors = {
        "layers.0.weight": rng.normal(size=(64, 32)).astype(np.float32),
        "layers.0.bias": np.zeros(64, np.float32),
    }
    path = tmp_path / "a.safetensors"
    save_file(tensors, path, metadata={"step": "12", "epoch": "1.5"})
    for name, ending in FORMATS.items():
        if name != "safetensors":
            thalia.convert(path, path.with_suffix(ending))
    return {name: path.with_suffix(ending) for name, ending in FORMATS.items()}


@pytest.mark.parametrize("format", FORMATS)
def test_info_says_the_same_of_every_format(files, format):
    info = thalia.info(files[format])
    assert info.path == str(files[format]) and info.format == format
    assert info.tensor_count == 2 and info.parameters == 64 * 32 + 64
    assert info.dtypes == (thalia.DTypeTotal("f32", 2, 2112, 8448),)
    if format == "thalia":  # it keeps the texts of the other format as they were
        assert info.metadata["safetensors"]["metadata"] == {"step": "12", "epoch": "1.5"}
    else:
        assert info.training_steps == 12 and info.epoch == 1.5
    assert info.value_bytes == 8448 and not info.delta and info.delta_base is None
    assert info.disk_bytes == files[format].stat().st_size


def test_info_is_the_object_of_the_program(files, run_program):
    for path in files.values():
        told = json.loads(run_program("info", "--json", path))
        assert told.pop("schema") == "thalia.info.1"
        info = thalia.info(path)
        assert set(told) == set(vars(info))
        assert told["metadata"] == info.metadata and told["checksum"] == vars(info.checksum)


def test_info_of_deltas_and_of_wrapped_and_quantized_files(files, tmp_path):
    base = files["thalia"]
    changed = tmp_path / "changed.thalia"
    with thalia.Writer(changed) as writer:
        writer.add("layers.0.weight", np.ones((64, 32), np.float32))
        writer.add("layers.0.bias", np.zeros(64, np.float32))
    delta = tmp_path / "d.thalia"
    thalia.delta(base, changed, delta)
    info = thalia.info(delta)
    assert info.delta and info.value_bytes is None and info.delta_base.depth == 1
    # Of a delta, what it says itself: its base is not looked at.
    base.rename(tmp_path / "elsewhere.thalia")
    assert thalia.info(delta).delta_base.path.endswith("a.thalia")

    thalia.compress(changed, tmp_path / "c.thalia.zst")
    assert thalia.info(tmp_path / "c.thalia.zst").wrapper.codec == "zstd"
    thalia.quantize(changed, tmp_path / "q.thalia", bits=4)
    assert thalia.info(tmp_path / "q.thalia").lossy.quantized_tensors == 1


def test_files_of_the_original_program():
    delta = thalia.info(DATA / "v01" / "delta_stage1.delta.thalia")
    assert delta.delta and delta.tensor_count is None and delta.dtypes is None
    for name in ("full.thalia", "full.thalia.lz4", "eraA_full.thalia.zst"):
        path = DATA / "v01" / name
        info = thalia.info(path)
        assert info.format == "thalia-0.1" and info.version == "0.1.0" and info.checksum.type == "sha256"
        assert (info.wrapper is None) == (name == "full.thalia")
        assert thalia.verify(path).ok
    path = DATA / "v01" / "neg_index_offset_oob.thalia"
    with pytest.raises(thalia.FormatError, match="region_index_offset"):
        thalia.info(path)
    assert "region_index_offset" in thalia.verify(path).findings[0].field


@pytest.mark.parametrize("format", FORMATS)
def test_verify_finds_damage_in_every_format(files, format):
    path = files[format]
    report = thalia.verify(path)
    assert report.ok and report.tensors == 2
    data = bytearray(path.read_bytes())
    if format == "safetensors":
        data[8:9] = b"["  # there are no checksums: the header alone can be seen to be wrong
    elif format == "thalia":
        data[thalia.open(path).tensors["layers.0.weight"]._source.offset + 5] ^= 1
    else:
        data[-40] ^= 1
    path.write_bytes(data)
    report = thalia.verify(path)
    assert not report.ok and report.findings[0].severity == "error"


def test_diff_of_two_formats_is_one_of_elements(files, tmp_path):
    for before in FORMATS:
        for after in FORMATS:
            diff = thalia.diff(files[before], files[after])
            assert diff.same and diff.metadata_compared == (before == after)
            assert diff.same_tensors == (0 if before == after == "thalia" else 2)
    other = tmp_path / "other.safetensors"
    save_file({"layers.0.weight": np.zeros((64, 32), np.float32)}, other)
    diff = thalia.diff(files["thalia"], other)
    changes = {tensor.name: tensor.change for tensor in diff.tensors}
    assert changes == {"layers.0/layers.0.weight": "changed", "layers.0/layers.0.bias": "removed"}
    (changed,) = [tensor for tensor in diff.tensors if tensor.change == "changed"]
    assert not diff.same and bool(diff) and changed.values.differing == 64 * 32
    assert thalia.diff(files["thalia"], other, tensors=["*weight"], atol=100.0).same
    with pytest.raises(thalia.NotFoundError, match="wieght"):
        thalia.diff(files["mckp"], other, tensors=["wieght"])


def test_what_is_no_checkpoint_is_one_clear_error(tmp_path):
    path = tmp_path / "x.thalia"
    with pytest.raises(thalia.MissingFileError, match=r"x\.thalia"):
        thalia.info(path)
    path.write_bytes(b"hello")
    with pytest.raises(thalia.FormatError, match=r"x\.thalia"):
        thalia.info(path)
    assert not thalia.verify(path).ok
    with pytest.raises(thalia.UsageError, match="access"):
        thalia.info(path, access="guessed")


def test_errors_keep_their_facts_on_the_way_to_another_process(tmp_path):
    (tmp_path / "x.thalia").write_bytes(b"")
    for path in (tmp_path / "none.thalia", tmp_path / "x.thalia", tmp_path):
        with pytest.raises(thalia.ThaliaError) as caught:
            thalia.open(path)
        error, copy = caught.value, pickle.loads(pickle.dumps(caught.value))
        assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)
        if isinstance(error, thalia.IoError):
            assert (copy.errno, copy.filename) == (error.errno, error.filename) and error.errno


#: A file of each format that this package does not write itself.
OTHERS = (
    "mithril/small.mst", "mithril/quant_int8.zst", "mithril/orbax_ck", "gptrs/rust_gpt_small.gptrschk",
    "gptrs/py_mixed.gptrsten", "loom/dtype/int4.entity", "loom/dtype/int4.json", "pt/train.pt",
    "npz/stored.npz", "npz/array.npy", "gguf/blocks.gguf", "onnx/raw.onnx",
)  # fmt: skip


def in_parts(folder, kind, tensors):
    """A model of one tensor a file, with an index; its folder."""
    folder.mkdir()
    weight_map = {}
    for number, (name, array) in enumerate(tensors.items(), 1):
        part = folder / f"model-{number:05}-of-{len(tensors):05}.{kind}"
        save_file({name: array}, part)
        weight_map[name] = part.name
    (folder / f"model.{kind}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def test_no_function_refuses_a_file_that_another_opens(files, tmp_path):
    tensors = {"a.weight": np.ones((2, 3), np.float32), "b.weight": np.zeros(4, np.float32)}
    paths = [*files.values(), DATA / "v01/full.thalia", *(DATA / "formats" / name for name in OTHERS)]
    for kind in ("thalia", "safetensors"):
        folder = in_parts(tmp_path / kind, kind, tensors)
        paths += [folder, folder / f"model.{kind}.index.json"]
    seen = set()
    for number, path in enumerate(paths):
        info = thalia.info(path)
        seen.add(info.format)
        assert thalia.verify(path).ok, path
        assert thalia.diff(path, path).same, path
        out = tmp_path / f"{number}.thalia"
        result = thalia.convert(path, out)
        with thalia.open(out) as converted:
            assert len(converted.tensors) == result.tensors > 0, path
        if info.format != "thalia-0.1":  # its migration adds tensors
            assert result.tensors == info.tensor_count, path
        with thalia.open(path) as opened:
            assert len(opened.tensors) == info.tensor_count, path
            next(iter(opened.tensors.values())).numpy()
    assert len(seen) == 17
