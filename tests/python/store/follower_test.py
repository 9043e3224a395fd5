"""A follower in Python, beside a process that trains: what it holds, what it survives, and who may call what."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import store

#: Each checkpoint but the first is a delta of the one before it.
CHAIN = {"deltas": {"policy": "every", "full_every": 256}, "phases": [{"name": "train", "retention": {}}]}
#: Long enough for any machine; nothing waits for it but what failed.
SOON = 60.0
#: Saves without an end; after each a line.
TRAINER = """
import sys
import numpy as np
from thalia_checkpoint import store

step = int(sys.argv[2])
with store.RunWriter(sys.argv[1], wait=True, durability="none") as run:
    while True:
        writer = run.new_checkpoint(step)
        rows = np.full((64, 64), step, np.float32)
        writer.add("layers/w", rows)
        writer.add("layers/b", np.full(64, -step, np.int64))
        run.save(writer, delta=True)
        print(step, flush=True)
        step += 1
"""


class Training:
    def __init__(self, folder, config=CHAIN):
        self.folder = folder
        store.create_run(folder, config)
        self.run = store.RunWriter(folder, durability="none")

    def save(self, step, delta=True):
        writer = self.run.new_checkpoint(step)
        writer.add("layers/w", rows_of(step))
        writer.add("layers/b", np.full(64, -step, np.int64))
        writer.metadata = {"step": step}
        return self.run.save(writer, delta=delta).path


def rows_of(step):
    rows = np.ones((64, 64), np.float32)
    rows[0] = step
    return rows


@pytest.fixture
def training(tmp_path):
    return Training(tmp_path / "run")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.with_name(".flipped").write_bytes(data)
    path.with_name(".flipped").rename(path)


def test_each_state_is_that_of_a_step_and_stays(training):
    training.save(1)
    with thalia.Follower(training.folder) as follower:
        assert follower.current() is None
        first = follower.wait(SOON)
        assert (first.number, first.step, first.phase, first.deltas) == (1, 1, "train", 0)
        assert first.changed == ("layers/b", "layers/w") and first.removed == () and first.reason is None
        one = follower.current()
        path = training.save(2)
        second = follower.wait(SOON)
        assert (second.number, second.step, second.path, second.deltas) == (2, 2, path, 1)
        assert second.bytes_read == second.file_bytes == path.stat().st_size and second.latency > 0
        two = follower.current()
        assert follower.wait(0) is None
        for state, step in ((one, 1), (two, 2)):
            assert state.step == step and state.phase == "train" and state.metadata == {"step": step}
            assert np.array_equal(state["layers/w"].numpy(), rows_of(step))
            assert np.array_equal(state["b"].numpy(), np.full(64, -step))
        assert pickle.loads(pickle.dumps(second)) == second


def test_a_state_has_tensors_as_a_file_has(training, tmp_path):
    weights = np.array([[0, 2, 0], [0, 0, 3]], np.float32)
    with thalia.Writer(tmp_path / "s.thalia") as writer:
        writer.add("a/w", weights)
        writer.add("b/w", weights + 1)
        csr = thalia.CsrArrays(np.array([0, 1, 2]), np.array([1, 2]), np.array([2, 3], np.float32))
        writer.add("a/sparse", csr, shape=(2, 3))
        writer.add("a/codes", np.array([1, -1, 1], np.int8))
        writer.add("a/empty", np.zeros((0, 2), np.float64))
    with thalia.Follower(tmp_path) as follower, thalia.open(tmp_path / "s.thalia") as file:
        assert follower.wait(SOON).phase == ""
        state = follower.current()
        assert sorted(state) == sorted(file.tensors) == ["a.w", "b.w", "codes", "empty", "sparse"]
        for name, expected in file.tensors.items():
            found = state[name]
            assert state[found.path] is found and found.path in state
            facts = ("path", "role", "dtype", "shape", "encoding", "nbytes")
            assert [getattr(found, fact) for fact in facts] == [getattr(expected, fact) for fact in facts]
            assert np.array_equal(found.dense(), expected.dense())
        assert not state["a/w"].numpy().flags.writeable and state["a/w"].is_mapped
        assert state["a/w"].numpy(writable=True).flags.writeable
        assert np.array_equal(state["a/w"][1:, 1], weights[1:, 1])
        assert np.array_equal(state["sparse"].csr().values, [2, 3])
        assert state["codes"].numpy().ctypes.data == state["codes"].numpy().ctypes.data
        with pytest.raises(thalia.NotFoundError, match=r"did you mean 'codes'"):
            state["code"]
        assert state.get("code") is None and "code" not in state
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(state)


def test_what_was_handed_out_outlives_the_follower(training):
    training.save(1)
    memory = np.zeros((64, 64), np.float32)
    follower = thalia.Follower(training.folder, memory={"layers/w": memory})
    follower.wait(SOON)
    state = follower.current()
    bias, weights = state["layers/b"].numpy(), state["layers/w"].numpy()
    assert np.shares_memory(weights, memory)
    del memory
    follower.close()
    follower.close()
    del state, follower
    gc.collect()
    np.ones((64, 64), np.float32)
    assert np.array_equal(bias, np.full(64, -1)) and np.array_equal(weights, rows_of(1))


def test_prepared_is_not_applied(training):
    memory = np.zeros((64, 64), np.float32)
    follower = thalia.Follower(training.folder)
    follower.add_memory("layers/w", memory)
    with pytest.raises(thalia.UsageError, match="nothing is prepared"):
        follower.apply()
    training.save(1)
    prepared = follower.prepare(SOON)
    assert prepared.step == 1 and not memory.any() and follower.current() is None
    training.save(2)
    assert follower.prepare(SOON).step == 2 and not memory.any()
    seen = []
    applied = follower.apply(
        before=lambda tensor: seen.append((tensor.name, memory[0, 0])),
        after=lambda tensor: seen.append((tensor.name, memory[0, 0])),
    )
    assert applied.step == 2 and np.array_equal(memory, rows_of(2))
    assert seen == [("b", 0), ("b", 0), ("w", 0), ("w", 2)]
    with pytest.raises(thalia.UsageError, match="before the first update"):
        follower.add_memory("layers/b", np.zeros(64, np.int64))


def test_hooks_run_in_the_calling_thread_and_what_they_raise_is_raised(training):
    training.save(1)
    follower = thalia.Follower(training.folder, memory={"layers/w": np.zeros((64, 64), np.float32)})
    follower.prepare(SOON)
    lock = threading.RLock()

    def fails(tensor):
        raise ZeroDivisionError(tensor.name)

    with lock:
        with pytest.raises(ZeroDivisionError, match="b"):
            follower.apply(before=fails)
        with pytest.raises(thalia.UsageError, match="the follower is in use"):
            follower.apply(before=lambda _: follower.wait(0))
        assert follower.apply(before=lambda _: lock.acquire(blocking=False) or fails(_)).step == 1


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (np.zeros((64, 64), np.float64), "'w'.*got f64, expected f32"),
        (np.zeros((32, 128), np.float32), r"'w'.*got \[32, 128\], expected \[64, 64\]"),
        (np.zeros(64 * 64 * 4 - 1, np.uint8), "'w'.*got 16383 bytes, expected 16384"),
        (bytearray(7), "'w'.*got 7 bytes, expected 16384"),
        (np.zeros((64, 64), ">f4"), "byte order"),
        (np.ones((64, 64), np.float32)[None].repeat(2, 0)[:, ::2], "contiguous"),
        (bytes(64 * 64 * 4), "writable"),
        ("text", "writable buffer"),
        (np.zeros((64, 64), object), "object"),
    ],
)
def test_memory_has_to_fit(training, wrong, error):
    training.save(1)
    with pytest.raises(thalia.ThaliaError, match=error):
        thalia.Follower(training.folder, memory={"layers/w": wrong}).wait(SOON)
    if "got" in error:
        with pytest.raises(thalia.UsageError, match=error):
            thalia.Follower(training.folder, memory=lambda tensor: wrong if tensor.name == "w" else None).wait(SOON)


def test_memory_that_nothing_is_for_is_refused(training):
    training.save(1)
    memory = np.zeros((64, 64), np.float32)
    with pytest.raises(thalia.NotFoundError, match="'x': the state has no tensor for this memory"):
        thalia.Follower(training.folder, memory={"layers/x": memory}).wait(SOON)
    read_only = memory.view()
    read_only.flags.writeable = False
    with pytest.raises(thalia.UsageError, match="read-only"):
        thalia.Follower(training.folder, memory={"w": read_only})
    follower = thalia.Follower(training.folder, memory={"w": memory})
    with pytest.raises(thalia.UsageError, match="has memory already"):
        follower.add_memory("w", memory)


def test_bytes_of_any_kind_are_memory(training):
    training.save(1)
    raw, numbers = bytearray(64 * 64 * 4), np.zeros(64 * 8, np.uint8)
    follower = thalia.Follower(training.folder, memory={"layers/w": raw, "b": numbers})
    follower.wait(SOON)
    training.save(2)
    follower.wait(SOON)
    assert bytes(raw) == rows_of(2).tobytes() and numbers.tobytes() == np.full(64, -2).tobytes()
    with pytest.raises(BufferError):
        raw.append(1)  # the follower holds it
    follower.close()
    del follower
    gc.collect()
    raw.append(1)


def test_memory_with_several_names_is_for_the_one_that_the_file_has(training):
    training.save(1)
    memory = np.zeros((64, 64), np.float32)
    follower = thalia.Follower(training.folder, memory={"tied": memory, "w": memory})
    follower.wait(SOON)
    assert np.array_equal(memory, rows_of(1))


def test_a_function_gives_memory_and_what_it_raises_is_raised(training):
    training.save(1)
    given = {}

    def memory(tensor):
        if tensor.dtype != "f32":
            return None
        return given.setdefault(f"{tensor.region}/{tensor.name}", np.zeros(tensor.shape, np.float32))

    follower = thalia.Follower(training.folder, memory=memory)
    follower.wait(SOON)
    assert list(given) == ["layers/w"] and np.array_equal(given["layers/w"], rows_of(1))

    def fails(tensor):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        thalia.Follower(training.folder, memory=fails).wait(SOON)


def test_a_part_is_followed(training):
    training.save(1)
    with thalia.Follower(training.folder, include="layers/b") as follower:
        follower.wait(SOON)
        assert [tensor.path for tensor in follower.current().values()] == ["layers/b"]


def test_a_delta_that_is_damaged_is_passed_over_with_a_warning(training):
    training.save(1)
    follower = thalia.Follower(training.folder, interval=0.01)
    follower.wait(SOON)
    flip(training.save(2))
    with pytest.warns(UserWarning, match="passed over: .*step00000002") as warned:
        assert follower.wait(0) is None
    assert {each.filename for each in warned} == {__file__}
    assert follower.current().step == 1
    training.save(3, delta=False)
    update = follower.wait(SOON)
    assert update.step == 3 and update.deltas == 0
    assert np.array_equal(follower.current()["w"].numpy(), rows_of(3))


def test_a_link_that_is_missing_is_fallen_back_from(training):
    training.save(1)
    follower = thalia.Follower(training.folder, interval=0.01, lease=False)
    follower.wait(SOON)
    paths = [training.save(step, delta=step != 3) for step in (2, 3, 4)]
    paths[0].unlink()
    update = follower.wait(SOON)
    assert update.step == 4 and update.deltas == 0
    paths += [training.save(5), training.save(6)]
    paths[3].unlink()
    with pytest.warns(UserWarning, match="passed over"):
        assert follower.wait(0.05) is None
    assert follower.current().step == 4
    training.save(7, delta=False)
    follower.wait(SOON)
    assert np.array_equal(follower.current()["w"].numpy(), rows_of(7))


def test_memory_that_somebody_changed_is_made_anew(training):
    training.save(1)
    memory = np.zeros((64, 64), np.float32)
    follower = thalia.Follower(training.folder, memory={"w": memory})
    follower.wait(SOON)
    memory[5] = 77
    training.save(2)
    with pytest.warns(UserWarning, match="passed over"):
        update = follower.wait(SOON)
    assert update.fell_back and update.reason and np.array_equal(memory, rows_of(2))


def test_warnings_come_while_it_waits(training):
    training.save(1)
    follower = thalia.Follower(training.folder, interval=0.01)
    follower.wait(SOON)
    flip(training.save(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="passed over"):
            follower.wait()


def test_a_file_holds_the_newest(training, tmp_path):
    training.save(1)
    out = tmp_path / "serving.thalia"
    with thalia.Follower(training.folder, into=out, durability="none") as follower:
        follower.wait(SOON)
        with thalia.open(out) as first:
            training.save(2)
            assert follower.wait(SOON).deltas == 1 and follower.current() is None
            assert np.array_equal(first["layers/w"].numpy(), rows_of(1))
        with thalia.open(out) as file:
            assert np.array_equal(file["layers/w"].numpy(), rows_of(2)) and thalia.verify(out).ok
        with pytest.raises(thalia.UsageError):
            follower.add_memory("w", np.zeros((64, 64), np.float32))
    with pytest.raises(thalia.UsageError, match="outside"):
        thalia.Follower(training.folder, into=training.save(3).parent / "s.thalia")


def waits(follower, found):
    """wait(), once no other call is under way."""
    while True:
        try:
            found.append(follower.wait())
            return
        except thalia.UsageError:
            time.sleep(0.001)


def until_in_use(follower):
    """Until another thread waits; gives what is said then."""
    while True:
        try:
            follower.prepare(0)
        except thalia.UsageError as error:
            return str(error)
        time.sleep(0.01)


def test_another_thread_wakes_and_looks_and_does_nothing_else(training):
    training.save(1)
    follower = thalia.Follower(training.folder)
    follower.wait(SOON)
    found = []
    thread = threading.Thread(target=waits, args=(follower, found))
    thread.start()
    assert until_in_use(follower) == "the follower is in use: another call of it has not ended"
    assert follower.current().step == 1 and found == []
    follower.wake()
    thread.join()
    assert found == [None]
    follower.wake()
    assert list(follower) == []


def test_close_ends_a_wait_of_another_thread(training):
    follower = thalia.Follower(training.folder)
    found = []
    thread = threading.Thread(target=waits, args=(follower, found))
    thread.start()
    until_in_use(follower)
    follower.close()
    thread.join()
    assert found == [None]
    for call in (follower.wait, follower.prepare, follower.apply, follower.current, lambda: follower.is_polling):
        with pytest.raises(thalia.UsageError, match="closed"):
            call()
    follower.wake()
    assert "closed" in repr(follower)


def test_ctrl_c_ends_a_wait_and_the_follower_goes_on(training):
    code = f"""
import signal, threading, os
import thalia_checkpoint as thalia
follower = thalia.Follower({str(training.folder)!r})
try:
    print("waits", flush=True)
    follower.wait()
except KeyboardInterrupt:
    print("ended", flush=True)
print(follower.wait({SOON}).step, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waits\n"
    while process.poll() is None:  # one that comes before it waits ends it elsewhere
        process.send_signal(signal.SIGINT)
        if process.stdout.readline() == "ended\n":
            break
    training.save(1)
    assert process.stdout.readline() == "1\n"
    assert process.wait() == 0


def test_a_thread_that_waits_does_not_hold_up_the_end_of_the_process(training):
    training.save(1)
    code = f"""
import threading
import thalia_checkpoint as thalia
follower = thalia.Follower({str(training.folder)!r})
follower.wait({SOON})
entered = threading.Event()
thread = threading.Thread(target=lambda: (entered.set(), follower.wait()), daemon=True)
thread.start()
entered.wait()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SOON, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list((training.folder / "train").glob("followers/*.json"))


def test_a_forked_child_is_refused(training):
    training.save(1)
    follower = thalia.Follower(training.folder)
    follower.wait(SOON)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            follower.wait(0)
        except thalia.UsageError:
            state = follower.current()
            follower.wake()
            code = 0 if np.array_equal(state["w"].numpy(), rows_of(1)) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    training.save(2)
    assert follower.wait(SOON).step == 2


@pytest.mark.parametrize("polling", [False, True])
def test_a_training_that_is_killed_and_goes_on_is_followed(tmp_path, polling):
    """Two followers of a process beside, one in memory of the server's own: each state is that of one step."""
    folder = tmp_path / "run"
    store.create_run(folder, CHAIN)
    memory = np.zeros((64, 64), np.float32)
    in_place = thalia.Follower(folder, memory={"w": memory}, polling=polling, interval=0.01 if polling else 1)
    other = thalia.Follower(folder, polling=polling, interval=0.01 if polling else 1)
    assert in_place.is_polling == polling
    newest = 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", TRAINER, folder, str(newest + 1)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4):
            for follower in (in_place, other):
                update = follower.wait(SOON)
                assert update.step > 0
                state = follower.current()
                assert state.step == update.step
                assert np.array_equal(state["w"].numpy(), np.full((64, 64), update.step, np.float32))
                assert np.array_equal(state["b"].numpy(), np.full(64, -update.step))
        process.kill()
        newest = max([newest, *(int(line) for line in process.stdout if line.endswith("\n"))])
        process.wait()
        process.stdout.close()
        # What the kill left is read, or passed over.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            end = time.monotonic() + SOON
            while other.current().step < newest and time.monotonic() < end:
                other.wait(0.05)
        assert other.current().step >= newest
        newest = max(entry.step for entry in store.Run(folder).list())


def test_a_lease_is_there_while_it_follows(training):
    training.save(1)
    with thalia.Follower(training.folder) as follower:
        follower.wait(SOON)
        (entry,) = store.Run(training.folder).list()
        assert any(reason.startswith("follower ") for reason in entry.protected_by)
    (entry,) = store.Run(training.folder).list()
    assert not any(reason.startswith("follower ") for reason in entry.protected_by)


def test_options_are_checked(training, tmp_path):
    with pytest.raises(thalia.NotFoundError, match="no folder to follow"):
        thalia.Follower(tmp_path / "nothing")
    with pytest.raises(thalia.NotFoundError, match="phase"):
        thalia.Follower(training.folder, phase="tran")
    with pytest.raises(thalia.UsageError, match="interval"):
        thalia.Follower(training.folder, interval=0)
    with pytest.raises(thalia.UsageError, match="access"):
        thalia.Follower(training.folder, access="mapd")
    with pytest.raises(TypeError, match="did you mean 'interval'"):
        thalia.Follower(training.folder, intervall=1)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(thalia.Follower(training.folder))
