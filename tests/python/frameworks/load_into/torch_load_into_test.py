"""load_into() streams tensors into a module, in bounded memory."""

import subprocess
import sys
import textwrap

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as ours
import torch


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(7, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.head = torch.nn.Linear(3, 7, bias=False)
        self.head.weight = self.embed.weight


def same(a, b):
    return a.dtype == b.dtype and torch.equal(a, b)


def meta(make):
    with torch.device("meta"):
        return make()


def test_memory_beside_the_module_is_bounded(tmp_path):
    code = f"""
        import torch
        import thalia_checkpoint.torch as ours

        def rss(field):
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) >> 10 for line in status if line.startswith(field))

        def grown(module, **options):
            before = rss("VmRSS")
            open("/proc/self/clear_refs", "w").write("5")
            ours.load_into(module, {str(tmp_path / "f.thalia")!r}, memory_bytes=16 << 20, **options)
            return rss("VmHWM") - before

        def make():
            return torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(40)))

        with torch.device("meta"):
            net, empty = make(), make()
        net.to_empty(device="cpu")
        with torch.no_grad():
            for i, parameter in enumerate(net.parameters()):
                parameter.fill_(i)
        ours.save_file(net.state_dict(), {str(tmp_path / "f.thalia")!r}, durability="none")
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.zero_()
        print(grown(net), grown(empty, assign=True))
        for module in (net, empty):
            assert all((parameter == i).all() for i, parameter in enumerate(module.parameters()))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
    in_place, assigned = map(int, done.stdout.split())
    assert in_place < 64  # of a file of 160 MB
    assert 150 < assigned < 160 + 64  # the module's own, and no more


@pytest.mark.parametrize("kind", ["thalia", "compressed", "safetensors", "delta", "quantized"])
@pytest.mark.parametrize("how", ["in place", "meta", "to_empty"])
def test_every_kind_of_file(tmp_path, kind, how):
    def make():
        return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 64))

    torch.manual_seed(2)
    net = make().requires_grad_(False)
    net[1].running_mean.uniform_()
    state, path = net.state_dict(), tmp_path / "f.thalia"
    if kind == "safetensors":
        path = tmp_path / "f.safetensors"
        ours.save_file(state, path)
    elif kind == "compressed":
        ours.save(state, path, compression="plane_entropy")
    else:
        ours.save(state, path)
    if kind == "delta":
        base, path = path, tmp_path / "d.thalia"
        net[0].weight += 1
        ours.save(net.state_dict(), tmp_path / "later.thalia")
        thalia.delta(base, tmp_path / "later.thalia", path)
    if kind == "quantized":
        whole, path = path, tmp_path / "q.thalia"
        thalia.quantize(whole, path, bits=8, min_elements=4096)
        assert any(tensor._source.is_quantized for tensor in thalia.open(path).tensors.values())
    expected = ours.load(path)
    other = make() if how == "in place" else meta(make)
    if how == "to_empty":
        other.to_empty(device="cpu")
    report = ours.load_into(other, path, assign=how == "meta", memory_bytes=4 << 20)
    assert report.loaded == list(state) and not report.missing and not report.mismatched
    assert all(same(tensor, expected[name]) for name, tensor in other.state_dict().items())
    assert all(parameter.requires_grad for parameter in other.parameters())
    x = torch.randn(4, 64)
    if kind != "quantized":
        assert torch.equal(other.eval()(x), net.eval()(x))


def test_dtypes_are_those_of_the_module_unless_assigned(tmp_path):
    path = tmp_path / "f.thalia"
    net = torch.nn.Linear(5, 6).bfloat16()
    ours.save_file(net.state_dict(), path)
    other = torch.nn.Linear(5, 6)
    ours.load_into(other, path)
    assert same(other.weight, net.weight.float())
    ours.load_into(other, path, assign=True)
    assert same(other.weight, net.weight)


def test_strided_parameters_keep_their_strides(tmp_path):
    net = torch.nn.Conv2d(3, 4, 3)
    ours.save_file(net.state_dict(), tmp_path / "f.thalia")
    other = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    strides = other.weight.stride()
    ours.load_into(other, tmp_path / "f.thalia")
    assert torch.equal(other.weight, net.weight) and other.weight.stride() == strides


@pytest.mark.parametrize("mmap", [False, True])
def test_tied_parameters_stay_tied_when_assigned(tmp_path, mmap):
    net, other = Tied(), meta(Tied)
    ours.save({"model": net}, tmp_path / "f.thalia")
    assert ours.load_into(other, tmp_path / "f.thalia", prefix="model.", assign=True, mmap=mmap).missing == []
    assert other.head.weight is other.embed.weight
    assert same(other.head.weight, net.head.weight) and same(other.norm.running_var, net.norm.running_var)


def test_what_is_tied_in_the_file_alone_comes_apart(tmp_path):
    ours.save({"0.weight": (shared := torch.randn(3, 3)), "1.weight": shared}, tmp_path / "f.thalia")
    for assign in (False, True):
        net = torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False))
        ours.load_into(net, tmp_path / "f.thalia", assign=assign)
        assert torch.equal(net[0].weight, shared) and torch.equal(net[1].weight, shared)
        assert net[0].weight.data_ptr() != net[1].weight.data_ptr()


def test_a_module_on_meta_is_not_silently_left_there(tmp_path):
    ours.save(torch.nn.Linear(3, 3).state_dict(), tmp_path / "f.thalia")
    with pytest.raises(thalia.UsageError, match=r"meta: weight, bias; assign=True"):
        ours.load_into(meta(lambda: torch.nn.Linear(3, 3)), tmp_path / "f.thalia")


def test_dtypes_that_do_not_fit_are_told_with_the_rest_before_anything_changes(tmp_path):
    path = tmp_path / "f.thalia"
    with thalia.Writer(path) as writer:
        writer.add("0.weight", torch.ones(2, 2).numpy())
        writer.add_bytes("0.bias", "f6_e2m3", (2,), b"\0\0")
        writer.add("1.weight", torch.ones(2, 2, dtype=torch.complex64).numpy())
        writer.add("2.weight", torch.ones(3, 3).numpy())
        writer.add("new", torch.ones(1).numpy())
    net = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(3)))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(net, path)
    for words in (
        "missing: 1.bias, 2.bias",
        "unexpected: new",
        "0.bias: f6_e2m3 in the file",
        "1.weight: c64 in the file, torch.float32 in the module",
        "2.weight: [3, 3] in the file, [2, 2] in the module",
    ):
        assert words in str(error.value)
    assert all(same(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert ours.load_into(net, path, strict=False).loaded == ["0.weight"]
    ours.save_file({"weight": torch.ones(2, 2, dtype=torch.int8)}, path)
    with pytest.raises(thalia.UsageError, match=r"weight: i8 in the file, a parameter with a gradient"):
        ours.load_into(torch.nn.Linear(2, 2, bias=False), path, assign=True)


def test_damage_is_named(tmp_path):
    path = tmp_path / "f.thalia"
    net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Linear(512, 512))
    ours.save_file(net.state_dict(), path)
    for parameter in net.parameters():
        torch.nn.init.zeros_(parameter)
    with thalia.open(path) as file:
        offset = file.tensors["1.weight"]._source.offset
    with open(path, "r+b") as raw:
        raw.seek(offset + 9999)
        raw.write(b"damage")
    for assign in (True, False):
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        with pytest.raises(thalia.IntegrityError) as error:
            ours.load_into(net, path, assign=assign)
        assert error.value.tensor == "1.weight"
        if assign:
            assert all(same(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_tensors_arrive_in_the_parameters(tmp_path, monkeypatch):
    path = tmp_path / "f.thalia"
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64).bfloat16())
    ours.save_file(net.state_dict(), path)
    other = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    copied = []
    copy = torch.Tensor.copy_
    monkeypatch.setattr(torch.Tensor, "copy_", lambda own, *a: (copied.append(own.data_ptr()), copy(own, *a))[1])
    ours.load_into(other, path)
    assert sorted(copied) == sorted(parameter.data_ptr() for parameter in other[1].parameters())
    for own, expected in zip(other.parameters(), net.parameters(), strict=True):
        assert torch.equal(own, expected)


def test_parameters_that_share_memory_are_read_one_after_the_other(tmp_path):
    path, n = tmp_path / "f.thalia", 1 << 20
    ours.save_file({"0": torch.full((2 * n,), 1.0), "1": torch.full((2 * n,), 2.0)}, path)
    memory = torch.zeros(3 * n)
    net = torch.nn.ParameterList([memory[: 2 * n], memory[n:]])
    ours.load_into(net, path)
    assert (memory[:n] == 1).all() and (memory[2 * n :] == 2).all()
    assert len(memory[n : 2 * n].unique()) == 1
