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
assert "asyncio" not in sys.modules or "numpy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
