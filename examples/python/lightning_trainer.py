"""A Trainer of Lightning that saves beside the training: run it again, and it goes on where it was killed.

python lightning_trainer.py FOLDER [STEP], where STEP is the one after which it is killed."""

import os
import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import LambdaCallback, ModelCheckpoint
from thalia_checkpoint.lightning import ThaliaAsyncCheckpointIO
from torch.utils.data import DataLoader, TensorDataset


class Net(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        loss: torch.Tensor = (self.layers(batch[0]) - batch[0].sum(1, keepdim=True)).pow(2).mean()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


folder, dies_at = sys.argv[1], int((*sys.argv, "-1")[2])


def die(trainer: Trainer, *_: object) -> None:
    if trainer.global_step == dies_at:
        os._exit(9)


torch.manual_seed(0)
model, loader = Net(), DataLoader(TensorDataset(torch.randn(40, 8)), batch_size=4)
saving = ModelCheckpoint(folder, monitor="step", mode="max", save_top_k=2, save_last=True)  # after each epoch
callbacks = [saving, LambdaCallback(on_train_batch_end=die)]
trainer = Trainer(
    max_epochs=8, accelerator="cpu", callbacks=callbacks, plugins=[ThaliaAsyncCheckpointIO()], logger=False
)
last = f"{folder}/last.ckpt"
trainer.fit(model, loader, ckpt_path=last if os.path.exists(last) else None)
print(trainer.global_step, sum(p.double().sum().item() for p in model.parameters()))
