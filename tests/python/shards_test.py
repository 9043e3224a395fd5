"""Models in several files, open as one by their index."""

import errno
import json
import os

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
    folder, _, index = model
    for path in (folder, str(folder), index):
        with thalia.open(path) as file:
            assert isinstance(file, thalia.ShardedFile)
            assert list(file) == list(file.tensors) == list(MAP)
            assert len(file) == 4 and file.metadata == {"total_size": 100}
            assert_same({name: tensor.numpy() for name, tensor in file.items()})
            assert "nothing" not in file
            with pytest.raises(KeyError, match="nothing: no such tensor"):
                file["nothing"]
    assert_same(load_file(folder))
    assert_same(load_file(index, mmap=True))


def test_parts_of_it_are_read_by_safe_open(model):
    folder, _, _ = model
    with thalia.safe_open(folder, framework="np") as file:
        assert file.keys() == sorted(MAP) and file.offset_keys() == list(MAP)
        assert file.metadata() == {"total_size": "100"}
        np.testing.assert_array_equal(file.get_tensor("embed.weight"), ARRAYS["embed.weight"])
        np.testing.assert_array_equal(file.get_slice("layers.0.weight")[:, 1:], ARRAYS["layers.0.weight"][:, 1:])


def test_a_file_is_opened_when_one_of_its_tensors_is_asked_for(model):
    folder, kind, _ = model
    (folder / shard(2, kind)).unlink()
    with thalia.open(folder) as file:
        np.testing.assert_array_equal(file["embed.weight"].numpy(), ARRAYS["embed.weight"])
        with pytest.raises(thalia.MissingFileError, match=shard(2, kind)):
            file["layers.0.bias"]


def test_arrays_stay_when_it_is_closed(model):
    folder, _, _ = model
    file = thalia.open(folder)
    array = file["embed.weight"].numpy()
    file.close()
    assert len(file) == 0 and list(file) == []
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
        thalia.open(tmp_path, verification="at_open")["w"]


def test_of_a_folder_the_first_name_that_is_there_is_opened(tmp_path):
    with pytest.raises(thalia.MissingFileError, match=r"expected model\.thalia, .* in it") as caught:
        thalia.open(tmp_path)
    assert isinstance(caught.value, FileNotFoundError)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(tmp_path))
    save_file({"of": np.array([3])}, tmp_path / "part.safetensors")
    write_index(tmp_path, "safetensors", {"of": "part.safetensors"})
    assert load_file(tmp_path)["of"] == 3
    save_file({"of": np.array([2])}, tmp_path / "model.safetensors")
    assert isinstance(thalia.open(tmp_path), thalia.SafetensorsFile)
    assert load_file(tmp_path)["of"] == 2
    save_file({"of": np.array([1])}, tmp_path / "part.thalia")
    write_index(tmp_path, "thalia", {"of": "part.thalia"})
    assert load_file(tmp_path)["of"] == 1
    save_file({"of": np.array([0])}, tmp_path / "model.thalia")
    assert isinstance(thalia.open(tmp_path), thalia.File)
    assert load_file(tmp_path)["of"] == 0


def refused(path, field, value, expected):
    with pytest.raises(thalia.FormatError) as caught, thalia.open(path) as file:
        for tensor in file.values():
            tensor.numpy()
    error = caught.value
    assert (error.field, error.value) == (field, value)
    assert expected in error.expected
    assert str(error) == f"{error.path}: {field}: got {value}, expected {error.expected}"
    return error


def test_names_that_do_not_agree_are_told(model):
    folder, kind, index = model
    right = {name: shard(number, kind) for name, number in MAP.items()}
    # In another file than the index says.
    write_index(folder, kind, {**right, "embed.weight": shard(2, kind)})
    error = refused(folder, "weight_map.embed.weight", shard(2, kind), "the file that has this tensor")
    assert error.path == str(index)
    # In none.
    write_index(folder, kind, {**right, "more": shard(1, kind)})
    refused(folder, "weight_map.more", shard(1, kind), "the file that has this tensor")
    # Not in the index.
    write_index(folder, kind, {name: its for name, its in right.items() if name != "layers.0.bias"})
    refused(folder, "weight_map.layers.0.bias", "None", f"{shard(2, kind)}, which has this tensor")
    # In two files.
    both = {name: ARRAYS[name] for name in ("embed.weight", "layers.0.bias", "layers.0.weight")}
    save_file(both, folder / shard(2, kind))
    write_index(folder, kind, right)
    with thalia.open(folder) as file, pytest.raises(thalia.FormatError, match=r"weight_map\.embed\.weight: got .*1-of"):
        file["layers.0.bias"]


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
    refused(tmp_path / "a", "weight_map.w", name, "of the folder")


@pytest.mark.parametrize("name", ["\0.thalia", "\ud800.thalia", "a\n.thalia", 1, None, ["a.thalia"], {}])
def test_a_name_that_is_no_plain_text_is_refused(tmp_path, name):
    write_index(tmp_path, "thalia", {"w": name})
    with pytest.raises(thalia.FormatError, match=r"weight_map\.w: got "):
        thalia.open(tmp_path)


def test_a_file_may_be_a_link_but_no_pipe(model):
    # Caches of models keep the files elsewhere.
    folder, kind, _ = model
    elsewhere = (folder / shard(1, kind)).rename(folder / "elsewhere")
    (folder / shard(1, kind)).symlink_to(elsewhere)
    assert_same(load_file(folder))
    (folder / shard(1, kind)).unlink()
    os.mkfifo(folder / shard(1, kind))
    with pytest.raises(thalia.UsageError, match="not a regular file"):
        load_file(folder)


def test_an_index_that_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "model.thalia.index.json")
    with pytest.raises(thalia.FormatError, match=r"type: got prw.*expected a regular file"):
        thalia.open(tmp_path)
    with pytest.raises(thalia.MissingFileError):
        thalia.open(tmp_path / "other.safetensors.index.json")


def test_an_index_has_a_bounded_size(tmp_path):
    index = tmp_path / "model.thalia.index.json"
    with index.open("wb") as file:
        file.truncate(1 << 40)  # a hole
    with pytest.raises(thalia.FormatError, match="size: got 1099511627776 bytes, expected at most 100000000") as caught:
        thalia.open(tmp_path)
    assert caught.value.code == "limit_exceeded"


@pytest.mark.parametrize(
    "content",
    ["", "[]", "3", "null", "{}", '{"weight_map": []}', '{"weight_map": {}, "metadata": 3}', "[" * 100_000,
     '{"weight_map": {"w": "a.thalia", "w": "b.thalia"}}', '{"weight_map": {}, "weight_map": {}}', "\xff", "1" * 5000],
)  # fmt: skip
def test_an_index_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "model.thalia.index.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(
        thalia.FormatError, match=r"index\.json: (JSON|metadata|weight_map): got .*, expected an object"
    ):
        thalia.open(tmp_path)


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
