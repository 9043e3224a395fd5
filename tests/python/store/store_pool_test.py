"""From phase to phase: the pool of earlier models, transitions, and whether a checkpoint fits a model."""

import dataclasses
import hashlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import store

MODEL = {"stem": np.zeros((4, 3), np.float32), "head": np.zeros((3, 2), np.float32)}


def save(run, step, phase, value=0.0, metric=None, **more):
    """A record of the Hydra specification."""
    writer = run.new_checkpoint(step, f"phase{phase}")
    for name, array in MODEL.items():
        writer.add(f"model_record/{name}", array + np.float32(value))
        if phase == 2:
            writer.add(f"teacher_state_dict/{name}", array)
    writer.add("optimizer_record/stem.exp_avg", np.ones((4, 3), np.float32))
    writer.add("rng_state/words", np.arange(4, dtype=np.uint64))
    writer.metadata = {
        "scheduler_record": {"last": step},
        "global_step": step,
        "phase": phase,
        "config": {},
        "metrics": {},
        "timestamp": 1_700_000_000,
        "checkpoint_version": 1,
        "feature_dropout": 0,
        **({"opponent_pool_metadata": {}} if phase == 3 else {}),
        **more,
    }
    return run.save(writer, metric=metric)


def a_league(folder, **pool):
    config = store.hydra_config()
    config["pool"] |= pool
    store.create_run(folder, config)
    return store.RunWriter(folder, durability="none")


def begun(folder, **pool):
    """A run whose third phase has begun."""
    run = a_league(folder, **pool)
    to_distillation, to_league = store.hydra_transitions()
    save(run, 100, 1, 1.0, metric=0.5)
    run.promote("phase1")
    run.transition(to_distillation, master_seed=7)
    save(run, 200, 2, 2.0, metric=20.0)
    run.promote("phase2")
    run.transition(to_league, master_seed=7)
    return run


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def words(seed, index):
    return struct.unpack("<4Q", hashlib.sha256(b"pool" + struct.pack("<QQ", seed, index)).digest())


def test_the_plans_are_those_of_the_specification():
    to_distillation, to_league = store.hydra_transitions()
    assert (to_distillation.from_phase, to_distillation.to_phase, to_distillation.gate) == (
        "phase1",
        "phase2",
        "bc_best",
    )
    assert to_distillation.copies == (("model_record", "teacher_state_dict"),)
    assert to_league.checks == {"feature_dropout": 0} and to_league.seeds_pool
    assert dataclasses.replace(to_league, checks={}).checks == {}
    with pytest.raises(TypeError, match="did you mean 'carries'"):
        store.TransitionPlan(from_phase="a", to_phase="b", gate="g", caries=["x"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        to_league.gate = "other"
    assert [phase["name"] for phase in store.hydra_config()["phases"]] == ["phase1", "phase2", "phase3"]


def test_a_phase_begins_with_the_gate_and_without_what_is_reset(tmp_path):
    with a_league(tmp_path / "r") as run:
        plan = store.hydra_transitions()[0]
        with pytest.raises(thalia.NotFoundError, match="bc_best"):
            run.transition(plan)
        save(run, 100, 1, 3.0, metric=0.5)
        run.promote("phase1")
        begun = run.transition(plan, master_seed=7, model={"model_record/stem": MODEL["stem"], "head": MODEL["head"]})
        assert begun.start == tmp_path / "r/phase2/start.thalia" and begun.anchor.name == "kl_anchor.thalia"
        assert sorted(begun.carried) == ["model_record/head", "model_record/stem"]
        assert "optimizer_record/stem.exp_avg" in begun.reset and pickle.loads(pickle.dumps(begun)) == begun
        digest = hashlib.sha256(b"phase" + struct.pack("<Q", 7) + b"phase2").digest()
        assert begun.seed == int.from_bytes(digest[:8], "little")
        with thalia.open(begun.start) as file:
            assert sorted(file) == ["model_record", "teacher_state_dict"]
            assert file["teacher_state_dict/stem"].numpy()[0, 0] == 3 and "phase" not in file.metadata
        with pytest.raises(thalia.ExistsError):
            run.transition(plan)
        assert run.transition(plan, force=True).seed != begun.seed
        assert begun.steps[0].name == "load"


def test_a_model_that_does_not_fit_begins_no_phase(tmp_path):
    with a_league(tmp_path / "r") as run:
        plan = store.hydra_transitions()[0]
        save(run, 100, 1, metric=0.5)
        run.promote("phase1")
        wrong = {"model_record/stem": np.zeros((4, 4), np.float32), "model_record/tail": np.zeros(1)}
        with pytest.raises(thalia.UsageError) as caught:
            run.transition(plan, model=wrong)
        for said in ("1 missing", "model_record/tail", "1 unexpected", "model_record/head", "[4, 4]"):
            assert said in str(caught.value)
        assert caught.value.code == "shape_mismatch" and not (tmp_path / "r/phase2/start.thalia").exists()
        file = run.run.load("phase1").file
        fit = store.compare_with_model(file, wrong, patterns=["model_record.*"])
        assert not fit.ok and fit.missing == ("model_record/tail",) and fit.unexpected == ("model_record/head",)
        assert len(fit.different) == 1 and fit.different[0].startswith("model_record/stem (f32 [4, 3]")
        assert pickle.loads(pickle.dumps(fit)) == fit
        with pytest.raises(thalia.UsageError, match="1 missing"):
            store.check_strictly(file, wrong, ["model_record.*"])

        class Module:
            def state_dict(self):
                return {name: array for name, array in MODEL.items()}

        whole = {f"model_record/{name}": array for name, array in Module().state_dict().items()}
        assert store.compare_with_model(file, whole, ["model_record.*"]).ok
        assert not store.compare_with_model(file, whole).ok  # of all of it the optimizer, too
        store.check_strictly(file, whole, ["model_record.*"])
        for bad in ({}, {"a": 5}, {"a": {}}):
            with pytest.raises(thalia.UsageError, match="model"):
                store.compare_with_model(file, bad)
        with pytest.raises(thalia.UnsupportedError, match="object"):
            store.compare_with_model(file, {"a": np.array([None])})


def test_a_check_that_does_not_hold_and_a_damaged_gate_begin_no_phase(tmp_path):
    with a_league(tmp_path / "r") as run:
        save(run, 100, 1, metric=0.5)
        run.promote("phase1")
        save(run, 200, 2, metric=20.0, feature_dropout=0.25)
        run.promote("phase2")
        with pytest.raises(thalia.UsageError, match=r"feature_dropout.*0\.25"):
            run.transition(store.hydra_transitions()[1])
        flip(run.run.gate_path("bc_best"))
        with pytest.raises(thalia.ExistsError, match="step00000200"):
            run.transition(store.hydra_transitions()[0])
        with pytest.raises(thalia.IntegrityError):
            run.transition(store.hydra_transitions()[0], force=True)
        assert not (tmp_path / "r/phase2/start.thalia").exists()
        plan = store.TransitionPlan(from_phase="phase1", to_phase="nowhere", gate="distill_best")
        with pytest.raises(thalia.NotFoundError, match="nowhere"):
            run.transition(plan)


def test_versions_are_counted_rated_and_evicted(tmp_path):
    with begun(tmp_path / "r", keep=2) as run:
        pool = run.pool
        assert [anchor.name for anchor in pool.view().anchors] == ["bc_best", "distill_best"]
        assert all(anchor.is_anchor and anchor.rating == store.Rating() for anchor in pool.view().anchors)
        for step in (300, 400):
            save(run, step, 3, step)
            added = pool.add(step, store.Rating(27.0, 1.5))
            assert (added.member.rating.mu, added.member.rating.sigma) == (27.0, pytest.approx(25 / 9))
            with thalia.open(added.member.path) as file:
                assert list(file) == ["model_record"] and file["model_record/stem"].numpy()[0, 0] == step
        rated = pool.rate(1, store.Rating(30.0, 2.0), games_played=12, win_rate=0.75)
        assert (rated.games_played, rated.win_rate, rated.rating.conservative) == (12, 0.75, 24.0)
        assert [old.rating.mu for old in rated.history] == [27.0]
        assert pickle.loads(pickle.dumps(pool.view())) == pool.view()
        save(run, 500, 3)
        assert pool.add(500, store.Rating()).evicted == ("pool_v0001_step00000300.thalia",)
        assert [member.version for member in store.Run(tmp_path / "r").pool().versions] == [2, 3]
        log = (tmp_path / "r/phase3/opponent_pool/pool_evictions.jsonl").read_text().splitlines()
        assert json.loads(log[0])["games_played"] == 12
        for version in (1, 9):
            with pytest.raises(thalia.NotFoundError):
                pool.rate(version, store.Rating(), games_played=1, win_rate=0.5)
        with pytest.raises(thalia.UsageError):
            pool.rate(2, store.Rating(), games_played=1, win_rate=1.5)
        with pytest.raises(thalia.NotFoundError):
            pool.add(999, store.Rating())
        with pytest.raises(TypeError):
            pool.add(500, 27.0)
    # No number comes twice, whatever has gone.
    for member in run.run.pool().versions:
        os.unlink(member.path)
    with store.RunWriter(tmp_path / "r") as run:
        assert run.pool.add(500, store.Rating()).member.version == 4


def test_a_draw_is_the_same_on_every_machine(tmp_path):
    with begun(tmp_path / "r") as run:
        save(run, 300, 3)
        run.pool.add(300, store.Rating())
        view = run.pool.view()
        drawn = [view.draw(7, index) for index in range(2000)]
        assert drawn == [store.Run(tmp_path / "r").pool().draw(7, index) for index in range(2000)]
        assert drawn != [view.draw(8, index) for index in range(2000)]
        kinds = [draw.kind for draw in drawn]
        for kind, weight in (("self", 0.5), ("pool", 0.3), ("baseline", 0.2)):
            assert abs(kinds.count(kind) / 2000 - weight) < 0.04
        assert {draw.member.name for draw in drawn if draw.kind == "baseline"} == {"distill_best"}
        assert all(draw.member is None for draw in drawn if draw.kind == "self")
        members = {draw.member.name for draw in drawn if draw.kind == "pool"}
        assert members == {"bc_best", "distill_best", "pool_v0001_step00000300.thalia"}
        assert len(words(7, 0)) == 4
        with pytest.raises(TypeError):
            view.draw(-1, 0)


def test_the_cache_keeps_what_was_used_last_and_checks_what_it_opens(tmp_path):
    with begun(tmp_path / "r") as run:
        for step in (300, 400, 500):
            save(run, step, 3, step)
            run.pool.add(step, store.Rating())
        versions = run.pool.view().versions
    cache = store.PoolCache(2)
    held = cache.get(versions[0])
    for member in (versions[1], versions[0], versions[2], versions[1]):
        assert cache.get(member)["model_record/stem"].numpy()[0, 0] == member.step
    assert (len(cache), cache.hits, cache.misses) == (2, 1, 4)
    assert held["model_record/head"].numpy()[0, 0] == 300
    flip(versions[0].path)
    with pytest.raises(thalia.IntegrityError):
        cache.get(versions[0])
    threads = [threading.Thread(target=lambda: [cache.get(member) for member in versions[1:]]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 2
    with pytest.raises(thalia.UsageError, match="access"):
        store.PoolCache(access="nothing")


def test_bytes_that_the_caller_has_stripped_are_members_too(tmp_path):
    config = {
        "extension": "pt",
        "phases": [{"name": "train", "retention": {}}],
        "pool": {"phase": "train", "folder": "pool", "keep": 1},
    }
    store.create_run(tmp_path / "r", config)
    with store.RunWriter(tmp_path / "r", durability="none") as run:
        run.save_bytes(1, b"whole")
        with pytest.raises(thalia.UsageError):
            run.pool.add(1, store.Rating())
        member = run.pool.add_bytes(1, store.Rating(), b"stripped").member
        assert member.path.read_bytes() == b"stripped" and member.phase == "train"
        run.save_bytes(2, b"whole")
        assert run.pool.add_bytes(2, store.Rating(), bytearray(b"next")).evicted == ("pool_v0001_step00000001.pt",)
    store.create_run(tmp_path / "q", {"phases": [{"name": "train"}]})
    with pytest.raises(thalia.NotFoundError, match="pool"):
        store.Run(tmp_path / "q").pool()


KILLED = """
    import sys
    from thalia_checkpoint import store
    run = store.RunWriter(sys.argv[1], durability="none")
    print("begun", flush=True)
    for game in range(10**6):
        member = run.pool.add_bytes(300, store.Rating(), b"x" * 200_000).member
        run.pool.rate(member.version, store.Rating(26.0, 3.0), games_played=1, win_rate=0.5)
        print(member.version, flush=True)
"""


def test_a_pool_outlives_kills_and_counts_on(tmp_path):
    pool = {"phase": "train", "folder": "pool", "keep": 3}
    store.create_run(tmp_path / "r", {"extension": "pt", "phases": [{"name": "train"}], "pool": pool})
    with store.RunWriter(tmp_path / "r", durability="none") as run:
        run.save_bytes(300, b"whole")
    last = 0
    for pause in (0.02, 0.1, 0.3, 0.05):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "r"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "begun\n"
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        told = [int(line) for line in process.communicate()[0].split()]
        assert all(version > last for version in told)
        with store.RunWriter(tmp_path / "r", durability="none") as run:
            view = run.pool.view()
            last = max([last, *told, *(member.version for member in view.versions)])
            assert view.next_version > last
            assert all(member.path.stat().st_size == 200_000 for member in view.versions)
            assert not [finding for finding in run.repair().findings if finding.severity == "error"]
