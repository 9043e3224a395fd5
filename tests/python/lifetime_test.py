"""Threads, forks, and what is left behind."""

import gc
import os
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import thalia_checkpoint as thalia


@pytest.fixture
def many(path):
    with thalia.Writer(path, durability="none") as writer:
        for i in range(20):
            writer.add(f"r/w{i}", np.full(1000, i))
    return path


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_a_thousand_threads_open_and_close(many):
    errors = []

    def work(i):
        try:
            with thalia.open(many) as file:
                name = f"w{i % 20}"
                assert (file["r"][name].numpy() == i % 20).all()
                assert (file[name][5:9] == i % 20).all()
                with pytest.raises(KeyError):
                    file["nope"]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_file_is_used_after_a_fork(many):
    file = thalia.open(many)
    before = file["w1"].numpy()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ok = (file["w3"].numpy() == 3).all() and (before == 1).all()
            with thalia.Writer(f"{many}.child", durability="none") as writer:
                writer.add("r/w", np.zeros(3))
            with thalia.open(f"{many}.child") as other:
                status = 0 if ok and other["w"].shape == (3,) else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert (file["w4"].numpy() == 4).all()


def test_ten_thousand_loads_leave_nothing(many, tmp_path):
    def load():
        with thalia.open(many) as file:
            file["r"]["w7"].numpy()
            file["w3"][2:5]
            assert file.metadata == {}
        try:
            thalia.open(tmp_path / "nope")
        except FileNotFoundError:
            pass

    for _ in range(200):
        load()
    gc.collect()
    before = resident_bytes()
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    for _ in range(10_000):
        load()
    gc.collect()
    assert tracemalloc.get_traced_memory()[0] - held < 100_000
    tracemalloc.stop()
    if "THALIA_SANITIZED" not in os.environ:  # a sanitizer keeps what was freed for a while
        assert resident_bytes() - before < 8 << 20
    assert len(os.listdir("/proc/self/fd")) < 50


def test_writers_let_go_of_their_arrays(path):
    for finish in ("commit", "abandon", "drop"):
        array = bytearray(1000)
        writer = thalia.Writer(path, durability="none")
        writer.add_bytes("r/w", "u8", (1000,), array)
        with pytest.raises(BufferError):
            array.append(1)  # lent to the writer
        if finish != "drop":
            getattr(writer, finish)()
        del writer
        gc.collect()
        array.append(1)


HELD = """
import multiprocessing, sys, threading
import numpy as np
import thalia_checkpoint as thalia

kept, forever = [], threading.Event()

def hold(path):
    file = thalia.open(path)
    tensors = [file["r"][f"w{i}"] for i in range(20)]
    stream = file.stream()
    source = thalia.stream_params(path)
    arrays = [tensor.numpy() for tensor in tensors]
    kept.append((arrays, tensors, file, stream, next(stream), source, source.load("w3")))
    return sum(float(array[0]) for array in arrays)

def hold_on(path, holding):
    here = thalia.open(path)["w5"].numpy()
    holding.set()
    forever.wait()

def threads(path):
    holding = threading.Event()
    threading.Thread(target=hold_on, args=(path, holding), daemon=True).start()
    holding.wait()
    return hold(path)

if __name__ == "__main__":
    path, where, method = sys.argv[1:]
    work = {"main": hold, "thread": threads}[where]
    print(work(path))
    if method != "alone":
        pool = multiprocessing.get_context(method).Pool(2)
        print(*pool.map(work, [path] * 4, chunksize=1))
        print(*pool.map(np.sum, kept[0][0][:3]))
        pool.close()
        pool.join()
"""


@pytest.mark.usefixtures("silent_tracker")
@pytest.mark.parametrize("where", ["main", "thread"])
@pytest.mark.parametrize("method", ["alone", "fork", "spawn", "forkserver"])
def test_what_is_held_at_the_end_of_a_process_is_no_matter(many, tmp_path, method, where):
    (tmp_path / "held.py").write_text(HELD)
    ended = subprocess.run(
        [sys.executable, tmp_path / "held.py", many, where, method], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    pooled = [] if method == "alone" else ["190.0 190.0 190.0 190.0", "0 1000 2000"]
    assert ended.stdout.splitlines() == ["190.0", *pooled]
