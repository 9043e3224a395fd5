"""What torch.save wrote, loaded without a pickle: as it lies there, and out of a .thalia file made of it."""

import argparse
import copy
from collections import OrderedDict
from pathlib import Path

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as thalia_torch
import torch
from states import lies_in, same_state
from thalia_checkpoint.torch._decode import decode

DATA = Path(__file__).resolve().parents[2] / "data/formats/pt"


def attributes(state, path=""):
    """What each state_dict in it has beside its items, by its path."""
    found = {path: state._metadata} if hasattr(state, "_metadata") else {}
    members = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list | tuple) else ()
    for key, member in members:
        found |= attributes(member, f"{path}.{key}")
    return found


def gradients(state):
    """Whether each tensor requires one, and is a Parameter."""
    if isinstance(state, torch.Tensor):
        return [(state.requires_grad, type(state))]
    members = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return [each for member in members for each in gradients(member)]


def assert_same(found, expected):
    assert same_state(found, expected)
    assert attributes(found) == attributes(expected) and gradients(found) == gradients(expected)


def loaded(path, tmp_path):
    """From the file itself, in a mapping, and from a .thalia file."""
    thalia.convert(path, tmp_path / "c.thalia", replace=True)
    yield thalia_torch.load(path)
    yield thalia_torch.load(path, mmap=True)
    yield thalia_torch.load(tmp_path / "c.thalia")


@pytest.mark.parametrize(
    "name", ["train.pt", "deflated.pt", "views.pt", "shared.pt", "dtypes.pt", "numpy.pt", "protocol5.pt", "bare.pt"]
)
def test_what_lies_in_the_files_of_torch(name, tmp_path):
    expected = torch.load(DATA / name, weights_only=False)
    if name == "views.pt":  # what is conjugated or negated comes as its elements
        expected = {key: tensor.resolve_conj().resolve_neg() for key, tensor in expected.items()}
    for found in loaded(DATA / name, tmp_path):
        assert_same(found, expected)


class Model(torch.nn.Module):
    """What keeps something else than weights in its state."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 8)
        self.attention = torch.nn.MultiheadAttention(8, 2)
        self.norm = torch.nn.Sequential(torch.nn.BatchNorm1d(8), torch.nn.LayerNorm(8))
        self.head = torch.nn.Linear(8, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("counts", torch.arange(3))
        self.frozen = torch.nn.Parameter(torch.ones(3, dtype=torch.bfloat16), requires_grad=False)

    def forward(self, x):
        x = self.embedding(x)
        return self.head(self.norm(self.attention(x, x, x)[0]))


OPTIMIZERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, amsgrad=True),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "lbfgs": lambda parameters: torch.optim.LBFGS(parameters, max_iter=2),
}


def trained(kind):
    torch.manual_seed(1)
    model = Model()
    optimizer = OPTIMIZERS[kind]([p for p in model.parameters() if p.requires_grad])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.arange(4)).square().mean()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
        scheduler.step()
    return model, optimizer, scheduler


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_training_goes_on_from_a_checkpoint_of_torch(kind, tmp_path):
    model, optimizer, scheduler = trained(kind)
    path = tmp_path / "run.pt"
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
        "step": 2,
        "args": {"lr": 1e-3, "betas": (0.9, 0.95), "name": None},
    }
    torch.save(state, path)
    expected = torch.load(path, weights_only=False)
    for found in loaded(path, tmp_path):
        assert_same(found, expected)
        tied = found["model"]["head.weight"], found["model"]["embedding.weight"]
        assert tied[0].data_ptr() == tied[1].data_ptr()
        other, its_optimizer, its_scheduler = trained(kind)
        other.load_state_dict(found["model"])
        its_optimizer.load_state_dict(found["optimizer"])
        its_scheduler.load_state_dict(found["scheduler"])
        assert same_state(copy.deepcopy(its_optimizer.state_dict()), expected["optimizer"])


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
def test_what_is_saved_here_is_what_torch_loads(kind, tmp_path):
    model, optimizer, _ = trained(kind)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "plain": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "nested": [OrderedDict(a=1), (1, 2.5, "x")],
    }
    state["nested"][0]._metadata = OrderedDict({"": {"version": 3}})
    thalia_torch.save(state, tmp_path / "run.thalia")
    assert_same(thalia_torch.load(tmp_path / "run.thalia"), state)
    assert thalia.convert(tmp_path / "run.thalia", tmp_path / "run.pt").losses == ()
    assert_same(torch.load(tmp_path / "run.pt", weights_only=True), state)


def test_a_tensor_that_requires_a_gradient_is_one_object_again(tmp_path):
    leaf = torch.ones(3, requires_grad=True)
    path = tmp_path / "s.thalia"
    thalia_torch.save({"a": leaf, "b": leaf, "c": leaf.detach(), "sum": leaf.sum()}, path)
    found = thalia_torch.load(path)
    assert found["a"] is found["b"] and found["a"].requires_grad and found["a"].is_leaf
    assert not found["c"].requires_grad and found["c"].data_ptr() == found["a"].data_ptr()
    assert found["sum"].requires_grad and found["sum"].is_leaf  # as torch.load gives it


def test_attributes_that_cannot_be_are_passed_over_or_refused():
    tree = {"ordered": [["a", 1], ["b", {"ordered": []}]]}

    def decoded(attributes, tree=tree):
        return decode(tree, lambda _: torch.ones(2, dtype=torch.int64), lambda _: None, attributes)

    for junk in (None, 3, {}, "x", [], [3], [[1, 2]], [["b"]], [["a", {}]], [["nothing", 1]], [["", 1, 2]]):
        assert attributes(decoded(junk)) == {}
    assert decoded([["b", {"dict": [["x", 1]]}]])["b"]._metadata == {"x": 1}
    with pytest.raises(thalia.FormatError, match="breaks the rules"):
        decoded([["b", {"nothing": 1}]])
    with pytest.raises(thalia.FormatError, match="breaks the rules"):
        decoded(None, {"tensor": "i", "requires_grad": True})  # integers have none
    assert not decoded(None, {"tensor": "i", "requires_grad": 7}).requires_grad


def test_attributes_that_hold_what_no_file_does_are_left_out(tmp_path):
    state = OrderedDict(a=torch.ones(2))
    for told in ({"x": object()}, {"x": torch.ones(1)}):
        state._metadata = told
        thalia_torch.save(state, tmp_path / "s.thalia")
        assert attributes(thalia_torch.load(tmp_path / "s.thalia")) == {}


def test_a_module_reads_a_checkpoint_of_torch(tmp_path):
    model, *_ = trained("sgd")
    torch.save({"model": model.state_dict(), "step": 2}, tmp_path / "run.pt")
    other = Model()
    report = thalia_torch.load_into(other, tmp_path / "run.pt", prefix="model.")
    assert report.missing == [] and same_state(other.state_dict(), model.state_dict())
    with torch.device("meta"):
        empty = Model()
    thalia_torch.load_into(empty, tmp_path / "run.pt", prefix="model.", assign=True, mmap=True)
    assert same_state(empty.state_dict(), model.state_dict()) and empty.head.weight is empty.embedding.weight
    assert lies_in(empty.attention.in_proj_weight, tmp_path / "run.pt")


def test_what_a_tree_lacks_comes_as_its_elements():
    found = thalia_torch.load(DATA / "sparse.pt")
    expected = torch.load(DATA / "sparse.pt", weights_only=False)
    for name in ("coo", "csr"):
        assert torch.equal(found[name], expected[name].to_dense())
    quantized = torch.load(DATA / "quantized.pt", weights_only=False)
    assert torch.equal(thalia_torch.load(DATA / "quantized.pt")["t"], quantized["t"].int_repr())


def test_objects_are_refused_by_their_names(tmp_path):
    torch.save({"model": {}, "args": argparse.Namespace(lr=1)}, tmp_path / "n.pt")
    with pytest.raises(thalia.UnsupportedError, match=r"argparse\.Namespace"):
        thalia_torch.load(tmp_path / "n.pt")
    with pytest.raises(thalia.UnsupportedError, match=r"torch\.load"):
        thalia_torch.load(DATA / "legacy.pt")


def test_tensors_of_other_formats():
    blocks = DATA.parent / "gguf/blocks.gguf"
    with thalia.open(blocks, dequantize=True) as file:
        tensor = file["Q4_0"].torch()
        assert tensor.dtype == torch.float32 and tensor.numpy().tobytes() == file["Q4_0"].numpy().tobytes()
    found = thalia_torch.load(DATA.parent / "onnx/computing.onnx")
    assert found["weight"].tolist() == [1.0, 2.0]
