"""What a notebook shows: a repr() of everything, tables of files and reports; and what is not pickled says why."""

import copy
import multiprocessing
import os
import pickle
import re
import shutil
import time
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import pytest
import thalia_checkpoint as thalia
from docstrings import PACKAGE, without_repr
from thalia_checkpoint import _core, _html, brain, loom, store
from thalia_checkpoint.numpy import save_file

HOSTILE = '<script>alert("x")</script>&<img src=x onerror=alert(1)>\u202e\x1b[2J'
FEW_BYTES = 200_000


class Page(HTMLParser):
    """The rows of the tables of a fragment; any element but those of a table fails, and any attribute but colspan."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.captions = [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], "elements that nothing closes"

    def handle_starttag(self, tag, attrs):
        assert tag in {"table", "caption", "thead", "tbody", "tr", "th", "td", "code"}, tag
        assert [name for name, _ in attrs if name != "colspan"] == []
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.open[-1] == "caption":
            self.captions.append(data)


def shown(thing):
    text = thing._repr_html_()
    assert len(text) < FEW_BYTES
    assert not re.search(r"[\x00-\x1f\u202e]", text)
    return Page(text)


@pytest.fixture
def path(tmp_path):
    with thalia.Writer(tmp_path / "f.thalia", compression="zstd") as writer:
        writer.add("encoder/weight", np.ones((64, 64), np.float32))
        writer.add("decoder/bias", np.ones(3, np.float16))
        writer.region("other")
        writer.connect("encoder", "other", np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
    return tmp_path / "f.thalia"


def test_a_file_is_a_table_of_its_tensors(path):
    with thalia.open(path) as file:
        page = shown(file)
        assert page.captions == [
            f"{path}: a .thalia file of {_core.human_bytes(file.file_bytes)}, 4 tensors in 3 regions"
        ]
        assert page.rows[0] == ["name", "dtype", "shape", "size", "stored", "as"]
        assert ["encoder/weight", "f32", "[64, 64]", "16.0 KiB"] in [row[:4] for row in page.rows]
        assert page.rows[1:] == [row for row in page.rows[1:] if len(row) == 6]  # nothing is left out
        assert len(page.rows) == 3
        assert "zstd" in page.rows[1][5] + page.rows[2][5]
        assert shown(file["decoder"]).rows[1][:3] == ["decoder/bias", "f16", "[3]"]
        assert [row[0] for row in shown(file.tensors).rows] == ["name", *file.tensors]
    assert shown(file).rows == []
    assert "closed" in file._repr_html_()


def test_of_other_formats(path, tmp_path):
    save_file({"weight": np.ones(3)}, tmp_path / "f.safetensors")
    with thalia.open(tmp_path / "f.safetensors") as file, thalia.safe_open(tmp_path / "f.safetensors", "np") as same:
        assert shown(file).rows[1][:3] == ["weight", "f64", "[3]"]
        assert shown(file).rows == shown(same).rows
    assert "closed" in file._repr_html_()


@pytest.mark.parametrize("ending", ["thalia", "safetensors"])
def test_names_are_text_and_never_markup(tmp_path, ending):
    name = f"{HOSTILE}.weight"
    save_file({name: np.ones(3)}, tmp_path / f"f.{ending}", {"<b>": HOSTILE})
    with thalia.open(tmp_path / f"f.{ending}") as file:
        for thing in (file, file.tensors):
            assert "<script>" in "".join(shown(thing).rows[1])  # as text
    info = thalia.info(tmp_path / f"f.{ending}")
    assert "<script>" in str(shown(info).rows)


def test_many_tensors_are_shown_at_once(tmp_path):
    save_file({f"layers.{i}.{'n' * 200}": np.ones(1, np.uint8) for i in range(20_000)}, tmp_path / "f.thalia",
              durability="none")  # fmt: skip
    thalia.convert(tmp_path / "f.thalia", tmp_path / "f.safetensors", durability="none")
    for name in ("f.thalia", "f.safetensors"):
        with thalia.open(tmp_path / name) as file:
            begin = time.process_time()
            page = shown(file)
            assert time.process_time() - begin < 0.5
            assert len(page.rows) == 52 and page.rows[-1] == ["… and 19950 more"]
            assert max(len(row[0]) for row in page.rows) <= 121


def test_reports_are_tables(path, tmp_path):
    with thalia.Writer(tmp_path / "g.thalia") as writer:
        writer.add("encoder/weight", np.zeros((64, 64), np.float32))
        writer.metadata = {"text": "x" * 100_000, "many": list(range(100_000)), "deep": {"a": {"b": {"c": {"d": 1}}}}}
    assert dict(shown(writer.result).rows[1:])["file_bytes"] == str(writer.result.file_bytes)
    info = shown(thalia.info(tmp_path / "g.thalia"))
    assert info.captions == ["Info", "dtypes"]
    assert ["format", "thalia"] in info.rows and ["dtype", "tensor_count", "elements", "logical_bytes"] in info.rows
    diff = shown(thalia.diff(path, tmp_path / "g.thalia"))
    assert "regions" in diff.captions
    found = thalia.verify(path)
    assert ["ok", "True"] in shown(found).rows
    save_file({"weight": np.arange(99.0)}, tmp_path / "h.thalia")
    data = bytearray((tmp_path / "h.thalia").read_bytes())
    data[data.index(np.arange(1.0, 9).tobytes())] ^= 1
    (tmp_path / "h.thalia").write_bytes(data)
    damaged = shown(thalia.verify(tmp_path / "h.thalia"))
    assert "findings" in damaged.captions and "error" in str(damaged.rows)


def test_a_damaged_file_is_shown_as_far_as_it_goes(monkeypatch):
    def tensors():
        raise thalia.IntegrityError("<b>torn</b>")
        yield

    page = Page(_html.of_tensors("a file", tensors(), 5))
    assert page.rows[-1] == ["<b>torn</b>"]


@dataclass
class Odd:
    """Values that no report has today."""

    number: object
    other: object = None


@pytest.mark.parametrize("number", range(10))
def test_any_value_is_short(number):
    deep = [[[[[[1]]]]]]
    values = (10**5000, bytes(10**7), {HOSTILE: HOSTILE}, deep, object(), Odd(1), {1: Odd(2)}, float("nan"), set(), ())
    value = values[number]
    assert len(_html.of_result(Odd(value))) < 2000
    Page(_html.of_result(Odd(value)))


def test_everything_has_a_repr(path, tmp_path):
    with thalia.open(path) as file:
        assert repr(file.tensors) == "<Tensors: 2 tensors>"
    with thalia.safe_open(path, framework="np") as opened:
        assert repr(opened) == f"<safe_open, numpy: <File {str(path)!r}: 4 tensors in 3 regions>>"
        assert repr(opened.get_slice("weight")) == "<Slice of <Tensor 'encoder/weight' f32[64, 64] dense>>"
    writer = thalia.Writer(tmp_path / "g.thalia")
    writer.add("encoder/weight", np.ones(3))
    assert repr(writer) == "<Writer, not committed: 1 regions>"
    saver = thalia.AsyncSaver()
    handle = saver.save(writer)
    handle.wait()
    assert repr(handle) == "<SaveHandle, saved>"
    with thalia.Writer(tmp_path / "g.thalia") as writer:
        writer.add("encoder/weight", np.ones(3))
    assert repr(writer) == f"<Writer, committed: {writer.result.file_bytes} bytes>"
    gone = thalia.Writer(tmp_path / "g.thalia")
    gone.abandon()
    assert repr(gone) == "<Writer, abandoned: 0 regions>"
    failing = thalia.Writer(tmp_path / "h.thalia", progress=lambda done, total: 1 / 0)
    failing.add("w", np.ones(1000))
    handle = saver.save(failing)
    with pytest.raises(ZeroDivisionError):
        handle.wait()
    assert repr(handle) == "<SaveHandle, failed: ZeroDivisionError>"


@pytest.mark.parametrize("module", ["", ".brain", ".errors", ".loom", ".mithril", ".numpy", ".store"])
def test_every_class_has_a_repr(module):
    never_made = [f"{PACKAGE}.brain.BrainCheckpoint"]  # which has static methods alone
    assert without_repr(f"{PACKAGE}{module}") == (never_made if module == ".brain" else [])


def test_a_run_is_a_table_of_its_checkpoints(tmp_path):
    store.create_run(tmp_path / "run", {"phases": [{"name": "a"}]})
    with store.RunWriter(tmp_path / "run") as run:
        for step in (1, 2):
            run.save_object(step, {"w": np.ones(3)}, metric=0.5)
        page = shown(run.run)
        assert page.captions == [f"Run '{tmp_path}/run': a"]
        assert [row[:3] for row in page.rows[1:]] == [["a", "2", "0.5"], ["a", "1", "0.5"]]
        assert repr(run) == f"<RunWriter of <Run '{tmp_path}/run': a>>" and repr(run.pool).startswith("<Pool of <Run")
        loaded = shown(run.run.load())
        assert loaded.captions == ["LoadedCheckpoint"] and "step=2" in str(loaded.rows)
        assert shown(store.migrate_record({"checkpoint_version": 1}, version=1, migrations={})).captions
    shutil.rmtree(tmp_path / "run")
    assert "Run" in run.run._repr_html_()  # of what is gone, its name
    assert repr(store.PoolCache()) == "<PoolCache: 0 files open>"


def test_a_brain_is_a_table_of_its_regions(tmp_path):
    region = {"weights": {"w": np.ones((4, 3), np.float32)}, "state": [np.ones(2)], "name": HOSTILE}
    state = {"regions": {"cortex": region, "other": region}, "pathways": {"a_to_b": {"w": np.ones(1)}}}
    brain.BrainCheckpoint.save(state, tmp_path / "f.thalia")
    found = brain.BrainCheckpoint.load(tmp_path / "f.thalia")
    page = shown(found)
    assert page.captions == ["BrainState: 2 regions, 1 pathways, 0 steps"]
    assert page.rows[1:] == [["cortex", "2", "64 B"], ["other", "2", "64 B"], ["a_to_b", "1", "8 B"]]
    assert ["name", "str", ""] in shown(found.regions["cortex"]).rows
    lazy = brain.BrainCheckpoint.load(tmp_path / "f.thalia", lazy=True, regions=["other"])
    assert ["cortex", "not read yet", ""] in shown(lazy).rows and not lazy.regions["cortex"].is_loaded
    flat = brain.BrainState({"w": np.ones(3), "step": 4}, {}, 4)
    assert shown(flat).rows[1:] == [["w", "1", "24 B"], ["step", "int", ""]]


def test_a_network_is_a_table_of_its_layers(tmp_path):
    layer = loom.Layer(type="Dense", dtype="int8", input_height=2, output_height=2)
    layer.set_master(np.ones(4, np.float32))
    network = loom.Network(layers_per_cell=1, layers=[layer])
    loom.save_entity(tmp_path / "n.entity", network)
    for thing in (network, loom.EntityFile(tmp_path / "n.entity")):
        assert shown(thing).rows[1:] == [["0", "0", "0", "0", "Dense", layer.activation, "int8"]]


def test_a_writer_has_a_repr_while_it_saves(tmp_path):
    said = []
    writer = thalia.Writer(tmp_path / "f.thalia", progress=lambda done, total: said.append(repr(writer)))
    writer.add("w", np.ones(1000))
    writer.commit()
    assert said and set(said) == {"<Writer, in use: 1 regions>"}


def open_things(path):
    file = thalia.open(path)
    yield file, "open it in the worker"
    yield file["encoder"], "open it in the worker"
    yield file.tensors, "open it in the worker"
    yield file["encoder"]["weight"], "open its file in the worker, or pickle its numpy()"
    yield thalia.safe_open(path, framework="np"), "open it in the worker"
    yield thalia.stream_params(path), "open it in the worker"
    yield thalia.Writer(path), "make one in the worker"
    yield thalia.AsyncSaver(), "make one in the worker"
    thalia.convert(path, path.with_suffix(".npz"))
    yield thalia.open(path.with_suffix(".npz")), "open it in the worker"


def test_what_is_open_is_not_pickled_and_says_what_to_do(path):
    for thing, instead in open_things(path):
        for call in (pickle.dumps, copy.deepcopy, lambda each: pickle.dumps({"dataset": [each]})):
            with pytest.raises(TypeError, match=rf"cannot pickle a {type(thing).__name__}.*{re.escape(instead)}"):
                call(thing)


def test_a_worker_of_another_process_is_told(path):
    with thalia.open(path) as file:
        context = multiprocessing.get_context("spawn")
        with pytest.raises(TypeError, match=r"cannot pickle a File.*open it in the worker"):
            context.Process(target=os.getpid, args=(file,)).start()


def test_shallow_copies_stay(path):
    file = thalia.open(path)
    tensor = file["encoder"]["weight"]
    assert np.array_equal(copy.copy(tensor).numpy(), tensor.numpy())
    other = copy.copy(file)
    file.close()
    assert list(other) and copy.copy(other.tensors)["weight"].shape == (64, 64)
