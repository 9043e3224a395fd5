"""What tools/demo takes in place of a build: a build folder, or wheels, of today's sources and no others."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).parents[2]
RULES = "rule copy\n  command = cp $in $out\nbuild part/program: copy ../src/a.cc\n"


class Demo(unittest.TestCase):
    def setUp(self):
        scope = tempfile.TemporaryDirectory()
        self.addCleanup(scope.cleanup)
        self.root = Path(scope.name)
        for folder in ("tools", "include", "src", "python", "dist"):
            (self.root / folder).mkdir()
        shutil.copy(SOURCE / "tools/lib.sh", self.root / "tools")
        for name in ("include/a.h", "src/a.cc", "python/a.py", "meson.build"):
            (self.root / name).write_text("", encoding="utf-8")

    def asked(self, call):
        """What a function of tools/lib.sh prints."""
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f". {self.root}/tools/lib.sh; {call}"],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(ended.stderr, "")
        return ended.stdout.strip()

    def change(self, name, after=5):
        """As if it had been written so many seconds from now."""
        then = time.time() + after
        os.utime(self.root / name, (then, then))

    def build(self, folder, rules=RULES):
        (self.root / folder).mkdir()
        (self.root / folder / "build.ninja").write_text(rules, encoding="utf-8")
        subprocess.run(["ninja", "-C", self.root / folder], check=True, capture_output=True)

    def test_no_wheel_is_none(self):
        self.assertEqual(self.asked("current_wheels"), "")

    def test_wheels_newer_than_all_sources_are_taken(self):
        for name in "a-cp311.whl", "a-abi3.whl":
            (self.root / "dist" / name).touch()
            self.change(f"dist/{name}")
        self.assertEqual(self.asked("current_wheels"), str(self.root / "dist"))

    def test_wheels_older_than_a_source_are_not(self):
        for source in ("include/a.h", "src/a.cc", "python/a.py", "meson.build"):
            with self.subTest(source=source):
                (self.root / "dist/a.whl").touch()
                self.change("dist/a.whl")
                self.change(source, 10)
                self.assertEqual(self.asked("current_wheels"), "")
                self.change(source, -10)
                self.assertEqual(self.asked("current_wheels"), str(self.root / "dist"))

    def test_one_old_wheel_among_new_ones_is_enough_to_take_none(self):
        for name, after in ("a-cp311.whl", 5), ("a-abi3.whl", -20):
            (self.root / "dist" / name).touch()
            self.change(f"dist/{name}", after)
        self.assertEqual(self.asked("current_wheels"), "")

    @unittest.skipUnless(shutil.which("ninja"), "there is no ninja")
    def test_a_build_is_taken_while_ninja_has_nothing_to_do(self):
        self.assertEqual(self.asked("current_build part/program"), "")
        self.build("build-a")
        self.assertEqual(self.asked("current_build part/program"), "build-a")
        self.assertEqual(self.asked("current_build part/program part/other"), "")
        self.change("src/a.cc")
        self.assertEqual(self.asked("current_build part/program"), "")

    @unittest.skipUnless(shutil.which("ninja"), "there is no ninja")
    def test_a_build_under_a_sanitizer_is_not_taken(self):
        self.build("build-a", RULES + "# -fsanitize=address\n")
        self.assertEqual(self.asked("current_build part/program"), "")
        self.build("build-b")
        self.assertEqual(self.asked("current_build part/program"), "build-b")


if __name__ == "__main__":
    unittest.main()
