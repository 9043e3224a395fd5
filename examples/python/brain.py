"""A spiking network that is trained in stages and grows between them: run it again, and it goes on where it stopped."""

import sys
from typing import Any

import torch
from thalia_checkpoint.brain import CurriculumTrainer, StageConfig


class Brain:
    def __init__(self, n: int = 32) -> None:
        self.generator = torch.Generator().manual_seed(0)
        self.w, self.v, self.training_steps = torch.rand(n, 16, generator=self.generator), torch.zeros(n), 0

    def auto_grow(self, n: int = 8) -> dict[str, int]:  # new neurons at each stage
        self.w = torch.cat([self.w, torch.rand(n, 16, generator=self.generator)])
        self.v = torch.cat([self.v, torch.zeros(n)])
        return {"cortex": n}

    def train_epoch(self, config: StageConfig, epoch: int) -> dict[str, float]:
        rate = 0.0
        for _ in range(20):
            inputs = (torch.rand(16, generator=self.generator) < config.difficulty).float()
            self.v = 0.9 * self.v + self.w @ inputs
            spikes = self.v > 4
            self.v[spikes] = 0
            self.w += 0.01 * spikes[:, None] * (inputs - self.w)
            self.training_steps += 1
            rate = spikes.float().mean().item()
        return {"rate": rate}

    def get_full_state(self) -> dict[str, Any]:
        cortex = {"weights": {"w": self.w}, "neuron_state": {"membrane": self.v}}
        return {"regions": {"cortex": cortex}, "rng": self.generator.get_state(), "training_steps": self.training_steps}

    def load_full_state(self, state: Any) -> None:
        cortex = state["regions"]["cortex"]
        self.w, self.v, self.training_steps = (
            cortex["weights"]["w"],
            cortex["neuron_state"]["membrane"],
            state["training_steps"],
        )
        self.generator.set_state(state["rng"])


brain = Brain()
trainer = CurriculumTrainer(brain, sys.argv[1], growth_policy="auto", delta=True)
trainer.resume()
for difficulty in (0.2, 0.4, 0.6)[trainer.stage :]:
    trainer.train_stage(StageConfig(epochs=4, difficulty=difficulty, checkpoint_every=1))
print(brain.training_steps, brain.w.double().sum().item(), brain.v.double().sum().item(), len(trainer.growth_history))
