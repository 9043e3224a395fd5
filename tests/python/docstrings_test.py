"""The docstrings of what needs numpy alone."""

import pytest
from docstrings import PACKAGE, undocumented, untold_errors

MODULES = [PACKAGE, *(f"{PACKAGE}.{name}" for name in ("brain", "errors", "mithril", "numpy"))]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module):
    assert undocumented(module) == []


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_name_the_errors_that_are_raised(module):
    assert untold_errors(module) == []
