"""Trains with Lightning's Trainer: run it again with the same folder, and it goes on where it stopped."""

import os
import sys

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import LambdaCallback, ModelCheckpoint
from thalia_checkpoint.lightning import ThaliaCheckpointIO


class Model(pl.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def training_step(self, batch, _):
        return self.net(batch[0]).square().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters())
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]


folder, dies_at = sys.argv[1], int((*sys.argv, "-1")[2])
pl.seed_everything(0)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 8)), 16)
last = os.path.join(folder, "last.ckpt")
death = LambdaCallback(on_train_batch_end=lambda trainer, *_: trainer.global_step == dies_at and os._exit(1))
trainer = pl.Trainer(
    max_epochs=5, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
    callbacks=[ModelCheckpoint(folder, save_last=True, save_top_k=2, monitor="step", mode="max"), death],
    plugins=[ThaliaCheckpointIO(asynchronous=True)],
)  # fmt: skip
model = Model()
trainer.fit(model, data, ckpt_path=last if os.path.exists(last) else None)
print(trainer.global_step, sum(p.double().sum().item() for p in model.parameters()))
