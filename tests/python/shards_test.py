"""Models in several files, open as one by their index."""

import errno
import json
import os
import re

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.numpy import load_file, save_file

ARRAYS = {
    "embed.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "layers.0.bias": np.arange(5, dtype=np.int64),
    "layers.0.weight": np.arange(6, dtype=np.float16).reshape(2, 3),
    "layers.1.bias": np.zeros((0, 3), np.float32),
}
MAP = {"layers.0.weight": 2, "embed.weight": 1, "layers.0.bias": 2, "layers.1.bias": 1}


def shard(number, kind):
    return f"model-0000{number}-of-00002.{kind}"


def write_index(folder, kind, weight_map, **others):
    content = {"metadata": {"total_size": 100}, "weight_map": weight_map, **others}
    index = folder / f"model.{kind}.index.json"
    index.write_text(json.dumps(content))
    return index


@pytest.fixture(params=["safetensors", "thalia"])
def model(request, tmp_path):
    """A folder, what kind its files are, and its index."""
    kind = request.param
    for number in (1, 2):
        arrays = {name: ARRAYS[name] for name, its in MAP.items() if its == number}
        save_file(arrays, tmp_path / shard(number, kind), metadata={"format": "np"}, durability="none")
    index = write_index(tmp_path, kind, {name: shard(number, kind) for name, number in MAP.items()})
    return tmp_path, kind, index


def assert_same(found, expected=ARRAYS):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_folder_and_its_index_open_as_one_model(model):
    folder, kind, index = model
    for path in (folder, str(folder), index):
        with thalia.open(path) as file:
            assert isinstance(file, thalia.AnyFile) and file.path == str(index)
            assert file.format == ("safetensors" if kind == "safetensors" else "thalia-shards")
            assert list(file) == list(file.tensors) and sorted(file) == sorted(MAP)
            assert [MAP[name] for name in file] == [1, 1, 2, 2]  # one file after the other
            assert len(file) == 4 and file.metadata["safetensors"]["metadata"] == {"format": "np"}
            assert file.files == [str(index), *(str(folder / shard(number, kind)) for number in (1, 2))]
            assert_same({name: tensor.numpy() for name, tensor in file.items()})
            assert "nothing" not in file
            with pytest.raises(KeyError, match="nothing: no such tensor"):
                file["nothing"]
    assert_same(load_file(folder))
    assert_same(load_file(index, mmap=True))


@pytest.mark.parametrize("model", ["thalia"], indirect=True)
@pytest.mark.parametrize("by", ["folder", "index"])
def test_what_takes_a_file_takes_its_state(model, tmp_path_factory, by):
    folder, _, index = model
    path = folder if by == "folder" else index
    out = tmp_path_factory.mktemp("out")
    save_file({**ARRAYS, "embed.weight": ARRAYS["embed.weight"] + 1}, out / "base.thalia")
    thalia.merge([path], out / "merged.thalia")
    assert_same(load_file(out / "merged.thalia"))
    thalia.resolve(path, out / "resolved.thalia")
    assert_same(load_file(out / "resolved.thalia"))
    assert thalia.delta(out / "base.thalia", path, out / "new.delta.thalia").tensors == 4
    assert_same(load_file(out / "new.delta.thalia"))
    quantized = thalia.quantize(path, out / "quantized.thalia", include=["embed.weight"], min_elements=1)
    assert quantized.tensors == 4 and len(quantized.quantized) == 1
    thalia.migrate(path, out / "old.thalia", to="0.1", across_major=True)
    assert thalia.open(out / "old.thalia").format == "thalia-0.1"
    with pytest.raises(thalia.UsageError, match=r"a delta names one file as its base.*expected one file"):
        thalia.delta(path, out / "base.thalia", out / "other.delta.thalia")
    with pytest.raises(thalia.UsageError, match="a file that is read"):
        thalia.quantize(path, folder / shard(2, "thalia"), replace=True)
    with pytest.raises(thalia.ThaliaError, match=r"list of the files that a model is in|a folder"):
        thalia.compact(path)  # a change in place is one of one file
    assert_same(load_file(path))


def test_parts_of_it_are_read_by_safe_open(model):
    folder, _, _ = model
    with thalia.safe_open(folder, framework="np") as file:
        assert file.keys() == sorted(MAP) and [MAP[name] for name in file.offset_keys()] == [1, 1, 2, 2]
        assert file.metadata() == {"format": "np"}
        np.testing.assert_array_equal(file.get_tensor("embed.weight"), ARRAYS["embed.weight"])
        np.testing.assert_array_equal(file.get_slice("layers.0.weight")[:, 1:], ARRAYS["layers.0.weight"][:, 1:])


def test_a_model_without_one_of_its_files_is_refused(model):
    folder, kind, _ = model
    (folder / shard(2, kind)).unlink()
    with pytest.raises(thalia.MissingFileError, match=shard(2, kind)):
        thalia.open(folder)


def test_arrays_stay_when_it_is_closed(model):
    folder, _, _ = model
    file = thalia.open(folder)
    array = file["embed.weight"].numpy()
    file.close()
    np.testing.assert_array_equal(array, ARRAYS["embed.weight"])


def test_the_files_are_opened_as_the_model_is(tmp_path):
    save_file({"w": np.arange(1000)}, tmp_path / "a.thalia")
    damaged = bytearray((tmp_path / "a.thalia").read_bytes())
    damaged[damaged.index(np.arange(1000)[100:].tobytes()[:64])] ^= 1
    (tmp_path / "a.thalia").write_bytes(damaged)
    write_index(tmp_path, "thalia", {"w": "a.thalia"})
    assert thalia.open(tmp_path, verification="off")["w"].numpy()[0] == 0
    with pytest.raises(thalia.IntegrityError):
        thalia.open(tmp_path)["w"].numpy()
    with pytest.raises(thalia.IntegrityError):
        thalia.open(tmp_path, verification="at_open")


def test_of_a_folder_the_first_name_that_is_there_is_opened(tmp_path):
    with pytest.raises(thalia.MissingFileError, match=r"search for model\.thalia, .* in this folder") as caught:
        thalia.open(tmp_path)
    assert isinstance(caught.value, FileNotFoundError)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(tmp_path))
    save_file({"of": np.array([3])}, tmp_path / "part.safetensors")
    write_index(tmp_path, "safetensors", {"of": "part.safetensors"})
    assert load_file(tmp_path)["of"] == 3
    save_file({"of": np.array([2])}, tmp_path / "model.safetensors")
    assert thalia.open(tmp_path).format == "safetensors"
    assert load_file(tmp_path)["of"] == 2
    save_file({"of": np.array([1])}, tmp_path / "part.thalia")
    write_index(tmp_path, "thalia", {"of": "part.thalia"})
    assert load_file(tmp_path)["of"] == 1
    save_file({"of": np.array([0])}, tmp_path / "model.thalia")
    assert isinstance(thalia.open(tmp_path), thalia.File)
    assert load_file(tmp_path)["of"] == 0


def refused(path, tensor, says):
    with pytest.raises(thalia.FormatError) as caught, thalia.open(path) as file:
        for each in file.values():
            each.numpy()
    error = caught.value
    assert error.section == "index" and error.tensor == tensor
    assert says in str(error)
    return error


def test_names_that_do_not_agree_are_told(model):
    folder, kind, index = model
    right = {name: shard(number, kind) for name, number in MAP.items()}
    # In another file than the index says.
    write_index(folder, kind, {**right, "embed.weight": shard(2, kind)})
    places = f"the tensor is in {shard(1, kind)}, and the index places it in {shard(2, kind)}"
    error = refused(folder, "embed.weight", places)
    assert error.path == str(index)
    # In none.
    write_index(folder, kind, {**right, "more": shard(1, kind)})
    refused(folder, "more", f"{shard(1, kind)} has no such tensor, which the index places there")
    # Not in the index.
    write_index(folder, kind, {name: its for name, its in right.items() if name != "layers.0.bias"})
    refused(folder, "layers.0.bias", f"{shard(2, kind)} has a tensor that the index lacks")
    # In two files.
    both = {name: ARRAYS[name] for name in ("embed.weight", "layers.0.bias", "layers.0.weight")}
    save_file(both, folder / shard(2, kind))
    write_index(folder, kind, right)
    says = f"the tensor is in {shard(1, kind)} and in {shard(2, kind)}"
    with pytest.raises(thalia.FormatError, match=re.escape(says)):
        thalia.open(folder)


@pytest.mark.parametrize(
    "name",
    [
        "../out.safetensors",
        "/out.safetensors",
        "a/out.safetensors",
        "..",
        ".",
        "",
        "out",
        "out.bin",
        "out.safetensors/",
    ],
)
def test_a_name_that_is_no_file_of_the_folder_is_refused(tmp_path, name):
    save_file({"w": np.zeros(1)}, tmp_path / "out.safetensors")
    (tmp_path / "a").mkdir()
    write_index(tmp_path / "a", "safetensors", {"w": name})
    refused(tmp_path / "a", "w", "in the index's folder" if name != "out.bin" else "PyTorch")


@pytest.mark.parametrize("name", ["\0.thalia", "\ud800.thalia", "a\n.thalia", 1, None, ["a.thalia"], {}])
def test_a_name_that_is_no_plain_text_is_refused(tmp_path, name):
    write_index(tmp_path, "thalia", {"w": name})
    with pytest.raises(thalia.FormatError, match=r"weight_map \(tensor 'w'\): got |bad JSON"):
        thalia.open(tmp_path)


def test_a_file_may_be_a_link_but_no_pipe(model):
    # Caches of models keep the files elsewhere.
    folder, kind, _ = model
    elsewhere = (folder / shard(1, kind)).rename(folder / "elsewhere")
    (folder / shard(1, kind)).symlink_to(elsewhere)
    assert_same(load_file(folder))
    (folder / shard(1, kind)).unlink()
    os.mkfifo(folder / shard(1, kind))
    with pytest.raises(thalia.FormatError, match="the index names this file: not a regular file"):
        load_file(folder)


def test_an_index_that_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "model.thalia.index.json")
    with pytest.raises(thalia.UsageError, match="not a regular file"):
        thalia.open(tmp_path)
    with pytest.raises(thalia.MissingFileError):
        thalia.open(tmp_path / "other.safetensors.index.json")


def test_an_index_has_a_bounded_size(tmp_path):
    index = tmp_path / "model.thalia.index.json"
    with index.open("wb") as file:
        file.truncate(1 << 40)  # a hole
    with pytest.raises(thalia.FormatError, match=r"max_json_bytes exceeded.* got 1099511627776") as caught:
        thalia.open(tmp_path)
    assert caught.value.code == "limit_exceeded"


@pytest.mark.parametrize(
    "content",
    ["", "[]", "3", "null", "{}", '{"weight_map": []}', '{"weight_map": {}, "metadata": NaN}', "[" * 100_000,
     '{"weight_map": {"w": "a.thalia", "w": "b.thalia"}}', '{"weight_map": {}, "weight_map": {}}', "\xff", "1" * 5000,
     '{"weight_map": {}, "metadata": {"a": "\\ud800"}}', '{"weight_map": {"a": "a.thalia", "b": "b.safetensors"}}'],
)  # fmt: skip
def test_an_index_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "model.thalia.index.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(thalia.FormatError, match=r"index\.json: index"):
        thalia.open(tmp_path)
    with pytest.raises(thalia.FormatError, match=r"index\.json: index"):
        thalia.convert(tmp_path, tmp_path / "out.npz")


@pytest.mark.parametrize("metadata", ["null", "[1]", "3", '"text"'])
def test_metadata_of_an_index_may_be_anything(model, metadata):
    folder, _, index = model
    content = json.loads(index.read_text())
    index.write_text(json.dumps({**content, "metadata": json.loads(metadata)}))
    with thalia.open(folder) as file:
        assert_same({name: tensor.numpy() for name, tensor in file.items()})
    thalia.convert(folder, folder / "out.npz")
    with np.load(folder / "out.npz") as arrays:
        assert_same(dict(arrays))


def test_python_and_the_library_open_the_same_of_a_folder(tmp_path):
    # Every set of the four names: what open() reads is what convert() and verify() read.
    names = ["model.thalia", "model.thalia.index.json", "model.safetensors", "model.safetensors.index.json"]
    for chosen in range(1, 16):
        folder = tmp_path / str(chosen)
        folder.mkdir()
        there = [i for i in range(4) if chosen >> i & 1]
        for i in there:
            kind = "thalia" if i < 2 else "safetensors"
            if i % 2 == 0:
                save_file({"of": np.array([i])}, folder / names[i])
            else:
                save_file({"of": np.array([i])}, folder / f"part-{i}.{kind}")
                write_index(folder, kind, {"of": f"part-{i}.{kind}"})
        assert load_file(folder)["of"] == there[0]
        thalia.convert(folder, tmp_path / f"{chosen}.npz")
        with np.load(tmp_path / f"{chosen}.npz") as arrays:
            assert arrays["of"] == there[0]
        assert thalia.info(folder).disk_bytes == thalia.info(folder / names[there[0]]).disk_bytes
        assert thalia.verify(folder).ok
        assert thalia.diff(folder, folder / names[there[0]]).same


def test_an_index_that_is_cut_short_is_refused_at_every_length(model):
    _, _, index = model
    whole = index.read_bytes()
    for length in range(len(whole)):
        index.write_bytes(whole[:length])
        with pytest.raises(thalia.FormatError):
            thalia.open(index)


def test_an_index_with_another_member_is_the_model_or_refused(model):
    # Any byte of it may be another one: what opens gives the tensors that the files have.
    folder, _, index = model
    whole = index.read_bytes()
    opened = 0
    for position in range(len(whole)):
        for byte in (b'"', b"0", b"/", b"}"):
            index.write_bytes(whole[:position] + byte + whole[position + 1 :])
            try:
                assert_same(load_file(folder))
                opened += 1
            except (thalia.FormatError, thalia.MissingFileError):
                pass
    assert 0 < opened < len(whole)
