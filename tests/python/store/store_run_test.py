"""What a run has besides its checkpoints: gates, the best, repairs, and records of before."""

import os
import pickle
import threading
import warnings

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import store


def a_run(folder, *, metric=None, extension="thalia", **phase):
    if metric is not None:
        phase["metric"] = {"name": metric, "direction": "min"}
    store.create_run(folder, {"extension": extension, "phases": [{"name": "train", **phase}]})
    return store.RunWriter(folder, durability="none")


def save(run, step, value=None, metric=None, **options):
    writer = run.new_checkpoint(step, **options)
    writer.add("a/w", np.full(3000, float(step if value is None else value)))
    return run.save(writer, metric=metric)


def found_in(run):
    """What a check finds, but for the lock of who saves."""
    return [finding for finding in run.verify().findings if finding.kind != "lock"]


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_gate_is_a_copy_that_nothing_takes_the_place_of(tmp_path):
    with a_run(tmp_path / "r", metric="loss", gate="bc_best", retention={"keep_last": 1}) as run:
        with pytest.raises(thalia.NotFoundError):
            run.promote()
        for step, loss in ((1, 2.0), (2, 1.0), (3, 3.0)):
            save(run, step, metric=loss)
        promoted = run.promote()
        assert (promoted.gate.name, promoted.gate.step, promoted.gate.metric) == ("bc_best", 2, 1.0)
        assert run.run.gates() == (promoted.gate,) and pickle.loads(pickle.dumps(promoted)) == promoted
        assert len(promoted.gate.sha256) == 64 and run.run.gate_path("bc_best").is_file()
        with pytest.raises(thalia.ExistsError):
            run.promote(step=3)
        assert run.promote(step=3, gate="other").gate.phase == "train"
        assert run.promote(step=3, force=True).gate.step == 3
        assert run.run.load_gate("bc_best").file["a/w"].numpy()[0] == 3
        run.run.restore(tmp_path / "gate.thalia", gate="bc_best")
        with pytest.raises(thalia.ExistsError):
            run.run.restore(tmp_path / "gate.thalia", gate="bc_best")
        assert run.run.restore(tmp_path / "gate.thalia", step=2, replace=True).entry.step == 2
        assert thalia.open(tmp_path / "gate.thalia")["a/w"].numpy()[0] == 2
        flip(run.run.gate_path("bc_best"))
        with pytest.raises(thalia.IntegrityError, match="bc_best"):
            run.run.load_gate("bc_best")
        with pytest.raises(thalia.IntegrityError):
            run.run.restore(tmp_path / "new.thalia", gate="bc_best")
        assert not (tmp_path / "new.thalia").exists()
        with pytest.raises(thalia.NotFoundError):
            run.run.load_gate("none")


def test_a_restored_file_comes_from_the_newest_that_is_whole(tmp_path):
    with a_run(tmp_path / "r") as run:
        first, second = save(run, 1), save(run, 2)
    flip(second.path)
    with pytest.warns(UserWarning, match="step00000002") as warned:
        restored = store.Run(tmp_path / "r").restore(tmp_path / "out.thalia")
    assert {each.filename for each in warned} == {__file__}
    assert (restored.source, restored.entry.step, restored.output_bytes) == (first.path, 1, first.entry.file_bytes)
    assert [(each.path, each.is_damaged, each.failure is None) for each in restored.attempts] == [
        (second.path, True, False),
        (first.path, False, True),
    ]
    assert (tmp_path / "out.thalia").read_bytes() == first.path.read_bytes()


def test_a_phase_that_begins_anew_forgets_its_best(tmp_path):
    with a_run(tmp_path / "r", metric="loss", save_interval=10) as run:
        save(run, 1, metric=1.0)
        assert not save(run, 2, metric=5.0).is_best
        run.reset_best()
        assert run.run.best() is None or run.run.best().step != 1 or save(run, 3, metric=7.0).is_best
        assert save(run, 4, metric=6.0).is_best and run.run.best().step == 4
        assert [step for step in range(35) if run.run.is_due(step)] == [10, 20, 30]
        with pytest.raises(thalia.NotFoundError):
            run.reset_best("other")
    assert run.run.current_phase == "train" and "train" in repr(run.run)


def test_retention_of_ones_own_takes_the_place_of_the_phases(tmp_path):
    with a_run(tmp_path / "r") as run:
        for step in range(1, 6):
            save(run, step)
        with pytest.raises(thalia.FormatError, match="keep_lats"):
            run.prune(retention={"keep_lats": 1})
        told = run.prune(dry_run=True, retention={"keep_every_steps": 2})
        assert [each.entry.step for each in told.decisions if each.fate == "keep"] == [2, 4, 5]
        assert len(run.run.list()) == 5
        run.prune(retention={"keep_every_steps": 2})
        assert [entry.step for entry in run.run.list()] == [2, 4, 5]
        assert run.run.config["phases"][0]["retention"] == {"keep_last": 20}


def test_a_check_finds_what_a_repair_puts_right(tmp_path):
    with a_run(tmp_path / "r") as run:
        stored = [save(run, step) for step in (1, 2, 3)]
        assert run.run.verify().ok and run.run.verify().checkpoints == 3
        digest = stored[1].path.with_name(stored[1].path.name + ".sha256")
        text = digest.read_text()
        digest.unlink()
        stored[0].path.with_name("ckpt_train_step00000099.thalia.sha256").write_text("0" * 64 + "  x\n")
        flip(stored[0].path)
        told = run.repair(dry_run=True)
        kinds = {finding.kind: (finding.can_be_repaired, finding.is_repaired) for finding in told.findings}
        assert kinds["missing_digest"] == kinds["lone_digest"] == (True, False) and not told.ok
        assert not digest.exists() and [one.kind for one in run.run.verify(quick=True).findings] != []
        done = run.repair()
        kinds = {finding.kind: finding.is_repaired for finding in done.findings}
        assert kinds["missing_digest"] and kinds["lone_digest"] and not done.ok
        assert digest.read_text() == text
        (left,) = found_in(run.run)
        assert left.path == stored[0].path and left.severity == "error"
        assert pickle.loads(pickle.dumps(done)) == done
        with pytest.raises(thalia.NotFoundError):
            run.run.verify("other")

        def fails(done, total):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            run.run.verify(progress=fails)
    with pytest.raises(thalia.UsageError, match="closed"):
        run.repair()


def test_records_go_through_every_version(tmp_path):
    def to_2(record):
        record["lr"] = record.pop("rate")

    def to_3(record):
        assert record["checkpoint_version"] == 2
        return {**record, "weights": record["weights"] * 2}

    record = {"checkpoint_version": 1, "rate": 0.5, "weights": np.ones(3), "when": object()}
    migrated = store.migrate_record(record, 3, {1: to_2, 2: to_3})
    assert migrated.from_version == 1 and migrated.record["checkpoint_version"] == 3
    assert migrated.record["lr"] == 0.5 and migrated.record["weights"].tolist() == [2, 2, 2]
    assert record["rate"] == 0.5 and "lr" not in record
    assert store.migrate_record(migrated.record, 3, {}).record == migrated.record
    with pytest.raises(thalia.UnsupportedError, match="version 2"):
        store.migrate_record(record, 3, {1: to_2})
    with pytest.raises(thalia.UnsupportedError, match="newer"):
        store.migrate_record({"checkpoint_version": 4}, 3, {})
    for bad in ({}, {"checkpoint_version": "one"}, {"checkpoint_version": -1}):
        with pytest.raises(thalia.FormatError):
            store.migrate_record(bad, 3, {})

    def fails(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.migrate_record(record, 2, {1: fails})
    with pytest.raises(TypeError):
        store.migrate_record(record, 2, {1: lambda record: 5})
    assert store.migrate_record({"v": 1}, 2, {1: lambda record: None}, version_key="v").record == {"v": 2}


def test_runs_are_found_by_their_names_in_the_order_of_their_start(tmp_path):
    assert store.find_runs(tmp_path / "none") == []
    names = [store.run_id(0xA1B2C3D4, started_at=1768487422 + hour * 3600) for hour in range(3)]
    assert names[0] == "20260115_143022_a1b2c3d4" and all(map(store.is_run_id, names))
    assert store.is_run_id(store.run_id(7)) and not store.is_run_id("run")
    for name in reversed(names):
        a_run(tmp_path / "runs" / name).close()
    (tmp_path / "runs" / "other").mkdir()
    assert [found.id for found in store.find_runs(tmp_path / "runs")] == names


def test_what_a_crash_left_is_swept_up_and_told_at_the_callers_line(tmp_path):
    with a_run(tmp_path / "r", metric="loss") as run:
        save(run, 1, metric=1.0)
        run.promote()
    folder = tmp_path / "r/train/checkpoints"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (folder / "latest.thalia").unlink()
        (folder / "ckpt_train_step00000007.thalia.sha256").write_text("of a file that is not there")
        store.RunWriter(tmp_path / "r").close()  # nobody need know of it
    assert (folder / "latest.thalia").is_symlink() and len(list(folder.glob("*7.thalia*"))) == 0
    (folder / "ckpt_train_step00000009.thalia").write_bytes(b"torn")
    with pytest.warns(UserWarning, match="not readable.*step00000009") as warned:
        run = store.RunWriter(tmp_path / "r", durability="none")
    assert [each.filename for each in warned] == [__file__]
    with pytest.warns(UserWarning, match="step00000009") as warned, run:
        assert run.resume().entry.step == 1
    assert {each.filename for each in warned} == {__file__}


def test_many_threads_change_one_run(tmp_path):
    failures = []
    with a_run(tmp_path / "r", extension="bin", retention={}) as run:

        def work(number):
            try:
                for i in range(8):
                    step = number * 100 + i
                    run.save_bytes(step, bytes([number]) * 1000)
                    assert bytes(run.run.load_bytes(step=step).data) == bytes([number]) * 1000
                    run.promote(step=step, gate=f"g{number}", force=True)
                    run.prune(dry_run=True)
                    run.repair(quick=True)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == [] and len(run.run.list()) == 32
        assert run.run.verify().ok and len(run.run.gates()) == 4


def test_a_closed_run_and_a_forked_one_refuse_everything(tmp_path):
    run = a_run(tmp_path / "r", extension="bin")
    run.save_bytes(1, b"x")
    calls = [
        lambda: run.save_bytes(2, b"x"),
        lambda: run.save_bytes(2, [b"x"]),
        lambda: run.save_file(2, __file__),
        lambda: run.save_brain(2, {}),
        lambda: run.prune(),
        lambda: run.promote(),
        lambda: run.reset_best(),
        lambda: run.repair(),
        lambda: run.pool.rate(1, store.Rating(), games_played=1, win_rate=0.5),
        lambda: run.transition(store.hydra_transitions()[0]),
    ]
    child = os.fork()
    if child == 0:
        wrong = 0
        for call in calls:
            try:
                call()
            except thalia.UsageError as error:
                wrong += "forked" not in str(error)
            except BaseException:
                wrong += 1
            else:
                wrong += 1
        os._exit(wrong)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run.close()
    for call in calls:
        with pytest.raises(thalia.UsageError, match="closed"):
            call()
    assert [entry.step for entry in run.run.list()] == [1]  # the lock is not for those who read
