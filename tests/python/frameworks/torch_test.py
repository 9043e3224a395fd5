"""PyTorch: what people checkpoint comes back, bit for bit, and without a pickle."""

import collections
import os
import random

import numpy as np
import pytest
import safetensors.torch as theirs
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as ours
import torch

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16,
    torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
    torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


def same(a, b):
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))
    )


@pytest.fixture
def tensors():
    torch.manual_seed(3)
    out = {f"of.{dtype}".replace("torch.", ""): (torch.rand(3, 5) * 9).to(dtype) for dtype in DTYPES}
    out["scalar"] = torch.tensor(2.5)
    out["empty"] = torch.empty(0, 4)
    return out


@pytest.mark.parametrize("ending", ["safetensors", "thalia"])
def test_dictionaries_of_tensors(tmp_path, tensors, ending):
    if ending == "safetensors":
        tensors = {k: v for k, v in tensors.items() if "complex" not in k}
    path = tmp_path / f"f.{ending}"
    ours.save_file(tensors, path, metadata={"format": "pt"})
    found = ours.load_file(path)
    assert set(found) == set(tensors) and all(same(found[k], v) for k, v in tensors.items())
    assert all(same(ours.load(path)[k], v) for k, v in tensors.items())
    with thalia.safe_open(path, framework="pt") as file:
        for name, tensor in tensors.items():
            assert same(file.get_tensor(name), tensor)
            if tensor.ndim == 2 and tensor.numel():
                assert same(file.get_slice(name)[1:, 2:4], tensor[1:, 2:4])
    if ending == "safetensors":
        assert all(same(theirs.load_file(path)[k], v) for k, v in tensors.items())


def test_bytes_are_those_of_the_reference(tensors):
    tensors = {k: v for k, v in tensors.items() if "complex" not in k and v.numel()}
    assert ours.save(tensors, {"a": "b"}) == theirs.save(tensors, {"a": "b"})
    assert all(same(ours.load(theirs.save(tensors))[k], v) for k, v in tensors.items())


def test_what_the_reference_refuses_is_refused_alike(tmp_path):
    base = torch.arange(12.0).reshape(3, 4)
    cases = [
        ({"a": base, "b": base[1:]}, RuntimeError, "share memory"),
        ({"a": base.T}, ValueError, "non contiguous"),
        ({"a": "text"}, ValueError, "expected torch.Tensor"),
        ([base], ValueError, "xpected a dict"),
        ({"a": base.to_sparse()}, ValueError, "sparse"),
    ]
    for tensors, error, words in cases:
        for module in (ours, theirs):
            with pytest.raises(error, match=words):
                module.save_file(tensors, tmp_path / "f.safetensors")
    parts = {"a": base[:1], "b": base[1:]}
    ours.save_file(parts, tmp_path / "f.safetensors")
    theirs.save_file(parts, tmp_path / "f.safetensors")
    assert os.listdir(tmp_path) == ["f.safetensors"]


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
    )


def train(net, optimizer, scheduler, steps):
    losses = []
    for _ in range(steps):
        x = torch.randn(4, 8)
        loss = (net(x) - torch.rand(4, 2) - random.random() - np.random.random()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_a_resumed_training_goes_on_bit_for_bit(tmp_path, kind):
    path = tmp_path / "run.thalia"
    net = model()
    optimizer = kind(net.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    train(net, optimizer, scheduler, 5)
    state = {
        "model": net, "optimizer": optimizer, "scheduler": scheduler, "step": 5,
        "rng": {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": np.random.get_state()},
    }  # fmt: skip
    ours.save(state, path)
    expected = train(net, optimizer, scheduler, 5)

    net = model()
    optimizer = kind(net.parameters(), lr=1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    state = ours.load(path)
    net.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["rng"]["torch"])
    random.setstate(state["rng"]["python"])
    np.random.set_state(state["rng"]["numpy"])
    assert state["step"] == 5
    assert train(net, optimizer, scheduler, 5) == expected
    with thalia.open(path) as file:
        roles = {tensor.role for name, tensor in file.tensors.items() if name.startswith("optimizer")}
        assert roles <= {"optimizer"}
        assert file.tensors["model.0.weight"].role == "weights"


def test_nested_containers_and_scalars(tmp_path):
    value = {
        "none": None, "bool": True, "int": -3, "big": 1 << 80, "float": 0.1, "nan": float("nan"),
        "inf": -float("inf"), "text": "ä/.\n", "bytes": b"\0\xff", "complex": 1 - 2j,
        "list": [1, [2, (3, "4")], {5, 6}], "tuple": (), 7: "int key", (1, 2): "tuple key",
        "ordered": collections.OrderedDict(b=1, a=2), "size": torch.Size([1, 2]),
        "dtype": torch.bfloat16, "device": torch.device("cpu"), "frozen": frozenset("ab"),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3), "scalar": np.float32(1.5),
    }  # fmt: skip
    ours.save(value, tmp_path / "f.thalia")
    found = ours.load(tmp_path / "f.thalia")
    assert list(map(repr, found)) == list(map(repr, value))
    assert np.isnan(found.pop("nan")) and np.isnan(value.pop("nan"))
    np.testing.assert_array_equal(found["array"], value["array"])
    assert found.pop("array").dtype == value.pop("array").dtype
    assert found == value
    for key, item in value.items():
        assert type(found[key]) is type(item)


@pytest.mark.parametrize("value", [3, "text", torch.arange(4), [torch.zeros(2)], {}])
def test_any_object_may_stand_alone(tmp_path, value):
    ours.save(value, tmp_path / "f.thalia")
    found = ours.load(tmp_path / "f.thalia")
    assert repr(found) == repr(value)


def test_tied_weights_are_stored_once_and_come_back_tied(tmp_path):
    weight = torch.nn.Parameter(torch.randn(256, 256))
    base = torch.arange(100.0)
    state = {"in": weight, "out": weight, "view": base[10:20], "every": base[::3], "alone": torch.ones(1000)[5:7]}
    path = tmp_path / "f.thalia"
    ours.save(state, path)
    assert path.stat().st_size < 1.3 * weight.numel() * 4
    found = ours.load(path)
    assert found["in"] is found["out"] and isinstance(found["in"], torch.nn.Parameter)
    assert all(same(found[name].detach(), tensor.detach()) for name, tensor in state.items())
    found["view"][2] = -1
    assert found["every"][4] == -1
    assert found["alone"].untyped_storage().nbytes() == 8


def test_strided_and_conjugated_tensors(tmp_path):
    z = torch.randn(3, 4, dtype=torch.complex64)
    t = torch.arange(12.0).reshape(3, 4).T
    state = {"t": t, "expanded": torch.ones(1).expand(5), "conj": z.conj(), "neg": z.conj().imag}
    ours.save(state, tmp_path / "f.thalia")
    found = ours.load(tmp_path / "f.thalia")
    for name in ("t", "expanded"):
        assert torch.equal(found[name], state[name])
    assert torch.equal(found["conj"], z.conj().resolve_conj())
    assert torch.equal(found["neg"], z.conj().imag)


def test_one_element_of_any_stride(tmp_path):
    z = torch.tensor([1 + 2j])
    state = {"one": torch.arange(10.0)[1::4][:1], "neg": z.conj().imag, "imag": z.imag, "big": (1 << 14_000) - 1}
    ours.save(state, tmp_path / "f.thalia")
    found = ours.load(tmp_path / "f.thalia")
    assert [found["one"].item(), found["neg"].item(), found["imag"].item()] == [1, -2, 2]
    assert found["big"] == state["big"]
    module = torch.nn.Linear(1, 1, bias=False)
    memory = torch.zeros(8)
    module.weight = torch.nn.Parameter(memory[1::4][:1].view(1, 1))
    ours.save_file({"weight": torch.ones(1, 1)}, tmp_path / "w.thalia")
    ours.load_into(module, tmp_path / "w.thalia")
    assert memory.tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


def test_views_of_one_memory_with_different_dtypes(tmp_path):
    base = torch.arange(16, dtype=torch.int32)
    as_bytes = base.view(torch.uint8)
    state = {
        "ints": base[4:], "bytes": as_bytes[20:31], "early": as_bytes[5:7],
        "floats": base.view(torch.float32)[6:8],
    }  # fmt: skip
    ours.save(state, tmp_path / "f.thalia")
    found = ours.load(tmp_path / "f.thalia")
    assert all(torch.equal(found[name], state[name]) for name in state)
    found["ints"][2] = 0
    assert found["floats"][0] == 0 and (found["bytes"][4:8] == 0).all()


def test_too_deep_a_nest_is_refused(tmp_path):
    nest = torch.zeros(1)
    for _ in range(80):
        nest = {"in": nest}
    ours.save(nest, tmp_path / "f.thalia")
    assert repr(ours.load(tmp_path / "f.thalia")) == repr(nest)
    with pytest.raises(thalia.UnsupportedError, match="more than 80"):
        ours.save([nest], tmp_path / "f.thalia")


class Odd(torch.Tensor):
    pass


def test_what_cannot_be_saved_is_named_with_its_place(tmp_path):
    path = tmp_path / "f.thalia"
    loop = []
    loop.append(loop)
    cases = [
        ({"a": [object()]}, "a.0.*object"),
        ({"m": torch.zeros(2).as_subclass(Odd)}, "m.*subclass Odd"),
        ({"s": torch.eye(3).to_sparse()}, "s.*sparse"),
        ({"meta": torch.zeros(2, device="meta")}, "meta.*device meta"),
        ({"f": lambda: 0}, "f.*function"),
        (loop, "holds itself"),
        ({"arr": np.array([{}, object()])}, "arr.1: .*object"),
        ({"masked": np.ma.array([1], mask=[1])}, "masked: .*masked array"),
        ({"q": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)}, "q: .*quantized"),
        ({"big": -(1 << 14_000)}, "big: .*an integer of more than 14000 bits"),
        ({"half": "\ud800"}, "half: .*a text that UTF-8 has no bytes for"),
        ({"keys": {"\udfff": 1}}, "keys.key: .*a text that UTF-8 has no bytes for"),
    ]
    for value, words in cases:
        with pytest.raises(thalia.UnsupportedError, match=words):
            ours.save(value, path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: torch.eye(3).to_sparse_csr(), "with the layout torch.sparse_csr"),
        (lambda: torch.zeros(2, device="meta"), "on the device meta"),
        (lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]), "of nested tensors"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "quantized as torch.qint8"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_dense_is_refused_with_its_kind(make, what, tmp_path):
    with pytest.raises(thalia.UnsupportedError, match=f"state.odd: got a tensor {what}, expected a dense one"):
        ours.save({"state": {"odd": make(), "more": torch.ones(2)}}, tmp_path / "s.thalia")
    assert not list(tmp_path.iterdir())


def test_a_tree_that_lies_is_an_error(tmp_path):
    path = tmp_path / "f.thalia"
    view = {"tensor": "w", "view": {"dtype": "float32", "offset": 0, "shape": [9], "stride": [1]}}
    trees = [
        {"tensor": "nope"}, {"list": 3}, {"what": 1}, {"dtype": "load"}, {"dict": [[1]]}, view,
        {"tensor": "w", "view": {"dtype": "float32", "offset": -1, "shape": [1], "stride": [1]}},
        {"int": "x"}, {"a": 1, "b": 2},
    ]  # fmt: skip
    deep = None
    for _ in range(100):
        deep = {"list": [deep]}
    for tree in [*trees, deep]:
        with thalia.Writer(path, durability="none") as writer:
            writer.add("r/w", np.zeros(4, np.float32))
            writer.metadata = {"thalia_checkpoint": {"version": 1, "tree": tree}}
        with pytest.raises(thalia.ThaliaError):
            ours.load(path)


def test_load_into_reads_right_into_the_module(tmp_path):
    path = tmp_path / "f.thalia"
    net, other = model(), model()
    with torch.no_grad():
        for tensor in other.state_dict().values():
            tensor.zero_()
    ours.save({"model": net}, path, compression="plane_entropy")
    pointers = {name: tensor.data_ptr() for name, tensor in other.state_dict().items()}
    report = ours.load_into(other, path, prefix="model.")
    assert report.loaded == list(net.state_dict()) and not report.missing
    for name, tensor in other.state_dict().items():
        assert same(tensor, net.state_dict()[name]) and tensor.data_ptr() == pointers[name]


def test_load_into_tells_all_that_does_not_fit_before_it_changes_anything(tmp_path):
    path = tmp_path / "f.thalia"
    ours.save_file({"0.weight": torch.ones(16, 8), "3.weight": torch.ones(5, 5), "new": torch.ones(1)}, path)
    net = model()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(net, path)
    for words in ("0.bias", "new", r"3.weight: [5, 5] in the file, [2, 16] in the module"):
        assert words in str(error.value)
    assert all(same(tensor, before[name]) for name, tensor in net.state_dict().items())
    report = ours.load_into(net, path, strict=False)
    assert report.loaded == ["0.weight"] and report.unexpected == ["new"]
    assert (net[0].weight == 1).all()


def test_mapped_parameters_are_private(tmp_path):
    path = tmp_path / "f.thalia"
    net = model()
    ours.save(net.state_dict(), path)
    before = path.read_bytes()
    served = model()
    ours.load_into(served, path, assign=True, mmap=True)
    x = torch.randn(3, 8)
    assert torch.equal(served.eval()(x), net.eval()(x))
    with torch.no_grad():
        served[0].weight.zero_()
    assert path.read_bytes() == before
    again = ours.load(path, mmap=True)
    assert same(again["0.weight"], net[0].weight.detach())
    os.unlink(path)
    assert same(again["3.weight"], net[3].weight.detach())


def test_tied_modules_load_from_one_tensor(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(7, 3)
            self.head = torch.nn.Linear(3, 7, bias=False)
            self.head.weight = self.embed.weight

    net, other = Tied(), Tied()
    ours.save(net.state_dict(), tmp_path / "f.thalia")
    assert not ours.load_into(other, tmp_path / "f.thalia").missing
    assert torch.equal(other.head.weight, net.head.weight)


def test_a_damaged_tensor_is_named(tmp_path):
    path = tmp_path / "f.thalia"
    ours.save({"w": torch.zeros(1 << 20), "v": torch.zeros(1 << 20)}, path)
    with thalia.open(path) as file:
        offset = file["v"]._source.offset
    with open(path, "r+b") as raw:
        raw.seek(offset + 2_000_000)
        raw.write(b"damage")
    for mmap in (False, True):
        with pytest.raises(thalia.IntegrityError) as error:
            ours.load(path, mmap=mmap)
        assert error.value.tensor == "v"
