"""accelerate's test_state_checkpointing: what save_state() and load_state() keep in a folder is one file.

accelerate still finds the folder, names it and removes old ones. Custom objects are registered states,
which it keeps in files of their own, and which stay in ours too.
"""

import os

import accelerate.accelerator
import pytest
from accelerate import Accelerator
from thalia_checkpoint.accelerate import load_state, save_state

_save_state, _load_state = Accelerator.save_state, Accelerator.load_state
_working_for: list[Accelerator] = []
swapped = 0


def _with_self(method):
    def call(self, *arguments, **options):
        _working_for.append(self)
        try:
            return method(self, *arguments, **options)
        finally:
            _working_for.pop()

    return call


def _save(output_dir, *_, **__):
    global swapped
    swapped += 1
    path = os.path.join(output_dir, "state.thalia")
    save_state(_working_for[-1], path, replace=True)
    return output_dir


def _load(input_dir, *_, **__):
    global swapped
    swapped += 1
    load_state(_working_for[-1], os.path.join(input_dir, "state.thalia"))
    return {"step": _working_for[-1].step}


@pytest.fixture(autouse=True)
def _swap(monkeypatch):
    monkeypatch.setattr(Accelerator, "save_state", _with_self(_save_state))
    monkeypatch.setattr(Accelerator, "load_state", _with_self(_load_state))
    monkeypatch.setattr(accelerate.accelerator, "save_accelerator_state", _save)
    monkeypatch.setattr(accelerate.accelerator, "load_accelerator_state", _load)


def pytest_sessionfinish(exitstatus):
    if exitstatus in (0, 1):  # the tests ran
        assert swapped > 10, f"only {swapped} states went through this package"
