"""DeepSpeed with .thalia files. Its ranks are processes that run functions of deepspeed_ranks.py."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("deepspeed")

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import deepspeed_ranks
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
import torch.distributed as dist
from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler, LossScaler
from deepspeed.runtime.zero.config import ZeroStageEnum
from deepspeed.utils import fragment_address
from deepspeed_ranks import TRAININGS
from documents_test import deepspeed_example
from states import EXAMPLES, same_state
from thalia_checkpoint.deepspeed import ThaliaCheckpointEngine

# Its collectives in shared memory are compiled at the first run, which takes a minute; gloo's do as well.
RUN = "import deepspeed.ops, run_rank; deepspeed.ops.__compatible_ops__['deepspeed_shm_comm'] = False; run_rank.run()"


def on_ranks(world, script, *arguments, status=0):
    """Runs a script in so many ranks. What the first printed, and what all wrote to stderr."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    ranks = []
    for rank in map(str, range(world)):
        environment = {**os.environ, **place, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": str(world)}
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", RUN, str(script), *map(str, arguments)],
                env=environment | {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        told = [rank.communicate(timeout=300) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [status] * world, "\n".join(err for _, err in told)
    return told[0][0], "".join(err for _, err in told)


def on(world, function, *arguments, **expected):
    return on_ranks(world, deepspeed_ranks.__file__, function, *arguments, **expected)


def plain(value):
    """A state with the attributes of objects in their place, to be compared."""
    if isinstance(value, LossScaler | fragment_address | argparse.Namespace | DynamicLossScaler):
        return {type(value).__name__: plain(vars(value))}
    if isinstance(value, dict):
        return type(value)((key, plain(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def test_runs_that_died_go_on_bit_for_bit(tmp_path):
    on(2, "begin_and_die", tmp_path, status=9)
    on(2, "go_on", tmp_path)
    for stage, _, how in TRAININGS:
        folder = tmp_path / f"{stage}-{how}"
        names = sorted(path.name for path in (folder / "ours/global_step3").iterdir())
        assert names == sorted(path.name for path in (folder / "theirs/global_step3").iterdir())
        assert len(names) == {0: 1, 3: 4}.get(stage, 3)
        for name in names:
            assert thalia.verify(folder / "ours/global_step3" / name).ok
            ours = ThaliaCheckpointEngine().load(folder / "ours/global_step3" / name)
            theirs, whole, again = (
                torch.load(folder / which / step / name, weights_only=False)
                for which, step in (("theirs", "global_step3"), ("whole", "global_step6"), ("again", "global_step6"))
            )
            assert same_state(plain(ours), plain(theirs))
            assert same_state(plain(again), plain(whole))
            assert not same_state(plain(ours), plain(whole))


def test_the_example_goes_on_where_it_died(tmp_path):
    example = EXAMPLES / "deepspeed_training.py"
    whole, _ = on_ranks(1, example, tmp_path / "whole")
    on_ranks(1, example, tmp_path / "died", 12, status=9)
    # The save of step 10 may have been on its way.
    assert (tmp_path / "died/latest").read_text() in ("global_step5", "global_step10")
    again, _ = on_ranks(1, example, tmp_path / "died")
    assert whole.splitlines()[-1] == again.splitlines()[-1]
    assert whole.splitlines()[-1].startswith("20 ")
    assert (tmp_path / "whole/latest").read_text() == "global_step20"


def test_the_example_of_the_manual_runs(tmp_path):
    script = tmp_path / "example.py"
    script.write_text(f"import os\nos.chdir({str(tmp_path)!r})\n{deepspeed_example()}")
    on_ranks(1, script)
    assert (tmp_path / "run/deepspeed/latest").read_text() == "global_step1"


def test_latest_waits_for_every_rank(tmp_path):
    on(2, "latest_waits", tmp_path)


def test_a_save_that_fails_is_told_in_every_rank(tmp_path):
    on(2, "failures_are_told", tmp_path)


def test_a_process_that_ends_leaves_whole_files(tmp_path):
    _, stderr = on(1, "end_without_waiting", tmp_path)
    assert "leaked" not in stderr
    assert len(files := list(tmp_path.glob("global_step0/*"))) == 2
    assert all(thalia.verify(path).ok for path in files)
    assert not (tmp_path / "latest").exists()


def test_objects_of_deepspeed_come_back(tmp_path):
    scaler = DynamicLossScaler(2.0**16, 1000, 1.0, 2, False, dtype=torch.bfloat16)
    scaler.update_scale(False)
    state = {
        "weight": torch.arange(3.0),
        "scalers": [scaler, LossScaler(4)],
        "stages": tuple(ZeroStageEnum),
        "args": argparse.Namespace(lr=0.1, part=fragment_address(3, 5), device=torch.device("cpu")),
    }
    path = tmp_path / "state.pt"
    ThaliaCheckpointEngine().save(state, path)
    for map_location in (None, "cpu", torch.device("cpu"), lambda storage, place: storage):
        found = ThaliaCheckpointEngine().load(path, map_location)
        assert same_state(plain(found), plain(state))
        assert found["stages"] == state["stages"] and type(found["stages"][0]) is ZeroStageEnum
        assert found["scalers"][0].loss_scale == 2.0**16 and found["scalers"][0].dtype == torch.bfloat16
    # Anybody else reads what they hold.
    assert thalia_torch.load(path)["scalers"][1] == {
        "thalia_checkpoint.deepspeed": ["LossScaler", {"cur_scale": 4, "dynamic": False}]
    }


@pytest.mark.parametrize(
    "saved",
    [["Popen", {}], ["ZeroStageEnum", 9], ["LossScaler", 3], [["x"], {}], "LossScaler", {}],
)
def test_a_file_names_no_other_class(tmp_path, saved):
    path = tmp_path / "state.pt"
    thalia_torch.save({"a": [({"thalia_checkpoint.deepspeed": saved},)]}, path)
    with pytest.raises(thalia.FormatError, match=re.escape(f"{path}: thalia_checkpoint.deepspeed: got")) as caught:
        ThaliaCheckpointEngine().load(path)
    assert caught.value.value == repr(saved)


def test_files_that_cannot_be_read(tmp_path):
    engine = ThaliaCheckpointEngine()
    with pytest.raises(FileNotFoundError, match="none"):
        engine.load(tmp_path / "none.pt")
    torch.save({"optimizer": DynamicLossScaler(2.0**16, 1000, 1.0, 2, False)}, tmp_path / "object.pt")
    with pytest.raises(thalia.UnsupportedError, match="DynamicLossScaler"):
        engine.load(tmp_path / "object.pt")


def test_what_deepspeed_saved_before_comes_without_its_objects(tmp_path):
    state = {"module": {"weight": torch.arange(3.0)}, "args": (1, "two"), "steps": 3}
    torch.save(state, tmp_path / "mp_rank_00_model_states.pt")
    assert same_state(ThaliaCheckpointEngine().load(tmp_path / "mp_rank_00_model_states.pt"), state)
