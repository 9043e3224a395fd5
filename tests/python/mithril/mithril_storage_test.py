"""Compressor over storages that users bring: objects with get, put, delete, exists and list."""

import asyncio
import pickle
import threading

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint.mithril import Compressor, StorageBackend


class Shelf:
    """A storage in memory that tells what it was asked."""

    def __init__(self):
        self.objects = {}
        self.asked = []

    def get(self, key):
        self.asked.append(("get", key))
        return self.objects[key]

    def put(self, key, data):
        self.asked.append(("put", key))
        self.objects[key] = data

    def delete(self, key):
        del self.objects[key]

    def exists(self, key):
        return key in self.objects

    def list(self, prefix):
        return [key for key in self.objects if key.startswith(prefix)]


class SlowShelf:
    """The same, with coroutines that need one loop."""

    def __init__(self):
        self.shelf = Shelf()
        self.loops = set()

    def __getattr__(self, name):
        if name not in ("get", "put", "delete", "exists", "list"):
            raise AttributeError(name)

        async def method(*arguments):
            self.loops.add(id(asyncio.get_running_loop()))
            await asyncio.sleep(0)
            return getattr(self.shelf, name)(*arguments)

        return method


def state(seed=0):
    return {"layer.weight": np.random.default_rng(seed).normal(size=(64, 64)).astype(np.float32)}


def same(a, b):
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


def test_a_storage_of_the_users_holds_checkpoints_and_differences():
    shelf = Shelf()
    assert isinstance(shelf, StorageBackend)
    compressor = Compressor(storage=shelf)
    compressor.save(state(), "run/1")
    changed = {"layer.weight": state()["layer.weight"].copy()}
    changed["layer.weight"][0, 0] += 1
    meta = compressor.save(changed, "run/2", previous_key="run/1", metadata={"lr": 0.5}, step=2)
    assert meta.previous_key == "run/1" and meta.compressed_size == len(shelf.objects["run/2"])
    assert [call for call in shelf.asked if call[0] == "put"] == [("put", "run/1"), ("put", "run/2")]
    assert all(type(data) is bytes and data[:4] == b"MCKP" for data in shelf.objects.values())
    assert same(compressor.load("run/2"), changed) and same(Compressor(shelf).load("run/1"), state())
    assert compressor.metadata("run/2") == ({"lr": 0.5}, 2)
    assert compressor.keys() == ["run/1", "run/2"] and "run/1" in compressor and "run/3" not in compressor
    assert compressor.delete("run/2") and not compressor.delete("run/2")
    assert list(shelf.objects) == ["run/1"]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_may_come_in_any_form(kind):
    shelf = Shelf()
    compressor = Compressor(shelf)
    compressor.save(state(), "a")
    shelf.objects["a"] = kind(shelf.objects["a"])
    assert same(compressor.load("a"), state())


def test_errors_of_the_storage_come_through_and_nothing_is_left():
    class Full(Shelf):
        def put(self, key, data):
            raise OSError(28, "the bucket is full")

        def list(self, prefix):
            raise PermissionError("no listing")

    full = Full()
    compressor = Compressor(full)
    with pytest.raises(OSError, match="the bucket is full") as caught:
        compressor.save(state(), "a")
    assert caught.value.errno == 28 and not isinstance(caught.value, thalia.ThaliaError)
    assert full.objects == {} and "a" not in compressor
    with pytest.raises(PermissionError, match="no listing"):
        compressor.keys()
    with pytest.raises(KeyError, match="never"):
        compressor.load("never")
    with pytest.raises(thalia.IoError, match="never"):
        Compressor(Shelf()).save(state(), "b", previous_key="never")


def test_a_state_that_cannot_be_saved_puts_nothing():
    shelf = Shelf()
    compressor = Compressor(shelf)
    compressor.save(state(), "a")
    before = dict(shelf.objects)
    with pytest.raises(thalia.UnsupportedError):
        compressor.save({"x": np.array([object()])}, "a")
    with pytest.raises(thalia.UsageError):
        compressor.save(state(), "../up")
    assert shelf.objects == before


def test_what_a_storage_must_have_is_checked_at_construction():
    class Half:
        def get(self, key):
            return b""

        def put(self, key, data):
            pass

    for storage in (Half(), {}, 3, None):
        with pytest.raises(TypeError, match="exists"):
            Compressor(storage)


def test_answers_of_a_wrong_type_are_named():
    class Odd(Shelf):
        def get(self, key):
            return None

        def list(self, prefix):
            return [1]

    compressor = Compressor(Odd())
    with pytest.raises(TypeError, match=r"storage\.get"):
        compressor.load("a")
    with pytest.raises(TypeError, match=r"storage\.list"):
        compressor.keys()


def test_damage_in_a_storage_is_found():
    shelf = Shelf()
    compressor = Compressor(shelf)
    compressor.save(state(), "a")
    whole = shelf.objects["a"]
    for damaged in (b"", whole[:10], whole[:-1], whole[:-40] + b"\0" * 40):
        shelf.objects["a"] = damaged
        with pytest.raises(thalia.ThaliaError):
            compressor.load("a")


def test_coroutines_are_a_storage_too():
    slow = SlowShelf()
    compressor = Compressor(slow)
    compressor.save(state(), "a")
    assert same(compressor.load("a"), state())
    slow.loops.clear()

    async def run():
        await compressor.asave(state(1), "b", previous_key="a")
        assert same(await compressor.aload("b"), state(1))
        return id(asyncio.get_running_loop())

    # A connection belongs to the loop that it was made in.
    assert asyncio.run(run()) in slow.loops and len(slow.loops) == 1
    assert compressor.keys() == ["a", "b"]


def test_many_threads_use_one():
    compressor = Compressor(Shelf())
    failed = []

    def work(i):
        try:
            for n in range(5):
                compressor.save(state(i), f"{i}/{n}")
                assert same(compressor.load(f"{i}/{n}"), state(i))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [] and len(compressor.keys()) == 30


def test_a_compressor_can_be_pickled_unless_it_is_memory(tmp_path):
    compressor = Compressor(tmp_path, compression_level=5, max_chain=3, quantization=8)
    compressor.save(state(), "a")
    again = pickle.loads(pickle.dumps(compressor))
    assert same(again.load("a"), compressor.load("a")) and again.config == compressor.config
    shelf = Shelf()
    Compressor(shelf).save(state(), "a")
    assert same(pickle.loads(pickle.dumps(Compressor(shelf))).load("a"), state())
    with pytest.raises(TypeError, match="mem://"):
        pickle.dumps(Compressor())


def test_a_checkpoint_in_memory_is_the_file_that_would_be_stored(tmp_path):
    compressor = Compressor(tmp_path)
    made = compressor.compress(state(), metadata={"a": 1}, step=3)
    assert made.meta.compressed_size == len(made.data) and made.meta.key == ""
    (tmp_path / "a.mckp").write_bytes(made.data)
    assert same(compressor.load("a.mckp"), state()) and compressor.metadata("a.mckp") == ({"a": 1}, 3)
    assert same(compressor.decompress(made), state()) and same(compressor.decompress(bytes(made.data)), state())
    delta = compressor.compress(state(), "a.mckp")
    assert delta.meta.previous_key == "a.mckp" and same(compressor.decompress(delta), state())
    with pytest.raises(thalia.ThaliaError):
        Compressor().decompress(delta)  # where its base is not
    with pytest.raises(thalia.FormatError):
        compressor.decompress(b"no checkpoint")
    with pytest.raises(TypeError):
        compressor.decompress("text")
