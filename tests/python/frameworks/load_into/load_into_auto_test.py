"""load_into(rename="auto"): names that differ by wrappers, and by the usual places of a model, in both directions."""

import pytest
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as ours
import torch
from load_into_names_test import WRAPPED, Three, make, same
from torch import nn

MORE = WRAPPED | {
    "compiled in parallel in a model": lambda: under(nn.DataParallel(torch.compile(Three())), "model"),
    "a part in parallel, in a compiled one": lambda: torch.compile(part()),
    "with an adapter": lambda: adapted(),
    "of Lightning": lambda: under(under(Three(), "model"), "state_dict"),
}


def under(module, name):
    outer = nn.Module()
    setattr(outer, name, module)
    return outer


def part():
    module = Three()
    module.b = nn.DataParallel(torch.compile(module.b))
    return module


def adapted():
    """As peft has it: what has an adapter lies one deeper."""
    module = Three()
    module.b = under(module.b, "base_layer")
    return under(under(module, "model"), "base_model")


@pytest.mark.parametrize("file", MORE)
@pytest.mark.parametrize("module", MORE)
def test_every_wrapped_model_goes_into_every_other(tmp_path, file, module):
    path, module = tmp_path / "f.thalia", MORE[module]()
    names = list(MORE[file]().state_dict())
    ours.save({name: torch.full_like(t, i) for i, (name, t) in enumerate(zip(names, values(), strict=True))}, path)
    report = ours.load_into(module, path, rename="auto")
    assert report.fits and report.loaded == list(module.state_dict())
    assert [float(t.flatten()[0]) for t in module.state_dict().values()] == list(range(6))


def values():
    return Three().state_dict().values()


def test_the_model_of_a_training_is_found(tmp_path):
    model = make()
    state = {"optimizer": torch.optim.SGD(model.parameters(), momentum=0.9), "step": 3}
    for name in ("model", "state_dict", "model_state_dict"):
        ours.save({name: model, **state, "ema": make(2)}, tmp_path / "run.thalia")
        other = torch.compile(make(3))
        assert ours.load_into(other, tmp_path / "run.thalia", rename="auto").fits and same(other, model)


def test_versions_of_modules_come_along(tmp_path):
    model = make()
    ours.save({"model": torch.compile(model)}, tmp_path / "f.thalia")
    for other in (make(2), torch.compile(make(2)), under(make(2), "module")):
        given = []
        bn = next(module for module in other.modules() if isinstance(module, nn.BatchNorm1d))
        load = bn._load_from_state_dict
        bn._load_from_state_dict = lambda state, prefix, metadata, *more, load=load, given=given: (
            given.append(metadata.get("version")),
            load(state, prefix, metadata, *more),
        )
        assert ours.load_into(other, tmp_path / "f.thalia", rename="auto").fits
        assert given == [2] and same(other, model)


def test_names_that_fit_stay_as_they_are(tmp_path):
    model = under(make(), "model")
    state = model.state_dict() | {f"module.{name}": torch.zeros(1) for name in model.state_dict()}
    ours.save_file(state, tmp_path / "f.safetensors")
    other = under(make(2), "model")
    report = ours.load_into(other, tmp_path / "f.safetensors", rename="auto", strict=False)
    assert same(other, model) and len(report.unexpected) == 9


def test_what_is_still_wrong_is_told(tmp_path):
    state = torch.compile(make()).state_dict()
    del state["_orig_mod.0.bias"]
    state["_orig_mod.0.weight"] = torch.ones(2, 2)
    state["_orig_mod.other"] = torch.ones(2, 2)
    ours.save(state, tmp_path / "f.thalia")
    with pytest.raises(thalia.UsageError) as error:
        ours.load_into(make(2), tmp_path / "f.thalia", rename="auto")
    assert str(error.value).splitlines()[1:] == [
        "  missing: 0.bias",
        "  unexpected: _orig_mod.other",
        "  mismatched: 0.weight: [2, 2] in the file, [4, 3] in the module",
    ]


def test_two_models_that_both_fit_are_an_error(tmp_path):
    ours.save({"model": make(), "state_dict": make(2)}, tmp_path / "f.thalia")
    before = make(3)
    with pytest.raises(thalia.UsageError, match=r"such as model\.0\.bias and state_dict\.0\.bias; say which by prefix"):
        ours.load_into(before, tmp_path / "f.thalia", rename="auto")
    assert same(before, make(3))
    for prefix, seed in (("model.", 1), ("state_dict.", 2)):
        assert ours.load_into(before, tmp_path / "f.thalia", prefix=prefix, rename="auto").fits
        assert same(before, make(seed))


def test_other_beginnings_are_not_guessed(tmp_path):
    ours.save({"encoder": make(), "decoder": make(2)}, tmp_path / "f.thalia")
    with pytest.raises(thalia.UsageError, match="missing"):
        ours.load_into(make(3), tmp_path / "f.thalia", rename="auto")


def test_a_model_on_meta(tmp_path):
    ours.save({"model": nn.DataParallel(make())}, tmp_path / "f.thalia")
    with torch.device("meta"):
        empty = make(2)
    assert ours.load_into(empty, tmp_path / "f.thalia", rename="auto", assign=True, mmap=True).fits
    assert same(empty, make())


@pytest.mark.parametrize("rename", ["atuo", 3])
def test_another_rename_is_an_error(tmp_path, rename):
    ours.save(make(), tmp_path / "f.thalia")
    with pytest.raises(thalia.UsageError, match=r"rename: got .*, expected a dictionary, a function or 'auto'"):
        ours.load_into(make(), tmp_path / "f.thalia", rename=rename)
