"""What commands say of a file that loses its bytes while they read it.

    changed_file_test.py THALIA MAKE_FILES INTERRUPTION

The library INTERRUPTION (interruption.cc) shortens the file when it has been mapped, or as it is
about to be read.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import program

# Each reads FILE, or a file of another format.
WAYS = {
    "large.thalia": [
        "info FILE",
        "ls FILE",
        "cat FILE matrix",
        "verify FILE",
        "verify FILE --quick",
        "convert FILE to.thalia",
        "convert FILE to.safetensors --from thalia",
        "convert FILE to.thalia.meta",
        "migrate FILE to.thalia --to 0.1",
        "extract FILE to.thalia --regions r",
        "merge FILE basic.thalia to.thalia",
        "diff FILE basic.thalia",
        "delta FILE basic.thalia to.delta.thalia",
        "delta basic.thalia FILE to.delta.thalia",
        "append basic.thalia FILE --regions r",
        "append FILE basic.thalia --regions cortex",
        "compact FILE to.thalia",
        "recover FILE",
        "quantize FILE to.thalia",
        "compress FILE to.zst",
        "plot weights FILE -o to.svg",
        "plot diff FILE basic.thalia -o to.svg",
        "report FILE -o to.html",
    ],
    "grown.thalia": ["plot growth FILE -o to.svg"],
    "basic.thalia": ["grow FILE cortex --neurons 2 --axes weights.w_in=source:eye,neurons"],
    "later.delta.thalia": ["resolve FILE to.thalia", "cat FILE w_in", "verify FILE --resolve"],
    "large.thalia.zst": ["decompress FILE to.thalia", "info FILE", "verify FILE"],
    "model.safetensors": ["ls FILE", "verify FILE", "convert FILE to.thalia"],
    "model.mckp": ["info FILE", "verify FILE", "convert FILE to.thalia"],
    "old.thalia": ["info FILE", "verify FILE", "migrate FILE to.thalia --to 1.0"],
}


def shortened(folder, file, command, step):
    environment = {
        "LD_PRELOAD": program.INTERRUPTION,
        "ASAN_OPTIONS": "verify_asan_link_order=0:handle_sigbus=0",
        "THALIA_TEST_SHORTEN": str(folder / file),
        "THALIA_TEST_STEP": str(step),
    }
    return program.run(folder, command.replace("FILE", file), environment)


class ChangedFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = pathlib.Path(cls.folder.name, "files")
        cls.files.mkdir()
        program.make_files(cls.files)

    def fresh(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder.name))
        shutil.copytree(self.files, folder, dirs_exist_ok=True)
        return folder

    def check_told(self, folder, file, result):
        """One line that names the file, and a status; never a signal."""
        lines = (result.stdout + result.stderr).decode().splitlines()
        self.assertIn(result.returncode, (1, 3), result)
        self.assertTrue(any(file in line for line in lines), result)
        self.assertFalse(list(folder.glob("to.*")), result)

    def test_mapped_file_is_named(self):
        for file, commands in WAYS.items():
            for command in commands:
                with self.subTest(command=command, file=file):
                    folder = self.fresh()
                    result = shortened(folder, file, command, 0)
                    if (folder / file).stat().st_size == 0:  # else nothing was mapped
                        self.check_told(folder, file, result)
                    shutil.rmtree(folder)

    def test_line_says_what_helps(self):
        folder = self.fresh()
        result = shortened(folder, "large.thalia", "cat FILE matrix", 0)
        self.assertEqual((result.returncode, result.stdout), (3, b""))
        self.assertRegex(result.stderr.decode(), r"^thalia: .*/large\.thalia: .* --safe reads [^\n]*\n$")

    def test_line_is_json_where_that_is_asked_for(self):
        result = shortened(self.fresh(), "large.thalia", "stats FILE --json", 0)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count(b"\n")), (3, b"", 1))
        value = json.loads(result.stderr)
        self.assertEqual((value["schema"], value["error"]["code"]), ("thalia.error.1", "io"))
        self.assertTrue(value["error"]["path"].endswith("/large.thalia"), value)

    def test_safe_maps_nothing(self):
        for file, commands in WAYS.items():
            for command in commands:
                with self.subTest(command=command, file=file):
                    folder = self.fresh()
                    shortened(folder, file, command + " --safe", 0)
                    self.assertNotEqual((folder / file).stat().st_size, 0, "it was mapped")
                    shutil.rmtree(folder)

    def test_safe_tells_whenever_it_happens(self):
        for file, commands in WAYS.items():
            for command in commands:
                for step in 1, 2, 3, 5, 8, 13:
                    with self.subTest(command=command, file=file, step=step):
                        folder = self.fresh()
                        result = shortened(folder, file, command + " --safe", step)
                        done = (folder / file).stat().st_size != 0
                        if not done and result.returncode != 0:
                            self.check_told(folder, file, result)
                        shutil.rmtree(folder)
                    if done:  # fewer reads than that
                        break


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
