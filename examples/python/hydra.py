"""A policy in the three phases of the Hydra specification: it imitates, learns from a teacher, and then plays in a
league against its earlier versions. One run keeps all of it. Run it again, and it goes on where it stopped."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from thalia_checkpoint import store
from thalia_checkpoint.torch import load

SEED = 0xA1B2C3D4
STEPS, EVERY = 40, 10  # of a phase, and between two checkpoints


class Policy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4)

    def forward(self, seen: torch.Tensor) -> Any:
        return self.head(torch.relu(self.stem(seen)))


class Training:
    """One phase: what a checkpoint has of it, and its step."""

    def __init__(self, run: store.RunWriter, number: int) -> None:
        torch.manual_seed(SEED)
        self.run, self.number, self.phase = run, number, f"phase{number}"
        self.policy, self.teacher = Policy(), Policy()
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)
        self.random = torch.Generator()
        self.step, self.rating = STEPS * (number - 1), store.Rating()
        self.opponents, self.opponent = store.PoolCache(), Policy()

    def begin(self) -> None:
        """As the phase's plan says, or the last checkpoint."""
        folder = self.run.run.folder / self.phase
        if self.run.run.list(self.phase):
            self.resume(load(self.run.resume(self.phase).path))
        elif self.number == 1:
            self.random.manual_seed(SEED)
        else:
            if not (folder / "transition.json").exists():
                plan = store.hydra_transitions()[self.number - 2]
                self.run.transition(plan, master_seed=SEED, model={"model_record": self.policy})
            record = load(folder / "start.thalia")
            self.policy.load_state_dict(record["model_record"])
            if self.number == 2:
                self.teacher.load_state_dict(record["teacher_state_dict"])
            seed = json.loads((folder / "transition.json").read_text())["seed"]
            self.random.manual_seed(seed % 2**63)

    def resume(self, record: dict[str, Any]) -> None:
        self.policy.load_state_dict(record["model_record"])
        self.optimizer.load_state_dict(record["optimizer_record"])
        self.schedule.load_state_dict(record["scheduler_record"])
        self.random.set_state(record["rng_state"])
        self.step, self.rating = record["global_step"], store.Rating(*record["metrics"]["rating"])
        if self.number == 2:
            self.teacher.load_state_dict(record["teacher_state_dict"])
        if self.number == 3:
            self.join_pool()  # a crash may have come between the checkpoint and this

    def record(self) -> dict[str, Any]:
        more: dict[str, Any] = {2: {"teacher_state_dict": self.teacher}}.get(self.number, {})
        if self.number == 3:
            more = {"opponent_pool_metadata": {"next_version": self.run.run.pool().next_version}}
        return {
            "model_record": self.policy,
            "optimizer_record": self.optimizer,
            "scheduler_record": self.schedule,
            "rng_state": self.random.get_state(),
            "global_step": self.step,
            "phase": self.number,
            "config": {"steps": STEPS, "seed": SEED},
            "metrics": {"rating": [self.rating.mu, self.rating.sigma]},
            "timestamp": int(time.time()),
            "checkpoint_version": 1,
            "feature_dropout": 0.0,
            **more,
        }

    def train(self) -> None:
        while self.step < STEPS * self.number:
            self.step += 1
            seen = torch.randn(64, 16, generator=self.random)
            loss = self.loss(seen)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.rating = store.Rating(self.rating.mu + 0.1 - loss.item() / 100, self.rating.sigma * 0.99)
            if self.run.run.is_due(self.step, self.phase):
                metric = loss.item() if self.number == 1 else self.rating.conservative
                stored = self.run.save_object(self.step, self.record(), self.phase, metric=metric)
                if self.number == 3:
                    self.join_pool()
                print(f"{self.phase} step {self.step}{', the best' if stored.is_best else ''}", flush=True)

    def loss(self, seen: torch.Tensor) -> Any:
        if self.number == 3:
            wanted = self.drawn()(seen).detach().roll(1, dims=1)
        elif self.number == 2:
            wanted = self.teacher(seen).detach() + 0.1
        else:
            wanted = seen[:, :4].sin()
        return torch.nn.functional.mse_loss(self.policy(seen), wanted)

    def drawn(self) -> torch.nn.Module:
        """Whom the policy plays in this step: the same after a crash, as the seed and the members say."""
        member = self.run.run.pool().draw(SEED, self.step).member
        if member is None:
            return self.policy
        with_prefix = self.opponents.get(member).tensors
        names = self.opponent.state_dict()
        self.opponent.load_state_dict({name: with_prefix[f"model_record.{name}"].torch() for name in names})
        return self.opponent

    def join_pool(self) -> None:
        """The checkpoint becomes a version of the pool, unless it is one."""
        if all(member.step != self.step for member in self.run.run.pool().versions):
            version = self.run.pool.add(self.step, self.rating).member.version
            self.run.pool.rate(version, self.rating, games_played=EVERY, win_rate=0.5)


@contextmanager
def opened(runs: Path) -> Iterator[store.RunWriter]:
    """The run of this folder that was begun last, or a new one."""
    found = store.find_runs(runs)
    if found:
        folder = found[-1].folder
    else:
        config = store.hydra_config()
        for phase in config["phases"]:
            phase |= {"save_interval": EVERY, "retention": {"keep_last": 2}}
        folder = store.create_run(runs / store.run_id(SEED), config).folder
    with store.RunWriter(folder) as run:
        yield run


torch.set_num_threads(1)
with opened(Path(sys.argv[1])) as run:
    for number in (1, 2, 3):
        training = Training(run, number)
        training.begin()
        training.train()
        if number < 3 and all(gate.phase != training.phase for gate in run.run.gates()):
            run.promote(training.phase)
    pool = run.run.pool()
    weights = sum(weight.double().sum().item() for weight in training.policy.parameters())
    print(training.step, weights, [member.version for member in pool.versions], [gate.name for gate in pool.anchors])
    print(run.run.verify().findings[1:] or "whole")  # but for the lock, which this process has
