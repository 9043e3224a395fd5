"""The metadata of distributed checkpoints, and how their folders are replaced: without torch."""

import copy
import fcntl
import hashlib
import itertools
import json
import os
import random
import time
import traceback

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint._core import write_text
from thalia_checkpoint._distributed import folder as _dcp_folder
from thalia_checkpoint._distributed import metadata as _dcp_metadata
from thalia_checkpoint._distributed import parse as _dcp_parse
from thalia_checkpoint._distributed.metadata import Chunk, Document, StoredFile, StoredTensor, StoredValue

FILES = [StoredFile("rank-0.thalia", 4096, "ab"), StoredFile("rank-12.thalia", 8192, "cd")]
DOCUMENT = Document(
    FILES,
    {
        "model.w": StoredTensor(
            "f32",
            (4, 3),
            [Chunk((0, 0), (1, 3), FILES[0], "model", "w@0,0"), Chunk((1, 0), (3, 3), FILES[1], "model", "w@1,0")],
        ),
        "scalar": StoredTensor("i64", (), [Chunk((), (), FILES[0], "model", "scalar")]),
        "empty": StoredTensor("bf16", (0, 4), [Chunk((0, 0), (0, 4), FILES[1], "model", "empty")]),
    },
    {"step": StoredValue(7, None, ""), "rng": StoredValue({"tuple": ["a", {"array": "rng.1"}]}, FILES[0], "values")},
    {"model.w": ("model", "w"), "step": ("steps", 0), "rng": ("rng",)},
)


def sealed(content):
    body = json.dumps({key: value for key, value in content.items() if key != "sha256"})[:-1].encode()
    return body + f', "sha256": "{hashlib.sha256(body).hexdigest()}"}}\n'.encode()


def test_metadata_come_back():
    assert _dcp_parse.from_bytes(_dcp_metadata.to_bytes(DOCUMENT), "x") == DOCUMENT
    assert sealed(json.loads(_dcp_metadata.to_bytes(DOCUMENT))) == _dcp_metadata.to_bytes(DOCUMENT)


def test_each_damaged_byte_is_found():
    data = _dcp_metadata.to_bytes(DOCUMENT)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(thalia.FormatError, match="sha256"):
            _dcp_parse.from_bytes(bytes(damaged), "x")
    for end in (0, 1, 78, len(data) - 1):
        with pytest.raises(thalia.FormatError, match="sha256"):
            _dcp_parse.from_bytes(data[:end], "x")


W = ("tensors", "model.w")


@pytest.mark.parametrize(
    ("place", "value", "field"),
    [
        (("format",), "other", "format: got other"),
        (("version",), 2, "version: got 2, expected 1"),
        (("version",), True, "version"),
        (("files", 0, "name"), "../rank-0.thalia", r"files\[0\].name: got ../rank-0.thalia"),
        (("files", 0, "name"), "/etc/rank-0.thalia", r"files\[0\].name"),
        (("files", 0, "name"), "rank-0.thalia/x", r"files\[0\].name"),
        (("files", 0, "name"), "rank-12.thalia", "files: got .*each name once"),
        (("files", 0, "bytes"), -1, r"files\[0\].bytes: got -1"),
        (("files", 0, "bytes"), 1e3, r"files\[0\].bytes"),
        (("files", 0, "bytes"), 1 << 70, r"files\[0\].bytes"),
        (("files", 0, "uuid"), None, r"files\[0\].uuid: got None, expected a text"),
        (("files",), {}, "files: got {}, expected a list"),
        (("tensors",), [], "tensors: .*an object"),
        ((*W, "dtype"), "f33", "tensors.model.w.dtype: got f33"),
        ((*W, "dtype"), "i4", "tensors.model.w.dtype"),
        ((*W, "shape"), [4, -3], "tensors.model.w.shape: got -3"),
        ((*W, "shape"), [4, 3.0], "tensors.model.w.shape"),
        ((*W, "shape"), [1 << 62, 1 << 62], "tensors.model.w.shape: .*2.63 bytes"),
        ((*W, "shape"), [1] * 65, "64 dimensions"),
        ((*W, "shape"), [5, 3], "cover"),
        ((*W, "shape"), [4, 3, 1], "3 dimensions"),
        ((*W, "chunks"), [], "cover"),
        ((*W, "chunks", 1, "offset"), [2, 0], r"chunks\[1\].offset: got \(2, 0\), expected a part of"),
        ((*W, "chunks", 1, "offset"), [0, 0], "each element once"),
        ((*W, "chunks", 0, "shape"), [2, 3], "each element once"),
        ((*W, "chunks", 1, "file"), 2, r"chunks\[1\].file: got 2, expected a place in files, of which there are 2"),
        ((*W, "chunks", 1, "name"), 5, r"chunks\[1\].name"),
        ((*W, "chunks", 1, "more"), 5, r"chunks\[1\]: .*expected an object with"),
        (("values", "scalar"), {"tree": 1}, "names that are no tensor's"),
        (("values", "step"), {}, "values.step"),
        (("values", "rng", "file"), "0", "values.rng.file"),
        (("values", "rng", "region"), None, "values.rng.region"),
        (("paths", "model.w"), [], "paths.model.w"),
        (("paths", "model.w"), ["x"] * 81, "paths.model.w"),
        (("paths", "model.w"), [0, "w"], "paths.model.w"),
        (("paths", "step"), ["steps", 1 << 40], "paths.step: got 1099511627776, expected an index under"),
        (("paths", "step"), ["steps", -1], "paths.step"),
        (("paths", "step"), ["steps", None], "paths.step"),
        (("paths", "other"), ["other"], "paths.other"),
        (("paths",), 5, "paths: got 5"),
    ],
)
def test_each_value_is_checked(place, value, field):
    content = json.loads(_dcp_metadata.to_bytes(DOCUMENT))
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(thalia.FormatError, match=field) as caught:
        _dcp_parse.from_bytes(sealed(content), "some/checkpoint.json")
    assert caught.value.path == "some/checkpoint.json" and caught.value.field and caught.value.expected


def test_deep_and_broken_json_is_an_error():
    content = json.loads(_dcp_metadata.to_bytes(DOCUMENT))
    node = None
    for _ in range(300):
        node = {"list": [node]}
    content["values"]["step"]["tree"] = node
    with pytest.raises(thalia.FormatError, match=r"values\.step: got 257, expected at most 256 levels"):
        _dcp_parse.from_bytes(sealed(content), "x")
    for body in (b'{"a": ' + b"[" * 100_000, b"nothing", b'{"a": "\xff"', b"[1]"):
        data = body + f', "sha256": "{hashlib.sha256(body).hexdigest()}"}}\n'.encode()
        with pytest.raises(thalia.FormatError, match=r"JSON|the file"):
            _dcp_parse.from_bytes(data, "x")


def test_random_changes_are_errors_or_documents():
    """What passes the checks is safe to use: every chunk lies in its tensor, every file in the folder."""
    rng = random.Random(5)
    content = json.loads(_dcp_metadata.to_bytes(DOCUMENT))
    odd = [None, -1, 0, 1, 2, 1 << 63, 0.5, "", "..", [], {}, [0], True, {"tree": {"list": 5}}]
    passed = 0
    for _ in range(3000):
        changed = copy.deepcopy(content)
        inner = changed
        while True:
            key = rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
            if isinstance(inner[key], dict | list) and inner[key] and rng.random() < 0.8:
                inner = inner[key]
                continue
            inner[key] = rng.choice(odd)
            break
        try:
            document = _dcp_parse.from_bytes(sealed(changed), "x")
        except thalia.FormatError:
            continue
        passed += 1
        for tensor in document.tensors.values():
            count = np.zeros(tensor.shape, int)
            for chunk in tensor.chunks:
                assert chunk.file in document.files and "/" not in chunk.file.name
                count[tuple(slice(b, b + n) for b, n in zip(chunk.offset, chunk.shape, strict=True))] += 1
            assert (count == 1).all()
    assert 0 < passed < 1500


def test_boxes_cover_a_shape_or_not():
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(3000):
        shape = tuple(int(n) for n in rng.integers(0, 4, rng.integers(0, 4)))
        # Cuts along each dimension give a cover; a change of one box mostly breaks it.
        boxes = [((0,) * len(shape), shape)]
        for d in range(len(shape)):
            if shape[d] > 1 and rng.random() < 0.7:
                cut = int(rng.integers(1, shape[d]))
                boxes = [
                    ((*o[:d], o[d] + low, *o[d + 1 :]), (*e[:d], high - low, *e[d + 1 :]))
                    for o, e in boxes
                    for low, high in ((0, cut), (cut, shape[d]))
                ]
        if shape and rng.random() < 0.6:
            i, d = int(rng.integers(len(boxes))), int(rng.integers(len(shape)))
            o, e = boxes[i]
            moved = int(rng.integers(0, shape[d] - e[d] + 1))
            boxes[i] = ((*o[:d], moved, *o[d + 1 :]), e)
        count = np.zeros(shape, int)
        for o, e in boxes:
            count[tuple(slice(b, b + n) for b, n in zip(o, e, strict=True))] += 1
        covered = bool((count == 1).all())
        assert _dcp_parse.covers(shape, boxes) == covered
        seen.add(covered)
    assert seen == {True, False}


def grid(rank, n):
    """As many boxes as n to the power of rank."""
    return [(place, (1,) * rank) for place in itertools.product(range(n), repeat=rank)]


def test_boxes_that_no_plane_cuts_apart_cover_a_shape():
    wheel = [((0, 0), (1, 2)), ((0, 2), (2, 1)), ((2, 1), (1, 2)), ((1, 0), (2, 1)), ((1, 1), (1, 1))]
    assert _dcp_parse.covers((3, 3), wheel)
    assert not _dcp_parse.covers((3, 3), [*wheel[:4], ((1, 0), (1, 1))])


@pytest.mark.parametrize(("rank", "n"), [(1, 20_000), (2, 140), (12, 2), (6, 5), (3, 27)])
def test_work_on_boxes_grows_with_their_number(rank, n):
    """In every dimension they begin at few places, so that none of these tells many of them apart."""
    boxes = grid(rank, n)
    random.Random(3).shuffle(boxes)
    began = time.process_time()
    assert _dcp_parse.covers((n,) * rank, boxes)
    assert not _dcp_parse.covers((n,) * rank, [*boxes[1:], boxes[1]])
    assert time.process_time() - began < 4


def staircase(n):
    """A row, a column of what is left, a row of what is left: each cut takes one box off."""
    for i in range(n):
        yield (i, i), (1, n - i)
        if i + 1 < n:
            yield (i + 1, i), (n - i - 1, 1)


def test_boxes_in_each_others_way_are_refused_before_long():
    assert _dcp_parse.covers((20, 20), [*staircase(20)])
    content = json.loads(_dcp_metadata.to_bytes(DOCUMENT))
    chunks = [{"offset": o, "shape": e, "file": 0, "region": "m", "name": "w"} for o, e in staircase(5000)]
    content["tensors"]["model.w"] = {"dtype": "u8", "shape": [5000, 5000], "chunks": chunks}
    began = time.process_time()
    with pytest.raises(thalia.FormatError, match="9999 parts that lie in each other's way") as caught:
        _dcp_parse.from_bytes(sealed(content), "x")
    assert caught.value.code == "limit_exceeded" and time.process_time() - began < 6


def test_indices_ask_for_few_items_without_names():
    content = json.loads(_dcp_metadata.to_bytes(DOCUMENT))
    known = len(content["tensors"]) + len(content["values"])
    most = known + _dcp_parse.MAX_EMPTY
    # Each is within what one list may have; the lists are in each other.
    content["paths"]["step"] = ["steps", most - 1, 0]
    assert _dcp_parse.from_bytes(sealed(content), "x").paths["step"][1] == most - 1
    content["paths"]["step"] = ["steps", most - 1, 2]
    with pytest.raises(thalia.FormatError, match=f"paths: got {most + 1} items of lists that have no name") as caught:
        _dcp_parse.from_bytes(sealed(content), "x")
    assert caught.value.code == "limit_exceeded"


def put(folder, content, **options):
    """What a save does, less the files of ranks."""
    lock = _dcp_folder.begin(str(folder), replace=options.get("replace", True))
    with open(os.path.join(_dcp_folder.saving(str(folder)), "checkpoint.json"), "w") as file:
        file.write(content)
    _dcp_folder.commit(str(folder), durable=False)
    return lock


def locked(folder):
    """As another process has it."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def content(folder):
    with open(os.path.join(_dcp_folder.to_read(str(folder)), "checkpoint.json")) as file:
        return file.read()


def test_a_folder_is_replaced_and_nothing_else(tmp_path):
    folder = tmp_path / "run" / "step"
    put(folder, "1")
    put(folder, "2")
    assert content(folder) == "2" and os.listdir(tmp_path / "run") == ["step"]
    with pytest.raises(thalia.ExistsError, match="replace=False"):
        put(folder, "3", replace=False)
    put(tmp_path / "run" / "other", "1", replace=False)
    (tmp_path / "empty").mkdir()
    put(tmp_path / "empty", "1", replace=False)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(thalia.ExistsError, match=r"notes\.txt"):
        put(folder, "3")
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(thalia.ExistsError, match="'file'"):
        put(file, "3")
    assert content(folder) == "2" and file.read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    put(tmp_path / "link", "4")
    assert (tmp_path / "link").is_symlink() and content(tmp_path / "empty") == "4"


def test_saves_of_two_at_once(tmp_path):
    mine, other = tmp_path / "mine", tmp_path / ".other.saving"
    put(mine, "1")
    (tmp_path / ".mine.saving").mkdir()
    lock = locked(str(tmp_path / ".mine.saving"))
    with pytest.raises(thalia.UsageError, match="another process saves to it"):
        put(mine, "2")
    os.close(lock)
    other.mkdir()
    put(mine, "2")
    assert other.exists()  # made a moment ago, and not locked yet
    lock = locked(str(other))
    (other / "rank-0.thalia").write_bytes(b"")
    put(mine, "2")
    assert (other / "rank-0.thalia").exists()
    os.close(lock)
    foreign = tmp_path / ".foreign.saving"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    put(mine, "3")
    assert content(mine) == "3" and not other.exists() and (foreign / "notes.txt").exists()
    # Nor does a lock keep what a save has given up.
    kept = _dcp_folder.begin(str(tmp_path / "other"), replace=True)
    with pytest.raises(ValueError, match="full"), _dcp_folder.giving_up(str(tmp_path / "other")):
        raise ValueError("full")
    assert other.exists()
    put(mine, "3")
    assert not other.exists() and kept is not None
    # A save of this process that failed does not block the next.
    failed = _dcp_folder.begin(str(mine), replace=True)
    put(mine, "4")
    assert failed is not None and content(mine) == "4"


def test_saves_side_by_side_do_not_clear_each_other_away(tmp_path):
    children = []
    for name in "ab":
        children.append(os.fork())
        if children[-1] == 0:
            failed = 1
            try:
                for turn in range(400):
                    put(tmp_path / name, str(turn))
                failed = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(failed)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert content(tmp_path / "a") == content(tmp_path / "b") == "399"


def test_an_old_folder_stays_while_a_save_puts_the_new_one_in_its_place(tmp_path):
    put(tmp_path / "a", "1")
    lock = _dcp_folder.begin(str(tmp_path / "a"), replace=True)
    (tmp_path / ".a.saving" / "checkpoint.json").write_text("2")
    (tmp_path / "a").rename(tmp_path / ".a.old")  # if there is no exchange
    put(tmp_path / "b", "1")
    assert not (tmp_path / "a").exists() and content(tmp_path / "a") == "1"
    del lock
    put(tmp_path / "b", "2")  # that save was killed
    assert sorted(os.listdir(tmp_path)) == ["a", "b"] and content(tmp_path / "a") == "1"


def test_metadata_that_could_not_be_read_again_are_an_error(tmp_path, monkeypatch):
    data = _dcp_metadata.to_bytes(DOCUMENT)
    (tmp_path / "checkpoint.json").write_bytes(data)
    assert _dcp_parse.read(str(tmp_path)) == DOCUMENT
    monkeypatch.setattr(_dcp_parse, "MAX_BYTES", len(data) - 1)
    for call in (lambda: _dcp_parse.read(str(tmp_path)), lambda: _dcp_parse.from_bytes(data, "x")):
        with pytest.raises(thalia.FormatError, match=rf"size: got {len(data)} bytes, expected at most {len(data) - 1}"):
            call()


def test_a_text_that_names_the_latest_is_replaced_at_once(tmp_path):
    latest, before = tmp_path / "latest", tmp_path / "before"
    latest.write_text("step-1")
    os.link(latest, before)
    write_text(latest, "step-2")
    # Nobody who has the old one open, or is killed meanwhile, sees a part of a text.
    assert (latest.read_text(), before.read_text()) == ("step-2", "step-1")
    latest.unlink()
    latest.symlink_to(before)
    write_text(latest, "step-3")
    assert (latest.read_text(), before.read_text()) == ("step-3", "step-1")
    assert sorted(os.listdir(tmp_path)) == ["before", "latest"]
