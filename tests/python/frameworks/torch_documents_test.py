"""The examples of the manual that need torch."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from documents_test import PAGES, run_examples


def test_examples_run(tmp_path, monkeypatch):
    for page in PAGES:
        run_examples(page, tmp_path, monkeypatch, with_torch=True)
