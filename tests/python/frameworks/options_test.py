"""What a class keeps for later saves is checked when it is given, and not at the end of an epoch."""

import importlib
import inspect

import pytest
import torch
from thalia_checkpoint import UsageError

#: What a class needs beside options.
NEEDED = {
    "AsyncCheckpointer": lambda folder: {"model": torch.nn.Linear(2, 2), "folder": folder, "every": 1},
    "CurriculumTrainer": lambda folder: {
        "brain": torch.nn.Linear(2, 2),
        "checkpoint_dir": folder,
        "train_epoch": lambda *_: None,
    },
    "RunWriter": lambda folder: {"folder": folder},
    "Writer": lambda folder: {"path": folder / "f.thalia"},
}


def keeping_options():
    """Every public class whose constructor takes SaveOptions."""
    for name in (
        "",
        ".brain",
        ".torch",
        ".dcp",
        ".store",
        ".lightning",
        ".deepspeed",
        ".orbax",
        ".mithril.orbax",
        ".transformers",
    ):
        module = importlib.import_module(f"thalia_checkpoint{name}")
        for each in module.__all__:
            found = getattr(module, each)
            if isinstance(found, type) and found.__module__.startswith("thalia_checkpoint"):
                own = vars(found).get("__init__")
                if not inspect.isfunction(own) or issubclass(found, Exception):
                    continue  # what the module binds takes no options
                if inspect.Parameter.VAR_KEYWORD in {p.kind for p in inspect.signature(own).parameters.values()}:
                    yield pytest.param(found, id=each)


CLASSES = list(keeping_options())


def test_all_are_found():
    assert {each.id for each in CLASSES} >= {
        "AsyncCheckpointer",
        "CurriculumTrainer",
        "ThaliaAsyncCheckpointEngine",
        "ThaliaAsyncCheckpointIO",
        "ThaliaCheckpointEngine",
        "ThaliaCheckpointHandler",
        "ThaliaCheckpointIO",
        "ThaliaStorageWriter",
        "Writer",
    }


@pytest.mark.parametrize("cls", CLASSES)
def test_options_are_checked_where_they_are_given(cls, tmp_path):
    needed = NEEDED.get(cls.__name__, lambda _: {})(tmp_path)
    with pytest.raises(TypeError, match="'durabilty', did you mean 'durability'"):
        cls(**needed, durabilty="none")
    with pytest.raises(TypeError, match="'nothing'"):
        cls(**needed, nothing=None)
    with pytest.raises(UsageError, match=r"durability.*often"):
        cls(**needed, durability="often")
    if cls.__name__ == "Writer":
        return  # its save is the next thing that it does
    with pytest.raises(UsageError, match=r"level.*99"):
        cls(**needed, compression_level=99, compression="zstd")
    cls(**needed, durability="none", compression="zstd", progress=lambda done, total: None)
