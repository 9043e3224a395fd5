"""Brains of torch tensors: a spiking model that is saved, dies, grows and goes on bit for bit."""

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import thalia_checkpoint as thalia
import torch
from states import same_state
from thalia_checkpoint.brain import BrainCheckpoint, BrainRegion, CurriculumTrainer, PrecisionPolicy, StageConfig

ROOT = Path(__file__).resolve().parents[3]


class Region:
    """Leaky neurons with a trace of what was seen."""

    def __init__(self, n, inputs, generator):
        self.generator = generator
        self.w = torch.nn.Parameter(torch.rand(n, inputs, generator=generator), requires_grad=False)
        self.v = torch.zeros(n)
        self.trace = torch.zeros(n, inputs)

    def step(self, inputs):
        self.v = 0.9 * self.v + self.w @ inputs
        spikes = self.v > 3
        self.v = torch.where(spikes, torch.zeros(()), self.v)
        self.trace = 0.95 * self.trace + spikes[:, None] * inputs
        with torch.no_grad():
            self.w += 0.001 * (self.trace - 0.1 * self.w)
        return spikes.float()

    def grow(self, n):
        new = torch.rand(n, self.w.shape[1], generator=self.generator)
        self.w = torch.nn.Parameter(torch.cat([self.w, new]), requires_grad=False)
        self.v = torch.cat([self.v, torch.zeros(n)])
        self.trace = torch.cat([self.trace, torch.zeros_like(new)])

    def get_full_state(self):
        return {
            "config": {"n_output": len(self.v), "dtype": "float32"},
            "weights": {"w": self.w},
            "region_state": {"membrane": self.v, "last": (self.v > 2).nonzero().flatten()},
            "learning_state": {"eligibility": self.trace},
        }

    def load_full_state(self, state):
        self.w = torch.nn.Parameter(state["weights"]["w"], requires_grad=False)
        self.v = state["region_state"]["membrane"]
        self.trace = state["learning_state"]["eligibility"]


class Brain:
    def __init__(self, seed=0):
        self.generator = torch.Generator().manual_seed(seed)
        self.regions = {"cortex": Region(24, 12, self.generator), "striatum": Region(6, 12, self.generator)}
        self.phase = 0.0
        self.training_steps = 0

    def train_epoch(self, config, epoch):
        for _ in range(10):
            inputs = (torch.rand(12, generator=self.generator) < config.difficulty).float()
            rates = [region.step(inputs).mean().item() for region in self.regions.values()]
            self.phase = (self.phase + 0.1) % 1
            self.training_steps += 1
        return {"rate": sum(rates)}

    def auto_grow(self):
        self.regions["cortex"].grow(4)
        return {"cortex": 4, "striatum": 0}

    def get_full_state(self):
        return {
            "regions": self.regions,
            "oscillators": {"theta": {"phase": self.phase}},
            "rng": self.generator.get_state(),
            "training_steps": self.training_steps,
        }

    def load_full_state(self, state):
        for name, region in self.regions.items():
            region.load_full_state(state["regions"][name])
        self.generator.set_state(state["rng"])
        self.phase, self.training_steps = state["oscillators"]["theta"]["phase"], state["training_steps"]


def bits(brain):
    """Everything that decides how it goes on."""
    tensors = [t for r in brain.regions.values() for t in (r.w.detach(), r.v, r.trace)]
    return [t.numpy().tobytes() for t in tensors] + [
        brain.generator.get_state().numpy().tobytes(),
        brain.phase,
        brain.training_steps,
    ]


CONFIG = StageConfig(epochs=1, difficulty=0.4)


@pytest.mark.parametrize("name", ["brain.thalia", "brain.thalia.zst", "brain.thalia.lz4"])
def test_a_brain_that_died_goes_on_bit_for_bit(tmp_path, name):
    brain = Brain()
    brain.train_epoch(CONFIG, 0)
    BrainCheckpoint.save(brain, tmp_path / name, metadata={"stage": 1})
    brain.train_epoch(CONFIG, 1)
    again = BrainCheckpoint.load(tmp_path / name, into=Brain(seed=9))
    again.train_epoch(CONFIG, 1)
    assert bits(again) == bits(brain)
    info = BrainCheckpoint.info(tmp_path / name)
    assert info["total_neurons"] == 30 and info["training_steps"] == 10 and info["metadata"]["stage"] == 1


def test_what_torch_has_comes_back(path):
    conj = torch.tensor([1 + 2j, 3 - 4j]).conj()
    state = {
        "regions": {
            "a": {
                "weights": {
                    "bf16": torch.randn(5, 3).bfloat16(),
                    "t": torch.arange(6).reshape(2, 3).t(),
                    "sparse": torch.eye(4).to_sparse(),
                    "csr": torch.eye(4).to_sparse_csr(),
                    "zeros": torch.zeros(30, 40),
                    "view": torch.arange(10.0)[::3],
                    "conj": conj,
                    "scalar": torch.tensor(2.5, requires_grad=True),
                    "empty": torch.empty(0, 3, dtype=torch.int8),
                    "fp8": torch.ones(4).to(torch.float8_e4m3fn),
                },
                "array": np.arange(3, dtype=np.uint16),
                "kinds": [torch.float16, torch.device("cpu"), torch.Size([2, 3]), np.float64(0.5)],
                "module": torch.nn.Linear(2, 3, dtype=torch.float64),
            }
        }
    }
    BrainCheckpoint.save(state, path)
    found = BrainCheckpoint.load(path).regions["a"]
    for name, tensor in state["regions"]["a"]["weights"].items():
        dense = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
        got = found["weights"][name]
        assert got.dtype == dense.dtype and got.shape == dense.shape and got.layout == torch.strided
        assert torch.equal(
            got.contiguous().view(-1).view(torch.uint8), dense.resolve_conj().contiguous().view(-1).view(torch.uint8)
        )
    assert isinstance(found["array"], np.ndarray) and found["array"].dtype == np.uint16
    assert found["kinds"] == [torch.float16, torch.device("cpu"), torch.Size([2, 3]), np.float64(0.5)]
    assert type(found["kinds"][3]) is np.float64
    assert torch.equal(found["module"]["weight"], state["regions"]["a"]["module"].weight)
    as_numpy = BrainCheckpoint.load(path, framework="numpy").regions["a"]
    assert isinstance(as_numpy["weights"]["t"], np.ndarray)
    assert BrainCheckpoint.load(path, device="meta").regions["a"]["weights"]["t"].device.type == "meta"


def test_numpy_states_as_tensors(path):
    BrainCheckpoint.save({"r": {"w": np.eye(3)}}, path)
    assert isinstance(BrainCheckpoint.load(path)["r"]["w"], np.ndarray)
    for options in ({"framework": "torch"}, {"device": "cpu"}):
        assert torch.equal(BrainCheckpoint.load(path, **options)["r"]["w"], torch.eye(3, dtype=torch.float64))


def test_tensors_are_ones_own(path):
    BrainCheckpoint.save(Brain(), path)
    before = path.read_bytes()
    first, second = BrainCheckpoint.load(path), BrainCheckpoint.load(path)
    first.regions["cortex"]["weights"]["w"].zero_()
    assert second.regions["cortex"]["weights"]["w"].any() and path.read_bytes() == before


def test_a_chain_of_deltas_over_growth_moves_with_its_folder(tmp_path):
    folder, brain = tmp_path / "run", Brain()
    BrainCheckpoint.save(brain, folder / "stage0.thalia")
    kept, base = [], folder / "stage0.thalia"
    for stage in range(1, 5):
        brain.train_epoch(CONFIG, 0)
        if stage == 2:
            brain.auto_grow()
        suffix = ".zst" if stage == 3 else ""
        path = folder / f"stage{stage}.delta.thalia{suffix}"
        BrainCheckpoint.save_delta(brain, path, base_checkpoint=base)
        kept.append((path.name, bits(brain)))
        base = path
    moved = Path(shutil.move(folder, tmp_path / "moved"))
    for name, expected in kept:
        again = Brain(seed=3)
        again.load_full_state(BrainCheckpoint.load(moved / name))
        assert bits(again) == expected
        assert BrainCheckpoint.validate(moved / name) == (True, [])
    # A base that is another file is refused, not taken.
    BrainCheckpoint.save(Brain(seed=5), moved / "stage0.thalia")
    with pytest.raises(thalia.IntegrityError):
        BrainCheckpoint.load(moved / "stage4.delta.thalia")
    assert not BrainCheckpoint.validate(moved / "stage4.delta.thalia").valid


def test_half_precision_deltas_in_frames(tmp_path):
    brain = Brain()
    policy = PrecisionPolicy(weights="fp16", traces="bf16", patterns={"membrane": "keep", "nothing/*": "fp16"})
    BrainCheckpoint.save(brain, tmp_path / "a.thalia", precision_policy=policy)
    brain.train_epoch(CONFIG, 0)
    summary = BrainCheckpoint.save_delta(
        brain,
        tmp_path / "b.delta.thalia.zst",
        tmp_path / "a.thalia",
        compression="zstd",
        compression_level=9,
    )
    assert summary["compression"] == "zstd" and summary["precision_stats"]["fp16"]["count"] == 2
    found = BrainCheckpoint.load(tmp_path / "b.delta.thalia.zst").regions["cortex"]
    assert torch.equal(found["weights"]["w"], brain.regions["cortex"].w.half().float())
    assert torch.equal(found["learning_state"]["eligibility"], brain.regions["cortex"].trace.bfloat16().float())
    assert torch.equal(found["region_state"]["membrane"], brain.regions["cortex"].v)


def test_lazy_regions_of_a_brain(tmp_path):
    brain = Brain()
    BrainCheckpoint.save(brain, tmp_path / "base.thalia")
    brain.train_epoch(CONFIG, 0)
    BrainCheckpoint.save_delta(brain, tmp_path / "delta.thalia", tmp_path / "base.thalia")
    state = BrainCheckpoint.load(tmp_path / "delta.thalia", regions=["striatum"], lazy=True)
    assert state.regions["cortex"].is_loaded is False and isinstance(state.regions["striatum"], BrainRegion)
    again = Brain(seed=4)
    again.load_full_state(state)
    assert bits(again) == bits(brain)
    copied = copy.deepcopy(BrainCheckpoint.load(tmp_path / "delta.thalia", lazy=True).regions["cortex"])
    assert isinstance(copied, BrainRegion) and torch.equal(copied["weights"]["w"], brain.regions["cortex"].w)


def test_what_cannot_be_saved_is_named_and_the_old_file_stays(path):
    class Tagged(torch.Tensor):
        pass

    brain = Brain()
    BrainCheckpoint.save(brain, path)
    bad = [torch.ones(2).as_subclass(Tagged), torch.empty(2, device="meta"), lambda: None]
    for value in bad:
        state = brain.get_full_state()
        state["extra"] = {"inner": [value]}
        with pytest.raises(thalia.UnsupportedError, match=r"extra\.inner\[0\]|extra\[0\]|inner\[0\]"):
            BrainCheckpoint.save(state, path)
    assert bits(BrainCheckpoint.load(path, into=Brain(1))) == bits(brain)


def stages():
    return [StageConfig(epochs=3, difficulty=d, data_config={"vocab": 10}, checkpoint_every=1) for d in (0.2, 0.4, 0.6)]


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("dies_at", [2, 5, 7])
def test_a_curriculum_that_died_goes_on_bit_for_bit(tmp_path, delta, dies_at):
    whole = CurriculumTrainer(Brain(), tmp_path / "whole", growth_policy="auto", delta=delta)
    for config in stages():
        whole.train_stage(config)

    class DeathError(Exception):
        pass

    epochs = 0

    def train(brain, config, epoch):
        nonlocal epochs
        if epochs == dies_at:
            raise DeathError
        epochs += 1
        return brain.train_epoch(config, epoch)

    died = CurriculumTrainer(Brain(), tmp_path / "run", "auto", train_epoch=train, delta=delta)
    with pytest.raises(DeathError):
        for config in stages():
            died.train_stage(config)
    again = CurriculumTrainer(Brain(seed=8), tmp_path / "run", "auto", delta=delta)
    assert again.resume() and (again.stage, again.epoch) == divmod(dies_at, 3)
    for config in stages()[again.stage :]:
        again.train_stage(config)
    assert bits(again.brain) == bits(whole.brain)
    assert again.growth_history == whole.growth_history and again.history == whole.history
    assert [event["step"] for event in again.growth_history] == [0, 30, 60]
    names = (
        ["stage1.thalia", "stage2.delta.thalia", "stage3.delta.thalia"]
        if delta
        else [f"stage{n}.thalia" for n in (1, 2, 3)]
    )
    assert sorted(os.listdir(tmp_path / "run")) == names
    info = BrainCheckpoint.info(again.checkpoints()[3])
    assert info["metadata"]["training_info"]["curriculum_stage"] == 3
    assert info["metadata"]["training_info"]["stage_config"]["data_config"] == {"vocab": 10}
    assert [event["neurons_added"] for event in info["growth_history"]] == [4, 4, 4]


@pytest.mark.parametrize("delta", [False, True])
def test_going_back_to_a_stage(tmp_path, delta):
    trainer = CurriculumTrainer(Brain(), tmp_path, "auto", delta=delta)
    after = []
    for config in stages():
        trainer.train_stage(config)
        after.append(bits(trainer.brain))
    for stage in (1, 3, 2):  # smaller and larger brains
        trainer.load_checkpoint(stage)
        assert bits(trainer.brain) == after[stage - 1] and trainer.stage == stage
        assert len(trainer.growth_history) == stage and len(trainer.history) == stage
    assert sorted(trainer.checkpoints()) == [1, 2, 3]
    trainer.load_checkpoint(stage=1)
    trainer.record_growth("striatum", 0, "looked at", note="x")
    trainer.train_stage(StageConfig(epochs=1, difficulty=0.9))
    assert sorted(trainer.checkpoints()) == [1, 2]  # the third one followed from another second
    fresh = CurriculumTrainer(Brain(2), tmp_path)
    assert fresh.resume() and fresh.stage == 2 and bits(fresh.brain) == bits(trainer.brain)
    assert [event["reason"] for event in fresh.growth_history] == ["auto", "looked at", "auto"]


def test_a_trainer_that_did_not_resume_replaces_nothing(tmp_path):
    first = CurriculumTrainer(Brain(), tmp_path)
    for config in stages()[:2]:
        first.train_stage(config)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    trained = []
    other = CurriculumTrainer(Brain(1), tmp_path, train_epoch=lambda *_: trained.append(1))
    with pytest.raises(thalia.ExistsError, match=r"stage1\.thalia.*resume\(\)"):
        other.train_stage(CONFIG)
    assert not trained and {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    # Nor what somebody else wrote since it resumed.
    assert other.resume() and other.stage == 2
    first.train_stage(stages()[2])
    written = first.checkpoints()[3].read_bytes()
    with pytest.raises(thalia.ExistsError, match=r"stage3\.thalia"):
        other.train_stage(CONFIG)
    assert first.checkpoints()[3].read_bytes() == written
    # Fewer checkpoints than there were are nobody else's work.
    first.load_checkpoint(1)
    first.checkpoints()[2].unlink()
    first.train_stage(CONFIG)
    assert sorted(first.checkpoints()) == [1, 2]


def test_a_stage_that_cannot_be_saved_costs_no_later_one(tmp_path):
    trainer = CurriculumTrainer(Brain(), tmp_path)
    for config in stages():
        trainer.train_stage(config)
    trainer.load_checkpoint(1)
    trainer.brain.get_full_state = lambda: {"regions": {"cortex": {"weights": {"w": print}}}}
    with pytest.raises(thalia.UnsupportedError, match=r"cortex\.weights\.w"):
        trainer.train_stage(CONFIG)
    assert sorted(os.listdir(tmp_path)) == ["stage1.thalia", "stage2.thalia", "stage3.thalia"]


def test_what_metadata_cannot_hold_is_told_before_it_is_trained_on(tmp_path):
    trained = []

    def train(brain, config, epoch):
        trained.append(epoch)
        return {"loss": torch.ones(())}

    trainer = CurriculumTrainer(Brain(), tmp_path, train_epoch=train)
    with pytest.raises(thalia.UsageError, match=r"StageConfig\.data_config\.seed"):
        trainer.train_stage(StageConfig(epochs=9, data_config={"seed": torch.ones(())}))
    assert trained == []
    with pytest.raises(thalia.UsageError, match=r"train_epoch\(\)\.loss.*Tensor"):
        trainer.train_stage(StageConfig(epochs=9))
    assert trained == [0]
    with pytest.raises(thalia.UsageError, match=r"growth_history\[0\]\.where"):
        trainer.record_growth("cortex", 1, where=object())
    assert trainer.growth_history == []


def test_growth_that_a_brain_records_itself_is_kept(tmp_path):
    brain = Brain()
    brain._growth_history = [{"region": "striatum", "neurons_added": 1, "reason": "before"}]

    def grow():  # as the specification has it: it returns nothing
        brain._growth_history.append({"region": "cortex", "neurons_added": 4, "reason": "full", "old_size": 24})

    brain.auto_grow = grow
    trainer = CurriculumTrainer(brain, tmp_path, growth_policy="auto")
    for _ in range(2):
        trainer.train_stage(CONFIG)
    assert [(event["step"], event["old_size"]) for event in trainer.growth_history] == [(0, 24), (10, 24)]
    info = BrainCheckpoint.info(trainer.checkpoints()[2])
    assert info["growth_history"] == trainer.growth_history


def test_a_damaged_stage_is_passed_over(tmp_path):
    trainer = CurriculumTrainer(
        Brain(), tmp_path, growth_policy=lambda brain, config: [{"region": "x", "neurons_added": 1}]
    )
    assert not trainer.resume()
    for config in stages()[:2]:
        trainer.train_stage(config)
    path = trainer.checkpoints()[2]
    path.write_bytes(path.read_bytes()[:-100])
    again = CurriculumTrainer(Brain(), tmp_path)
    with pytest.warns(UserWarning, match=r"stage 2 is passed over: .*stage2\.thalia") as warned:
        assert again.resume()
    assert {each.filename for each in warned} == {__file__}
    assert again.stage == 1
    with pytest.raises(thalia.FormatError, match="max_bytes"):
        again.resume(max_bytes=100)  # it is no damage
    with pytest.raises(thalia.ThaliaError):
        again.load_checkpoint(2)
    with pytest.raises(thalia.NotFoundError, match=r"stage 7; there are 1, 2"):
        again.load_checkpoint(7)
    BrainCheckpoint.save(
        Brain(), tmp_path / "stage9.thalia", metadata={"training_info": {"curriculum_stage": 9, "epoch": "x"}}
    )
    with pytest.raises(thalia.FormatError, match="training_info"):
        again.load_checkpoint(9)
    for n in (1, 2, 9):
        (tmp_path / f"stage{n}.thalia").write_bytes(b"THAL")
    with pytest.raises(thalia.FormatError), pytest.warns(UserWarning, match="passed over"):
        again.resume()


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("dies_at", [1, 2])  # before and after the new file has its name
def test_a_stage_that_was_saved_is_there_whenever_its_save_died(tmp_path, delta, dies_at):
    trainer = CurriculumTrainer(Brain(), tmp_path, delta=delta)
    for config in stages():
        trainer.train_stage(config)
    code = (
        "import os, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import brain_torch_test as test\n"
        "import thalia_checkpoint.brain._curriculum as curriculum\n"
        "publish = curriculum._core.publish_file\n"
        "def dying(folder, written, name, gone):\n"
        f"    if {dies_at} == 2: publish(folder, written, name, gone)\n"
        "    for old in gone:\n"
        "        if os.path.exists(folder / old): os.unlink(folder / old)\n"
        "    os._exit(9)\n"
        "curriculum._core.publish_file = dying\n"
        f"trainer = curriculum.CurriculumTrainer(test.Brain(), sys.argv[2], delta={delta})\n"
        "trainer.load_checkpoint(stage=1)\n"
        "trainer.train_stage(test.StageConfig(epochs=1, difficulty=0.7))\n"
    )
    died = subprocess.run([sys.executable, "-c", code, Path(__file__).parent, tmp_path], check=False)
    assert died.returncode == 9
    again = CurriculumTrainer(Brain(3), tmp_path, delta=delta)
    assert again.resume() and again.stage == 2
    assert list(again.checkpoints()) == [1, 2] and not (tmp_path / "next.thalia").exists()
    assert BrainCheckpoint.load(again.checkpoints()[2]).metadata["training_info"]["stage_config"]["difficulty"] == 0.7


def test_what_a_save_left_and_nobody_can_read_is_passed_over(tmp_path):
    trainer = CurriculumTrainer(Brain(), tmp_path)
    for config in stages():
        path = trainer.train_stage(config)
    written = tmp_path / "next.thalia"
    data = bytearray(path.read_bytes())
    for damaged in (bytes(data[:5000]), b"", bytes(data[: len(data) // 2] + b"x" + data[len(data) // 2 + 1 :])):
        written.write_bytes(damaged)
        with pytest.warns(UserWarning, match="cut short.*next.thalia"):
            assert trainer.resume() and trainer.stage == 3
    BrainCheckpoint.save(Brain(), written)  # nobody's stage
    with pytest.warns(UserWarning, match="next.thalia"):
        assert trainer.resume() and trainer.stage == 3


def test_trainers_that_cannot_be(tmp_path):
    with pytest.raises(thalia.UsageError, match="growth_policy"):
        CurriculumTrainer(Brain(), tmp_path, growth_policy="always")
    with pytest.raises(thalia.UsageError, match="train_epoch"):
        CurriculumTrainer(object(), tmp_path)
    with pytest.raises(thalia.UsageError, match="epochs"):
        CurriculumTrainer(Brain(), tmp_path).train_stage(StageConfig(epochs=0))


def test_the_example_goes_on_after_a_kill(tmp_path):
    example = [sys.executable, str(ROOT / "examples/python/brain.py")]
    expected = subprocess.run([*example, str(tmp_path / "whole")], capture_output=True, text=True, check=True).stdout
    killer = (
        "import os, runpy, signal, sys\n"
        "import thalia_checkpoint.brain._curriculum as curriculum\n"
        "save, saves = curriculum.CurriculumTrainer._save, []\n"
        "def count(*a, **k):\n"
        "    saves.append(save(*a, **k))\n"
        "    if len(saves) == 6: os.kill(os.getpid(), signal.SIGKILL)\n"
        "curriculum.CurriculumTrainer._save = count\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    died = subprocess.run([sys.executable, "-c", killer, example[1], str(tmp_path / "run")])
    assert died.returncode == -signal.SIGKILL
    again = subprocess.run([*example, str(tmp_path / "run")], capture_output=True, text=True, check=True).stdout
    assert again == expected and json.loads(again.split()[0]) == 240


@pytest.mark.parametrize("policy", [None, "bf16"])
def test_connections_come_back_as_what_they_were(tmp_path, policy):
    weights = torch.zeros(20, 10)
    weights[3, 4] = 1.5
    for of in (torch.Tensor.clone, torch.Tensor.numpy):
        wires = [
            {
                "source": "a",
                "target": "b",
                "weights": of(weights),
                "delays": of(torch.ones(20, 10, dtype=torch.float64)),
            },
            {"source": "b", "target": "a", "weights": of(weights.t().contiguous()), "delays": None},
        ]
        brain = {"regions": {"a": {"w": torch.ones(2)}, "b": {}}, "connections": wires}
        BrainCheckpoint.save(brain, tmp_path / "a.thalia", precision_policy=policy)
        with thalia.open(tmp_path / "a.thalia") as file:
            assert [c.weights.encoding for c in file.connections] == ["coo", "coo"]
        found = dict(BrainCheckpoint.load(tmp_path / "a.thalia"))
        del found["metadata"]
        assert same_state(found, brain)
        BrainCheckpoint.save(BrainCheckpoint.load(tmp_path / "a.thalia"), tmp_path / "b.thalia")
        found = BrainCheckpoint.load(tmp_path / "b.thalia")
        assert same_state(found.connections, wires)
