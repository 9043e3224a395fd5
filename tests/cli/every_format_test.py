"""Every command that looks at a file, over a file of every format: none refuses one that another opens.

every_format_test.py THALIA MAKE_FILES INTERRUPTION SOURCE_ROOT
"""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import program

DATA = pathlib.Path(sys.argv[4]) / "tests/data/formats"
# Files that the formats' own programs wrote.
NATIVE = (
    "mithril/small.mst", "mithril/quant_int8.zst", "mithril/orbax_ck", "gptrs/rust_gpt_small.gptrschk",
    "gptrs/py_mixed.gptrsten", "loom/dtype/int4.entity", "loom/dtype/int4.json", "pt/train.pt",
    "npz/stored.npz", "npz/array.npy", "gguf/blocks.gguf", "onnx/raw.onnx",
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
