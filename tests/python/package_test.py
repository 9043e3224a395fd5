"""The package as it is built and installed."""

import subprocess
import sys
from pathlib import Path

import thalia_checkpoint as thalia

SOURCE = Path(__file__).resolve().parents[2] / "python/thalia_checkpoint"


def test_every_file_of_the_folder_is_built():
    built = {path.name for path in Path(thalia.__file__).parent.iterdir() if path.is_file()}
    files = {path.name for path in SOURCE.iterdir() if path.is_file()} - {"meson.build"}
    assert {name for name in built if not name.startswith("_core.") or name == "_core.pyi"} == files


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
slow = {"asyncio", "tempfile", "importlib.metadata", "thalia_checkpoint._convert", "thalia_checkpoint._diff"}
assert not slow & (set(sys.modules) - before), slow & set(sys.modules)
from thalia_checkpoint import convert
assert "thalia_checkpoint._convert" in sys.modules and thalia.diff is sys.modules["thalia_checkpoint._diff"].diff
assert set(thalia.__all__) <= set(dir(thalia))
try:
    thalia.nothing
except AttributeError as error:
    assert "nothing" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
