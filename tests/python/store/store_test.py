"""Runs: saves into them, what stays, what is loaded, and what no sequence of events may lose."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
import thalia_checkpoint as thalia
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thalia_checkpoint import store


def a_run(folder, keep=None, metric=None):
    phase = {"name": "train", "retention": {} if keep is None else {"keep_last": keep}}
    if metric is not None:
        phase["metric"] = {"name": metric, "direction": "min"}
    store.create_run(folder, {"phases": [phase]})
    return store.RunWriter(folder, durability="none")


def declared(run, step, value, **options):
    writer = run.new_checkpoint(step, **options)
    writer.add("a/w", np.full(3000, float(value)))
    return writer


def save(run, step, value=None, metric=None, **options):
    return run.save(declared(run, step, step if value is None else value, **options), metric=metric)


def steps(run):
    return [entry.step for entry in run.list()]


def damage(path, how="flip"):
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[len(data) // 2] ^= 1
    path.write_bytes(data[: len(data) // 2] if how == "cut" else data + b"x" * (how == "longer"))


def test_saves_are_listed_and_the_best_and_the_latest_stay(tmp_path):
    with a_run(tmp_path / "r", keep=2, metric="loss") as run:
        for step, loss in ((1, 3.0), (2, 1.0), (3, 2.0), (4, None)):
            stored = save(run, step, metric=loss)
            assert stored.is_best == (step <= 2) and stored.path == run.run.path_of(stored.entry)
        assert stored.removed == ("ckpt_train_step00000003.thalia",)
        with pytest.raises(thalia.ExistsError):
            save(run, 4)
        save(run, 4, value=7, replace=True)
        reader = store.Run(tmp_path / "r")
        assert steps(reader) == [2, 4] and reader.phases == ("train",) and reader.folder == tmp_path / "r"
        assert reader.best().metric == 1.0 and reader.best().protected_by == ("best",)
        assert reader.latest().condition == "whole" and reader.latest().base is None
        found = reader.load()
        assert found.entry.step == 4 and found.file["a/w"].numpy()[5] == 7 and found.passed_over == ()
        assert reader.load(step=2).file["a/w"].numpy()[5] == 2
        for bad in ({"step": 3}, {"phase": "other"}):
            with pytest.raises(thalia.NotFoundError):
                reader.load(**bad)
        with pytest.raises(thalia.UsageError, match="99999999"):
            run.new_checkpoint(100_000_000)
    with pytest.raises(thalia.UsageError, match="closed"):
        run.new_checkpoint(9)
    with pytest.raises(thalia.NotFoundError, match="no run"):
        store.Run(tmp_path)
    with pytest.raises(thalia.ExistsError):
        store.create_run(tmp_path / "r", {"phases": [{"name": "train"}]})
    with pytest.raises(thalia.FormatError, match="retentoin"):
        store.create_run(tmp_path / "q", {"phases": [{"name": "train", "retentoin": {}}]})


def test_a_block_saves_and_phases_are_chosen(tmp_path):
    store.create_run(tmp_path / "r", {"phases": [{"name": "one"}, {"name": "two"}]})
    with store.RunWriter(tmp_path / "r") as run:
        with pytest.raises(thalia.UsageError, match="one, two"):
            run.new_checkpoint(1)
        with run.new_checkpoint(1, "two") as writer:
            writer.add("a/w", np.zeros(3))
        assert writer.stored.entry.phase == "two" and run.run.latest("two").step == 1
        with pytest.raises(RuntimeError), run.new_checkpoint(2, "two") as writer:
            raise RuntimeError
        assert [entry.step for entry in run.run.list("two")] == [1] and run.run.list("one") == []
        with pytest.raises(thalia.UsageError, match="new_checkpoint"):
            run.save(thalia.Writer(tmp_path / "elsewhere.thalia"))


def test_a_delta_is_saved_where_the_run_has_deltas(tmp_path):
    for policy, depths in (({"policy": "every", "full_every": 3}, [0, 1, 2, 0]), ({"policy": "never"}, [0, 0, 0, 0])):
        folder = tmp_path / policy["policy"]
        store.create_run(folder, {"deltas": policy, "phases": [{"name": "train", "retention": {}}]})
        with store.RunWriter(folder, durability="none") as run:
            weight = np.arange(50_000.0)
            for step in range(1, 5):
                weight[step] = -step
                writer = run.new_checkpoint(step, compression="zstd")
                writer.add("a/w", weight)
                writer.add("a/s", thalia.CsrArrays(np.array([0, 1, 1]), np.array([2]), np.array([7.0])), shape=(2, 4))
                writer.metadata = {"step": step}
                stored = run.save(writer, metric=1.0, delta=True)
                assert stored.entry.metric == 1.0
                with pytest.raises(thalia.UsageError, match="committed"):
                    run.save(writer, delta=True)
            assert [entry.depth for entry in run.run.list()] == depths
            for step in range(1, 5):
                file = run.run.load(step=step).file
                wanted = np.where((np.arange(50_000) <= step) & (np.arange(50_000) > 0), -1, 1) * np.arange(50_000.0)
                assert np.array_equal(file["a/w"].numpy(), wanted) and file.metadata["step"] == step
                assert file["a/s"].dense()[0, 2] == 7
            with pytest.raises(thalia.ExistsError):
                run.new_checkpoint(4)
            writer = run.new_checkpoint(4, replace=True)
            writer.add("a/w", weight)
            run.save(writer, delta=True)
            if depths[1]:
                damage(run.run.path_of(run.run.list()[0]))
                with pytest.raises(thalia.IntegrityError, match="step00000001"):
                    run.run.load(step=3)


def test_saves_in_the_background_follow_each_other(tmp_path):
    saver = thalia.AsyncSaver(when_busy="queue")
    with a_run(tmp_path / "r", keep=2) as run:
        handles = [run.save_async(saver, declared(run, step, step), metric=1.0) for step in range(1, 6)]
        assert [handle.wait().entry.step for handle in handles] == [1, 2, 3, 4, 5]
        assert all(handle.done and not handle.skipped and handle.error is None for handle in handles)

        def fails():
            raise ZeroDivisionError

        with pytest.warns(UserWarning, match="step 6 of train was not saved"):
            failing = run.save_async(saver, declared(run, 6, 6), snapshot="borrowed", ready=fails)
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):
                    failing.wait()
            run.save_async(saver, declared(run, 7, 7))
            run.close()
    assert steps(store.Run(tmp_path / "r")) == [5, 7]


def test_a_dry_run_tells_what_goes(tmp_path):
    with a_run(tmp_path / "r") as run:
        for step in (1, 2, 3):
            save(run, step)
    config = store.Run(tmp_path / "r").config
    config["phases"][0]["retention"] = {"keep_last": 1}
    with store.RunWriter(tmp_path / "r", config=config) as run:
        damage(run.run.path_of(run.run.list()[2]))
        with pytest.warns(UserWarning, match="damaged") as warned:
            told = run.prune(dry_run=True)
        assert {each.filename for each in warned} == {__file__}
        assert [(each.fate, each.reason) for each in told.decisions] == [
            ("remove", "beyond the newest 1"),
            ("keep", "the newest that is whole"),
            ("keep", "latest"),
        ]
        assert steps(run.run) == [1, 2, 3] and told.freed_bytes > 0
        with pytest.warns(UserWarning, match="damaged"):
            assert run.prune().removed == told.removed
        assert steps(run.run) == [2, 3] and run.run.list()[1].condition == "damaged"
        save(run, 4)
        assert steps(run.run) == [4]


def test_a_second_writer_is_refused_and_a_fork_has_none(tmp_path):
    run = a_run(tmp_path / "r")
    with pytest.raises(thalia.IoError, match=f"process {os.getpid()} "):
        store.RunWriter(tmp_path / "r")
    child = os.fork()
    if child == 0:
        try:
            run.new_checkpoint(1)
        except thalia.UsageError as error:
            run.close()
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(thalia.IoError):
        store.RunWriter(tmp_path / "r")
    run.close()
    store.RunWriter(tmp_path / "r").close()


class Expected:
    """What a run has to hold, by what happened to it alone."""

    def __init__(self, keep):
        self.keep = keep
        self.states = {}  # by step: value, whether it was left behind, whether it is whole

    def order(self):
        """Of those that are whole, the one to resume first, first."""
        whole = [step for step, (_, _, is_whole) in self.states.items() if is_whole]
        return sorted(whole, key=lambda step: (self.states[step][1], -step))

    def go_on_from(self, step):
        for other, (value, left, whole) in self.states.items():
            self.states[other] = (value, left or other > step, whole)
        value, _, whole = self.states[step]
        self.states[step] = (value, False, whole)

    def save(self, step, value):
        self.states[step] = (value, False, True)
        self.go_on_from(step)
        for old in self.order()[self.keep :]:
            del self.states[old]

    def damage(self, step):
        self.states[step] = (*self.states[step][:2], False)


EVENTS = st.one_of(
    st.tuples(st.just("save"), st.integers(1, 12)),
    st.tuples(st.just("step back"), st.integers(1, 40)),
    st.tuples(st.just("damage"), st.integers(1, 3), st.sampled_from(["flip", "cut", "longer"])),
    st.tuples(st.just("resume")),
    st.tuples(st.just("restart")),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(keep=st.integers(1, 3), events=st.lists(EVENTS, max_size=14))
def test_no_sequence_loses_the_newest_whole_state(tmp_path_factory, keep, events):
    folder = tmp_path_factory.mktemp("run") / "r"
    expected = Expected(keep)
    run = a_run(folder, keep)
    now = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (what, *how) in enumerate(events):
            if what in ("save", "step back"):
                now = how[0] if what == "step back" else now + how[0]
                save(run, now, value=number, replace=True)
                expected.save(now, number)
            elif what == "damage":
                for step in expected.order()[: how[0]]:
                    damage(run.run._raw.path_of("train", f"ckpt_train_step{step:08}.thalia"), how[1])
                    expected.damage(step)
            elif what == "restart":
                run.close()
                run = store.RunWriter(folder, durability="none")
            there = {entry.step for entry in run.run.list()}
            assert set(expected.order()) <= there
            if expected.order():
                best = expected.order()[0]
                found = run.resume() if what == "resume" else run.run.load()
                assert (found.entry.step, found.file["a/w"].numpy()[7]) == (best, expected.states[best][0])
                if what == "resume":
                    now = best
                    expected.go_on_from(best)
    run.close()


KILLED = """
    import sys, random
    import numpy as np
    import thalia_checkpoint as thalia
    from thalia_checkpoint import store
    folder, value = sys.argv[1], int(sys.argv[2])
    chance = random.Random(value)
    saver = thalia.AsyncSaver(when_busy="queue")
    run = store.RunWriter(folder, durability="none")
    step = run.resume().entry.step if run.run.list() else 0
    if chance.random() < 0.3:
        step = max(0, step - chance.randrange(1, 6))  # begins anew somewhere before
    while True:
        step, value = step + chance.randrange(1, 4), value + 1
        writer = run.new_checkpoint(step, replace=True)
        writer.add("a/w", np.full(200_000, value))
        handle = run.save_async(saver, writer)
        if chance.random() < 0.5:
            handle.wait()
            print(step, value, flush=True)
"""


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_kills_at_any_moment_leave_the_newest_whole_state(tmp_path, keep):
    folder = tmp_path / "r"
    a_run(folder, keep).close()
    chance = random.Random(keep)
    told = None
    for round_number in range(5):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), folder, str(1000 * (round_number + 1))],
            stdout=subprocess.PIPE,
            text=True,
        )
        process.stdout.readline()  # it has begun
        time.sleep(chance.random() * 0.15)
        process.send_signal(signal.SIGKILL)
        lines = process.communicate()[0].splitlines()
        if lines and " " in lines[-1]:
            told = tuple(map(int, lines[-1].split()))
        with warnings.catch_warnings(), store.RunWriter(folder, durability="none") as run:
            warnings.simplefilter("ignore")
            found = run.resume()
            # That, or what was saved after it and before the kill.
            assert told is None or found.file["a/w"].numpy()[9] >= told[1]
            assert found.passed_over == ()
            if chance.random() < 0.5 and keep > 1 and len(run.run.list()) > 1:
                damage(found.path)
                older = run.resume()
                assert older.passed_over[0][0] == found.path
                told = None
