"""Models in several files, as tensors of torch and right into a module."""

import json
import threading

import pytest
import thalia_checkpoint as thalia
import torch
from states import lies_in, same_state
from thalia_checkpoint.torch import load, load_file, load_into, save_file
from thalia_checkpoint.torch._shards_save import save_shards
from thalia_checkpoint.torch._tensors import mapped_tensor


class Model(torch.nn.Module):
    """Of several dtypes, and with a weight that is tied."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 4)
        self.middle = torch.nn.Linear(4, 4, dtype=torch.bfloat16)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.head = torch.nn.Linear(4, 11, bias=False)
        self.head.weight = self.embed.weight


def stored(seed):
    """What a file has of it, with the tied weight once."""
    torch.manual_seed(seed)
    model = Model()
    model.steps += seed
    return {name: tensor for name, tensor in model.state_dict().items() if name != "head.weight"}


@pytest.fixture(params=["safetensors", "thalia"])
def folder(request, tmp_path):
    state, weight_map = stored(5), {}
    for number, name in enumerate(state):
        weight_map[name] = f"part-{number % 2}.{request.param}"
    for shard in set(weight_map.values()):
        save_file({name: state[name] for name in state if weight_map[name] == shard}, tmp_path / shard)
    (tmp_path / f"model.{request.param}.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return tmp_path


def files_of(folder):
    return [path for path in folder.iterdir() if path.name.startswith("part")]


def test_they_load_as_tensors(folder):
    for load_all in (load_file, load, lambda path: load(path, mmap=True)):
        loaded = load_all(folder)
        assert loaded.keys() == stored(5).keys()
        assert all(same_state(tensor, stored(5)[name]) for name, tensor in loaded.items())


def test_mapped_tensors_lie_in_the_files_and_leave_them(folder):
    before = {path: path.read_bytes() for path in files_of(folder)}
    loaded = load(folder, mmap=True)
    assert all(any(lies_in(tensor, path) for path in before) for tensor in loaded.values())
    copied = load(folder)
    assert not any(lies_in(tensor, path) for path in before for tensor in copied.values())
    for tensor in loaded.values():
        tensor.fill_(1)
    assert {path: path.read_bytes() for path in before} == before
    assert same_state(dict(sorted(load(folder).items())), dict(sorted(stored(5).items())))


@pytest.mark.parametrize("how", ["in place", "assign", "mapped"])
def test_they_load_into_a_module_with_its_weights_tied(folder, how):
    torch.manual_seed(0)
    with torch.device("meta" if how != "in place" else "cpu"):
        model = Model()
    report = load_into(model, folder, assign=how != "in place", mmap=how == "mapped")
    assert sorted(report.loaded) == sorted(stored(5)) and not report.missing and not report.unexpected
    state = model.state_dict()
    assert all(same_state(state[name], tensor) for name, tensor in stored(5).items())
    assert model.head.weight is model.embed.weight
    mapped = [any(lies_in(tensor, path) for path in files_of(folder)) for tensor in state.values()]
    assert all(mapped) if how == "mapped" else not any(mapped)


def test_a_tied_weight_may_not_be_missing_under_all_its_names(folder):
    model = torch.nn.ModuleDict({"other": Model()})
    before = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(thalia.UsageError, match=r"missing: .*other\.embed\.weight, .*other\.head\.weight"):
        load_into(model, folder)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))
    report = load_into(Model().middle, folder, prefix="middle.")
    assert sorted(report.loaded) == ["bias", "weight"]


def test_a_file_that_is_missing_leaves_the_module(folder):
    min(files_of(folder)).unlink()
    model = Model()
    before = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(thalia.MissingFileError, match="part-0"):
        load_into(model, folder)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("format", ["safetensors", "thalia"])
def test_of_two_saves_at_once_one_model_is_left(tmp_path, format):
    def save(value):
        for _ in range(5):
            tensors = {name: torch.full((4,), value) for name in "abc"}
            save_shards(tensors, tmp_path, 16, format, {"durability": "none"})

    threads = [threading.Thread(target=save, args=(value,)) for value in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loaded = load(tmp_path)
    assert len(loaded) == 3 and len({tensor[0].item() for tensor in loaded.values()}) == 1
    assert len(list(tmp_path.iterdir())) == 4


def test_another_file_at_the_path_is_not_mapped(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"w": torch.zeros(8)}, path)
    with thalia.open(path, access="writable") as file:
        save_file({"w": torch.ones(8)}, path)  # in its place
        tensor = mapped_tensor(file["w"])
    assert torch.equal(tensor, torch.zeros(8))


def test_tensors_between_words_are_copied(tmp_path):
    # A header of another length than writers give it.
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    header += b" " * (3 - len(header) % 4)
    path = tmp_path / "odd.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + torch.tensor([1.0, 2.0]).numpy().tobytes())
    assert (8 + len(header)) % 4 == 3
    tensor = load(path, mmap=True)["w"]
    assert torch.equal(tensor, torch.tensor([1.0, 2.0])) and tensor.data_ptr() % 4 == 0
