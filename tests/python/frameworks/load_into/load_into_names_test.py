"""load_into() of a file whose names are not the module's: renamed, or told what they differ by."""

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as ours
import torch
from torch import nn


def make(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def told(path, module, **options):
    """What the error says, with `strict` or not."""
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(thalia.UsageError) as strict:
        ours.load_into(module, path, **options)
    with pytest.raises(thalia.UsageError) as loose:
        ours.load_into(module, path, strict=False, **options)
    assert strict.value.code == loose.value.code == "not_found"
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert f"{path}: nothing of it is in the module, and nothing was loaded" in str(loose.value)
    hint = str(strict.value).splitlines()[-1]
    assert str(loose.value).splitlines()[-1] == hint
    return hint.strip()


@pytest.mark.parametrize("wrapper", ["model.", "module.", "_orig_mod.", "base_model.model."])
@pytest.mark.parametrize("flat", [True, False])
def test_a_beginning_that_one_of_them_lacks_is_told_and_what_is_told_works(tmp_path, wrapper, flat):
    path = tmp_path / ("f.safetensors" if flat else "f.thalia")
    plain, inner = make(), make(2)
    state = {wrapper + name: tensor for name, tensor in plain.state_dict().items()}
    (ours.save_file if flat else ours.save)(state, path)
    expected = f"all names differ by '{wrapper}' in front in the file alone: prefix='{wrapper}'"
    assert told(path, inner) == expected
    assert told(path, inner, prefix="wrong.") == expected
    for options in ({"prefix": wrapper}, {"rename": {wrapper: ""}}):
        other = make(3)
        assert ours.load_into(other, path, **options).fits and same(other, plain)
    wrapped = nn.Module()
    outer = wrapped
    for name in wrapper.split(".")[:-1]:
        last, inner_module = outer, nn.Module()
        setattr(outer, name, inner_module)
        outer = inner_module
    setattr(last, wrapper.split(".")[-2], make(4))
    (ours.save_file if flat else ours.save)(plain.state_dict(), path)
    hint = told(path, wrapped)
    assert hint == f"all names differ by '{wrapper}' in front in the module alone: rename={{'': '{wrapper}'}}"
    assert ours.load_into(wrapped, path, rename={"": wrapper}).fits and same(wrapped, plain)


def test_wrapped_modules_are_loaded_in_both_directions(tmp_path):
    plain, compiled = make(), torch.compile(make(2))
    ours.save(plain, tmp_path / "plain.thalia")
    ours.save(compiled, tmp_path / "compiled.thalia")
    assert ours.load_into(make(3), tmp_path / "compiled.thalia", prefix="_orig_mod.").fits
    assert ours.load_into(compiled, tmp_path / "plain.thalia", rename={"": "_orig_mod."}).fits
    assert same(compiled._orig_mod, plain)
    # Where a part of a model was compiled, it is in the middle.
    part = make(4)
    part[1] = torch.compile(part[1])
    ours.save(part, tmp_path / "part.thalia")
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(make(5), tmp_path / "part.thalia")
    assert str(error.value).splitlines()[-1] == (
        '  7 of 9 names differ by \'_orig_mod.\' in the file alone: rename=lambda name: name.replace("_orig_mod.", "")'
    )
    other = make(6)
    assert ours.load_into(other, tmp_path / "part.thalia", rename=lambda name: name.replace("_orig_mod.", "")).fits
    assert same(other, part)


class Three(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(2, 2) for _ in range(3))


def within(wrap):
    module = Three()
    module.a = wrap(module.a)
    return module


def model():
    outer = nn.Module()
    outer.model = Three()
    return outer


WRAPPED = {
    "plain": Three,
    "compiled": lambda: torch.compile(Three()),
    "parallel": lambda: nn.DataParallel(Three()),
    "both": lambda: nn.DataParallel(torch.compile(Three())),
    "model": model,
    "compiled model": lambda: torch.compile(model()),
    "compiled within": lambda: within(torch.compile),
    "parallel within": lambda: within(nn.DataParallel),
}


@pytest.mark.parametrize("file", WRAPPED)
@pytest.mark.parametrize("module", WRAPPED)
def test_what_is_told_of_wrappers_is_so_and_works(tmp_path, file, module):
    """The advice is followed as it is written."""
    path, module = tmp_path / "f.thalia", WRAPPED[module]()
    names = list(WRAPPED[file]().state_dict())
    state = dict(zip(names, (torch.full_like(t, i) for i, t in enumerate(Three().state_dict().values())), strict=True))
    ours.save(state, path)
    if list(module.state_dict()) == names:
        assert ours.load_into(module, path).fits
        return
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(module, path)
    told, _, how = str(error.value).splitlines()[-1].strip().partition(" alone: ")
    options = eval(f"dict({how})", {"module": module})
    report = ours.load_into(module, path, strict=False, **options)
    if told.startswith("all names"):
        assert report.fits
    else:
        n = int(told.partition(" of 6 names differ ")[0])
        # Those that differ by it, and those that did not differ.
        assert n == (4 if len(report.loaded) == 4 else 2) and len(report.loaded) in (4, 6)


@pytest.mark.parametrize("wrap", [Three, lambda: torch.compile(Three()), lambda: within(torch.compile)])
def test_nothing_is_told_of_wrappers_where_a_tensor_is_missing(tmp_path, wrap):
    state = wrap().state_dict()
    del state["_orig_mod.c.bias" if "_orig_mod.c.bias" in state else "c.bias"]
    ours.save(state, tmp_path / "f.thalia")
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(wrap(), tmp_path / "f.thalia")
    assert "differ" not in str(error.value) and str(error.value).splitlines()[-1].startswith("  missing: ")


def test_a_checkpoint_of_a_training_is_told_by_its_parts(tmp_path):
    model = make()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / "run.thalia"
    ours.save({"model": model, "optimizer": optimizer, "step": 3}, path)
    assert told(path, make(2)) == "all names differ by 'model.' in front in the file alone: prefix='model.'"
    assert told(path, make(2), prefix="modle.").endswith("prefix='model.'")
    assert told(path, nn.ParameterDict({"q": torch.ones(1)}), prefix="ema.") == (
        "no name of the file begins with 'ema.'; they begin with model., optimizer."
    )
    with pytest.raises(
        thalia.UsageError, match=r"module: got torch\.optim\.adamw\.AdamW, expected .*load_state_dict\("
    ):
        ours.load_into(optimizer, path, prefix="optimizer.")
    with pytest.raises(thalia.UsageError, match=r"module: got builtins\.dict, expected a torch\.nn\.Module$"):
        ours.load_into({}, path)


def test_an_adapter_is_told(tmp_path):
    names = [f"base_model.model.{i}.lora_{which}.weight" for i in range(9) for which in "AB"]
    ours.save_file({name: torch.ones(2, 2) for name in names}, tmp_path / "adapter_model.safetensors")
    assert told(tmp_path / "adapter_model.safetensors", make()) == (
        "these are the weights of an adapter (LoRA): they go into a model that the adapter was put on"
    )


def test_many_names_are_cut_and_each_kind_has_a_line(tmp_path):
    ours.save_file(
        {f"other.{i}": torch.ones(1) for i in range(40)} | {"0.weight": torch.ones(4, 3)}, tmp_path / "f.thalia"
    )
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(make(), tmp_path / "f.thalia")
    first, missing, unexpected = str(error.value).splitlines()
    assert first == f"{tmp_path / 'f.thalia'}: does not fit the module"
    assert missing.startswith("  missing: 0.bias, 1.0.weight, 1.0.bias, ")
    assert unexpected.startswith("  unexpected: other.0, other.1, ") and unexpected.endswith("other.9 and 30 more")


def test_a_file_or_a_module_without_tensors(tmp_path):
    ours.save_file({}, tmp_path / "empty.thalia")
    ours.save_file({"a": torch.ones(1)}, tmp_path / "f.thalia")
    with pytest.raises(
        thalia.UsageError, match=r"in the file: no tensors\n  in the module: 0\.weight, 0\.bias, 1\.0\.w"
    ):
        ours.load_into(make(), tmp_path / "empty.thalia", strict=False)
    assert ours.load_into(nn.ReLU(), tmp_path / "empty.thalia").fits
    assert ours.load_into(nn.ReLU(), tmp_path / "f.thalia", strict=False).unexpected == ["a"]


def test_names_that_become_one_are_refused(tmp_path):
    ours.save_file({"a.weight": torch.ones(2), "b.weight": torch.zeros(2)}, tmp_path / "f.thalia")
    with pytest.raises(thalia.UsageError, match="two tensors of the file are called 'weight' in the module") as error:
        ours.load_into(nn.Linear(2, 2), tmp_path / "f.thalia", rename={"a.": "", "b.": ""})
    assert error.value.field == "rename"
    module = nn.ParameterDict({"weight": torch.zeros(2)})
    report = ours.load_into(module, tmp_path / "f.thalia", rename=lambda name: "weight" if name[0] == "a" else None)
    assert report.fits and module["weight"].tolist() == [1, 1]
