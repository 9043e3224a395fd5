"""Lightning's Trainer with .thalia files."""

import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from states import dies, last_line_of, same_state

pytest.importorskip("lightning")

from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping, LambdaCallback, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.plugins.io import AsyncCheckpointIO
from thalia_checkpoint.lightning import ThaliaAsyncCheckpointIO, ThaliaCheckpointIO

pytestmark = pytest.mark.filterwarnings("ignore")


class Batches:
    """A loader that knows where it is."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        self.at %= 7
        while self.at < 7:
            self.at += 1
            yield torch.randn(4, 8)  # of the random state that the module saves

    def __len__(self):
        return 7

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Data(LightningDataModule):
    def __init__(self, label="a"):
        super().__init__()
        self.save_hyperparameters()
        self.seen = 0

    def train_dataloader(self):
        return Batches()

    def val_dataloader(self):
        return torch.utils.data.DataLoader(torch.linspace(-1, 1, 32).reshape(4, 8), batch_size=2)

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class Net(LightningModule):
    def __init__(self, width=16, betas=(0.9, 0.99), extra=None, milestones=None):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Dropout(0.3), torch.nn.Linear(width, 1))

    def training_step(self, batch, batch_idx):
        self.trainer.datamodule.seen += 1
        return (self.layers(batch) - batch.sum(1, keepdim=True)).pow(2).mean()

    def validation_step(self, batch, batch_idx):
        self.log("loss", self.layers(batch).pow(2).mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01, betas=self.hparams.betas)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=100)
        if self.hparams.milestones:
            scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, self.hparams.milestones)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint):
        checkpoint["rng"] = torch.get_rng_state()

    def on_load_checkpoint(self, checkpoint):
        torch.set_rng_state(checkpoint["rng"])


def trainer(folder, plugin, callbacks=(), epochs=4, every=5):
    saving = ModelCheckpoint(
        folder, monitor="step", mode="max", save_top_k=2, every_n_train_steps=every, save_last=True, filename="{step}"
    )
    return Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        plugins=[plugin],
        callbacks=[saving, *callbacks],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )


class Died(Exception):
    pass


def dying(step):
    def end(trainer, *_):
        if trainer.global_step == step:
            raise Died

    return LambdaCallback(on_train_batch_end=end)


def fit(runner, ckpt_path=None, **hyper_parameters):
    torch.manual_seed(5)
    runner.fit(Net(**hyper_parameters), Data(), ckpt_path=ckpt_path)
    return runner


def of_the_training(state):
    """What a checkpoint says that does not depend on the folder."""
    names = (
        "state_dict",
        "optimizer_states",
        "lr_schedulers",
        "rng",
        "hyper_parameters",
        "Data",
        "global_step",
        "epoch",
    )
    return {name: state[name] for name in names}


def test_the_example_goes_on_where_it_died(tmp_path, capsys, monkeypatch):
    whole = last_line_of("lightning_trainer.py", capsys, monkeypatch, tmp_path / "whole")
    dies("lightning_trainer.py", tmp_path / "died", 57)
    # The save of the last epoch may have been on its way.
    assert thalia_torch.load(tmp_path / "died/last.ckpt")["global_step"] in (40, 50)
    assert last_line_of("lightning_trainer.py", capsys, monkeypatch, tmp_path / "died") == whole
    assert whole.startswith("80 ")


@pytest.mark.parametrize("plugin", [ThaliaCheckpointIO, ThaliaAsyncCheckpointIO])
def test_a_run_goes_on_in_the_middle_of_an_epoch(tmp_path, plugin):
    callbacks = lambda: [StochasticWeightAveraging(0.1, swa_epoch_start=3), EarlyStopping("loss", patience=50)]  # noqa: E731
    whole = fit(trainer(tmp_path / "whole", plugin(compression="zstd"), callbacks()))
    with pytest.raises(Died):
        fit(trainer(tmp_path / "died", plugin(), [*callbacks(), dying(13)]))
    assert sorted(os.listdir(tmp_path / "died")) == ["last.ckpt", "step=10.ckpt", "step=5.ckpt"]
    again = fit(trainer(tmp_path / "died", plugin(), callbacks()), ckpt_path=tmp_path / "died/last.ckpt")

    assert again.global_step == whole.global_step == 28
    assert sorted(os.listdir(tmp_path / "died")) == ["last.ckpt", "step=20.ckpt", "step=25.ckpt"]
    states = [thalia_torch.load(tmp_path / folder / "last.ckpt") for folder in ("whole", "died")]
    assert same_state(*map(of_the_training, states))
    assert states[0]["callbacks"].keys() >= {"StochasticWeightAveraging"}
    assert all(same_state(a, b) for a, b in zip(again.model.parameters(), whole.model.parameters(), strict=True))


def test_a_checkpoint_is_what_lightning_would_have_saved(tmp_path):
    runner = fit(trainer(tmp_path, ThaliaCheckpointIO(), [EarlyStopping("loss")], epochs=1))
    runner.save_checkpoint(tmp_path / "sub/ours.ckpt", storage_options={"compression": "plane_entropy"})
    runner.strategy.checkpoint_io = TorchCheckpointIO()
    runner.save_checkpoint(tmp_path / "theirs.ckpt")
    theirs = torch.load(tmp_path / "theirs.ckpt", weights_only=False)
    ours = ThaliaCheckpointIO().load_checkpoint(tmp_path / "sub/ours.ckpt", map_location="cpu", weights_only=True)
    assert same_state(ours, theirs)
    assert ours["hyper_parameters"] == {"width": 16, "betas": (0.9, 0.99), "extra": None, "milestones": None}

    net = Net(**ours["hyper_parameters"])
    thalia_torch.load_into(net, tmp_path / "sub/ours.ckpt", prefix="state_dict.")
    assert same_state(net.state_dict(), theirs["state_dict"])
    assert thalia.verify(tmp_path / "sub/ours.ckpt").ok


def test_lightnings_own_thread_may_save_too(tmp_path):
    fit(trainer(tmp_path, AsyncCheckpointIO(ThaliaCheckpointIO()), epochs=1))
    assert thalia_torch.load(tmp_path / "last.ckpt")["global_step"] == 5


@pytest.mark.parametrize("plugin", [ThaliaCheckpointIO, ThaliaAsyncCheckpointIO])
def test_a_scheduler_of_milestones_goes_on_where_it_stood(tmp_path, plugin):
    given = {"milestones": [3, 7, 7, 12], "extra": Path("data")}
    whole = fit(trainer(tmp_path / "whole", plugin(), epochs=2), **given)
    fit(trainer(tmp_path, plugin(), epochs=1), **given)
    state = thalia_torch.load(tmp_path / "last.ckpt")
    assert state["lr_schedulers"][0]["milestones"] == Counter(given["milestones"])
    assert state["hyper_parameters"]["extra"] == Path("data")
    again = fit(trainer(tmp_path / "again", plugin(), epochs=2), tmp_path / "last.ckpt", **given)
    rates = [run.optimizers[0].param_groups[0]["lr"] for run in (whole, again)]
    assert rates[0] == rates[1] < 1e-4


@pytest.mark.parametrize("plugin", [ThaliaCheckpointIO, ThaliaAsyncCheckpointIO])
def test_what_cannot_be_saved_is_named(tmp_path, plugin):
    for value, name in ((range(3), "range"), (len, "builtin_function")):
        with pytest.raises(thalia.UnsupportedError, match=rf"hyper_parameters\.extra\.data: .*{name}") as caught:
            fit(trainer(tmp_path, plugin()), extra={"data": value})
        assert caught.value.field == "hyper_parameters.extra.data" and "convert" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_bad_files_and_arguments(tmp_path):
    io = ThaliaCheckpointIO()
    with pytest.raises(FileNotFoundError, match="none"):
        io.load_checkpoint(tmp_path / "none.ckpt")
    torch.save({"state_dict": {}, "epoch": 3}, tmp_path / "plain.ckpt")
    assert io.load_checkpoint(tmp_path / "plain.ckpt") == {"state_dict": {}, "epoch": 3}
    torch.save({"state_dict": {}, "path": tmp_path}, tmp_path / "pickle.ckpt")
    with pytest.raises(thalia.UnsupportedError, match=r"pathlib.*not loaded"):
        io.load_checkpoint(tmp_path / "pickle.ckpt")
    thalia_torch.save([1], tmp_path / "list.ckpt")
    with pytest.raises(thalia.FormatError, match="holds a list"):
        io.load_checkpoint(tmp_path / "list.ckpt")
    with pytest.raises(thalia.UsageError, match="map_location"):
        io.load_checkpoint(tmp_path / "list.ckpt", map_location=lambda storage, place: storage)
    with pytest.raises(thalia.UnsupportedError, match="a URL"):
        io.save_checkpoint({}, "s3://bucket/last.ckpt")
    with pytest.raises(thalia.UsageError, match="storage_options"):
        io.save_checkpoint({}, tmp_path / "x.ckpt", storage_options=3)
    with pytest.raises(thalia.UsageError, match="when_busy"):
        ThaliaAsyncCheckpointIO(when_busy="replace")
    with pytest.raises(thalia.IoError):
        io.remove_checkpoint(tmp_path)
    io.remove_checkpoint(tmp_path / "none.ckpt")


def test_a_failed_save_in_the_background_is_told_and_nothing_goes_for_it(tmp_path):
    io = ThaliaAsyncCheckpointIO()
    old, new = tmp_path / "old.ckpt", tmp_path / "new.ckpt"
    for path in (old, new):
        io.save_checkpoint({"w": torch.zeros(3)}, path)
    io.wait()

    def fails(done, total):
        raise Died

    io.save_checkpoint({"w": torch.ones(1 << 20)}, new, storage_options={"progress": fails})
    with pytest.raises(Died):  # now or at the end
        io.remove_checkpoint(old)
        io.teardown()
    io.teardown()
    assert old.exists() and same_state(io.load_checkpoint(new), {"w": torch.zeros(3)})


def test_a_path_that_was_to_go_may_be_saved_to_again(tmp_path):
    io = ThaliaAsyncCheckpointIO()
    big = {"w": torch.ones(1 << 22)}
    io.save_checkpoint(big, tmp_path / "a.ckpt")
    io.save_checkpoint(big, tmp_path / "b.ckpt")
    io.remove_checkpoint(tmp_path / "a.ckpt")
    io.save_checkpoint({"w": 2}, tmp_path / "a.ckpt")
    assert io.load_checkpoint(tmp_path / "a.ckpt") == {"w": 2}
    io.remove_checkpoint(tmp_path / "a.ckpt")
    io.teardown()
    assert os.listdir(tmp_path) == ["b.ckpt"]


def slowly(done, total):
    time.sleep(0.03)


@pytest.mark.parametrize(
    "which",
    [
        {"save_top_k": -1, "monitor": "score"},
        {"save_top_k": 3, "monitor": "score", "mode": "max"},
        {"save_top_k": 3, "monitor": "score", "mode": "min", "save_last": True},
        {"save_top_k": 1},
    ],
)
def test_names_that_repeat_are_those_of_saves_that_wait(tmp_path, which):
    class Scored(Net):
        def training_step(self, batch, batch_idx):
            self.log("score", float([3, 9, 1, 7, 5, 8, 2][self.trainer.global_step % 7]))
            return super().training_step(batch, batch_idx)

    def fit(folder, plugin):
        torch.manual_seed(5)
        saving = ModelCheckpoint(folder, filename="test", every_n_train_steps=1, **which)
        runner = Trainer(
            max_epochs=1,
            accelerator="cpu",
            plugins=[plugin],
            callbacks=[saving],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        runner.fit(Scored(), Data())
        return {path.name: thalia_torch.load(path)["global_step"] for path in folder.iterdir()}

    waiting = fit(tmp_path / "waiting", ThaliaCheckpointIO())
    beside = fit(tmp_path / "beside", ThaliaAsyncCheckpointIO(progress=slowly))
    assert beside == waiting
    assert len(waiting) == {-1: 7, 3: 3, 1: 1}[which["save_top_k"]] + which.get("save_last", False)


def test_a_plugin_goes_to_the_processes_that_a_strategy_spawns(tmp_path):
    plugin = ThaliaAsyncCheckpointIO(when_busy="wait", durability="none")
    for after in (False, True):  # a fit, in which it saved
        other = pickle.loads(pickle.dumps(plugin))
        other.save_checkpoint({"step": 2}, tmp_path / "b.ckpt")
        other.teardown()
        assert other.load_checkpoint(tmp_path / "b.ckpt") == {"step": 2}
        if not after:
            plugin.save_checkpoint({"step": 1}, tmp_path / "a.ckpt")
    assert plugin.load_checkpoint(tmp_path / "a.ckpt") == {"step": 1}
    with pytest.raises(TypeError, match="compresion"):
        pickle.loads(pickle.dumps(ThaliaAsyncCheckpointIO(compresion="zstd"))).save_checkpoint({}, tmp_path / "c")


RANKS = """
import sys
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.demos.boring_classes import BoringModel
from thalia_checkpoint.lightning import ThaliaAsyncCheckpointIO

class Scored(BoringModel):
    def on_train_epoch_end(self):
        self.log("score", 1.0, sync_dist=True)

if __name__ == "__main__":
    trainer = Trainer(
        strategy="ddp_spawn", devices=2, accelerator="cpu", max_epochs=3, limit_train_batches=1, limit_val_batches=0,
        plugins=[ThaliaAsyncCheckpointIO()], logger=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[ModelCheckpoint(sys.argv[1], filename="test", monitor="score", save_top_k=-1)],
    )
    trainer.fit(Scored())
"""


def test_ranks_ask_together_whether_a_name_is_taken(tmp_path):
    (tmp_path / "ranks.py").write_text(RANKS)
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", tmp_path / "ranks.py", tmp_path / "run"],
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert ended.returncode == 0, ended.stderr
    steps = {path.name: thalia_torch.load(path)["global_step"] for path in (tmp_path / "run").iterdir()}
    assert steps == {"test.ckpt": 1, "test-v1.ckpt": 2, "test-v2.ckpt": 3}
