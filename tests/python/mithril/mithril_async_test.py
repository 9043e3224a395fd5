"""asave() and aload(): checkpoints of coroutines."""

import asyncio
import os
import signal
import threading

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.mithril import Compressor


def state(seed=0, n=64):
    return {"layer.weight": np.random.default_rng(seed).normal(size=(n, n)).astype(np.float32)}


def same(a, b):
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


class Gate:
    """A storage whose put waits until it is let through."""

    def __init__(self):
        self.objects = {}
        self.reached = threading.Event()
        self.let = threading.Event()

    def put(self, key, data):
        self.reached.set()
        assert self.let.wait(60)
        self.objects[key] = data

    def get(self, key):
        return self.objects[key]

    def delete(self, key):
        del self.objects[key]

    def exists(self, key):
        return key in self.objects

    def list(self, prefix):
        return list(self.objects)


def test_what_is_saved_and_loaded_is_what_save_and_load_do(tmp_path):
    async def run():
        compressor = Compressor(tmp_path)
        meta = await compressor.asave(state(), "a", metadata={"x": 1}, step=4)
        assert meta.key == "a" and compressor.metadata("a") == ({"x": 1}, 4)
        delta = await compressor.asave(state(), key="b", previous_key="a")
        assert delta.previous_key == "a"
        assert same(await compressor.aload("b"), state()) and same(compressor.load("a"), state())
        many = [compressor.asave(state(i), f"many/{i}") for i in range(20)]
        assert [meta.key for meta in await asyncio.gather(*many)] == [f"many/{i}" for i in range(20)]
        for i, loaded in enumerate(await asyncio.gather(*(compressor.aload(f"many/{i}") for i in range(20)))):
            assert same(loaded, state(i))

    asyncio.run(run())
    assert same(Compressor(tmp_path).load("many/7"), state(7))


def test_the_loop_runs_on_and_the_state_may_change_meanwhile():
    gate = Gate()
    mine = state()

    async def run():
        compressor = Compressor(gate)
        saving = asyncio.ensure_future(compressor.asave(mine, "a"))
        while not gate.reached.is_set():
            await asyncio.sleep(0.001)
        mine["layer.weight"][:] = 0
        assert not saving.done()
        gate.let.set()
        await saving
        assert same(await compressor.aload("a"), state())

    asyncio.run(run())


def test_errors_are_those_of_save_and_load(tmp_path):
    async def run():
        compressor = Compressor(tmp_path)
        with pytest.raises(thalia.IoError, match="never"):
            await compressor.aload("never")
        with pytest.raises(thalia.IoError, match="never"):
            await compressor.asave(state(), "a", previous_key="never")
        with pytest.raises(thalia.UsageError):
            await compressor.asave(state(), "../a")
        with pytest.raises(thalia.UnsupportedError):
            await compressor.asave({"x": np.array([object()])}, "a")
        assert compressor.keys() == []

    asyncio.run(run())


def test_a_cancelled_task_ends_its_save_and_leaves_what_was_there(tmp_path):
    # Long enough that the task is cancelled in its midst: level 22 on several MiB.
    big = state(1, 2048)

    async def run():
        compressor = Compressor(tmp_path, compression_level=22, threads=1)
        await compressor.asave(state(), "a")
        before = (tmp_path / "a").read_bytes()
        saving = asyncio.ensure_future(compressor.asave(big, "a"))
        await asyncio.sleep(0.2)
        assert not saving.done()
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
        assert (tmp_path / "a").read_bytes() == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
        # The compressor goes on.
        await compressor.asave(state(3), "b")
        assert same(await compressor.aload("b"), state(3))

    asyncio.run(run())


def test_ctrl_c_ends_a_save_and_leaves_what_was_there(tmp_path):
    compressor = Compressor(tmp_path, compression_level=22, threads=1)
    compressor.save(state(), "a")
    before = (tmp_path / "a").read_bytes()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compressor.save(state(1, 2048), "a")
    timer.join()
    assert (tmp_path / "a").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    compressor.save(state(2), "b")
    assert same(compressor.load("b"), state(2))


def test_other_saves_of_the_compressor_are_not_cancelled():
    gate = Gate()

    async def run():
        compressor = Compressor(gate)
        first = asyncio.ensure_future(compressor.asave(state(1), "first"))
        second = asyncio.ensure_future(compressor.asave(state(2), "second"))
        while not gate.reached.is_set():
            await asyncio.sleep(0.001)
        first.cancel()
        await asyncio.sleep(0.01)
        gate.let.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        await second
        assert same(await compressor.aload("second"), state(2))

    asyncio.run(run())
