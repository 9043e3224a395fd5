"""The package as it is built and installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import thalia_checkpoint as thalia
from thalia_checkpoint._library import missing_library

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


def test_a_missing_library_is_one_line_that_names_its_package(tmp_path):
    package = tmp_path / "thalia_checkpoint"
    shutil.copytree(Path(thalia.__file__).parent, package, ignore=shutil.ignore_patterns("*.p", "__pycache__"))
    (module,) = package.glob("_core*.so")
    content = module.read_bytes()
    # Names of libraries are texts of the module, each with a zero before and behind it: this one is made another's.
    needed = re.findall(rb"\0(lib(?:isal|uring|fmt|xxhash|simdjson)\.so\.\d+)(?=\0)", content)
    assert needed, "the module needs none of them"
    wrong = b"libx" + needed[0][4:]
    module.unlink()
    module.write_bytes(content.replace(b"\0" + needed[0] + b"\0", b"\0" + wrong + b"\0"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "PYTHONPATH": str(tmp_path)
    }
    ended = subprocess.run(
        [sys.executable, "-c", "import thalia_checkpoint"], env=environment, capture_output=True, text=True, check=False
    )
    library = wrong.decode()
    package_name = library.replace(".so.", "")
    assert ended.stderr.splitlines()[-1] == (
        f"ImportError: {library} is missing, which thalia_checkpoint needs: "
        f'please run "apt-get install {package_name}" (name of Debian)'
    )
    assert "During handling" not in ended.stderr


def test_packages_of_libraries_are_debians():
    for library, package in {
        "libz.so.1": "zlib1g",
        "libcrypto.so.3": "libssl3",
        "liblz4.so.1": "liblz4-1",
        "libprotobuf-lite.so.32": "libprotobuf-lite32",
        "libstdc++.so.6": "libstdc++6",
    }.items():
        error = missing_library(ImportError(f"{library}: cannot open shared object file: No such file or directory"))
        assert f'"apt-get install {package}"' in str(error)
    other = ImportError("No module named 'thalia_checkpoint._core'")
    assert missing_library(other) is other
