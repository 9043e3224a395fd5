"""Runs of torch's objects, and the life of a run as the Hydra specification has it, killed in every phase."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import torch
from thalia_checkpoint import store
from thalia_checkpoint.torch import load

EXAMPLES = Path(__file__).resolve().parents[4] / "examples/python"


def a_run(folder):
    store.create_run(folder, {"phases": [{"name": "train", "retention": {}}]})
    return store.RunWriter(folder, durability="none")


def trained(steps):
    torch.manual_seed(steps)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    model[2].weight = torch.nn.Parameter(model[2].weight)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        model(torch.randn(3, 8)).sum().backward()
        optimizer.step()
    return model, optimizer


def same(found, expected):
    if isinstance(expected, torch.Tensor):
        return torch.equal(found, expected)
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == expected


@pytest.mark.parametrize("in_background", [False, True])
def test_objects_come_back_as_they_were(tmp_path, in_background):
    saver = thalia.AsyncSaver(when_busy="queue")
    with a_run(tmp_path / "r") as run:
        expected, handles = [], []
        for step in (1, 2, 3):
            model, optimizer = trained(step)
            obj = {"model": model, "optimizer": optimizer, "step": step, "extra": (1, {"a": None})}
            expected.append({**obj, "model": dict(model.state_dict()), "optimizer": optimizer.state_dict()})
            expected[-1]["model"] = {name: tensor.clone() for name, tensor in expected[-1]["model"].items()}
            if in_background:
                handles.append(run.save_object_async(saver, step, obj, metric=1 / step, compression="zstd"))
                with torch.no_grad():
                    model[0].weight.zero_()  # a copy was taken
            else:
                stored = run.save_object(step, obj, metric=1 / step, compression="zstd")
                assert stored.entry.metric == 1 / step
        for step, handle in enumerate(handles, 1):
            assert handle.wait().entry.step == step
        for step in (1, 2, 3):
            assert same(load(run.run.load(step=step).path), expected[step - 1])
        with pytest.raises(thalia.ExistsError):
            run.save_object(3, {"a": torch.zeros(1)})
        run.save_object(3, {"a": torch.ones(1)}, replace=True)
        assert load(run.resume().path)["a"].item() == 1
        with pytest.raises(thalia.UnsupportedError, match=r"a\.b"):
            run.save_object(4, {"a": {"b": object()}})
        with pytest.raises(TypeError, match="compression"):
            run.save_object(4, {"a": 1}, compresion="zstd")
        assert [entry.step for entry in run.run.list()] == [1, 2, 3]
        converted = run.save_object(4, {"a": object(), "w": torch.ones(2)}, convert=lambda value: "an object")
        assert load(converted.path)["a"] == "an object"
    with pytest.raises(thalia.UsageError, match="closed"):
        run.save_object(5, {"a": 1})


@pytest.mark.parametrize("in_background", [False, True])
def test_objects_are_deltas_where_the_run_has_them(tmp_path, in_background):
    config = {"deltas": {"policy": "every", "full_every": 4}, "phases": [{"name": "train", "retention": {}}]}
    store.create_run(tmp_path / "r", config)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.Linear(300, 10))
    tied = {"model": model, "again": model[0].weight, "view": model[0].weight[3:5]}
    states = []
    saver = thalia.AsyncSaver()
    with store.RunWriter(tmp_path / "r", durability="none") as run:
        for step in range(1, 6):
            with torch.no_grad():
                model[0].weight[step] += 1
            states.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
            if in_background:
                handle = run.save_object_async(saver, step, {**tied, "step": step}, metric=step, delta=True)
                with torch.no_grad():
                    model[0].weight[0] += 1  # a copy was taken
                assert handle.wait().entry.metric == step
            else:
                run.save_object(step, {**tied, "step": step}, delta=True)
        entries = run.run.list()
        assert [entry.depth for entry in entries] == [0, 1, 2, 3, 0]
        assert entries[3].file_bytes < entries[0].file_bytes / 10
        for step in range(1, 6):
            found = load(run.run.load(step=step).path)
            assert found["step"] == step and same(dict(found["model"]), states[step - 1])
            assert found["again"].data_ptr() == found["model"]["0.weight"].data_ptr()
            assert torch.equal(found["view"], found["again"][3:5])


def test_a_model_is_held_against_a_checkpoint_by_its_names(tmp_path):
    model, optimizer = trained(1)
    with a_run(tmp_path / "r") as run:
        run.save_object(1, {"net": model, "optimizer": optimizer})
        file = run.run.load().file
        with torch.device("meta"):
            fitting = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
            other = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        assert store.compare_with_model(file, {"net": fitting}, ["net.*"]).ok
        fit = store.compare_with_model(file, {"net": other}, ["net.*"])
        assert sorted(fit.missing) == ["net.3.bias", "net.3.weight"]
        assert sorted(name.partition("/")[2] for name in fit.unexpected) == ["net.2.bias", "net.2.weight"]
        assert len(fit.different) == 2 and "[5, 8]" in "".join(fit.different)
        half = store.compare_with_model(file, {"net": fitting.to(torch.bfloat16)}, ["net.*"])
        assert len(half.different) == 4 and "bf16" in half.different[0]
        with pytest.raises(thalia.UsageError, match="2 missing"):
            store.check_strictly(file, {"net": other}, ["net.*"])


def test_threads_save_objects_into_one_run(tmp_path):
    failures = []
    with a_run(tmp_path / "r") as run:

        def work(number):
            try:
                for i in range(5):
                    run.save_object(10 * number + i, {"w": torch.full((100,), float(number))})
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert [load(run.run.path_of(each))["w"][0].item() for each in run.run.list()] == [
            float(number) for number in range(4) for _ in range(5)
        ]


def test_a_fork_cannot_save_an_object(tmp_path):
    with a_run(tmp_path / "r") as run:
        child = os.fork()
        if child == 0:
            try:
                run.save_object(1, {"a": 1})
            except thalia.UsageError as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_life_of_a_hydra_run_goes_on_after_kills_in_every_phase(tmp_path):
    example = [sys.executable, str(EXAMPLES / "hydra.py")]
    whole = subprocess.run([*example, str(tmp_path / "whole")], capture_output=True, text=True, check=True).stdout
    (only,) = store.find_runs(tmp_path / "whole")
    assert store.is_run_id(only.id) and only.id.endswith("_a1b2c3d4")
    expected = whole.splitlines()[-2:]
    assert expected[1] == "whole" and expected[0].startswith("120 ")
    for lines in (2, 4, 3):  # of a process, before it is killed
        process = subprocess.Popen([*example, str(tmp_path / "killed")], stdout=subprocess.PIPE, text=True)
        told = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert all(line.startswith("phase") for line in told)
    last = subprocess.run([*example, str(tmp_path / "killed")], capture_output=True, text=True, check=True).stdout
    assert last.splitlines()[-2:] == expected
    (folder,) = (tmp_path / "killed").iterdir()
    run = store.Run(folder)
    assert [gate.name for gate in run.gates()] == ["bc_best", "distill_best"]
    assert [entry.step for entry in run.list("phase3")][-1] == 120
    pool = run.pool()
    assert [member.step for member in pool.versions] == [90, 100, 110, 120]
    assert set(load(pool.versions[0].path)) >= {"model_record", "global_step"}
    assert "optimizer_record" not in load(pool.versions[0].path)
    # Once more does nothing.
    again = subprocess.run([*example, str(tmp_path / "killed")], capture_output=True, text=True, check=True).stdout
    assert again.splitlines() == expected

    # A damaged gate ends it, and nothing takes the gate's place.
    data = bytearray(run.gate_path("bc_best").read_bytes())
    data[-200] ^= 1
    run.gate_path("bc_best").write_bytes(data)
    assert {finding.kind for finding in run.verify().findings if finding.severity == "error"} != set()
    with pytest.raises(thalia.IntegrityError):
        run.load_gate("bc_best")
