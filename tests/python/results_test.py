"""What calls return: objects with fields that compare, print, and can be pickled."""

import copy
import pickle

import numpy as np
import pytest
import thalia_checkpoint as thalia
from thalia_checkpoint import mithril, store

WEIGHT = np.arange(64, dtype=np.float32)


def saved(path, weight=WEIGHT, **metadata):
    with thalia.Writer(path) as writer:
        writer.add("cortex/weight", weight)
        writer.metadata = metadata
    return writer.result


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    base, new, out = folder / "base.thalia", folder / "new.thalia", folder / "out"
    found = {"save": saved(base, step=1), "second": saved(new, WEIGHT + 1, step=2.5)}
    found["verify"] = thalia.verify(base)
    damaged = folder / "damaged.thalia"
    data = bytearray(base.read_bytes())
    data[data.index(WEIGHT[1:].tobytes())] ^= 1
    damaged.write_bytes(data)
    found["findings"] = thalia.verify(damaged)
    found["salvage"] = thalia.salvage(base, folder / "left.thalia")
    found["diff"] = thalia.diff(base, new, values=True)
    found["flat"] = thalia.diff(base, thalia_of(folder, base))
    found["delta"] = thalia.delta(base, new, folder / "new.delta.thalia")
    found["resolve"] = thalia.resolve(folder / "new.delta.thalia", folder / "whole.thalia")
    found["convert"] = thalia.convert(base, folder / "out.safetensors", precision="*=fp16")
    found["migrate"] = thalia.migrate(base, folder / "old.thalia", to="0.1", across_major=True)
    found["quantize"] = thalia.quantize(base, folder / "codes.thalia", min_elements=1)
    found["compress"] = thalia.compress(base, folder / "base.thalia.zst")
    found["compact"] = thalia.compact(base, folder / "compact.thalia")
    found["recover"] = thalia.recover(base)
    source = thalia.stream_params(base)
    (found["param"],) = source.params.values()
    found["statistics"] = source.statistics
    found["meta"] = mithril.Compressor(out).save({"a": WEIGHT}, "key")
    store.create_run(folder / "run", {"phases": [{"name": "train", "retention": {"keep_last": 1}}]})
    with store.RunWriter(folder / "run") as run:
        for step in (1, 2):
            with run.new_checkpoint(step) as writer:
                writer.add("cortex/weight", WEIGHT)
        found["stored"] = writer.stored
        found["entry"] = run.run.latest()
        found["prune"] = run.prune(dry_run=True)
    return found


def thalia_of(folder, path):
    thalia.convert(path, folder / "flat.safetensors")
    return folder / "flat.safetensors"


NAMES = (
    "save", "verify", "findings", "salvage", "diff", "flat", "delta", "resolve", "convert", "migrate", "quantize",
    "compress", "compact", "recover", "param", "statistics", "meta", "stored", "entry", "prune",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_result_survives_pickling_and_copying(results, name):
    result = results[name]
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(again) is type(result)
        assert again is not result
        assert again == result
        assert repr(again) == repr(result)


@pytest.mark.parametrize("name", NAMES)
def test_fields_are_shown_and_cannot_be_set(results, name):
    result = results[name]
    names = type(result).__match_args__
    assert names
    assert repr(result) == f"{type(result).__name__}({', '.join(f'{of}={getattr(result, of)!r}' for of in names)})"
    with pytest.raises(AttributeError):
        setattr(result, names[0], None)
    with pytest.raises(AttributeError):
        result.another = None
    assert type(result).__doc__


def test_results_differ_where_a_field_does(results):
    assert results["save"] != results["second"]
    assert results["save"] != 1
    assert results["save"] != None  # noqa: E711
    assert hash(results["delta"]) == hash(copy.copy(results["delta"]))


def test_parts_outlive_what_they_are_part_of(results):
    (region,) = pickle.loads(pickle.dumps(results["diff"])).regions
    (tensor,) = region.tensors
    del region
    assert tensor.name == "weight"
    assert tensor.differing == ("content",)
    assert tensor.before.shape == (64,)
    assert tensor.values.differing == 64


def test_values_are_pythons(results):
    (step,) = results["diff"].metadata
    assert (step.field, step.change, step.before, step.after) == ("step", "changed", 1, 2.5)
    assert results["diff"]
    assert not results["flat"]
    assert results["findings"].findings[0].severity == "error"
    assert not results["findings"].ok
    assert results["convert"].types == {"fp16": (1, 128)}
    assert results["salvage"].whole
    assert results["migrate"].from_ == "1.0.0"
    assert results["entry"].base is None
    assert [decision.fate for decision in results["prune"].decisions] == ["keep"]
    match results["compress"]:
        case thalia.WrapResult(codec="zstd", frames=frames):
            assert frames == 1
        case _:
            raise AssertionError
