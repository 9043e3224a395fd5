"""The examples of the pages that need torch, and those around them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from documents_test import TORCH_PAGES, run_examples


@pytest.mark.parametrize("page", TORCH_PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    run_examples(page, tmp_path, monkeypatch, with_torch=True)
