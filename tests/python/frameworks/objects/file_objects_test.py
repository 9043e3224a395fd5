"""save() and load() of file objects, and what torch.load() is called with: map_location, weights_only."""

import errno
import gc
import gzip
import io
import os
import tempfile

import fsspec
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from states import same_state as same

STATE = {"model": {"w": torch.arange(6.0).reshape(2, 3)}, "step": 3, "names": ["a", ("b",)], "big": torch.ones(70_000)}


class Out:
    """A file object that is written to, and nothing else."""

    def __init__(self, most=None, gives=lambda taken: taken):
        self.data, self._most, self._gives = b"", most, gives

    def write(self, data):
        assert type(data) is bytes
        taken = data[: self._most]
        self.data += taken
        return self._gives(len(taken))


class In:
    """A file object that is read, a little at a time."""

    def __init__(self, data):
        self._stream = io.BytesIO(data)

    def read(self, size=-1):
        return self._stream.read(min(size, 1000))


def test_a_state_goes_through_every_kind_of_file_object(tmp_path):
    data = thalia_torch.save(STATE, format="thalia")
    buffer = io.BytesIO()
    assert thalia_torch.save(STATE, buffer) is None
    assert buffer.tell() == len(buffer.getvalue()) and not buffer.closed
    buffer.seek(0)
    assert same(thalia_torch.load(buffer), STATE) and buffer.read() == b""
    buffer.write(b"more")  # nobody holds its memory
    with open(tmp_path / "a", "wb") as file:
        thalia_torch.save(STATE, file)
    assert len((tmp_path / "a").read_bytes()) == len(data)
    for buffering in (-1, 0):
        with open(tmp_path / "a", "rb", buffering=buffering) as file:
            assert same(thalia_torch.load(file), STATE)
            assert file.read() == b"" and not file.closed
    for temporary in (tempfile.TemporaryFile, tempfile.NamedTemporaryFile, tempfile.SpooledTemporaryFile):
        with temporary() as file:
            thalia_torch.save(STATE, file)
            file.seek(0)
            assert same(thalia_torch.load(file), STATE) and file.read() == b""
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        thalia_torch.save(STATE, file)
    with gzip.open(tmp_path / "a.gz") as file:
        assert same(thalia_torch.load(file), STATE)
    with fsspec.open("memory://folder/a.thalia", "wb") as file:
        thalia_torch.save(STATE, file, compression="zstd")
    with fsspec.open("memory://folder/a.thalia", "rb") as file:
        assert same(thalia_torch.load(file, "cpu", weights_only=True), STATE)
    with fsspec.open(f"file://{tmp_path}/b.thalia", "wb") as file:
        thalia_torch.save(STATE, file)
    with fsspec.open(f"file://{tmp_path}/b.thalia", "rb") as file:
        assert same(thalia_torch.load(file, mmap=True), STATE)
    assert same(thalia_torch.load(In(data)), STATE)


def test_it_is_read_and_written_from_where_it_stands(tmp_path):
    buffer = io.BytesIO()
    buffer.write(b"head")
    thalia_torch.save(STATE, buffer)
    data = buffer.getvalue()
    for source in (buffer, open(tmp_path / "a", "w+b")):
        source.seek(0)
        source.write(data)
        source.seek(4)
        assert same(thalia_torch.load(source), STATE) and source.read() == b""
        source.seek(3)
        with pytest.raises(thalia.FormatError, match=r"the (bytes|file)"):
            thalia_torch.load(source)
        source.close()


def test_what_was_written_and_not_flushed_is_read(tmp_path):
    data = thalia_torch.save({"a": 1}, format="thalia")
    with open(tmp_path / "a", "w+b", buffering=1 << 20) as file:
        file.write(data)
        file.seek(0)
        assert thalia_torch.load(file) == {"a": 1}


def test_files_of_torch_are_read_from_file_objects():
    buffer = io.BytesIO()
    torch.save(STATE, buffer)
    buffer.seek(0)
    assert same(thalia_torch.load(buffer, map_location="cpu", weights_only=False), STATE)


@pytest.mark.parametrize("out", [Out(), Out(1000), Out(None, lambda taken: None)])
def test_a_file_object_needs_write_alone_and_may_take_less(out):
    thalia_torch.save(STATE, out)
    assert same(thalia_torch.load(out.data), STATE)


def test_a_pipe_is_written_and_read():
    state = {"a": torch.arange(100)}
    reading, writing = os.pipe()
    with open(writing, "wb", buffering=0) as file:
        thalia_torch.save(state, file)  # less than a pipe holds
    with open(reading, "rb") as file:
        assert same(thalia_torch.load(file), state)


def test_what_a_file_object_raises_goes_through(tmp_path):
    class Full(Out):
        def write(self, data):
            raise OSError(errno.ENOSPC, "no room")

    class Broken:
        def read(self, size):
            raise KeyError("lost")

    with pytest.raises(OSError, match="no room") as caught:
        thalia_torch.save(STATE, Full())
    assert type(caught.value) is OSError
    with pytest.raises(KeyError, match="lost"):
        thalia_torch.load(Broken())
    with pytest.raises(thalia.IoError, match="took 0 of"):
        thalia_torch.save(STATE, Out(0))
    with pytest.raises(ValueError, match="closed file"):
        closed = io.BytesIO()
        closed.close()
        thalia_torch.save(STATE, closed)
    with pytest.raises(ValueError, match="closed file"):
        thalia_torch.load(closed)
    with open(tmp_path / "t", "w+") as text:
        with pytest.raises(TypeError, match="str"):
            thalia_torch.save(STATE, text)
        text.write("text")
        text.seek(0)
        with pytest.raises(TypeError, match="binary mode"):
            thalia_torch.load(text)
    with open(tmp_path / "t", "wb") as file, pytest.raises(io.UnsupportedOperation):
        thalia_torch.load(file)
    with open(tmp_path / "t", "rb") as file, pytest.raises(io.UnsupportedOperation):
        thalia_torch.save(STATE, file)


def test_one_that_would_block_is_an_error():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)
    with open(writing, "wb", buffering=0) as out, open(reading, "rb", buffering=0) as source:
        with pytest.raises(BlockingIOError):
            thalia_torch.load(source)
        with pytest.raises(BlockingIOError):
            thalia_torch.save(STATE, out)


def test_an_object_that_is_refused_writes_nothing():
    out = Out()
    with pytest.raises(thalia.UnsupportedError, match="f: cannot save"):
        thalia_torch.save({"f": len}, out)
    with pytest.raises(TypeError, match="did you mean 'compression'"):
        thalia_torch.save(STATE, out, compresion="zstd")
    assert out.data == b""


def test_damage_is_told_by_the_name_of_the_file(tmp_path):
    data = bytearray(thalia_torch.save(STATE, format="thalia"))
    data[len(data) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with open(tmp_path / "damaged", "rb") as file, pytest.raises(thalia.IntegrityError, match="damaged") as caught:
        thalia_torch.load(file)
    assert "/proc/" not in str(caught.value)
    with pytest.raises(thalia.IntegrityError) as caught:
        thalia_torch.load(io.BytesIO(data))
    assert "/proc/" not in str(caught.value)


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_nothing_stays_open():
    before = descriptors()
    data = thalia_torch.save(STATE, format="thalia")
    for _ in range(3):
        thalia_torch.save(STATE, io.BytesIO())
        thalia_torch.load(io.BytesIO(data))
        with pytest.raises(thalia.FormatError):
            thalia_torch.load(io.BytesIO(data[:100]))
    assert descriptors() == before


def test_map_location_is_that_of_torch(tmp_path):
    shared = torch.arange(10.0)
    state = {"head": shared[:6], "tail": shared[4:], "p": torch.nn.Parameter(torch.ones(2)), "n": torch.ones(3), "x": 1}
    path = tmp_path / "s.thalia"
    thalia_torch.save(state, path)
    for where in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, {"cuda:0": "cuda:1"}, {}, lambda storage, tag: storage):
        assert same(thalia_torch.load(path, map_location=where), state), where
    for where in ("meta", torch.device("meta"), {"cpu": "meta"}):
        found = thalia_torch.load(path, where)
        assert found["p"].is_meta and isinstance(found["p"], torch.nn.Parameter) and found["x"] == 1
    told = []

    def moved(storage, tag):
        told.append((storage.nbytes(), tag))
        return None if storage.nbytes() == 12 else storage.clone()

    for mmap in (False, True):
        told.clear()
        found = thalia_torch.load(path, map_location=moved, mmap=mmap)
        assert same(found, state) and sorted(told) == [(8, "cpu"), (12, "cpu"), (40, "cpu")]
        found["head"][5] = 77
        assert found["tail"][1] == 77
    assert thalia_torch.load(
        path, map_location=lambda storage, tag: torch.UntypedStorage(storage.nbytes(), device="meta")
    )["n"].is_meta


def test_a_map_location_that_cannot_be_is_refused(tmp_path):
    path = tmp_path / "s.thalia"
    thalia_torch.save(STATE, path)
    with pytest.raises(thalia.UsageError, match="expected one of them"):
        thalia_torch.load(path, "cpu", device="cpu")
    for wrong in (3, ["cpu"]):
        with pytest.raises(thalia.UsageError, match="expected a device, a dictionary"):
            thalia_torch.load(path, wrong)
    with pytest.raises(RuntimeError):
        thalia_torch.load(path, "gpu9")


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), KeyError("x"), MemoryError()], ids=repr)
@pytest.mark.parametrize("name", ["s.thalia", "s.safetensors"])
def test_what_a_map_location_raises_goes_through(error, name, tmp_path):
    def fails(storage, tag):
        raise error

    thalia_torch.save({"a": torch.ones(2)}, tmp_path / "s.thalia")
    thalia_torch.save_file({"a": torch.ones(2)}, tmp_path / "s.safetensors")
    with pytest.raises(type(error)) as caught:
        thalia_torch.load(tmp_path / name, map_location=fails)
    assert caught.value is error


@pytest.mark.parametrize("weights_only", [True, False, None])
def test_weights_only_changes_nothing(weights_only, tmp_path, recwarn):
    path = tmp_path / "s.thalia"
    thalia_torch.save(STATE, path)
    assert same(thalia_torch.load(path, weights_only=weights_only, mmap=None), STATE) and not recwarn.list


def test_metadata_are_in_the_file_and_not_in_the_state(tmp_path):
    path = tmp_path / "s.thalia"
    facts = {"run": "7", "loss": 0.5, "tags": ["a", {"b": None}], "thalia": 1}
    thalia_torch.save(STATE, path, metadata=facts)
    assert same(thalia_torch.load(path), STATE)
    found = thalia.open(path).metadata
    assert {name: found[name] for name in facts} == facts and "thalia_checkpoint" in found
    buffer = io.BytesIO()
    thalia_torch.save(torch.nn.Linear(2, 2), buffer, metadata=facts)
    (tmp_path / "b").write_bytes(buffer.getvalue())
    assert thalia.open(tmp_path / "b").metadata["loss"] == 0.5
    for name in ("thalia_checkpoint", "pt"):
        with pytest.raises(thalia.UsageError, match=f"a member '{name}'"):
            thalia_torch.save(STATE, path, metadata={name: 1})
    with pytest.raises(TypeError, match="JSON"):
        thalia_torch.save(STATE, path, metadata={"a": torch.ones(1)})
    assert same(thalia_torch.load(path), STATE)


def test_convert_gives_what_is_saved_instead(tmp_path):
    class Schedule:
        factor = 0.5

    asked = []

    def convert(value):
        asked.append(type(value).__name__)
        return vars(type(value)).get("factor") if isinstance(value, Schedule) else None

    path = tmp_path / "s.thalia"
    state = {"a": [Schedule(), 1, 2.5, "x", 2**60, None, torch.ones(1)], "b": torch.nn.Linear(1, 1, bias=False)}
    thalia_torch.save(state, path, convert=convert)
    assert thalia_torch.load(path)["a"][0] == 0.5 and asked == ["Schedule"]
    assert thalia_torch.load(thalia_torch.save(Schedule(), format="thalia", convert=convert)) == 0.5
    with pytest.raises(thalia.UnsupportedError, match=r"a.1: cannot save .*range"):
        thalia_torch.save({"a": [Schedule(), range(2)]}, path, convert=convert)
    with pytest.raises(thalia.UnsupportedError, match="holds itself"):
        thalia_torch.save(Schedule(), path, convert=lambda value: value)
    with pytest.raises(ZeroDivisionError):
        thalia_torch.save(Schedule(), path, convert=lambda value: 1 / 0)
    assert thalia_torch.load(path)["a"][0] == 0.5


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("mmap", [False, True])
def test_a_module_is_filled_from_what_has_no_path(assign, mmap, tmp_path):
    wanted = torch.nn.Linear(300, 200)
    thalia_torch.save(wanted, tmp_path / "m.thalia")
    data = (tmp_path / "m.thalia").read_bytes()
    with open(tmp_path / "m.thalia", "rb") as opened, fsspec.open(f"file://{tmp_path}/m.thalia", "rb") as remote:
        behind = io.BytesIO(b"head" + data)
        behind.seek(4)
        for source in (data, bytearray(data), io.BytesIO(data), behind, opened, remote, In(data)):
            module = torch.nn.Linear(300, 200)
            report = thalia_torch.load_into(module, source, assign=assign, mmap=assign and mmap)
            assert report.fits and same(dict(module.state_dict()), dict(wanted.state_dict()))
    module = torch.nn.Linear(300, 200)
    thalia_torch.load_into(module, io.BytesIO(data), assign=assign, mmap=assign and mmap)
    gc.collect()  # what it lies in stays
    assert same(dict(module.state_dict()), dict(wanted.state_dict()))
    with pytest.raises(thalia.UsageError) as caught:
        thalia_torch.load_into(torch.nn.Linear(3, 2), io.BytesIO(data))
    assert "/proc/" not in str(caught.value) and str(caught.value).startswith("the bytes: does not fit")
    with pytest.raises(thalia.FormatError, match="the bytes"):
        thalia_torch.load_into(module, b"no checkpoint at all, and long enough to be looked at by all readers" * 9)
