"""Wrong calls while something runs: from its callbacks, from other threads, and in forked children."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import _core

ARRAY = np.zeros(1 << 20, np.float32)
#: Of each method of the core's writer arguments that it takes, so that what is refused is the call.
CALLS = {
    "set_metadata": ("{}",),
    "set_training_steps": (1,),
    "add_region": ("other", 0, 0, "none", "{}", "", 0),
    "add_tensor": (0, "late", "f32", (1,), "weights", b"four"),
    "add_tensors": ([("late", "f32", (1,), b"four")], {}, {}),
    "add_sparse": (0, "late", "f32", (1, 1), "weights", False, None, b"fourfour", b"four"),
    "add_connection": ("r", "r", "f32", (1, 1), b"four", "f32", (), None),
    "commit": (),
    "abandon": (),
}


def writer_of(path, **options):
    writer = thalia.Writer(path, durability="none", **options)
    writer.add("r/w", ARRAY)
    return writer


def refusals(calls):
    """What each of the calls raised, which has to be a UsageError of one kind."""
    told = []
    for call in calls:
        with pytest.raises(thalia.UsageError) as caught:
            call()
        assert caught.value.code == "wrong_state"
        told.append(str(caught.value))
    return told


def all_calls(writer):
    raw = writer._raw
    methods = {name for name in dir(_core.Writer) if not name.startswith("_") and name != "is_open"}
    assert methods == CALLS.keys()  # a new one is tried as well
    yield lambda: raw.is_open
    for name, arguments in CALLS.items():
        yield lambda name=name, arguments=arguments: getattr(raw, name)(*arguments)
    yield writer.commit
    yield writer.abandon
    yield lambda: writer.add("r/late", ARRAY)
    yield lambda: writer.region("late")
    yield lambda: thalia.AsyncSaver().save(writer)


def is_as_declared(path):
    with thalia.open(path) as file:
        return list(file) == ["r"] and list(file["r"]) == ["w"] and thalia.verify(path).ok


def test_callbacks_of_a_save_cannot_use_their_writer(path):
    told = []
    writer = writer_of(path, progress=lambda done, total: told.extend(refusals(all_calls(writer))))
    writer.commit()
    assert told and all("the writer is in use" in text for text in told) and is_as_declared(path)


@pytest.mark.parametrize("call", ["commit", "abandon"])
def test_a_wrong_call_that_a_callback_lets_through_ends_the_save(path, call):
    writer = writer_of(path, progress=lambda done, total: getattr(writer, call)())
    with pytest.raises(thalia.UsageError, match="in use"):
        writer.commit()
    assert os.listdir(path.parent) == []
    with pytest.raises(thalia.UsageError, match="failed before"):
        writer.commit()
    writer.abandon()


def test_other_threads_cannot_use_a_writer_that_commits(path):
    begun, tried = threading.Event(), threading.Event()
    told = []

    def progress(done, total):
        begun.set()
        assert tried.wait(60)

    writer = writer_of(path, progress=progress)

    def other():
        assert begun.wait(60)
        told.extend(refusals(all_calls(writer)))
        tried.set()

    thread = threading.Thread(target=other)
    thread.start()
    writer.commit()
    thread.join()
    assert told and is_as_declared(path)


def test_a_writer_that_waits_for_a_saver_is_in_use(path):
    gate, waits = threading.Event(), threading.Event()
    saver = thalia.AsyncSaver()
    first = saver.save(writer_of(path.with_name("first.thalia")), snapshot="borrowed", ready=gate.wait)
    writer = writer_of(path)
    finish = type(writer)._finish
    writer._finish = lambda: (finish(writer), waits.set())
    results = []
    thread = threading.Thread(target=lambda: results.append(saver.save(writer).wait()))
    thread.start()
    assert waits.wait(60)
    while True:  # it has begun to wait
        try:
            writer._raw.is_open  # noqa: B018
        except thalia.UsageError:
            break
    del writer._finish
    refusals(all_calls(writer))
    gate.set()
    thread.join()
    first.wait()
    assert results and is_as_declared(path)


def test_what_makes_tensors_may_use_the_writer(path):
    def tensors():
        for i in range(3):
            writer.region(f"layers.{i}", n_neurons=i)
            yield f"layers.{i}.weight", "f32", (1,), b"four"

    with thalia.Writer(path, durability="none") as writer:
        writer.add_tensors(tensors())
    with thalia.open(path) as file:
        assert [file.region(name).n_neurons for name in file] == [0, 1, 2]


@pytest.mark.parametrize("when_busy", ["wait", "queue", "replace", "skip"])
def test_callbacks_of_a_save_cannot_wait_for_their_saver(path, when_busy):
    saver = thalia.AsyncSaver(when_busy=when_busy)
    began = threading.Event()
    told = []

    def look(*_):
        assert began.wait(60)
        other = writer_of(path.with_name("other.thalia"))
        calls = [lambda: saver.save(other), saver.wait_all, lambda: saver.reserve(1), handle.wait]
        told.extend(refusals([*calls, lambda: handle.wait(1)]))
        assert not handle.done and handle.error is None and handle.progress[1] >= 0 and saver.snapshot_bytes >= 0
        other.commit()

    handle = saver.save(writer_of(path, progress=look), snapshot="borrowed", ready=look)
    began.set()
    handle.wait()
    saver.wait_all()
    assert len(told) >= 10 and all("would wait for itself" in text for text in told)
    assert is_as_declared(path) and is_as_declared(path.with_name("other.thalia"))


def run(code, path, timeout=120, errors=False):
    """A process of its own, which may hang or end in a signal: (status, what it prints, what is left).

    Of one that hangs, and of its children, the stacks are told. errors: that it writes to stderr comes
    after these; else it writes nothing there.
    """
    before = f"""
import faulthandler, os, sys, threading, time, signal
import numpy as np, thalia_checkpoint as thalia
faulthandler.enable()
path = {os.fspath(path)!r}
"""
    # Newer versions of Python warn of any fork beside threads. What waits in a buffer would be written by each child.
    command = [sys.executable, "-u", "-W", "ignore::DeprecationWarning", "-c", before + code]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            printed, complained = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)
            pytest.fail("\n".join([f"it hangs after {timeout} s", *process.communicate()]))
    assert errors or complained == ""
    told = process.returncode, printed, sorted(os.listdir(path.parent))
    return (*told, complained) if errors else told


def test_a_callback_may_hold_the_last_reference_to_its_saver(path):
    code = """
def begin():
    saver = thalia.AsyncSaver()
    writer = thalia.Writer(path, durability="none", progress=lambda *_: (time.sleep(0.3), saver.snapshot_bytes))
    writer.add("r/w", np.zeros(1 << 20))
    return saver.save(writer)
handle = begin()
handle.wait()
time.sleep(0.3)
print("ended")
"""
    assert run(code, path) == (0, "ended\n", [path.name])


#: What a daemon thread does while the process ends.
BUSY = {
    "read": "file['w'].numpy()",
    "slice": "file['w'][5:9000]",
    "open": "thalia.open(path)['w'].numpy()",
    "stream": "list(file.stream())",
    "verify": "thalia.verify(path)",
    "convert": "thalia.convert(path, path + '.npz', replace=True, durability='none')",
    "commit": "commit(None)",
    "commit with progress": "commit(lambda done, total: None)",
    "commit with progress that waits": "commit(lambda done, total: time.sleep(0.01))",
    "wait": "gone.wait(), time.sleep(0.001)",
    "save": "saver.save(declared()).wait()",
}


@pytest.mark.parametrize("what", BUSY)
def test_a_process_ends_with_daemon_threads_at_work(path, what):
    code = f"""
def declared(progress=None, **options):
    writer = thalia.Writer(path + ".other", durability="none", compression="zstd", progress=progress)
    writer.add("r/w", array)
    return writer
def commit(progress):
    declared(progress).commit()
array = np.random.default_rng(0).normal(size=1 << 21).astype(np.float32)
saver = thalia.AsyncSaver()
with thalia.Writer(path, durability="none", compression="zstd") as writer:
    writer.add("r/w", array)
file = thalia.open(path)
gone = saver.save(declared())
gone.wait()
begun = threading.Event()
def work():
    while True:
        begun.set()
        try:
            {BUSY[what]}
        except thalia.UsageError as error:
            assert "the saver was closed" in str(error)
            time.sleep(1)
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for thread in threads[: 1 if "{what}" in ("convert", "save") or "commit" in "{what}" else 3]:
    thread.start()
begun.wait()
time.sleep(0.15)
"""
    status, printed, left = run(code, path)
    assert (status, printed) == (0, "") and not [name for name in left if "tmp" in name]
    assert thalia.verify(path).ok and thalia.verify(f"{path}.other").ok


def test_what_is_registered_for_the_end_may_save_with_callbacks(path):
    code = """
seen = []
def late():
    def look(*step):
        seen.append(float(file["w"].numpy()[3]))  # which lets go of the GIL
        thalia.verify(path)
    with thalia.Writer(path, durability="none", compression="zstd") as writer:
        writer.add("r/w", np.ones(1 << 20, np.float32))
    file = thalia.open(path)
    with thalia.Writer(path, durability="none", progress=look) as writer:
        writer.add("r/w", np.zeros(1 << 20, np.float32))
    print(thalia.verify(path).ok, set(seen) == {1.0})
"""
    before = "import atexit\natexit.register(lambda: late())  # so it runs after what the package does\n"
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{before}import numpy as np, thalia_checkpoint as thalia\npath = {os.fspath(path)!r}{code}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True True\n", "")


CHILD = """
def in_child(function):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            print("child", function(), flush=True)
        except thalia.UsageError as error:
            print("refused", error.code, "belongs to process" in str(error), flush=True)
        sys.exit(0)  # with all that Python does at its end
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
array = np.random.default_rng(0).normal(size=1 << 21).astype(np.float32)
def declared(path, **options):
    writer = thalia.Writer(path, durability="none", compression="zstd", **options)
    writer.add("r/w", array)
    return writer
"""
REFUSED = "refused wrong_state True\n"


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize(
    "call, told",
    [
        ("saver.save(declared(path + '.child')).wait()", REFUSED),
        ("saver.wait_all()", REFUSED),
        ("saver.reserve(1 << 20)", REFUSED),
        ("saver.snapshot_bytes", "child 0\n"),
        ("handle.wait(5).tensors", "child 1\n"),
        ("handle.done", "child True\n"),
        ("handle.error", "child None\n"),
        ("handle.cancel()", "child None\n"),
        ("globals().pop('saver') and None", "child None\n"),
        ("thalia.AsyncSaver().save(declared(path)).wait().tensors", "child 1\n"),
    ],
)
def test_a_saver_in_a_forked_child_is_refused_and_a_new_one_works(path, call, told, pending):
    code = f"""{CHILD}
gate = threading.Event()
saver = thalia.AsyncSaver()
handle = saver.save(declared(path), snapshot="borrowed", ready=gate.wait)
if not {pending}:
    gate.set()
    handle.wait()
print(in_child(lambda: {call}))
gate.set()
print(handle.wait().tensors)
"""
    if pending and call.startswith("handle."):
        told = REFUSED
    assert run(code, path) == (0, f"{told}0\n1\n", [path.name])


@pytest.mark.parametrize(
    "call, told",
    [
        ("writer.commit()", REFUSED),
        ("writer.add('r/v', array)", REFUSED),
        ("writer.region('q')", REFUSED),
        ("writer.abandon()", "child None\n"),
        ("globals().pop('writer') and None", "child None\n"),
    ],
)
@pytest.mark.parametrize("into", ["path", "os.open(path, os.O_RDWR | os.O_CREAT)"])
def test_a_writer_that_is_open_over_a_fork_stays_its_parents(path, call, told, into):
    code = f"""{CHILD}
writer = declared({into})
print(in_child(lambda: {call}))
print(writer.commit().tensors)
"""
    assert run(code, path) == (0, f"{told}0\n1\n", [path.name])
    assert thalia.verify(path).ok


def test_a_stream_that_is_open_over_a_fork_stays_its_parents(path):
    code = f"""{CHILD}
with thalia.Writer(path, durability="none", compression="zstd") as writer:
    for i in range(64):
        writer.add(f"r/t{{i}}", array[: 1 << 16])
file = thalia.open(path)
stream = file.stream()
next(stream)
print(in_child(lambda: next(stream)[0]))
print(in_child(lambda: globals().pop("stream") and None))
print(in_child(lambda: len(list(file.stream()))))
print(len(list(stream)))
"""
    assert run(code, path) == (0, f"{REFUSED}0\nchild None\n0\nchild 64\n0\n63\n", [path.name])


def test_children_let_go_of_what_a_stream_gave(path):
    code = f"""{CHILD}
with thalia.Writer(path, durability="none", compression="zstd") as writer:
    for i in range(8):
        writer.add(f"r/t{{i}}", array)
def let_go():
    kept.clear()
    stream.close()
for _ in range(8):
    stream = thalia.open(path).stream()
    kept = [next(stream)]
    assert in_child(let_go) == 0  # whatever the threads of the stream were at
    stream.close()
"""
    assert run(code, path) == (0, "child None\n" * 8, [path.name])


@pytest.mark.parametrize("last", ["return", "sys.exit(3)", "raise ValueError"])
def test_a_child_that_is_forked_in_a_callback_is_told_that_it_ends(path, last):
    code = f"""
import os, sys
seen = []
def progress(done, total):
    if seen:
        return
    seen.append(os.fork())
    if seen == [0]:
        {last}
with thalia.Writer(path, durability="none", progress=progress) as writer:
    writer.add("w", np.zeros(1 << 18))
print(os.waitstatus_to_exitcode(os.waitpid(seen[0], 0)[1]))
"""
    ended, told, names, complained = run(code, path, errors=True)
    assert (ended, told, names) == (0, "1\n", [path.name])
    assert "cannot return from it: end it with os._exit()" in complained
    assert thalia.verify(path).ok


@pytest.mark.parametrize("ends", ["another thread", "its own callback"])
def test_a_run_that_is_closed_while_a_save_begins(path, ends):
    code = f"""
import os, sys, threading, time
from thalia_checkpoint import store
folder = path + ".run"
store.create_run(folder, {{"phases": [{{"name": "train"}}]}})
saver = thalia.AsyncSaver()
for step in range(1, 60):
    run = store.RunWriter(folder, durability="none", wait=True)  # what ends in a callback ends after it
    close = run.close if {ends == "its own callback"} else lambda: None
    def save():
        try:
            writer = run.new_checkpoint(step, progress=lambda *_: None)
            writer.add("q/a", np.zeros(1000, np.float32))
            run.save_async(saver, writer, ready=close)
        except thalia.UsageError:
            pass
    thread = threading.Thread(target=save)
    thread.start()
    time.sleep(0.0001 * (step % 10))
    run.close()
    thread.join()
    saver.wait_all()
print("done")
"""
    assert run(code, path)[:2] == (0, "done\n")


def test_children_read_what_a_thread_of_the_parent_reads(path):
    code = f"""{CHILD}
with thalia.Writer(path, durability="none", compression="zstd") as writer:
    for i in range(64):
        writer.add(f"r/t{{i}}", array[: 1 << 16])
def read(file):
    while not stop:
        for i in range(64):
            file[f"t{{i}}"].numpy()
        begun.set()
for access in ("mapped", "copied"):
    stop, begun = False, threading.Event()
    file = thalia.open(path, access=access)
    thread = threading.Thread(target=read, args=(file,))
    thread.start()
    begun.wait()
    for _ in range(10):
        assert in_child(lambda: float(file["t63"].numpy()[0]) == float(array[0])) == 0
    stop = True
    thread.join()
"""
    assert run(code, path) == (0, "child True\n" * 20, [path.name])


# Their allocator is not held over a fork: a child waits for good for what a thread of its parent was allocating.
@pytest.mark.skipif("THALIA_SANITIZED" in os.environ, reason="a sanitizer's allocator may hang in the child")
def test_children_are_forked_while_callbacks_begin(path):
    with thalia.Writer(path, durability="none") as writer:
        writer.add_tensors((f"r/t{i}", "f32", (1,), b"four") for i in range(20_000))
    code = """
over = threading.Event()
def progress(done, total):
    if over.is_set():
        raise InterruptedError
def work(k):
    while not over.is_set():
        try:
            thalia.convert(path, f"{path}.{k}.npz", replace=True, durability="none", progress=progress)
        except InterruptedError:
            pass
threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
for thread in threads:
    thread.start()
for _ in range(500):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    end = time.monotonic() + 20
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            print("a child hangs")
            over.set()
            os._exit(1)
        time.sleep(0.0001)
over.set()
for thread in threads:
    thread.join()
"""
    status, printed, _ = run(code, path, timeout=300)
    assert (status, printed) == (0, "")
