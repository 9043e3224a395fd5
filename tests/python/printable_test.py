"""Names of files, tensors and types are untrusted: no message moves the cursor or reorders a line."""

import hashlib
import json
import pickle
import re
import traceback

import numpy as np
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy
from thalia_checkpoint import _core, errors
from thalia_checkpoint._distributed import parse as _dcp_parse

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\u202e\u2066\x9b\x7f\r\n"
# What printable() of thalia/text.h escapes.
RAW = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def assert_printable(error):
    assert not RAW.search(str(error)), ascii(str(error))
    assert not RAW.search("".join(map(str, error.args)))
    assert not RAW.search(f"{error.value}{error.expected}")
    # With what it came from.
    assert not RAW.search("".join(traceback.format_exception(error)).replace("\n", ""))


def classes(cls=thalia.ThaliaError):
    yield cls
    for inner in cls.__subclasses__():
        yield from classes(inner)


@pytest.mark.parametrize("cls", sorted(set(classes()), key=lambda cls: cls.__name__))
def test_every_error_of_the_package_is_printable_however_it_is_made(cls):
    for error in (cls(f"no {HOSTILE}"), errors.make_error(cls, HOSTILE, "x", value=HOSTILE, expected=HOSTILE)):
        assert_printable(error)
        assert "\\x1b]0;pwned\\x07\\x1b[2J\\u202e\\u2066\\u009b\\x7f\\r\\n" in str(error)
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error)
        assert type(again) is cls
    # Facts are what they are: a caller looks a name up.
    assert errors.make_error(cls, "x", "x", tensor=HOSTILE, path=HOSTILE).tensor == HOSTILE


def test_a_message_of_several_lines_has_no_others():
    error = errors.make_error(thalia.UsageError, [f"a{HOSTILE}", f"b{HOSTILE}", "c"], "x")
    first, second, third = lines = str(error).split("\n")
    assert not any(map(RAW.search, lines))
    assert first.startswith("a\\x1b") and second.startswith("  b\\x1b") and third == "  c"
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.code == "x"


def test_texts_are_shown_as_the_library_shows_them():
    assert _core.printable("w\u00e9\u2014\\n") == "w\u00e9\u2014\\n"
    assert _core.printable(HOSTILE[:3]) == "\\x1b]0"
    assert _core.printable(_core.printable(HOSTILE)) == _core.printable(HOSTILE)
    assert RAW.search(_core.printable("x" * 10_000 + HOSTILE)) is None
    assert _core.printable("\udc80").isprintable()


def raises(call):
    with pytest.raises(thalia.ThaliaError) as caught:
        call()
    assert_printable(caught.value)
    return caught.value


def sealed(content):
    body = json.dumps(content)[:-1].encode()
    return body + f', "sha256": "{hashlib.sha256(body).hexdigest()}"}}\n'.encode()


def test_names_of_a_distributed_checkpoint_are_printable():
    top = {"format": "thalia-distributed", "version": 1, "files": [], "tensors": {}, "values": {}, "paths": None}
    file = {"name": "rank-0.thalia", "bytes": 1, "uuid": "x"}
    chunk = {"offset": [0], "shape": [1], "file": 0, "region": HOSTILE, "name": HOSTILE}
    for content in (
        {"format": HOSTILE},
        {"version": HOSTILE},
        {HOSTILE: 1},
        {"files": [{**file, "name": HOSTILE}]},
        {"files": [{**file, HOSTILE: 1}]},
        {"files": [file], "tensors": {HOSTILE: {"dtype": HOSTILE, "shape": [1], "chunks": [chunk]}}},
        {"files": [file], "tensors": {HOSTILE: {"dtype": "f32", "shape": [2], "chunks": [chunk]}}},
        {"files": [file], "tensors": {HOSTILE: {"dtype": "f32", "shape": HOSTILE, "chunks": [chunk]}}},
        {"values": {HOSTILE: {"tree": 1, "file": 7, "region": HOSTILE}}},
        {"paths": {HOSTILE: [HOSTILE]}},
        {"paths": HOSTILE},
    ):
        raises(lambda content=content: _dcp_parse.from_bytes(sealed({**top, **content}), f"x{HOSTILE}"))


def test_names_of_an_index_are_printable(tmp_path):
    folder = tmp_path / HOSTILE.replace("\n", "")
    folder.mkdir()
    path = folder / "model.safetensors.index.json"
    for index in ({"weight_map": {"w": HOSTILE}}, {"weight_map": {HOSTILE: "x.safetensors"}}, {"weight_map": HOSTILE}):
        path.write_text(json.dumps(index))
        raises(lambda: thalia.open(path)["w"])
    path.write_text('{"weight_map": {' + ", ".join([f'{json.dumps(HOSTILE)}: "m.safetensors"'] * 2) + "}}")
    raises(lambda: thalia.open(path))


def test_names_that_are_not_there_are_printable(tmp_path):
    path = tmp_path / "m.thalia"
    with thalia.Writer(path) as writer:
        writer.add("w", np.zeros(2, np.float32), region="r")
    with thalia.open(path) as file:
        for name in (HOSTILE, f"r/{HOSTILE}"):
            error = raises(lambda name=name: file[name])
            assert isinstance(error, thalia.NotFoundError)
    raises(lambda: thalia.open(tmp_path / HOSTILE))
    raises(lambda: thalia_numpy.save_file({HOSTILE: np.zeros(2, "U4")}, tmp_path / "n.thalia"))


@pytest.mark.parametrize("call", [thalia.Writer, thalia.open, thalia.verify])
def test_keywords_are_printable_too(tmp_path, call):
    with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
        call(tmp_path / "a.thalia", **{HOSTILE: 1})
    assert not RAW.search(str(caught.value))
