"""The docstrings of what needs a framework."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docstrings import PACKAGE, undocumented, untold_errors

MODULES = [f"{PACKAGE}.{name}" for name in ("accelerate", "dcp", "lightning", "torch", "transformers")]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module):
    assert undocumented(module) == []


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_name_the_errors_that_are_raised(module):
    assert untold_errors(module) == []
