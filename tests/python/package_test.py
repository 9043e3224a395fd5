"""The package as it is built and installed."""

import subprocess
import sys
from pathlib import Path

import thalia_checkpoint as thalia

SOURCE = Path(__file__).resolve().parents[2] / "python/thalia_checkpoint"


def files_of(package):
    found = {path.relative_to(package) for path in package.rglob("*") if path.is_file()}
    return {str(path) for path in found if path.name != "meson.build" and "__pycache__" not in path.parts}


def test_every_file_of_the_folder_is_built():
    built, files = files_of(Path(thalia.__file__).parent), files_of(SOURCE)
    assert {name for name in built if not name.startswith("_core.")} == files
    assert "_core.pyi" in built


def test_what_is_exported_is_there():
    assert all(hasattr(thalia, name) for name in thalia.__all__)
    assert sorted(thalia.__all__) == thalia.__all__


def test_importing_needs_numpy_alone():
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "ml_dtypes", "safetensors", "jax", "tqdm"}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import thalia_checkpoint, thalia_checkpoint.numpy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_leaves_for_later_what_few_programs_use():
    code = """
import sys, numpy
before = set(sys.modules)
import thalia_checkpoint as thalia
operations = thalia.__name__ + "._operations"
slow = {"asyncio", "tempfile", "importlib.metadata", f"{operations}.convert", f"{operations}.diff"}
assert not slow & (set(sys.modules) - before), slow & set(sys.modules)
from thalia_checkpoint import convert
assert f"{operations}.convert" in sys.modules and thalia.diff is sys.modules[f"{operations}.diff"].diff
assert set(thalia.__all__) <= set(dir(thalia))
try:
    thalia.nothing
except AttributeError as error:
    assert "nothing" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
