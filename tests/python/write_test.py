"""Writing: whole or not at all, of any array."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import ml_dtypes
import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.numpy import save_file


def test_what_raises_in_the_block_leaves_no_trace(path):
    with thalia.Writer(path) as writer:
        writer.add("r/w", np.zeros(3))
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), thalia.Writer(path) as writer:
        writer.add("r/w", np.ones(3))
        raise ZeroDivisionError
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_arrays_of_any_layout_are_written_as_they_look(path):
    base = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    arrays = {
        "transposed": base.T,
        "strided": base[::2, 1::2],
        "reversed": base[:, ::-1],
        "big_endian": base.astype(">f4"),
        "fortran": np.asfortranarray(base),
        "scalar": np.float64(2.5),
        "list": np.array([[1, 2], [3, 4]]),
        "bool": base > 20,
        "complex": base + 1j * base,
    }
    with thalia.Writer(path, durability="none") as writer:
        for name, array in arrays.items():
            writer.add(f"r/{name}", array)
        writer.add("r/nested", [[1.0, 2.0]])
    with thalia.open(path) as file:
        for name, array in arrays.items():
            np.testing.assert_array_equal(file[name].numpy(), array)
        assert file["nested"].dtype == "f64"


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
             "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "uint4",
             "int2", "uint2"]
)  # fmt: skip
def test_types_of_ml_dtypes_come_back_bit_for_bit(path, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}.get(name, 6 if "float6" in name else 8)
    codes = np.arange(35, dtype=np.uint8) % (1 << min(bits, 7))
    if name in ("int4", "int2"):
        codes = ((codes.astype(np.int8) ^ (1 << (bits - 1))) - (1 << (bits - 1))).view(np.uint8)
    array = (codes.astype(np.uint16) << 4 if name == "bfloat16" else codes).view(dtype)
    array = array.reshape(5, 7)
    with thalia.Writer(path, durability="none") as writer:
        writer.add("r/w", array)
    tensor = thalia.open(path)["w"]
    read = tensor.numpy()
    assert read.dtype == dtype and read.tobytes() == array.tobytes()
    assert tensor[1:4, 2:6].tobytes() == array[1:4, 2:6].tobytes()
    assert tensor[2].tobytes() == array[2].tobytes()


def test_bad_input_is_one_clear_error(path):
    with thalia.Writer(path) as writer:
        writer.add("r/w", np.zeros(3))
        with pytest.raises(thalia.UsageError) as error:
            writer.add("r/w", np.zeros(3))
        assert error.value.code == "duplicate" and "w" in str(error.value)
        with pytest.raises(thalia.UnsupportedError, match="object"):
            writer.add("r/o", np.array([{}]))
        with pytest.raises(thalia.UsageError, match="role"):
            writer.add("r/x", np.zeros(3), role="wieghts")
        with pytest.raises(thalia.UsageError, match="16"):
            writer.add_bytes("r/b", "f32", (2, 2), b"too few")
        with pytest.raises(thalia.NotFoundError, match="'q'"):
            writer.connect("r", "q", np.zeros((1, 1)))
    with pytest.raises(thalia.UsageError, match="committed"):
        writer.add("r/late", np.zeros(3))
    for options in ({"compression": "zip"}, {"checksum": "md5"}, {"durability": "some"}):
        with pytest.raises(thalia.UsageError, match="expected"):
            thalia.Writer(path, **options)
    with pytest.raises(TypeError, match="compresion"):
        thalia.Writer(path, compresion="zstd")
    with pytest.raises(thalia.ExistsError):
        thalia.Writer(path, replace=False)


def test_names_that_are_no_utf8_are_named_and_found_nowhere(sample, tmp_path):
    path, _ = sample
    odd = "\udc80"
    out = tmp_path / "out.thalia"
    calls = [
        lambda: thalia.Writer(out).add(f"{odd}/w", np.ones(1)),
        lambda: thalia.Writer(out).add(f"r/{odd}", np.ones(1)),
        lambda: save_file({odd: np.ones(1)}, out),
        lambda: save_file({odd: np.ones(1)}, tmp_path / "out.safetensors"),
    ]
    for call in calls:
        with pytest.raises(thalia.UsageError, match="UTF-8"):
            call()
    assert sorted(tmp_path.iterdir()) == [path]
    with thalia.open(path) as file:
        assert odd not in file and odd not in file["encoder"]
        with pytest.raises(KeyError):
            file[odd]
    with pytest.raises(TypeError, match="of another type"):
        save_file({3: np.ones(1)}, tmp_path / "out.safetensors")


def test_roles_are_what_names_tell(path):
    with thalia.Writer(path, durability="none") as writer:
        for name in ("layers.0.weight", "layers.0.bias", "optimizer.layers.0.weight.exp_avg_sq"):
            writer.add(name, np.zeros((2, 2) if name.endswith("0.weight") else 2, np.float32))
        writer.add("r/special", np.zeros(2), role="buffer")
    tensors = thalia.open(path).tensors
    assert [tensors[name].role for name in sorted(tensors)] == [
        "bias", "weights", "optimizer", "buffer"
    ]  # fmt: skip
    assert tensors["layers.0.bias"].region == "layers.0"


def test_the_same_input_gives_the_same_bytes(tmp_path):
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        with thalia.Writer(file, reproducible=True, durability="none") as writer:
            writer.add("r/w", np.arange(5))
    assert files[0].read_bytes() == files[1].read_bytes()


def test_progress_is_told_and_may_end_the_save(path):
    array = np.zeros(4 << 20)
    seen = []
    with thalia.Writer(path, progress=lambda *step: seen.append(step), durability="none") as writer:
        writer.add("r/w", array)
    assert seen[-1] == (array.nbytes, array.nbytes) and seen == sorted(seen)
    before = path.stat()

    def refuse(done, total):
        raise LookupError(f"at {done}")

    with pytest.raises(LookupError, match="at "), thalia.Writer(path, progress=refuse) as writer:
        writer.add("r/w", array)
    assert path.stat() == before and os.listdir(path.parent) == [path.name]


def test_a_bar_is_shown_on_request(path, capsys):
    pytest.importorskip("tqdm")
    with thalia.Writer(path, progress=True, durability="none") as writer:
        writer.add("r/w", np.zeros(1000))
    assert "saving" in capsys.readouterr().err
    assert thalia.verify(path, progress=True).ok
    shown = capsys.readouterr().err
    assert "verifying" in shown and "100%" in shown


def test_ctrl_c_ends_a_save_and_leaves_the_old_file(path):
    with thalia.Writer(path) as writer:
        writer.add("r/w", np.zeros(3))
    before = path.read_bytes()
    array = np.random.default_rng(0).integers(0, 255, 256 << 20, np.uint8)
    begun = threading.Event()

    def interrupt():
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        with thalia.Writer(
            path, compression="zstd", compression_level=19, threads=1, progress=lambda *_: begun.set()
        ) as writer:
            writer.add("r/w", array)
    thread.join()
    assert time.monotonic() - start < 60
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_a_save_that_would_wait_is_skipped(path):
    gate = threading.Event()
    saver = thalia.AsyncSaver(when_busy="skip")
    writer = thalia.Writer(path, durability="none")
    writer.add("r/w", np.zeros(10))
    first = saver.save(writer, snapshot="borrowed", ready=gate.wait)
    other = thalia.Writer(path.with_name("other.thalia"), durability="none")
    other.add("r/w", np.ones(10))
    skipped = saver.save(other)
    assert skipped.skipped and skipped.done and not first.skipped
    with pytest.raises(thalia.CancelledError, match="skipped"):
        skipped.wait()
    gate.set()
    first.wait()
    second = saver.save(other)
    second.wait()
    assert not second.skipped and thalia.open(path.with_name("other.thalia"))["r/w"].shape == (10,)


CTRL_C = "signal.signal(signal.SIGALRM, signal.default_int_handler); signal.setitimer(signal.ITIMER_REAL, 0.5)"
# What keeps the saver at the end of the process, which then is not freed, or late.
KEEPS = ["", "sys.saver = saver", "saver.itself = saver; del saver", "del saver"]


def end_while_saving(path, keep, **how):
    """A process that ends with a save on its way, of 8 MiB, whose callback runs `each`."""
    code = f"""
import os, sys, signal, threading, time, numpy as np, thalia_checkpoint as thalia
begun = threading.Event()
def progress(done, total):
    begun.set()
    {how.get("each", "time.sleep(0.01)")}
saver = thalia.AsyncSaver()
writer = thalia.Writer(sys.argv[1], durability="none", compression="zstd", chunk_bytes=1 << 16, progress=progress)
writer.add("r/w", np.random.default_rng(0).bytes(8 << 20))
handle = saver.save(writer)
{how.get("last", "")}
{keep}
"""
    return subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("keep", KEEPS)
def test_a_process_ends_after_its_saves(path, keep):
    ended = end_while_saving(path, keep)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert thalia.verify(path).ok


def test_errors_that_nobody_has_seen_are_printed_at_the_end(path):
    ended = end_while_saving(path, KEEPS[1], each="raise RuntimeError('no more')")
    assert ended.returncode == 0 and ended.stderr.endswith("RuntimeError: no more\n")
    assert os.listdir(path.parent) == []


def test_ctrl_c_at_the_end_cancels(path):
    ended = end_while_saving(path, KEEPS[1], each="time.sleep(0.2)", last=f"begun.wait(); {CTRL_C}")
    assert ended.returncode == 0 and "KeyboardInterrupt" in ended.stderr and "terminate" not in ended.stderr
    assert os.listdir(path.parent) == []


def test_ctrl_c_at_the_end_cancels_the_saves_of_all_savers(path):
    more = """
others = [thalia.AsyncSaver() for _ in range(3)]
for i, other in enumerate(others):
    options = {"durability": "none", "chunk_bytes": 1 << 16, "compression": "zstd"}
    writer = thalia.Writer(f"{sys.argv[1]}.{i}", progress=progress, **options)
    writer.add("r/w", np.random.default_rng(i).bytes(8 << 20))
    other.save(writer)
"""
    ended = end_while_saving(path, KEEPS[1], each="time.sleep(0.2)", last=f"{more}begun.wait(); {CTRL_C}")
    assert ended.returncode == 0 and "KeyboardInterrupt" in ended.stderr and "terminate" not in ended.stderr
    assert os.listdir(path.parent) == []


def test_a_forked_process_ends_without_the_savers_of_its_parent(path):
    last = "begun.wait(); child = os.fork(); print(*os.waitpid(child, 0)[1:] if child else '')"
    ended = end_while_saving(path, KEEPS[0], last=last)
    assert (ended.returncode, ended.stdout.split()) == (0, ["0"])
    assert thalia.verify(path).ok


def test_a_saver_that_was_closed_says_so(path):
    code = """
import atexit, sys, numpy as np
def late():
    writer = thalia.Writer(sys.argv[1])
    writer.add("r/w", np.ones(3))
    for call in (lambda: saver.save(writer), saver.wait_all, lambda: saver.reserve(1), lambda: saver.snapshot_bytes):
        try:
            call()
        except thalia.UsageError as error:
            print(error.code, error)
    writer.commit()
atexit.register(late)  # before the package is there, so it runs after what the package does at the end
import thalia_checkpoint as thalia
saver = thalia.AsyncSaver()
"""
    ended = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "wrong_state the saver was closed, as the process ends\n" * 4
    assert thalia.verify(path).ok


def test_borrowed_arrays_may_come_later(path):
    array = np.zeros(100_000)
    gate = threading.Event()

    def ready():
        gate.wait()
        array[:] = 7

    saver = thalia.AsyncSaver(when_busy="queue")
    writer = thalia.Writer(path, durability="none")
    writer.add("r/w", array)
    handle = saver.save(writer, snapshot="borrowed", ready=ready)
    assert not handle.done and not path.exists()
    gate.set()
    handle.wait()
    with thalia.open(path) as file:
        assert (file["r/w"].numpy() == 7).all()

    def broken():
        raise RuntimeError("the device is gone")

    writer = thalia.Writer(path, durability="none")
    writer.add("r/w", np.ones(3))
    with pytest.raises(RuntimeError, match="the device is gone"):
        saver.save(writer, snapshot="borrowed", ready=broken).wait()
    assert thalia.open(path)["r/w"].shape == (100_000,)


def test_ctrl_c_ends_the_wait_for_background_saves_and_not_the_saves(path):
    saver = thalia.AsyncSaver()
    gate = threading.Event()
    writer = thalia.Writer(path, durability="none", progress=lambda *_: gate.wait())
    writer.add("r/w", np.ones(3))
    handle = saver.save(writer)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        saver.wait_all()
    assert not handle.done
    gate.set()
    saver.wait_all()
    assert handle.done and thalia.verify(path).ok


def test_ctrl_c_ends_the_wait_for_a_place(tmp_path):
    saver = thalia.AsyncSaver(max_snapshot_bytes=8 << 20)  # one save at a time
    gate = threading.Event()

    def declared(name, progress=None):
        writer = thalia.Writer(tmp_path / name, durability="none", progress=progress)
        writer.add("r/w", np.ones(600_000))
        return writer

    handle = saver.save(declared("first", lambda *_: gate.wait()))
    for waits in (lambda: saver.save(declared("second")), lambda: saver.reserve(6 << 20)):
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            waits()
        assert not handle.done
    gate.set()
    saver.wait_all()
    assert handle.done and [path.name for path in tmp_path.iterdir()] == ["first"]
    saver.save(declared("second")).wait()
    assert thalia.verify(tmp_path / "second").ok


def test_the_interpreter_runs_while_a_save_does(path):
    array = np.random.default_rng(0).normal(size=8 << 20).astype(np.float32)
    ticks = []
    done = threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    with thalia.Writer(path, compression="zstd", threads=1, durability="none") as writer:
        writer.add("r/w", array)
        begin = time.monotonic()
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(begin < tick < end for tick in ticks) > 5


def test_background_saves_take_a_copy(path):
    saver = thalia.AsyncSaver()
    array = np.arange(1 << 20)
    writer = thalia.Writer(path)
    writer.add("r/w", array)
    writer.metadata = {"step": 1}
    handle = saver.save(writer)
    array[:] = -1
    result = handle.wait()
    assert result.tensors == 1 and handle.done and handle.error is None
    assert handle.progress[0] == handle.progress[1] == array.nbytes
    with thalia.open(path) as file:
        np.testing.assert_array_equal(file["w"].numpy(), np.arange(1 << 20))
        assert file.metadata == {"step": 1}
    saver.wait_all()


def test_a_saver_that_is_dropped_finishes_its_saves(path):
    seen = []
    saver = thalia.AsyncSaver()
    writer = thalia.Writer(path, compression="zstd", progress=lambda *step: seen.append(step))
    writer.add("r/w", np.random.default_rng(0).normal(size=1 << 20))
    saver.save(writer)
    del saver, writer
    assert seen and thalia.verify(path).ok


def test_background_saves_are_awaited(path):
    async def save():
        saver = thalia.AsyncSaver()
        writer = thalia.Writer(path)
        writer.add("r/w", np.zeros(10))
        return await saver.save(writer)

    assert asyncio.run(save()).tensors == 1


def test_a_background_save_tells_its_error_and_can_be_cancelled(path):
    saver = thalia.AsyncSaver()
    writer = thalia.Writer(path, compression="zstd", compression_level=19, threads=1)
    writer.add("r/w", np.random.default_rng(0).integers(0, 255, 64 << 20, np.uint8))
    handle = saver.save(writer)
    with pytest.raises(TimeoutError):
        handle.wait(timeout=0.01)
    handle.cancel()
    with pytest.raises(thalia.CancelledError):
        handle.wait()
    assert isinstance(handle.error, thalia.CancelledError) and not path.exists()
    with pytest.raises(thalia.UsageError, match="committed"):
        saver.save(writer)


def test_what_a_callback_raised_can_be_asked_for_again(tmp_path):
    def progress(done, total):
        raise KeyError("mine")

    writer = thalia.Writer(tmp_path / "a.thalia", progress=progress)
    writer.add("w", np.zeros(1 << 20, np.float32))
    handle = thalia.AsyncSaver().save(writer)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            handle.wait()
        assert isinstance(handle.error, KeyError) and handle.error.args == ("mine",)
    assert list(tmp_path.iterdir()) == []

    # What the traceback leads to is freed, the handle too.
    gone = weakref.ref(handle)
    del handle
    gc.collect()
    assert gone() is None


def test_a_borrowed_snapshot_is_kept_until_the_save_has_ended(path):
    saver = thalia.AsyncSaver(when_busy="queue")
    data = [bytearray(os.urandom(8 << 20)) for _ in range(2)]
    gate = threading.Event()
    handles = []
    for i, array in enumerate(data):
        writer = thalia.Writer(f"{path}.{i}", durability="none")
        writer.add_bytes("r/w", "u8", (len(array),), array)
        handles.append(saver.save(writer, snapshot="borrowed", ready=gate.wait))
        with pytest.raises(BufferError):  # Python cannot resize what something looks at
            array.append(0)
        del writer
    handles[1].cancel()
    gate.set()
    saver.wait_all()
    assert saver.snapshot_bytes == 0
    assert (thalia.open(f"{path}.0")["r/w"].numpy() == np.frombuffer(data[0], np.uint8)).all()
    for array in data:
        array.append(0)


def test_a_borrowed_snapshot_is_let_go_where_the_save_fails_or_the_saver_ends(path):
    saver = thalia.AsyncSaver()
    data = bytearray(1000)
    writer = thalia.Writer(path, replace=False, durability="none")
    writer.add_bytes("r/w", "u8", (1000,), data)
    path.touch()
    with pytest.raises(thalia.ExistsError):
        saver.save(writer, snapshot="borrowed").wait()
    saver.wait_all()
    del writer
    data.append(0)
    writer = thalia.Writer(path, durability="none")
    writer.add_bytes("r/w", "u8", (1001,), data)
    with pytest.raises(thalia.UsageError, match="snapshot"):
        saver.save(writer, snapshot="lent")
    saver.save(writer, snapshot="borrowed")
    del writer, saver
    data.append(0)
    assert thalia.open(path)["r/w"].shape == (1001,)
