"""Models and trainings of transformers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import torch
from states import lies_in, same_state
from thalia_checkpoint.transformers import ThaliaTrainer, from_pretrained, last_checkpoint, save_pretrained
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    TrainingArguments,
)

EXAMPLE = Path(__file__).parents[3] / "examples" / "python" / "transformers_trainer.py"


def test_the_example_goes_on_where_it_died(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, EXAMPLE, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )

    whole = run(tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert run(tmp_path / "cut", "11").returncode == 1
    kept = last_checkpoint(tmp_path / "cut")
    assert kept is not None and kept.endswith("checkpoint-9")
    files = {path.name for path in Path(kept).iterdir()}
    index = json.loads((Path(kept) / "model.safetensors.index.json").read_text())
    shards = set(index["weight_map"].values())
    expected = {"training.thalia", "random.thalia", "training_args.json", "trainer_state.json", *shards}
    assert expected <= files and len(shards) > 1
    # Nothing is pickled.
    assert {path.suffix for path in Path(kept).iterdir()} == {".thalia", ".json", ".safetensors"}
    assert json.loads((Path(kept) / "training_args.json").read_text())["save_steps"] == 3
    # As a process leaves them that dies in the middle of a save.
    broken = tmp_path / "cut" / "checkpoint-12"
    broken.mkdir()
    (broken / "trainer_state.json").write_text("{")
    resumed = run(tmp_path / "cut")
    assert resumed.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1], resumed.stderr
    assert whole.stdout.splitlines()[-1].startswith("16 ")


def train(folder, steps, limit, resumes, dies_at):
    class Dying(ThaliaTrainer):
        def _save_rng_state(self, output_dir):
            if self.state.global_step == dies_at:
                os._exit(9)
            super()._save_rng_state(output_dir)

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, n_positions=8, vocab_size=16))
    data = [{"input_ids": row, "labels": row} for row in torch.randint(16, (16, 8))]
    args = TrainingArguments(
        folder,
        max_steps=steps,
        per_device_train_batch_size=4,
        save_steps=1,
        save_total_limit=limit,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Dying(model, args, train_dataset=data)
    trainer.train(resume_from_checkpoint=last_checkpoint(folder) if resumes else None)
    assert args.save_total_limit == limit


def trained(folder, steps, *, limit=2, resumes=False, dies_at=0):
    """The checkpoints of a folder after a training, and the one to go on from."""
    if dies_at:
        code = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import transformers_test; "
            f"transformers_test.train({str(folder)!r}, {steps}, {limit}, {resumes}, {dies_at})"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    else:
        train(folder, steps, limit, resumes, dies_at)
    last = last_checkpoint(folder)
    return sorted(path.name for path in folder.glob("checkpoint-*")), last and Path(last).name


def test_a_training_that_began_again_keeps_its_own_checkpoints(tmp_path):
    assert trained(tmp_path, 4) == (["checkpoint-3", "checkpoint-4"], "checkpoint-4")
    assert trained(tmp_path, 2) == (["checkpoint-1", "checkpoint-2"], "checkpoint-2")
    assert json.loads((tmp_path / "checkpoint-2/training_args.json").read_text())["save_total_limit"] == 2


def test_a_checkpoint_that_is_not_whole_is_not_counted(tmp_path):
    trained(tmp_path, 3)
    damaged = tmp_path / "checkpoint-3/training.thalia"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    expected = ["checkpoint-1", "checkpoint-2", "checkpoint-3"]
    assert trained(tmp_path, 1) == (expected, "checkpoint-1")
    # A byte that is another: what is loaded is read first.
    data = bytearray((tmp_path / "checkpoint-1/training.thalia").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "checkpoint-1/training.thalia").write_bytes(data)
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-2")


def test_a_save_that_dies_costs_no_checkpoint_of_its_step(tmp_path):
    trained(tmp_path, 2, limit=1)
    assert trained(tmp_path, 2, limit=1, dies_at=1) == (["checkpoint-1", "checkpoint-2"], "checkpoint-2")
    trained(tmp_path, 1, limit=1)
    # Of the one checkpoint that there is, the next is saved, and dies.
    assert trained(tmp_path, 1, limit=1, dies_at=1) == (["checkpoint-1"], ".replaced-checkpoint-1")
    assert trained(tmp_path, 2, limit=1, resumes=True) == (["checkpoint-2"], "checkpoint-2")
    assert not list(tmp_path.glob(".replaced*"))


def test_the_last_checkpoint_is_the_last_whole_one(tmp_path):
    assert last_checkpoint(tmp_path / "none") is None and last_checkpoint(tmp_path) is None
    for step in (9, 10, 100):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text("{}")
        with thalia.Writer(folder / "training.thalia") as writer:
            writer.add("w", torch.ones(10).numpy())
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-100")
    whole = (tmp_path / "checkpoint-100" / "training.thalia").read_bytes()
    (tmp_path / "checkpoint-100" / "training.thalia").write_bytes(whole[: len(whole) // 2])
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
    (tmp_path / "checkpoint-10" / "trainer_state.json").unlink()
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-9")


def models():
    gpt = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64)  # tied weights
    llama = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=64
    )  # with buffers that no file has
    return [(GPT2LMHeadModel, gpt), (LlamaForCausalLM, llama)]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("cls, config", models())
def test_a_model_comes_back(tmp_path, cls, config, mmap):
    torch.manual_seed(0)
    model = cls(config).eval()
    save_pretrained(model, tmp_path)
    tokens = torch.arange(8)[None]
    for kind in (cls, AutoModelForCausalLM):
        loaded = from_pretrained(kind, tmp_path, mmap=mmap)
        assert type(loaded) is cls
        with torch.no_grad():
            assert torch.equal(loaded(tokens).logits, model(tokens).logits)
    if cls is GPT2LMHeadModel:
        assert loaded.lm_head.weight.data_ptr() == loaded.transformer.wte.weight.data_ptr()
        assert len(thalia.open(tmp_path / "model.safetensors").tensors) == len(model.state_dict()) - 1


def seeded(cls, config, seed=0):
    torch.manual_seed(seed)
    return cls(config).eval()


def assert_same(loaded, model):
    assert type(loaded) is type(model) and not loaded.training
    assert same_state(loaded.state_dict(), model.state_dict())
    tokens = torch.arange(8)[None]
    with torch.no_grad():
        assert torch.equal(loaded(tokens).logits, model(tokens).logits)


@pytest.mark.parametrize("format", ["thalia", "safetensors"])
@pytest.mark.parametrize("cls, config", models())
def test_shards_come_back(tmp_path, cls, config, format):
    model = seeded(cls, config)
    save_pretrained(model, tmp_path, max_shard_size="20KB", format=format)
    shards = sorted(tmp_path.glob(f"*.{format}"))
    assert len(shards) > 2 and shards[0].name == f"model-00001-of-{len(shards):05d}.{format}"
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.json", "generation_config.json", f"model.{format}.index.json", *(path.name for path in shards),
    }  # fmt: skip
    state = thalia.open(tmp_path)
    assert state.files[1:] == [str(path) for path in shards]
    # A tensor that is larger has a file of its own.
    parts = [thalia.open(path).tensors for path in shards]
    assert all(sum(tensor.nbytes for tensor in part.values()) <= 20_000 or len(part) == 1 for part in parts)
    assert len(state) == len({id(tensor) for tensor in model.state_dict(keep_vars=True).values()})
    assert ("lm_head.weight" in state) == (cls is LlamaForCausalLM)  # the other's is tied to the embedding
    for path in shards:
        with thalia.safe_open(path, framework="pt") as file:
            assert file.metadata() == {"format": "pt"}
    index = json.loads((tmp_path / f"model.{format}.index.json").read_text())
    assert index["metadata"] == {"total_size": sum(tensor.nbytes for tensor in state.values())}
    for kind in (cls, AutoModelForCausalLM):
        for mmap in (False, True):
            loaded = from_pretrained(kind, tmp_path, mmap=mmap)
            assert_same(loaded, model)
            mapped = [any(lies_in(parameter, path) for path in shards) for parameter in loaded.parameters()]
            assert all(mapped) if mmap else not any(mapped)
    if format == "safetensors":
        assert_same(AutoModelForCausalLM.from_pretrained(tmp_path), model)


def test_shards_of_transformers_come_back(tmp_path):
    # Of a mixture of experts, whose weights have other names and shapes in files than in the model.
    config = MixtralConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        num_local_experts=2, vocab_size=64,
    )  # fmt: skip
    model = seeded(MixtralForCausalLM, config)
    model.save_pretrained(tmp_path / "theirs", max_shard_size="20KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 2
    assert not set(thalia.open(tmp_path / "theirs")) <= set(model.state_dict())
    assert_same(from_pretrained(AutoModelForCausalLM, tmp_path / "theirs", mmap=True), model)
    save_pretrained(model, tmp_path / "ours", max_shard_size=20_000, format="safetensors")
    assert_same(AutoModelForCausalLM.from_pretrained(tmp_path / "ours"), model)
    base = from_pretrained(AutoModel, tmp_path / "ours")
    assert same_state(base.state_dict(), model.model.state_dict())


@pytest.mark.parametrize("format", ["thalia", "safetensors"])
def test_the_dtype_is_the_one_asked_for_or_the_configurations(tmp_path, format):
    cls, config = models()[1]
    model = seeded(cls, config).to(torch.bfloat16)
    save_pretrained(model, tmp_path, max_shard_size="20KB", format=format)
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "bfloat16"
    loaded = from_pretrained(AutoModelForCausalLM, tmp_path, mmap=True)
    assert loaded.dtype == torch.bfloat16 and same_state(loaded.state_dict(), model.state_dict())
    wide = from_pretrained(cls, tmp_path, mmap=True, dtype=torch.float32)
    assert wide.dtype == torch.float32
    assert all(torch.equal(a, b.float()) for a, b in zip(wide.parameters(), model.parameters(), strict=True))
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, "dtype": "float16"}))
    assert from_pretrained(cls, tmp_path).dtype == torch.float16


def test_how_to_generate_comes_back(tmp_path):
    cls, config = models()[0]
    model = cls(config)
    model.generation_config = GenerationConfig(max_new_tokens=7, do_sample=True, temperature=0.5)
    save_pretrained(model, tmp_path)
    loaded = from_pretrained(AutoModelForCausalLM, tmp_path)
    assert loaded.generation_config.max_new_tokens == 7 and loaded.generation_config.temperature == 0.5
    assert loaded.name_or_path == loaded.config.name_or_path == str(tmp_path)


def compiled_parts(model):
    model.model.layers[0] = torch.compile(model.model.layers[0])
    model.model.layers[1].mlp = torch.compile(model.model.layers[1].mlp)
    return model


@pytest.fixture
def one_process(tmp_path_factory):
    store = torch.distributed.FileStore(str(tmp_path_factory.mktemp("store") / "s"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


WRAPPERS = {
    "compiled": torch.compile,
    "parts": compiled_parts,
    "data parallel": torch.nn.DataParallel,
    "distributed": torch.nn.parallel.DistributedDataParallel,
    "compiled and distributed": lambda model: torch.nn.parallel.DistributedDataParallel(torch.compile(model)),
    "distributed and compiled": lambda model: torch.compile(torch.nn.parallel.DistributedDataParallel(model)),
}


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("format", ["thalia", "safetensors"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_model_is_saved_as_if_it_was_not(tmp_path, wrapper, format):
    cls, config = models()[1]
    model = seeded(cls, config)
    save_pretrained(model, tmp_path / "plain", format=format)
    save_pretrained(WRAPPERS[wrapper](seeded(cls, config)), tmp_path / "wrapped", format=format)
    for name in ("config.json", "generation_config.json"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "wrapped" / name).read_bytes()
    assert_same(from_pretrained(AutoModelForCausalLM, tmp_path / "wrapped"), model)
    if format == "safetensors":
        assert_same(AutoModelForCausalLM.from_pretrained(tmp_path / "wrapped"), model)


def test_what_no_folder_can_hold_leaves_the_folder_as_it_was(tmp_path):
    cls, config = models()[0]
    save_pretrained(seeded(cls, config), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    adapted = seeded(cls, config, 2)
    adapted._hf_peft_config_loaded = True
    wrong = torch.nn.Sequential(adapted)
    wrong.config = config
    for model, words in (
        (wrong, r"model: got torch\.nn\.modules\.container\.Sequential, expected a transformers\.PreTrainedModel"),
        (torch.compile(wrong), r"model: got torch\.nn\.modules\.container\.Sequential"),
        (adapted, r"GPT2LMHeadModel with adapters, expected one without adapters"),
    ):
        with pytest.raises(thalia.UsageError, match=words):
            save_pretrained(model, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("format", ["thalia", "safetensors"])
def test_what_is_tied_in_memory_alone_comes_back(tmp_path, format):
    config = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=64,
        tie_word_embeddings=False,
    )  # fmt: skip
    model = seeded(LlamaForCausalLM, config)
    model.lm_head.weight = model.model.embed_tokens.weight
    model.model.layers[1].mlp = model.model.layers[0].mlp
    save_pretrained(model, tmp_path, format=format)
    assert_same(from_pretrained(AutoModelForCausalLM, tmp_path), model)
    if format == "safetensors":
        assert_same(AutoModelForCausalLM.from_pretrained(tmp_path), model)


@pytest.mark.parametrize("format", ["thalia", "safetensors"])
def test_what_is_tied_by_the_configuration_alone_comes_back_as_it_was(tmp_path, format):
    config = GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64)
    model = seeded(GPT2LMHeadModel, config)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(64, 32))
    save_pretrained(model, tmp_path, format=format)
    assert_same(from_pretrained(AutoModelForCausalLM, tmp_path), model)


def test_a_save_takes_the_place_of_any_other(tmp_path):
    cls, config = models()[0]
    sizes = ["5GB", "20KB", "40KB", "5GB", "20KB"]
    for seed, (size, format) in enumerate((size, format) for format in ("thalia", "safetensors") for size in sizes):
        model = seeded(cls, config, seed)
        save_pretrained(model, tmp_path, max_shard_size=size, format=format, durability="none")
        assert_same(from_pretrained(cls, tmp_path), model)
        if format == "safetensors":
            assert_same(cls.from_pretrained(tmp_path), model)
        index = tmp_path / f"model.{format}.index.json"
        names = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {f"model.{format}"}
        assert {path.name for path in tmp_path.iterdir() if path.suffix in (".thalia", ".safetensors")} == names
        assert len(list(tmp_path.glob("*.index.json"))) == (size != "5GB")


DEATH = """
import os, sys
import torch
from thalia_checkpoint.transformers import save_pretrained
from transformers import GPT2Config, GPT2LMHeadModel

part, format, folder = sys.argv[1:]
torch.manual_seed(2)
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64))

def progress(done, total):
    if done >= total * float(part):
        os._exit(9)

save_pretrained(model, folder, max_shard_size="20KB", format=format, progress=progress)
"""


# What a death after that leaves, call by call, is tried in tests/crash.
@pytest.mark.parametrize("format", ["thalia", "safetensors"])
@pytest.mark.parametrize("size, old", [("20KB", "thalia"), ("20KB", "safetensors"), ("5GB", "thalia")])
@pytest.mark.parametrize("part", [0.9, 1.0])
def test_a_save_that_dies_leaves_the_old_model(tmp_path, part, size, old, format):
    cls, config = models()[0]
    save_pretrained(seeded(cls, config, 1), tmp_path, max_shard_size=size, format=old)
    before = {path.name for path in tmp_path.iterdir()}
    died = subprocess.run(
        [sys.executable, "-c", DEATH, str(part), format, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert died.returncode == 9, died.stderr
    assert {path.name for path in tmp_path.iterdir()} > before
    assert_same(from_pretrained(cls, tmp_path), seeded(cls, config, 1))
    if old == "safetensors":
        assert_same(cls.from_pretrained(tmp_path), seeded(cls, config, 1))
    save_pretrained(seeded(cls, config, 3), tmp_path, format=format)
    assert_same(from_pretrained(cls, tmp_path), seeded(cls, config, 3))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json", "generation_config.json", f"model.{format}"
    ]  # fmt: skip


def test_a_save_that_fails_leaves_what_was_there(tmp_path):
    cls, config = models()[0]
    save_pretrained(seeded(cls, config, 1), tmp_path, max_shard_size="20KB", format="thalia")
    before = {path.name for path in tmp_path.iterdir()}

    def fail(done, total):
        if total * 0.9 < done < total:  # most files are there
            raise RuntimeError("enough")

    for format in ("thalia", "safetensors"):
        with pytest.raises(RuntimeError, match="enough"):
            save_pretrained(seeded(cls, config, 2), tmp_path, max_shard_size="20KB", format=format, progress=fail)
        assert {path.name for path in tmp_path.iterdir()} == before
    with pytest.raises(thalia.ExistsError, match=r"model\.thalia\.index\.json: the file is there already"):
        save_pretrained(seeded(cls, config, 2), tmp_path, replace=False, format="thalia")
    assert {path.name for path in tmp_path.iterdir()} == before
    assert_same(from_pretrained(cls, tmp_path), seeded(cls, config, 1))


def test_a_tensor_that_is_too_large_has_a_file_of_its_own(tmp_path):
    cls, config = models()[0]
    save_pretrained(cls(config), tmp_path, max_shard_size=1, format="thalia")
    state = thalia.open(tmp_path)
    assert len(state.files) - 1 == len(state) == len(list(tmp_path.glob("*.thalia")))


@pytest.mark.parametrize("size", [0, -1, "", "5 GiB", "GB", "1.5GB", 2.5])
def test_sizes_that_cannot_be_are_refused(tmp_path, size):
    cls, config = models()[0]
    with pytest.raises(thalia.UsageError, match=r"max_shard_size: got .*, expected a number of bytes"):
        save_pretrained(cls(config), tmp_path, max_shard_size=size)
    with pytest.raises(thalia.UsageError, match="format: got 'pickle', expected 'safetensors' or 'thalia'"):
        save_pretrained(cls(config), tmp_path, format="pickle")


def test_a_checkpoint_without_one_of_its_shards_is_not_whole(tmp_path):
    cls, config = models()[0]
    for step in (1, 2):
        folder = tmp_path / f"checkpoint-{step}"
        save_pretrained(cls(config), folder, max_shard_size="20KB", format="safetensors")
        (folder / "trainer_state.json").write_text("{}")
    shutil.copytree(folder, tmp_path / "whole")
    assert last_checkpoint(tmp_path) == str(folder)
    for name in ("model-00002-of-*.safetensors", "model.safetensors.index.json"):
        (lost,) = folder.glob(name)
        lost.unlink()
        assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-1")
        shutil.copy(tmp_path / "whole" / lost.name, lost)
        assert last_checkpoint(tmp_path) == str(folder)
        lost.write_bytes(lost.read_bytes()[:-9])
        assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-1")
        shutil.copy(tmp_path / "whole" / lost.name, lost)


def test_weights_of_another_shape_are_listed(tmp_path):
    cls, config = models()[0]
    save_pretrained(cls(config), tmp_path)
    GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=65).save_pretrained(tmp_path)
    with pytest.raises(
        thalia.UsageError, match=r"mismatched: .*wte\.weight: \[64, 32\] in the file, \[65, 32\] in the"
    ):
        from_pretrained(cls, tmp_path)


def test_a_folder_without_weights_is_refused(tmp_path):
    models()[0][1].save_pretrained(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(thalia.MissingFileError, match=r"search for model\.thalia, "):
        from_pretrained(AutoModelForCausalLM, tmp_path)


def test_weights_that_do_not_fit_are_listed(tmp_path):
    cls, config = models()[0]
    save_pretrained(cls(config), tmp_path)
    other = GPT2Config(n_layer=3, n_head=2, n_embd=32, vocab_size=64)
    other.save_pretrained(tmp_path)
    with pytest.raises(thalia.UsageError, match=r"missing: .*transformer\.h\.2"):
        from_pretrained(cls, tmp_path)
