"""units_test.py BUILD: the build compiles by rooms, and the rule catches one that does not."""

import sys
import tempfile
import unittest
from pathlib import Path

import units

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop()) if len(sys.argv) > 1 else None


class ThisBuild(unittest.TestCase):
    def setUp(self):
        self.units = units.of_build(BUILD)

    def test_no_unit_sees_two_rooms(self):
        self.assertEqual(units.mixed_units(ROOT, self.units), [])

    def test_every_source_of_the_library_is_in_one(self):
        layers = [folder.name for folder in (ROOT / "src").iterdir() if folder.is_dir()]
        layers = [name for name in layers if name not in ("cli", "python", "cmake")]  # not in every build
        self.assertGreater(len(layers), 10)
        self.assertEqual(units.forgotten(ROOT, self.units, [f"src/{name}" for name in layers]), [])


class BrokenBuilds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        for name in ("src/io/file/a.cc", "src/io/file/b.cc", "src/io/path/c.cc"):
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("int x;\n", encoding="utf-8")

    def unit(self, *names):
        file = self.root / "build" / "unit.cpp"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f'#include "{self.root / name}"\n' for name in names), encoding="utf-8")
        return list(units.units(file.parent, [{"directory": str(file.parent), "file": "unit.cpp"}]))

    def test_two_rooms_at_once_are_found(self):
        mixed = self.unit("src/io/file/a.cc", "src/io/path/c.cc")
        self.assertEqual(units.mixed_units(self.root, mixed), ["src/io/file, src/io/path are compiled as one"])
        self.assertEqual(units.mixed_units(self.root, self.unit("src/io/file/a.cc", "src/io/file/b.cc")), [])

    def test_a_source_in_no_unit_is_found(self):
        found = units.forgotten(self.root, self.unit("src/io/file/a.cc", "src/io/file/b.cc"), ["src/io"])
        self.assertEqual(found, ["src/io/path/c.cc"])

    def test_a_source_alone_is_a_unit(self):
        alone = list(units.units(self.root, [{"directory": str(self.root), "file": "src/io/path/c.cc"}]))
        self.assertEqual(alone, [(self.root / "src/io/path/c.cc", [self.root / "src/io/path/c.cc"])])


if __name__ == "__main__":
    unittest.main()
