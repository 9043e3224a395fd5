"""The logger "thalia_checkpoint": silent by default, and one line of each thing that is written."""

import logging
import re
import subprocess
import sys

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import store
from thalia_checkpoint.brain import BrainCheckpoint
from thalia_checkpoint.numpy import load_file, save_file

WEIGHT = np.arange(4096, dtype=np.float32)
SIZE = r"\d+\.\d KiB in \d+\.\d{3} s"


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "thalia_checkpoint")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "thalia_checkpoint"]


def test_saves_are_told_on_info(tmp_path, lines):
    with thalia.Writer(tmp_path / "a.thalia") as writer:
        writer.add("w", WEIGHT)
    save_file({"w": WEIGHT}, tmp_path / "b.safetensors")
    thalia.convert(tmp_path / "a.thalia", tmp_path / "c.npz")
    thalia.delta(tmp_path / "a.thalia", tmp_path / "a.thalia", tmp_path / "d.thalia")
    thalia.compress(tmp_path / "a.thalia", tmp_path / "a.thalia.zst")
    load_file(tmp_path / "a.thalia")  # reading is told on DEBUG
    expected = (
        "saved .*a.thalia",
        "saved .*b.safetensors",
        "converted .*c.npz",
        "saved delta .*d.thalia",
        "compressed .*zst",
    )
    assert len(lines()) == 5
    for line, words in zip(lines(), expected, strict=True):
        assert re.fullmatch(rf"{words}: ({SIZE}|\d+ B in .*)", line), line


def test_a_save_in_the_background_is_told_once_when_its_result_is_asked_for(tmp_path, lines):
    writer = thalia.Writer(tmp_path / "a.thalia")
    writer.add("w", WEIGHT)
    handle = thalia.AsyncSaver().save(writer)
    assert lines() == []
    assert handle.wait() == handle.wait()
    (line,) = lines()
    assert re.fullmatch(rf"saved {re.escape(str(tmp_path))}/a.thalia: {SIZE}", line)


def test_saves_into_a_run_and_of_brains_are_told_too(tmp_path, lines):
    deltas = {"policy": "every", "full_every": 9}
    store.create_run(tmp_path / "r", {"deltas": deltas, "phases": [{"name": "train"}]})
    saver = thalia.AsyncSaver()
    brain = {"regions": {"a": {"weights": {"w": WEIGHT}}}}
    with store.RunWriter(tmp_path / "r") as run:
        with run.new_checkpoint(1) as writer:
            writer.add("a/w", WEIGHT)
        run.save_object(2, {"w": WEIGHT}, delta=True)
        handle = run.save_object_async(saver, 3, {"w": WEIGHT})
        assert len(lines()) == 2
        assert handle.wait() is not None and handle.wait() is not None
        run.save_brain(4, brain)
        run.save_file(5, run.run.path_of(run.run.list()[0]))
        run.save_bytes(6, b"x" * 5000)
    BrainCheckpoint.save(brain, tmp_path / "b.thalia")
    BrainCheckpoint.save_delta(brain, tmp_path / "d.thalia", tmp_path / "b.thalia")
    handle = BrainCheckpoint.save_async(brain, tmp_path / "c.thalia", saver=saver)
    assert handle.wait() == handle.wait() and handle.wait()["path"].endswith("c.thalia")
    names = [f"ckpt_train_step0000000{step}.thalia" for step in range(1, 7)] + ["b.thalia", "d.thalia", "c.thalia"]
    words = ["saved", "saved delta", "saved", "saved delta", "saved delta", "saved", "saved", "saved delta", "saved"]
    assert len(lines()) == len(names)
    for line, name, word in zip(lines(), names, words, strict=True):
        assert re.fullmatch(rf"{word} .*{name}: ({SIZE}|\d+ B in .*)", line), line


def test_reading_is_told_on_debug(tmp_path, caplog):
    save_file({"w": WEIGHT}, tmp_path / "a.thalia")
    caplog.set_level(logging.DEBUG, "thalia_checkpoint")
    caplog.clear()  # of the save, where a test before this one had its level set
    thalia.open(tmp_path / "a.thalia").close()
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG and record.getMessage().startswith(f"opened {tmp_path}/a.thalia in ")


def test_a_name_cannot_make_lines_up(tmp_path, lines):
    save_file({"w": WEIGHT}, tmp_path / "a\nCRITICAL:root:all is lost\x1b[2J.thalia")
    (line,) = lines()
    assert "\n" not in line and "\x1b" not in line


def test_what_fails_is_not_told_as_saved(tmp_path, lines):
    with pytest.raises(ZeroDivisionError):
        save_file({"w": WEIGHT}, tmp_path / "a.thalia", progress=lambda done, total: 1 / 0)
    with pytest.raises(thalia.IoError):
        save_file({"w": WEIGHT}, tmp_path / "nowhere" / "a.safetensors")
    assert lines() == []


def test_it_is_silent_and_without_cost_by_default(tmp_path):
    code = (
        "import sys, numpy as np; loaded = 'logging' in sys.modules; import thalia_checkpoint as thalia\n"
        f"with thalia.Writer({str(tmp_path / 'a.thalia')!r}) as writer: writer.add('w', np.ones(9))\n"
        f"thalia.open({str(tmp_path / 'a.thalia')!r})\n"
        "print(loaded or 'logging' not in sys.modules)\n"
        "import logging; logging.basicConfig()\n"
        f"with thalia.Writer({str(tmp_path / 'a.thalia')!r}) as writer: writer.add('w', np.ones(9))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True\n" and run.stderr == ""
