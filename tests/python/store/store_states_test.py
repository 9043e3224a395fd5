"""What a run is given to save besides what a writer declares: objects, brains, bytes, files."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import thalia_checkpoint as thalia
from store_run_test import a_run, flip, found_in
from thalia_checkpoint import store


def test_bytes_of_any_kind_are_kept_and_given_back(tmp_path):
    keys = {"extension": "pt", "required_keys": ["model", "step"], "phases": [{"name": "train"}]}
    store.create_run(tmp_path / "r", keys, format="toml")
    assert (tmp_path / "r" / "run.toml").is_file()
    with store.RunWriter(tmp_path / "r", durability="none") as run:
        with pytest.raises(thalia.UsageError, match="step"):
            run.save_bytes(1, b"x", keys=["model"])
        run.save_bytes(1, b"x" * 1000, keys=["model", "step"], metric=1.0)
        run.save_bytes(2, (bytes([i]) * 1000 for i in range(5)), keys=["model", "step"])
        run.save_bytes(3, np.arange(4, dtype=np.int32), keys=["model", "step"])
        (tmp_path / "x.bin").write_bytes(b"a file")
        run.save_file(4, tmp_path / "x.bin", keys=("model", "step"))
        assert bytes(run.run.load_bytes().data) == b"a file"
        assert bytes(run.run.load_bytes(step=2).data) == b"".join(bytes([i]) * 1000 for i in range(5))
        data = run.run.load_bytes(step=3).data
        assert data.readonly and np.frombuffer(data, np.int32).tolist() == [0, 1, 2, 3]
        assert bytes(run.run.load_bytes(step=1).data) == b"x" * 1000
        with pytest.raises(thalia.ExistsError):
            run.save_bytes(1, b"y", keys=["model", "step"])
        run.save_bytes(1, b"y", keys=["model", "step"], replace=True)
        assert bytes(run.run.load_bytes(step=1).data) == b"y"
        flip(run.run.path_of(run.run.latest()))
        with pytest.warns(UserWarning):
            assert run.run.load_bytes().passed_over[0][0].name.endswith("step00000001.pt")
        run.promote(step=3)
        assert np.frombuffer(run.run.load_gate_bytes("train_best").data, np.int32)[3] == 3
        for refused in (run.run.load, lambda: run.new_checkpoint(9), lambda: run.run.load_gate("train_best")):
            with pytest.raises(thalia.UsageError, match="thalia"):
                refused()


def test_pieces_that_end_badly_leave_nothing(tmp_path):
    with a_run(tmp_path / "r", extension="bin") as run:

        def fails():
            yield b"x" * 100_000
            raise ZeroDivisionError

        def wrong():
            yield b"x"
            yield "no bytes"

        def saves_too():
            yield b"outer"
            run.save_bytes(7, b"inner")

        for pieces, error in ((fails, ZeroDivisionError), (wrong, TypeError)):
            with pytest.raises(error):
                run.save_bytes(1, pieces())
        with pytest.raises(TypeError):
            run.save_bytes(1, 5)
        assert run.run.list() == [] and found_in(run.run) == []
        run.save_bytes(8, saves_too())  # waits for nobody
        assert [entry.step for entry in run.run.list()] == [7, 8]
        released = bytearray(b"mine")
        run.save_bytes(9, released)
        released += b"!"  # nobody holds it


def test_a_file_that_is_damaged_is_not_kept_as_if_it_were_whole(tmp_path):
    with thalia.Writer(tmp_path / "f.thalia", durability="none") as writer:
        writer.add("a/w", np.arange(5000.0))
    with a_run(tmp_path / "r") as run:
        run.save_file(1, tmp_path / "f.thalia", metric=2.0)
        assert run.run.load().file["a/w"].numpy()[9] == 9
        flip(tmp_path / "f.thalia")
        with pytest.raises(thalia.IntegrityError):
            run.save_file(2, tmp_path / "f.thalia")
        with pytest.raises(thalia.IoError):
            run.save_file(2, tmp_path / "none.thalia")
        assert [entry.step for entry in run.run.list()] == [1]


def brain_of(value):
    weights = np.arange(20_000, dtype=np.float32).reshape(100, 200)
    weights[0, :5] = value
    return {
        "regions": {"cortex": {"weights": {"w": weights}, "neuron_state": {"v": np.full(100, value, np.float32)}}},
        "training_steps": value,
    }


@pytest.mark.parametrize("in_background", [False, True])
def test_brains_are_saved_as_the_runs_deltas_say(tmp_path, in_background):
    from thalia_checkpoint.brain import BrainCheckpoint

    config = {"deltas": {"policy": "every", "full_every": 3}, "phases": [{"name": "train", "retention": {}}]}
    store.create_run(tmp_path / "r", config)
    saver = thalia.AsyncSaver(when_busy="wait")
    with store.RunWriter(tmp_path / "r", durability="none") as run:
        for step in range(1, 6):
            brain = brain_of(step)
            if in_background:
                handle = run.save_brain_async(saver, step, brain, metric=1.0, metadata={"note": step})
                brain["regions"]["cortex"]["weights"]["w"][:] = -1  # a copy was taken
                stored = handle.wait()
            else:
                stored = run.save_brain(step, brain, metric=1.0, metadata={"note": step})
            assert stored.entry.metric == 1.0
        entries = run.run.list()
        assert [entry.depth for entry in entries] == [0, 1, 2, 0, 1]
        assert entries[1].base == entries[0].file and entries[0].base is None
        for entry in entries:
            found = BrainCheckpoint.load(run.run.path_of(entry), framework="numpy")
            wanted = brain_of(entry.step)["regions"]["cortex"]["weights"]["w"]
            assert np.array_equal(found["regions"]["cortex"]["weights"]["w"], wanted)
            assert found["metadata"]["note"] == entry.step and found["training_steps"] == entry.step
        # What a delta is based on stays; the delta alone is not enough.
        loaded = run.run.load(step=5)
        assert loaded.file.is_delta and loaded.file.tensors["w"].numpy()[0, 0] == 5
        with pytest.raises(thalia.ExistsError):
            run.save_brain(5, brain_of(5))
        run.save_brain(2, brain_of(22), replace=True)
        assert run.run.load(step=3).file.tensors["w"].numpy()[0, 0] == 3
        with pytest.raises(thalia.UnsupportedError):
            run.save_brain(9, {"regions": {"cortex": {"weights": {"w": object()}}}})
        flip(run.run.path_of(run.run.list()[3]))
        with pytest.raises(thalia.IntegrityError, match="ckpt_train_step00000004"):
            run.run.load(step=5)


def test_objects_are_saved_without_torch(tmp_path):
    state = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "seen": [1, 2], "name": "a"}
    with a_run(tmp_path / "r") as run:
        saver = thalia.AsyncSaver()
        stored = [run.save_object(1, state), run.save_object_async(saver, 2, {**state, "name": "b"}).wait()]
        for each, name in zip(stored, "ab", strict=True):
            found = thalia.load(each.path)
            assert np.array_equal(found.pop("weight"), state["weight"]) and found == {"seen": [1, 2], "name": name}
        with pytest.raises(thalia.UnsupportedError, match=r"x: cannot save builtins\.object.*convert="):
            run.save_object(3, {"x": object()})
        assert [entry.step for entry in run.run.list()] == [1, 2]
        for stored in (
            run.save_object(3, {"x": object()}, convert=lambda value: 7),
            run.save_object_async(saver, 4, {"x": object()}, convert=lambda value: 7, delta=True).wait(),
        ):
            assert thalia.load(stored.path) == {"x": 7}
    assert "torch" not in sys.modules


INTERRUPTED = """
    import signal, sys, threading, time
    from thalia_checkpoint import store
    # Of what runs beside a shell it is ignored, and what that starts inherits it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run = store.RunWriter(sys.argv[1], durability="none")

    def pieces():
        print("begun", flush=True)
        while True:
            yield b"x" * 1000
            time.sleep(0.001)

    try:
        run.save_bytes(2, pieces())
    except KeyboardInterrupt:
        run.save_bytes(3, b"after")
        print("ended", flush=True)
"""


def test_ctrl_c_ends_a_save_of_pieces_and_the_run_goes_on(tmp_path):
    with a_run(tmp_path / "r", extension="bin") as run:
        run.save_bytes(1, b"x")
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), tmp_path / "r"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "ended\n"
    finally:
        process.kill()
    assert [entry.step for entry in store.Run(tmp_path / "r").list()] == [1, 3]
    assert store.Run(tmp_path / "r").verify().findings == ()
