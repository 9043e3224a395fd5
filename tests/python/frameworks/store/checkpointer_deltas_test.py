"""Deltas of a training that are saved beside it: through restarts, kills, damage, failures and retention."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from contextlib import suppress

import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint import store
from thalia_checkpoint.torch import AsyncCheckpointer, load


class Counting:
    """A state that is a little different in each step."""

    def __init__(self, step=0, size=40_000):
        self.weight = torch.zeros(size)
        self.at(step)

    def at(self, step):
        self.weight.zero_()
        self.weight[: step + 1] = step

    def state_dict(self):
        return {"weight": self.weight}

    def load_state_dict(self, state):
        self.weight.copy_(state["weight"])


def a_run(folder, full_every=4, **retention):
    phase = {"name": "train", "retention": retention, "metric": {"name": "loss", "direction": "min"}}
    deltas = {"policy": "every", "full_every": full_every}
    store.create_run(folder, {"deltas": deltas, "phases": [phase]})


def depths(folder):
    return {entry.step: entry.depth for entry in store.Run(folder).list()}


def check(folder):
    """Every checkpoint is bit for bit what was saved."""
    run = store.Run(folder)
    for entry in run.list():
        weight = load(run.load(step=entry.step).path)["model"]["weight"]
        assert torch.equal(weight, Counting(entry.step, len(weight)).weight)


def train_to(folder, last, first=1, metric=None, **options):
    state = Counting()
    with AsyncCheckpointer(state, folder=folder, every=1, delta=True, **options) as checkpoints:
        resumed = checkpoints.resume()
        begin = resumed.step + 1 if resumed else first
        if resumed:
            assert torch.equal(state.weight, Counting(resumed.step).weight)
        for step in range(begin, last + 1):
            state.at(step)
            checkpoints.step(step, metric=None if metric is None else metric(step))
            checkpoints.wait()  # so that the next is a delta of this one
            state.at(0)  # a copy was taken
    return begin


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_restart_does_not_begin_a_chain_anew_and_what_is_kept_keeps_its_bases(tmp_path):
    a_run(tmp_path / "r")
    assert train_to(tmp_path / "r", 2, keep=1) == 1
    assert depths(tmp_path / "r") == {1: 0, 2: 1}
    assert train_to(tmp_path / "r", 4, keep=1) == 3
    assert depths(tmp_path / "r") == {1: 0, 2: 1, 3: 2, 4: 3}
    check(tmp_path / "r")
    assert train_to(tmp_path / "r", 5, keep=1) == 5
    assert depths(tmp_path / "r") == {5: 0}
    check(tmp_path / "r")
    assert store.Run(tmp_path / "r").verify().ok


def test_bases_that_are_not_kept_leave_full_files(tmp_path):
    phase = {"name": "train", "retention": {"keep_last": 1, "needed_bases": "squash"}}
    store.create_run(tmp_path / "r", {"deltas": {"policy": "every", "full_every": 4}, "phases": [phase]})
    train_to(tmp_path / "r", 3, keep=2)
    assert list(depths(tmp_path / "r")) == [2, 3]
    assert store.Run(tmp_path / "r").config["phases"][0]["retention"]["needed_bases"] == "squash"
    check(tmp_path / "r")


def test_the_best_stays_with_what_it_is_based_on(tmp_path):
    a_run(tmp_path / "r", full_every=3)
    train_to(tmp_path / "r", 8, keep=1, metric=lambda step: abs(step - 2.0))
    assert store.Run(tmp_path / "r").best().step == 2
    # 2 is based on 1, and 8 on 7.
    assert depths(tmp_path / "r") == {1: 0, 2: 1, 7: 0, 8: 1}
    check(tmp_path / "r")
    train_to(tmp_path / "r", 10, keep=1, metric=lambda step: 5.0)
    assert store.Run(tmp_path / "r").best().step == 2 and set(depths(tmp_path / "r")) == {1, 2, 10}
    check(tmp_path / "r")


@pytest.mark.parametrize("cut", [True, False])
def test_after_damage_the_run_goes_on_from_what_is_whole(cut, tmp_path):
    a_run(tmp_path / "r")
    train_to(tmp_path / "r", 3)
    run = store.Run(tmp_path / "r")
    path = run.path_of(run.latest())
    os.truncate(path, 100) if cut else flip(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is passed over
        state = Counting()
        with AsyncCheckpointer(state, folder=tmp_path / "r", every=1, keep=2, delta=True) as checkpoints:
            assert checkpoints.resume().step == 2 and torch.equal(state.weight, Counting(2).weight)
            for step in (3, 4):
                state.at(step)
                checkpoints.step(step)
                checkpoints.wait()
    assert depths(tmp_path / "r") == {1: 0, 2: 1, 3: 0, 4: 1} or depths(tmp_path / "r") == {3: 0, 4: 1}
    check(tmp_path / "r")


def test_a_base_that_is_damaged_while_the_training_runs_makes_a_full_file(tmp_path):
    a_run(tmp_path / "r")
    state = Counting()
    with AsyncCheckpointer(state, folder=tmp_path / "r", every=1, delta=True) as checkpoints:
        for step in (1, 2):
            state.at(step)
            checkpoints.step(step)
            checkpoints.wait()
        os.truncate(checkpoints.checkpoints()[-1], 100)
        state.at(3)
        with pytest.warns(UserWarning, match="step 3 of train is a full file, as a delta has no base") as warned:
            checkpoints.step(3)
            checkpoints.wait()
        assert {each.filename for each in warned} == {__file__}
        state.at(4)
        checkpoints.step(4)
    assert {step: depths(tmp_path / "r")[step] for step in (3, 4)} == {3: 0, 4: 1}
    assert torch.equal(load(store.Run(tmp_path / "r").load().path)["model"]["weight"], Counting(4).weight)


@pytest.mark.filterwarnings("ignore:step 2 of train was not saved")
def test_after_a_save_that_failed_the_next_is_a_delta_of_what_is_there(tmp_path):
    a_run(tmp_path / "r")

    def fails(done, total):
        raise ZeroDivisionError

    saver = thalia.AsyncSaver()
    with store.RunWriter(tmp_path / "r") as run:
        run.save_object(1, {"model": Counting(1)})
        for delta in (True, False):
            with pytest.raises(ZeroDivisionError):
                run.save_object_async(saver, 2, {"model": Counting(2)}, delta=delta, progress=fails).wait()
            with pytest.raises(ZeroDivisionError):
                run.save_object(2, {"model": Counting(2)}, delta=delta, progress=fails)
        handle = run.save_object_async(saver, 3, {"model": Counting(3)}, delta=True)
        assert handle.wait().entry.depth == 1 and handle.wait().entry.base.endswith("step00000001.thalia")
        cancelled = run.save_object_async(saver, 4, {"model": Counting(4)}, delta=True)
        cancelled.cancel()
        with suppress(thalia.errors.CancelledError):  # it may have been past its end
            cancelled.wait()
        run.save_object(5, {"model": Counting(5)}, delta=True)
        assert [finding for finding in run.run.verify().findings if finding.kind != "lock"] == []
    assert set(depths(tmp_path / "r")) in ({1, 3, 5}, {1, 3, 4, 5})
    check(tmp_path / "r")


@pytest.mark.parametrize("when_busy", ["wait", "queue", "replace", "skip"])
def test_saves_that_follow_each_other_fast_are_deltas_of_what_is_saved_by_then(tmp_path, when_busy):
    a_run(tmp_path / "r")
    state = Counting(size=1 << 20)
    with AsyncCheckpointer(state, folder=tmp_path / "r", every=1, when_busy=when_busy, delta=True) as checkpoints:
        handles = []
        for step in range(1, 9):
            state.at(step)
            handles.append(checkpoints.step(step))
    saved = [step for step, handle in enumerate(handles, 1) if handle.error is None and not handle.skipped]
    assert list(depths(tmp_path / "r")) == saved
    check(tmp_path / "r")


def test_a_step_that_is_saved_again_leaves_what_is_based_on_it_whole(tmp_path):
    a_run(tmp_path / "r")
    state = Counting()
    with AsyncCheckpointer(state, folder=tmp_path / "r", every=1, when_busy="queue", delta=True) as checkpoints:
        for step in (1, 2, 3, 3):
            state.at(step)
            checkpoints.save(step)
        with pytest.warns(UserWarning, match="goes back from step 3 to 1"):
            state.at(1)
            checkpoints.save(1)
    assert set(depths(tmp_path / "r")) == {1, 2, 3}
    check(tmp_path / "r")
    with store.RunWriter(tmp_path / "r") as run:
        held, going = threading.Event(), threading.Event()

        def waits(done, total):
            held.set()
            assert going.wait(60)

        saver = thalia.AsyncSaver()
        handle = run.save_object_async(saver, 9, {"model": Counting(9)}, delta=True, progress=waits)
        assert held.wait(60)
        try:
            with pytest.raises(thalia.UsageError, match="under way"):
                run.save_object(1, {"model": Counting(1)}, replace=True)
        finally:
            going.set()
        assert handle.wait().entry.depth == 1
    check(tmp_path / "r")


KILLED = """
    import os, signal, sys, threading, torch
    sys.path.insert(0, sys.argv[2])
    from checkpointer_deltas_test import Counting
    from thalia_checkpoint.torch import AsyncCheckpointer
    state = Counting(size=1 << 20)
    with AsyncCheckpointer(state, folder=sys.argv[1], every=1, keep=2, delta=True) as checkpoints:
        resumed = checkpoints.resume()
        begin = resumed.step if resumed else 0
        assert torch.equal(state.weight, Counting(begin, 1 << 20).weight), begin
        for step in range(begin + 1, begin + 200):
            state.at(step)
            checkpoints.step(step, metric=abs(step - 2.0))
            if step == begin + 5:
                threading.Timer(float(sys.argv[3]), os.kill, (os.getpid(), signal.SIGKILL)).start()
"""


def test_a_run_that_is_killed_again_and_again_keeps_what_it_is_to_keep(tmp_path):
    a_run(tmp_path / "r")
    last = 0
    for delay in (0.01, 0.05, 0.002):
        command = [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "r", os.path.dirname(__file__), str(delay)]
        died = subprocess.run(command, capture_output=True, text=True, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr
        # What was killed between a file and the link to it is finished by the next who writes.
        with store.RunWriter(tmp_path / "r"):
            pass
        run = store.Run(tmp_path / "r")
        assert run.latest().step > last and run.best().step == 2
        last = run.latest().step
    assert train_to_size(tmp_path / "r", last + 1) == last + 1
    steps = list(depths(tmp_path / "r"))
    assert {2, last, last + 1} - {last} <= set(steps) and not [
        finding for finding in store.Run(tmp_path / "r").verify().findings if finding.severity == "error"
    ]
    # Two, the best, and what these are based on: at most three for each of them.
    assert len(steps) <= 3 * 4
    check(tmp_path / "r")


def train_to_size(folder, last):
    state = Counting(size=1 << 20)
    with AsyncCheckpointer(state, folder=folder, every=1, keep=2, delta=True) as checkpoints:
        begin = checkpoints.resume().step + 1
        for step in range(begin, last + 1):
            state.at(step)
            checkpoints.step(step, metric=5.0)
    return begin


def test_threads_save_deltas_into_one_run(tmp_path):
    a_run(tmp_path / "r", full_every=3)
    failures = []
    with store.RunWriter(tmp_path / "r", durability="none") as run:
        saver = thalia.AsyncSaver(when_busy="queue", max_unfinished=8)

        def work(number):
            try:
                for i in range(5):
                    step = 10 * number + i
                    state = {"model": Counting(step)}
                    if number % 2:
                        run.save_object(step, state, delta=True)
                    else:
                        run.save_object_async(saver, step, state, delta=True).wait()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
    assert len(depths(tmp_path / "r")) == 20 and any(depths(tmp_path / "r").values())
    check(tmp_path / "r")


def test_ctrl_c_ends_a_delta_and_the_next_is_one(tmp_path):
    a_run(tmp_path / "r")
    with store.RunWriter(tmp_path / "r") as run:
        run.save_object(1, {"model": Counting(1)})

        def interrupted(done, total):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # until it is seen

        for step, delta in ((2, True), (3, False)):
            more = {str(i): torch.ones(1000) for i in range(20)}
            with pytest.raises(KeyboardInterrupt):
                run.save_object(step, {"more": more, "model": Counting(step)}, delta=delta, progress=interrupted)
        assert list(depths(tmp_path / "r")) == [1]
        assert run.save_object(2, {"model": Counting(2)}, delta=True).entry.depth == 1
        assert [finding for finding in run.run.verify().findings if finding.kind != "lock"] == []
    check(tmp_path / "r")


def test_what_is_kept_after_a_restart_is_what_the_new_process_asks_for(tmp_path):
    store.create_run(
        tmp_path / "r",
        {"phases": [{"name": "train", "metric": {"name": "loss", "direction": "min"}}], "deltas": {"policy": "never"}},
    )
    train_to(tmp_path / "r", 6, keep=4, metric=float)
    assert list(depths(tmp_path / "r")) == [1, 4, 5, 6]  # the best counts
    train_to(tmp_path / "r", 7, keep=2, metric=float)
    assert list(depths(tmp_path / "r")) == [1, 7]
    with pytest.warns(UserWarning, match="keep_last = 2 of the run's configuration goes") as warned:
        train_to(tmp_path / "r", 9, metric=float)
    assert {each.filename for each in warned} == {__file__} and len(warned) == 1
    assert list(depths(tmp_path / "r")) == [1, 7, 8, 9]
    train_to(tmp_path / "r", 10, metric=float)  # which is known by now
