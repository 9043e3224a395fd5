"""Lightning's Trainer with .thalia checkpoints."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import lightning.pytorch as pl
import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from thalia_checkpoint.lightning import ThaliaCheckpointIO

EXAMPLE = Path(__file__).parents[3] / "examples" / "python" / "lightning_trainer.py"


def test_the_example_goes_on_where_it_died(tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, EXAMPLE, *arguments], capture_output=True, text=True, timeout=300)

    whole = run(tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut", "14").returncode == 1  # in the middle of the fourth epoch
    assert (tmp_path / "cut" / "last.ckpt").read_bytes()[:4] == b"THAL"
    resumed = run(tmp_path / "cut")
    assert resumed.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1], resumed.stderr
    assert whole.stdout.splitlines()[-1].startswith("20 ")
    # Of all that were saved the two best are left, and the last.
    assert len(list((tmp_path / "whole").iterdir())) == 3
    state = thalia_torch.load(tmp_path / "whole" / "last.ckpt")
    assert state["hyper_parameters"] == {"width": 32} and state["global_step"] == 20


class Plain(pl.LightningModule):
    def __init__(self, entry=None):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)
        self.entry = entry

    def training_step(self, batch, _):
        return self.net(batch[0]).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def on_save_checkpoint(self, checkpoint):
        if self.entry is not None:
            checkpoint["mine"] = self.entry


def fit(folder, plugin, entry=None):
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 4)), 2)
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ModelCheckpoint(folder, filename="a")],
        plugins=[plugin],
    )
    trainer.fit(Plain(entry), data)
    return folder / "a.ckpt"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_cannot_be_saved_is_named_and_nothing_is_left(tmp_path, asynchronous):
    with pytest.raises(thalia.UnsupportedError, match=r"mine\.hook"):
        fit(tmp_path, ThaliaCheckpointIO(asynchronous=asynchronous), {"hook": lambda: 0})
    assert list(tmp_path.iterdir()) == []


def test_errors_of_saves_beside_the_training_are_raised(tmp_path):
    plugin = ThaliaCheckpointIO(asynchronous=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        plugin.save_checkpoint({"w": torch.ones(1 << 20)}, tmp_path / "large.ckpt")
        with pytest.raises(thalia.IoError, match=r"large\.ckpt"):
            plugin.teardown()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    plugin.save_checkpoint({"w": torch.ones(3)}, tmp_path / "b.ckpt")
    assert torch.equal(plugin.load_checkpoint(tmp_path / "b.ckpt")["w"], torch.ones(3))
    plugin.remove_checkpoint(tmp_path / "b.ckpt")
    plugin.remove_checkpoint(tmp_path / "b.ckpt")
    assert not os.path.exists(tmp_path / "b.ckpt")
    with pytest.raises(thalia.UnsupportedError, match="storage_options"):
        plugin.save_checkpoint({}, tmp_path / "c.ckpt", storage_options={"x": 1})


def test_options_are_those_of_a_save(tmp_path):
    path = fit(tmp_path, ThaliaCheckpointIO(compression="zstd"), {"zeros": torch.zeros(100_000)})
    assert "zstd" in thalia.info(path).codecs
    assert path.stat().st_size < 100_000
    # A damaged one is no checkpoint.
    data = bytearray(path.read_bytes())
    data[thalia.open(path).tensors["state_dict.net.weight"]._source.offset] ^= 1
    path.write_bytes(data)
    with pytest.raises(thalia.ThaliaError):
        ThaliaCheckpointIO().load_checkpoint(path)
