"""What safetensors documents can be called here: the same names, with the same parameters and defaults."""

import importlib
import inspect

import numpy as np
import pytest
import safetensors
import thalia_checkpoint as thalia
import thalia_checkpoint.torch as ours
import torch

#: By name and parameter: why ours has another one. Such a first argument is given by its place.
OTHERWISE = {
    ("torch.save", "tensors"): "obj: it saves what torch.save() takes, too, and calls it so",
    ("torch.load", "data"): "source: it takes a path, too",
}


def documented():
    """Of each function and method its name, theirs and ours."""
    for name in ("numpy", "torch", "flax"):
        module = importlib.import_module(f"safetensors.{name}")
        own = importlib.import_module(f"thalia_checkpoint.{name}")
        for function, theirs in vars(module).items():
            is_own = inspect.isfunction(theirs) and theirs.__module__ == module.__name__
            if is_own and theirs.__doc__ and not function.startswith("_"):
                yield f"{name}.{function}", theirs, getattr(own, function, None)
    for function in ("serialize", "serialize_file", "deserialize", "safe_open", "TensorSpec"):
        yield function, getattr(safetensors, function), getattr(thalia, function, None)
    for method, theirs in vars(safetensors.safe_open).items():
        if not method.startswith("_"):
            yield f"safe_open.{method}", theirs, getattr(thalia.safe_open, method, None)


CALLS = {name: (theirs, own) for name, theirs, own in documented()}


def test_the_functions_are_found():
    assert {"numpy.load_file", "torch.save_model", "flax.save", "serialize", "safe_open.get_slice"} <= set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_what_safetensors_documents_is_here(name):
    theirs, own = CALLS[name]
    assert own is not None
    found = inspect.signature(own).parameters
    for place, (parameter, their) in enumerate(inspect.signature(theirs).parameters.items()):
        if (name, parameter) in OTHERWISE:
            continue
        assert parameter in found
        mine = found[parameter]
        if their.default not in (inspect.Parameter.empty, ...):  # pyo3 does not report defaults
            assert mine.default == their.default
        assert (mine.default is mine.empty) == (their.default is their.empty)
        if their.kind is their.POSITIONAL_OR_KEYWORD and mine.kind is not mine.POSITIONAL_OR_KEYWORD:
            assert name == "torch.save" and parameter == "metadata"  # a path is there, or the texts
        elif their.kind is their.POSITIONAL_OR_KEYWORD:
            assert list(found).index(parameter) == place


def test_no_exception_is_left_over():
    for name, parameter in OTHERWISE:
        theirs, own = CALLS[name]
        assert parameter in inspect.signature(theirs).parameters and parameter not in inspect.signature(own).parameters


@pytest.mark.parametrize("name", ["numpy", "torch", "flax"])
@pytest.mark.parametrize("ending", ["safetensors", "thalia"])
def test_either_backend_loads_a_file(tmp_path, name, ending):
    own = importlib.import_module(f"thalia_checkpoint.{name}")
    path = tmp_path / f"f.{ending}"
    tensor = torch.arange(6.0).reshape(2, 3)
    own.save_file({"a": tensor if name == "torch" else tensor.numpy()}, path)
    for options in ({"backend": "mmap"}, {"backend": "pread"}):
        for more in ({}, {"mmap": True}) if name == "numpy" else ({},):
            assert np.array_equal(np.asarray(own.load_file(path, **options, **more)["a"]), tensor.numpy())
    with pytest.raises(thalia.UsageError, match="backend 'tape': expected mmap or pread"):
        own.load_file(path, backend="tape")


def test_bytes_take_their_texts_by_name_or_in_their_place(tmp_path):
    tensors = {"a": torch.arange(3)}
    theirs = importlib.import_module("safetensors.torch")
    for format in ("safetensors", "thalia"):
        by_name = ours.save(tensors, metadata={"who": "me"}, format=format)
        assert len(by_name) == len(ours.save(tensors, {"who": "me"}, format=format))
        (tmp_path / "f").write_bytes(by_name)
        with thalia.safe_open(tmp_path / "f", "pt") as file:
            assert file.metadata() == {"who": "me"}
    assert ours.save(tensors, metadata={"who": "me"}) == theirs.save(tensors, metadata={"who": "me"})
    with pytest.raises(thalia.UsageError, match=r"metadata: got texts twice"):
        ours.save(tensors, {"who": "you"}, metadata={"who": "me"})
    ours.save(tensors, tmp_path / "g.thalia", metadata={"who": "me"})
    with thalia.open(tmp_path / "g.thalia") as file:
        assert file.metadata["who"] == "me"
