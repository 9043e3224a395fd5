"""A file of any format that was closed says so, whatever it is asked."""

import contextlib
import json

import numpy as np
import pytest
import thalia_checkpoint as thalia
from other_formats import DATA, FILES
from thalia_checkpoint.numpy import save_file

#: Of the classes, what a closed one still answers.
ANSWERS = {"close"}


def sharded(folder):
    save_file({"w": np.arange(3)}, folder / "part.thalia", durability="none")
    (folder / "model.thalia.index.json").write_text(json.dumps({"weight_map": {"w": "part.thalia"}}))
    return folder


def paths(folder):
    save_file({"w": np.arange(3)}, folder / "a.thalia", durability="none")
    save_file({"w": np.arange(3)}, folder / "a.safetensors", durability="none")
    (folder / "m").mkdir()
    return [
        folder / "a.thalia",
        folder / "a.safetensors",
        sharded(folder / "m"),
        *(DATA / p for p, _ in FILES.values()),
    ]


#: How each public method is called.
ARGUMENTS = {"region": ("w",), "tensor": ("w",), "get": ("w",), "open_stream": ([], "file", 0, None)}


def test_a_closed_file_of_every_format_says_so(tmp_path):
    classes = set()
    for path in paths(tmp_path):
        file = thalia.open(path)
        some = next(iter(file))
        classes.add(type(file))
        file.close()
        file.close()
        assert repr(file) == f"<{type(file).__name__}, closed>"
        asked = 0
        for name in dir(type(file)):
            if name.startswith("_") or name in ANSWERS:
                continue
            with pytest.raises(thalia.UsageError, match="the file was closed") as caught:
                found = getattr(file, name)
                result = found(*ARGUMENTS.get(name, ())) if callable(found) else found
                for _ in result:  # views and iterators look when they are used
                    pass
            assert caught.value.code == "wrong_state", name
            asked += 1
        assert asked >= 5
        for ask in (len, list, lambda file, some=some: file[some], lambda file, some=some: some in file, dict):
            with pytest.raises(thalia.UsageError, match="the file was closed"):
                ask(file)
    assert classes == {thalia.File, thalia.AnyFile}


@pytest.mark.parametrize("ask", ["keys", "offset_keys", "metadata", "get_tensors"])
def test_safe_open_says_so_behind_its_with(tmp_path, ask):
    for path in paths(tmp_path):
        with contextlib.suppress(thalia.UnsupportedError), thalia.safe_open(path, "np") as file:
            getattr(file, ask)()
        for call in (getattr(file, ask), lambda file=file: file.get_tensor("w"), lambda file=file: file.get_slice("w")):
            with pytest.raises(thalia.SafetensorError, match="the file was closed"):
                call()
