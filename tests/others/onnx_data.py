"""ONNX's backend/test/data, which the package onnx ships: each tensor of each model, as onnx reads it."""

import pathlib

import numpy as np
import onnx
import onnx.backend.test
import pytest
import thalia_checkpoint
from onnx import numpy_helper

DATA = pathlib.Path(onnx.backend.test.__file__).parent / "data"
MODELS = sorted(DATA.rglob("*.onnx"))


def test_there_are_models():
    assert len(MODELS) > 100


@pytest.mark.parametrize("path", MODELS, ids=lambda path: str(path.parent.relative_to(DATA)))
def test_tensors(path):
    model = onnx.load(path)
    with thalia_checkpoint.open(path) as file:
        for initializer in model.graph.initializer:
            expected = numpy_helper.to_array(initializer)
            found = file.tensors[initializer.name].numpy()
            assert found.shape == expected.shape
            if found.dtype == expected.dtype:
                assert np.array_equal(found, expected, equal_nan=True)
            else:
                assert found.tobytes() == expected.tobytes(), (found.dtype, expected.dtype)
