"""A publisher and a follower of one run, in one process and in two."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import store

CHAIN = {"deltas": {"policy": "every", "full_every": 256}, "phases": [{"name": "train", "retention": {"keep_last": 1}}]}
SOON = 60.0
TRAINER = """
import sys
import numpy as np
import thalia_checkpoint as thalia

with thalia.Publisher(sys.argv[1], durability="none") as publisher:
    step = (publisher.newest or 0) + 1
    while True:
        publisher.publish({"w": np.full((64, 64), step, np.float32), "step": step}, step=step)
        print(step, flush=True)
        step += 1
"""


def state_of(step):
    weights = np.ones((64, 64), np.float32)
    weights[0] = step
    return {"w": weights, "b": np.zeros(64, np.int64), "step": step}


@pytest.fixture
def folder(tmp_path):
    store.create_run(tmp_path / "run", CHAIN)
    return tmp_path / "run"


def test_what_is_published_is_followed(folder):
    with thalia.Publisher(folder, durability="none") as publisher, thalia.Follower(folder) as follower:
        assert publisher.newest is None and publisher.phase == "train"
        for step in (1, 2, 3):
            published = publisher.publish(state_of(step), step=step)
            assert published.entry.step == publisher.newest == step and published.tensors == 2
            assert published.changed == (2 if step == 1 else 1) and published.from_memory == (step > 1)
            assert 0 < published.visible_seconds <= published.seconds
            update = follower.wait(SOON)
            assert update.step == step and update.path == published.path and update.deltas == (step > 1)
            assert np.array_equal(follower.current()["w"].numpy(), state_of(step)["w"])
        assert pickle.loads(pickle.dumps(published)) == published
        loaded = thalia.load(store.Run(folder).restore(folder.parent / "o.thalia").entry and folder.parent / "o.thalia")
        assert loaded["step"] == 3 and np.array_equal(loaded["w"], state_of(3)["w"])
        with pytest.raises(thalia.UsageError, match="step"):
            publisher.publish(state_of(3), step=3)
        assert follower.wait(0) is None
    with pytest.raises(thalia.UsageError, match="closed"):
        publisher.publish(state_of(4), step=4)


def test_a_state_that_was_copied_may_change(folder):
    with thalia.Publisher(folder, durability="none") as publisher, thalia.Follower(folder) as follower:
        state = state_of(1)
        handles = []
        for step in (1, 2):
            state["w"][0] = step
            handles.append(publisher.publish_async(state, step=step))
            state["w"][0] = -1
        assert [handle.wait().entry.step for handle in handles] == [1, 2]
        while follower.wait(SOON).step < 2:
            pass
        assert np.array_equal(follower.current()["w"].numpy(), state_of(2)["w"])


def test_writers_and_brains_are_published(folder):
    with store.RunWriter(folder) as run, thalia.Publisher(run, hold=False) as publisher:
        assert publisher.writer is run
        with publisher.new_checkpoint(1) as writer:
            writer.add("layers/w", np.ones(8, np.float32))
        assert writer.published.entry.step == 1 and not writer.published.from_memory
        with pytest.raises(thalia.IoError, match="lock"):
            thalia.Publisher(folder)
        brain = {"regions": {"cortex": {"weights": {"w": np.ones((4, 3), np.float32)}}}, "training_steps": 1}
        assert publisher.publish_brain(brain, step=2).entry.step == 2
        with thalia.Follower(folder) as follower:
            follower.wait(SOON)
            assert np.array_equal(follower.current()["cortex/w"].numpy(), np.ones((4, 3)))
        publisher.close()
        assert run.run.latest().step == 2
    with pytest.raises(thalia.NotFoundError):
        thalia.Publisher(folder, phase="other")
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(publisher)


def test_a_publisher_that_is_killed_goes_on_and_is_followed(folder):
    memory = np.zeros((64, 64), np.float32)
    follower = thalia.Follower(folder, memory={"w": memory})
    last = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", TRAINER, folder], stdout=subprocess.PIPE, text=True)
        for _ in range(4):
            update = follower.wait(SOON)
            assert update.step > last and (memory == update.step).all()
            last = update.step
        process.kill()
        told = max(int(line) for line in process.stdout if line.endswith("\n"))
        process.wait()
        process.stdout.close()
        while last < told:
            last = follower.wait(SOON).step
        assert (memory == last).all()
