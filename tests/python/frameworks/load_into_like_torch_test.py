"""load_into() leaves a module as load_state_dict() of the loaded file does: of every kind of module and file."""

import copy

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as ours
import torch
from states import same_state
from torch import nn
from torch.nn.utils import parametrizations


class Extra(nn.Module):
    """Has a state beside its tensors."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.randn(3))
        self.state = None

    def get_extra_state(self):
        return self.state

    def set_extra_state(self, state):
        self.state = state


class Halved(nn.Module):
    """Its state_dict() hands out copies, and its own code puts them back."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.note = "mine"

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = destination[prefix + "weight"].detach() / 2
        destination[prefix + "note"] = {"text": self.note, "list": [1, (2.5, None)]}

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        self.note = state_dict.pop(prefix + "note", "none")
        if prefix + "weight" in state_dict:
            state_dict[prefix + "weight"] = state_dict[prefix + "weight"] * 2
        super()._load_from_state_dict(state_dict, prefix, *arguments)


class Copies(nn.Module):
    """Its state_dict() is another dictionary than its parameters, which its own load_state_dict() knows."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def state_dict(self, *arguments, **options):
        return {name: tensor.clone() + 1 for name, tensor in super().state_dict(*arguments, **options).items()}

    def load_state_dict(self, state, strict=True, assign=False):
        return super().load_state_dict({name: tensor - 1 for name, tensor in state.items()}, strict, assign)


class Renaming(nn.Module):
    """A hook before it is loaded knows the names of an older version, and one after it counts."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 2))
        self.layer = nn.Linear(2, 2)
        self.loads = 0
        self.register_load_state_dict_pre_hook(self.before)
        self.register_load_state_dict_post_hook(self.behind)
        self.register_state_dict_post_hook(self.saved)

    @staticmethod
    def saved(module, state, prefix, metadata):
        state[prefix + "kernel"] = state.pop(prefix + "weight").T

    @staticmethod
    def before(module, state, prefix, *_):
        if prefix + "kernel" in state:
            state[prefix + "weight"] = state.pop(prefix + "kernel").T

    @staticmethod
    def behind(module, keys):
        module.loads += 1
        with torch.no_grad():
            module.layer.bias += module.weight.sum()


class Forgiving(nn.Module):
    """A hook takes back what is missing."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2))
        self.table = nn.Buffer(torch.randn(3))
        self.register_state_dict_post_hook(self.saved)
        self.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())

    @staticmethod
    def saved(module, state, prefix, _):
        del state[prefix + "table"]


class Views(nn.Module):
    """Its parameters lie in each other's memory."""

    def __init__(self):
        super().__init__()
        flat = torch.randn(12)
        self.a = nn.Parameter(flat[:8])
        self.b = nn.Parameter(flat[4:])
        self.c = nn.Buffer(torch.randn(6)[::2])
        self.d = nn.Buffer(torch.randn(3, 2).T)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5)
        self.head.weight = self.embed.weight


def weight_norm(layer):
    with pytest.warns(FutureWarning):
        return nn.utils.weight_norm(layer)


def norms():
    return nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm2d(2)), nn.InstanceNorm1d(4, affine=True))


def trained_spectral_norm():
    module = nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 3)))
    module(torch.randn(2, 3))
    return module


MODULES = {
    "plain": lambda: nn.Sequential(nn.Linear(3, 4), nn.Conv1d(4, 2, 3), nn.LSTM(2, 2)),
    "norms": norms,
    "instance_norm": lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
    "extra_dict": lambda: nn.Sequential(Extra(), nn.Linear(2, 2)),
    "extra_none": Extra,
    "extra_tensor": lambda: nn.Sequential(Extra(), nn.Linear(2, 2)),
    "extra_number": Extra,
    "own_saving": lambda: nn.Sequential(nn.Linear(3, 3), Halved()),
    "own_state_dict": Copies,
    "hooks": lambda: nn.Sequential(Renaming(), nn.Linear(2, 2)),
    "forgiving": lambda: nn.Sequential(Forgiving()),
    "old_weight_norm": lambda: nn.Sequential(weight_norm(nn.Linear(3, 4))),
    "weight_norm": lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 4))),
    "orthogonal": lambda: nn.Sequential(parametrizations.orthogonal(nn.Linear(3, 3))),
    "old_spectral_norm": trained_spectral_norm,
    "spectral_norm": lambda: parametrizations.spectral_norm(nn.Linear(3, 4)),
    "views": Views,
    "tied": Tied,
    "scalar": lambda: nn.ParameterList([torch.tensor(1.5), torch.randn(1), torch.randn(0, 3)]),
    "script": lambda: torch.jit.script(nn.Sequential(nn.Linear(3, 4), nn.ReLU())),
    "attention": lambda: nn.TransformerEncoderLayer(4, 2, 8),
    "compiled": lambda: torch.compile(nn.Sequential(nn.Linear(3, 4))),
}

EXTRAS = {
    "extra_dict": {"a": 1, "b": [torch.randn(2), None], "c": {"d": "x"}},
    "extra_tensor": torch.randn(3),
    "extra_number": 2.5,
}


def written(state, kind, folder):
    """A file of a state dict, and what load_state_dict() is given of it."""
    path = folder / f"state.{kind}"
    if kind == "pt":
        torch.save(state, path)
        return path, ours.load(path)
    if kind == "thalia":
        ours.save(state, path)
        return path, ours.load(path)
    flat = {name: tensor.detach().clone().contiguous() for name, tensor in state.items() if torch.is_tensor(tensor)}
    path = folder / ("flat.thalia" if kind == "flat" else "state.safetensors")
    ours.save_file(flat, path)
    return path, ours.load_file(path)


def attributes(module):
    return {
        path: {name: value for name, value in vars(inner).items() if name in ("state", "note", "loads")}
        for path, inner in module.named_modules()
    }


def everything(module):
    """All that loading may change."""
    tensors = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    return {name: (tensor.requires_grad, tensor.data) for name, tensor in tensors.items()}, attributes(module)


def outcome(call):
    """Which names are missing and unexpected, or that it does not fit."""
    try:
        found = call()
    except thalia.UsageError:
        return "does not fit"
    except RuntimeError as error:
        assert str(error).startswith("Error(s) in loading")
        return "does not fit"
    missing, unexpected = (found.missing, found.unexpected) if hasattr(found, "loaded") else found
    return sorted(missing), sorted(unexpected)


def filled(make, seed, state):
    """A module of which everything has values that no other seed gives."""
    torch.manual_seed(seed)
    module = make()
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            tensor.copy_(torch.rand(tensor.shape) if tensor.is_floating_point() else torch.full_like(tensor, seed))
    for inner in module.modules():
        if isinstance(inner, Extra):
            inner.state = state
    return module


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("kind", ["thalia", "pt", "flat", "safetensors"])
@pytest.mark.parametrize("name", MODULES)
def test_it_does_what_load_state_dict_does(tmp_path, name, kind, assign, strict):
    make, extra = MODULES[name], EXTRAS.get(name)
    path, state = written(filled(make, 1, extra).state_dict(), kind, tmp_path)
    theirs, mine = filled(make, 2, "before"), filled(make, 2, "before")
    before = copy.deepcopy(everything(mine))
    assert same_state(list(everything(mine)), list(everything(theirs)))
    expected = outcome(lambda: theirs.load_state_dict(state, strict=strict, assign=assign))
    assert outcome(lambda: ours.load_into(mine, path, assign=assign, strict=strict)) == expected
    if strict and expected == "does not fit":
        # Files of tensors alone lack what is not a tensor.
        assert kind in ("flat", "safetensors") and name in ("extra_dict", "extra_none", "extra_number")
    else:
        assert same_state(list(everything(mine)), list(everything(theirs)))
        assert not same_state(list(before), list(everything(mine)))


def without(state, *endings):
    """A state dict as older versions of torch wrote it."""
    kept = type(state)((name, tensor) for name, tensor in state.items() if not name.endswith(endings))
    kept._metadata = {path: {} for path in state._metadata}
    return kept


def lazy():
    return nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())


def seen(module):
    module(torch.randn(4, 5))
    return module


OLDER = {
    # Before torch 1.0, norms had no count of batches.
    "batch_norm": (lambda: without(filled(norms, 1, None).state_dict(), "num_batches_tracked"), norms),
    "batch_norm_of_now": (lambda: filled(norms, 1, None).state_dict(), norms),
    "weight_norm": (MODULES["old_weight_norm"]().state_dict, MODULES["weight_norm"]),
    "instance_norm": (
        filled(MODULES["instance_norm"], 1, None).state_dict,
        lambda: nn.InstanceNorm1d(4, affine=True),
    ),
    "lazy": (lambda: seen(lazy()).state_dict(), lazy),
    "one_for_none": (lambda: nn.ParameterList([torch.ones(1), torch.ones(3)]).state_dict(),
                     lambda: nn.ParameterList([torch.tensor(2.0), torch.zeros(3)])),
}  # fmt: skip


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("kind", ["thalia", "pt", "flat", "safetensors"])
@pytest.mark.parametrize("name", OLDER)
def test_it_takes_the_states_of_other_versions(tmp_path, name, kind, assign, strict):
    old, make = OLDER[name]
    path, state = written(old(), kind, tmp_path)
    torch.manual_seed(2)
    theirs, mine = make(), make()
    mine.load_state_dict(theirs.state_dict())
    expected = outcome(lambda: theirs.load_state_dict(state, strict=strict, assign=assign))
    assert outcome(lambda: ours.load_into(mine, path, assign=assign, strict=strict)) == expected
    assert expected != "does not fit" or name == "instance_norm"
    if expected != "does not fit":
        assert same_state(list(everything(mine)), list(everything(theirs)))


def test_versions_and_extra_state_come_from_under_a_prefix_and_are_renamed(tmp_path):
    def make():
        return nn.Sequential(norms(), Extra())

    old = without(filled(make, 1, None).state_dict(), "num_batches_tracked", "_extra_state")
    old["1._extra_state"] = {"epoch": 3}
    old._metadata["0.0"] = {"version": 1}
    renamed = {f"module.{name}": value for name, value in old.items()}
    ours.save({"model": old, "ema": {"first": old}, "wrapped": renamed, "step": 3}, tmp_path / "f.thalia")
    for options in (
        {"prefix": "model."},
        {"prefix": "ema.first."},
        {"prefix": "wrapped.module."},
        {"prefix": "wrapped.", "rename": {"module.": ""}},
        {"prefix": "wrapped.", "rename": lambda name: name.replace("module.", "")},
    ):
        theirs, mine = filled(make, 2, None), filled(make, 2, None)
        theirs.load_state_dict(old)
        report = ours.load_into(mine, tmp_path / "f.thalia", **options)
        assert same_state(list(everything(mine)), list(everything(theirs))) and mine[1].state == {"epoch": 3}
        assert report.loaded[-1] == "1._extra_state" and report.fits
    whole = nn.ModuleDict({"model": make(), "ema": nn.ModuleDict({"first": make()})})
    report = ours.load_into(whole, tmp_path / "f.thalia", rename=lambda n: None if n.startswith(("w", "s")) else n)
    assert report.fits and whole["ema"]["first"][1].state == {"epoch": 3}
    assert whole["model"][0][0].num_batches_tracked == 0
    report = ours.load_into(whole, tmp_path / "f.thalia", strict=False)
    assert report.unexpected == [*(f"wrapped.{name}" for name in renamed), "step"]


def test_what_is_not_taken_is_named_before_anything_changes(tmp_path):
    ours.save({"inner.weight": torch.ones(2, 3), "inner.bias": None, "scale": torch.ones(3)}, tmp_path / "f.thalia")
    module = filled(Extra, 2, "before")
    before = copy.deepcopy(everything(module))
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(module, tmp_path / "f.thalia")
    assert "missing: _extra_state" in str(error.value)
    assert "mismatched: inner.bias: no tensor in the file" in str(error.value)
    assert same_state(list(everything(module)), list(before))
    report = ours.load_into(module, tmp_path / "f.thalia", strict=False)
    assert sorted(report.loaded) == ["inner.weight", "scale"]
    assert report.missing == ["_extra_state"] and report.mismatched == ["inner.bias: no tensor in the file"]


def test_what_code_of_the_module_does_not_take_is_named_when_it_has_run(tmp_path):
    state = filled(lambda: nn.Sequential(Halved()), 1, None).state_dict()
    del state["0.weight"]
    ours.save({**state, "0.more": torch.ones(1)}, tmp_path / "f.thalia")
    module = filled(lambda: nn.Sequential(Halved()), 2, None)
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(module, tmp_path / "f.thalia")
    assert "missing: 0.weight\n  unexpected: 0.more" in str(error.value)
    ours.save({"0.weight": torch.ones(7)}, tmp_path / "g.thalia")
    for strict in (True, False):
        with pytest.raises(thalia.UsageError, match=r"mismatched: size mismatch for 0\.weight"):
            ours.load_into(module, tmp_path / "g.thalia", strict=strict)


def test_what_stays_on_the_device_meta_is_missing(tmp_path):
    ours.save(filled(lambda: nn.Sequential(Halved(), nn.Linear(2, 2)), 1, None), tmp_path / "f.thalia")
    with torch.device("meta"):
        module = nn.Sequential(Halved(), nn.Linear(2, 2))
    with pytest.raises(thalia.UsageError, match=r"on the device meta: 1\.weight, 1\.bias; assign=True"):
        ours.load_into(module, tmp_path / "f.thalia")
    module[1].to_empty(device="cpu")
    with pytest.warns(UserWarning, match="no-op"), pytest.raises(thalia.UsageError, match=r"missing: 0\.weight"):
        ours.load_into(module, tmp_path / "f.thalia")
    assert ours.load_into(module, tmp_path / "f.thalia", assign=True).fits
    assert same_state(module[0].weight.data, ours.load(tmp_path / "f.thalia")["0.weight"] * 2)


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("code", [False, True])
def test_a_tied_weight_may_lie_in_the_file_under_one_name(tmp_path, assign, code):
    def make():
        return nn.Sequential(Tied(), *([Extra()] if code else []))

    state = filled(make, 1, {"a": 1}).state_dict()
    del state["0.head.weight"]
    ours.save(state, tmp_path / "f.thalia")
    module = filled(make, 2, None)
    assert ours.load_into(module, tmp_path / "f.thalia", assign=assign).fits
    assert same_state(module.state_dict()["0.head.weight"], state["0.embed.weight"])
    assert module[0].head.weight is module[0].embed.weight


def test_views_of_one_memory_are_loaded_from_a_file_that_has_it_once(tmp_path):
    flat = torch.rand(9)
    state = {
        "0.weight": flat[:6].view(2, 3),
        "0.bias": flat[5:7],
        "1.weight": flat[3:9].view(3, 2),
        "1.bias": flat[::4],
    }
    ours.save(state, tmp_path / "f.thalia")
    for assign in (False, True):
        module = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 3))
        assert ours.load_into(module, tmp_path / "f.thalia", assign=assign).loaded == list(state)
        assert all(torch.equal(tensor, state[name]) for name, tensor in module.state_dict().items())


class Reaching(nn.Module):
    """Its hook changes other modules than itself."""

    def __init__(self, others):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.others = [others]
        self.register_load_state_dict_post_hook(self.behind)

    @staticmethod
    def behind(module, keys):
        with torch.no_grad():
            for other in module.others[0]:
                other.weight += 1


@pytest.mark.parametrize("kind", ["thalia", "safetensors"])
def test_a_hook_that_changes_other_modules_is_heeded(tmp_path, kind):
    def make():
        before, behind = nn.Linear(3, 3), nn.Linear(3, 3)
        return nn.Sequential(before, Reaching([before, behind]), behind, nn.Linear(3, 3))

    path, state = written(filled(make, 1, None).state_dict(), kind, tmp_path)
    theirs, mine = filled(make, 2, None), filled(make, 2, None)
    theirs.load_state_dict(state)
    assert ours.load_into(mine, path).fits
    assert same_state(list(everything(mine)), list(everything(theirs)))
    assert torch.equal(mine[0].weight, state["0.weight"] + 1) and torch.equal(mine[2].weight, state["2.weight"])


class Resetting(Extra):
    """What it is given beside tensors makes it forget these, its own and those beneath."""

    def set_extra_state(self, state):
        self.state = state
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()


def test_an_extra_state_that_changes_tensors_is_heeded(tmp_path):
    path, state = written(filled(lambda: nn.Sequential(Resetting()), 1, {"a": 1}).state_dict(), "thalia", tmp_path)
    theirs, mine = (filled(lambda: nn.Sequential(Resetting()), 2, None) for _ in range(2))
    theirs.load_state_dict(state)
    assert ours.load_into(mine, path).fits
    assert same_state(list(everything(mine)), list(everything(theirs)))
    assert (mine[0].scale == 0).all() and torch.equal(mine[0].inner.weight, state["0.inner.weight"])


def test_what_no_code_of_the_module_sees_is_read_right_into_its_place(tmp_path, monkeypatch):
    def make():
        return nn.Sequential(nn.Linear(3, 3), Halved(), norms(), nn.Sequential(Extra(), nn.Linear(3, 3)), Tied())

    path, state = written(without(filled(make, 1, {}).state_dict(), "num_batches_tracked"), "thalia", tmp_path)
    theirs, mine = filled(make, 2, None), filled(make, 2, None)
    theirs.load_state_dict(state)
    own = {tensor.data_ptr(): name for name, tensor in (*mine.named_parameters(), *mine.named_buffers())}
    copied, copy_ = [], torch.Tensor.copy_

    def seen_copy(target, source, *arguments):
        if target is not source:
            copied.append(own[target.data_ptr()])
        return copy_(target, source, *arguments)

    monkeypatch.setattr(torch.Tensor, "copy_", seen_copy)
    assert ours.load_into(mine, path).fits
    assert same_state(list(everything(mine)), list(everything(theirs)))
    # Beneath what has a state of its own, and of it itself what its code decides about.
    # What has two names is loaded under each.
    assert copied == ["1.weight", "3.0.inner.weight", "3.0.inner.bias", "4.embed.weight", "4.embed.weight"]


def test_parameters_are_swapped_where_torch_was_told_to(tmp_path):
    path, state = written(filled(MODULES["attention"], 1, None).state_dict(), "thalia", tmp_path)
    theirs, mine = filled(MODULES["attention"], 2, None), filled(MODULES["attention"], 2, None)
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        theirs.load_state_dict(state)
        assert ours.load_into(mine, path).fits
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert same_state(list(everything(mine)), list(everything(theirs)))
