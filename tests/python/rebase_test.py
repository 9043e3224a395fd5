"""Chains that are turned: rebase(), and RunWriter.rebase()."""

import numpy
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.numpy as thalia_numpy
from thalia_checkpoint import store

WEIGHT = numpy.arange(20_000, dtype=numpy.float32)


def state(step):
    changed = WEIGHT.copy()
    changed[: step * 10] += 1
    return {"model/weight": changed}


def chain(folder, count):
    for step in range(count):
        thalia_numpy.save_file(state(step), folder / f"{step}.full")
    thalia.convert(folder / "0.full", folder / "0.thalia")
    for step in range(1, count):
        thalia.delta(folder / f"{step - 1}.thalia", folder / f"{step}.full", folder / f"{step}.thalia")
    return [folder / f"{step}.thalia" for step in range(count)]


def test_the_newest_is_full_and_each_older_one_a_delta_of_the_next(tmp_path):
    files = chain(tmp_path, 4)
    result = thalia.rebase(files[3])
    assert [(file.depth_before, file.depth) for file in result.files] == [(3, 0), (2, 1), (1, 2), (0, 3)]
    assert [file.path.name for file in result.files] == ["3.thalia", "2.thalia", "1.thalia", "0.thalia"]
    assert result.output_bytes == sum(file.stat().st_size for file in files)
    for step, file in enumerate(files):
        loaded = thalia_numpy.load_file(file)
        assert {name: value.tobytes() for name, value in loaded.items()} == {
            name: value.tobytes() for name, value in state(step).items()
        }
    assert not thalia.rebase(files[3]).files
    assert thalia.rebase(*reversed(files), max_depth=2).files
    assert thalia.info(files[2]).wrapper is not None
    assert thalia.rebase(files[2], *(files[step] for step in (3, 1, 0)), pack=False).files
    assert [thalia.info(file).wrapper for file in files] == [None] * 4
    with pytest.raises(thalia.UsageError):
        thalia.rebase(files[3], files[3])
    with pytest.raises(thalia.UsageError):
        thalia.rebase(files[3], max_depth=0)


def test_the_deltas_of_a_run_are_turned(tmp_path):
    config = {"phases": [{"name": "train"}], "deltas": {"policy": "every", "full_every": 9}}
    store.create_run(tmp_path / "run", config)
    with store.RunWriter(tmp_path / "run") as run:
        for step in range(1, 4):
            thalia_numpy.save_file(state(step), tmp_path / "state.thalia", replace=True)
            run.save_file(step, tmp_path / "state.thalia")
        assert [entry.depth for entry in run.run.list()] == [0, 1, 2]
        assert [file.depth for file in run.rebase().files] == [0, 1, 2]
        assert [entry.depth for entry in run.run.list()] == [2, 1, 0]
        assert run.repair(dry_run=True).ok
        assert [thalia.info(run.run.path_of(entry)).wrapper is None for entry in run.run.list()] == [False, False, True]
