"""Every command that looks at a file, over a file of every format: none refuses one that another opens.

every_format_test.py THALIA MAKE_FILES INTERRUPTION SOURCE_ROOT
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import program

DATA = pathlib.Path(sys.argv[4]) / "tests/data/formats"
# Files that the formats' own programs wrote.
NATIVE = (
    "mithril/small.mst", "mithril/quant_int8.zst", "mithril/orbax_ck", "gptrs/rust_gpt_small.gptrschk",
    "gptrs/py_mixed.gptrsten", "loom/dtype/int4.entity", "loom/dtype/int4.json", "pt/train.pt",
    "npz/stored.npz", "npz/array.npy", "gguf/blocks.gguf", "onnx/raw.onnx", "slime/versions", "trl/bucket",
)  # fmt: skip
# Of make_files.
OWN = ("basic.thalia", "later.delta.thalia", "large.thalia.zst", "old.thalia", "model.safetensors", "model.mckp")
KINDS = ("thalia", "safetensors")
COMMANDS = (
    "info {file}", "info {file} --json", "ls {file}", "ls {file} -r", "ls {file} -r --json", "stats {file}",
    "stats {file} --json", "cat {file} {tensor}", "cat {file} {tensor} --format json", "diff {file} {file}",
    "diff {file} {file} --values", "verify {file}", "log {file}", "log {file} --json",
    "convert {file} out.thalia --force", "plot chain {file} -o chain.svg --force",
    "plot weights {file} -o weights.svg --force", "report {file} -o page.html --force",
)  # fmt: skip

# Commands that open each file that they read once, but for READ_AGAIN: others go the way of info. The output of convert
# is new: where there is one, the program looks first whether it is a file that is read.
OPENING = ("info {file}", "verify {file}", "diff {file} names.thalia", "convert {file} {new}.thalia")
# Files that are opened once more, by the words that begin a command, and why.
READ_AGAIN = {
    "verify thalia": "the parts of a .thalia model are verified one by one, and then opened together",
    "diff train.pt": "beside a .thalia file, tensors that share memory are listed as one",
}
# A file that a process has opened, in the last column of strace -y.
OPENED = re.compile(r"^.*\bopenat\(.*\) = \d+<([^>]*)>$", re.MULTILINE)


def opened(folder, command):
    """The result of the program, and how often it has opened each file of the folder to read it."""
    log = folder / "trace.log"
    trace = ["strace", "-f", "-qq", "-y", "-e", "trace=openat", "-o", log]
    result = subprocess.run(
        [*trace, program.THALIA, *command.split()],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    lines = "\n".join(line for line in log.read_text().splitlines() if "O_RDONLY" in line and "O_DIRECTORY" not in line)
    return result, collections.Counter(path for path in OPENED.findall(lines) if path.startswith(str(folder)))


def can_trace():
    if shutil.which("strace") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        return opened(pathlib.Path(folder), "version")[0].returncode == 0


def make_shards(folder, kind):
    """A model in two files with an index."""
    folder.mkdir()
    weight_map = {}
    for number, name in ((1, "embed.weight"), (2, "head.weight")):
        part = folder / f"model-0000{number}-of-00002.safetensors"
        program.write_safetensors(part, {name: [1.0, 2.0 * number, -3.0, 4.0]}, [2, 2])
        if kind == "thalia":
            result = program.run(folder, f"convert {part.name} {part.stem}.thalia")
            assert result.returncode == 0, result.stderr
            part.unlink()
        weight_map[name] = f"{part.stem}.{kind}"
    (folder / f"model.{kind}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


class EveryFormat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        program.make_files(cls.folder)
        cls.files = list(OWN)
        for name in NATIVE:
            source, target = DATA / name, cls.folder / pathlib.Path(name).name
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
            cls.files.append(target.name)
        shutil.copytree(DATA / "slime/base", cls.folder / "versions/weight_v000000")
        for kind in KINDS:
            make_shards(cls.folder / kind, kind)
            cls.files += [kind, f"{kind}/model.{kind}.index.json"]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_command(self, command):
        result = program.run(self.folder, command)
        self.assertEqual(result.returncode, 0, (command, result.stderr))
        return result.stdout

    def tensors(self, file):
        return json.loads(self.run_command(f"ls {file} -r --json"))["tensors"]

    def test_every_format_is_among_the_files(self):
        known = json.loads(self.run_command("version --json"))["formats"]
        seen = {json.loads(self.run_command(f"info {file} --json"))["format"] for file in self.files}
        self.assertEqual(seen, set(known))

    def test_no_command_refuses_a_file(self):
        for file in self.files:
            tensors = self.tensors(file)
            self.assertTrue(tensors, file)
            region, name = tensors[0]["region"], tensors[0]["name"]
            tensor = f"{region}/{name}" if region else name
            for command in COMMANDS:
                with self.subTest(command=command, file=file):
                    self.run_command(command.format(file=file, tensor=tensor))

    @unittest.skipUnless(can_trace(), "strace is not installed, or may not trace")
    def test_a_file_is_opened_once(self):
        for file in self.files:
            if file == "orbax_ck":  # its arrays are opened when they are read: there may be thousands
                continue
            for form in OPENING:
                command = form.format(file=file, new=f"from_{file.replace('/', '_')}")
                with self.subTest(command=command):
                    result, counts = opened(self.folder.resolve(), command)
                    self.assertEqual(result.returncode, 1 if command.startswith("diff") else 0, result.stderr)
                    self.assertTrue(counts)
                    again = {path for path, count in counts.items() if count > 1}
                    if any(command.startswith(words) for words in READ_AGAIN):
                        self.assertTrue(again)
                    else:
                        self.assertEqual(again, set())

    def test_names_are_completed_of_every_format(self):
        for file in self.files:
            tensors = self.tensors(file)
            with self.subTest(file=file):
                region, name = tensors[0]["region"], tensors[0]["name"]
                shown = f"{region}/{name}" if region else name
                names = self.run_command(f"__complete tensor {file} {shown}").decode().splitlines()
                self.assertIn(shown, names)

    def test_codes_of_a_format_are_shown_as_the_numbers_that_they_stand_for(self):
        expected = (DATA / "mithril/quant_int8.dequant.f32").read_bytes()
        found = self.run_command("cat quant_int8.zst codes --format raw -o numbers.raw")
        self.assertEqual(found, b"")
        self.assertEqual((self.folder / "numbers.raw").read_bytes(), expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
