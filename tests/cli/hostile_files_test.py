"""Every command over every hostile file, in little address space: each ends with a result or with an error.

    hostile_files_test.py THALIA MAKE_FILES SOURCE_ROOT

A file of a kilobyte that takes a gibibyte shows as a process that runs out of memory.
"""

import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

THALIA, MAKE_FILES, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
HOSTILE = ROOT / "tests/data/hostile"
CORPUS = ROOT / "tests/fuzz/corpus"
#: Of the process: the limit on allocations is three quarters of it.
ADDRESS_SPACE = 1 << 30
#: Seconds of one command; what works without end takes more, on any machine.
LONGEST = 60

#: F is the file, a copy in a folder of its own; O an output; T the file's first tensor.
COMMANDS = {
    "info": ["info F"],
    "ls": ["ls -r F"],
    "cat": ["cat F T", "cat F T --format json", "cat F T --format raw", "cat F T --dense --format npy"],
    "stats": ["stats F", "stats F --json"],
    "verify": ["verify F", "verify F --quick", "verify F --resolve"],
    "convert": [
        *(
            f"convert F O.{end} {options}"
            for end in ("thalia", "safetensors", "pt", "npz", "mckp", "mst", "onnx", "gguf")
            for options in ("", "--dense --dequantize")
        ),
        "convert F O.thalia --precision fp16",
        "convert F O.zst --to mithril-quantized",
        "convert F O.orbax --to mithril-orbax",
        "convert F O.entity --to entity",
        "convert F O.json --to loom-json",
        "convert F O.bin --to gptrs",
        "convert F O.thalia --to thalia-0.1",
    ],
    "migrate": ["migrate F O.thalia --to 0.1"],
    "extract": ["extract F --regions model O.thalia"],
    "merge": ["merge F F -o O.thalia"],
    "diff": ["diff F F", "diff F F --values"],
    "log": ["log F"],
    "grow": ["grow F model --neurons 1"],
    "set": ["set F a=1"],
    "rename": ["rename F T other"],
    "rm": ["rm F *"],
    "append": ["append F F --regions model"],
    "compact": ["compact F"],
    "recover": ["recover F"],
    "salvage": ["salvage F O.thalia"],
    "compress": ["compress F O.zst"],
    "decompress": ["decompress F O.thalia"],
    "delta": ["delta F F O.thalia"],
    "resolve": ["resolve F O.thalia"],
    "rebase": ["rebase F", "rebase F F"],
    "quantize": ["quantize F O.thalia"],
    "prune": ["prune F O.thalia --magnitude 1"],
    "plot": ["plot weights F -o O.svg"],
    "report": ["report F -o O.html", "report F F -o O.html"],
    "store": ["store init O --phases p", "store save O F --step 1"],
    "bench": [],  # reads no file
    "version": [],
    "help": [],
}


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def run(words, folder):
    return subprocess.run(
        [THALIA, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LONGEST,
        preexec_fn=bounded,
        check=False,
    )


def first_tensor(file, folder):
    listed = run(["ls", "-r", "--json", file], folder)
    if listed.returncode == 0:
        for tensor in json.loads(listed.stdout).get("tensors", []):
            return tensor.get("path") or tensor["name"]
    return "w"


class HostileFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ends_well(self, words, file):
        result = run(words, self.folder)
        said = result.stderr.decode(errors="replace")
        with self.subTest(file=file, command=" ".join(map(str, words))):
            self.assertIn(result.returncode, (0, 1, 2, 3), said[-500:])
            self.assertNotIn("out of memory", said)
            self.assertNotIn("bad_alloc", said)
        return result

    def test_every_command_is_here(self):
        known = json.loads(subprocess.run([THALIA, "help", "--json"], capture_output=True, check=True).stdout)
        self.assertEqual({command["name"].split()[0] for command in known["commands"]}, set(COMMANDS))

    def test_every_command_ends_with_a_result_or_an_error(self):
        for file in sorted(HOSTILE.glob("[!R]*.*")):
            copy = self.folder / file.name
            shutil.copyfile(file, copy)
            tensor = first_tensor(copy, self.folder)
            for commands in COMMANDS.values():
                for command in commands:
                    words = [{"F": copy.name, "T": tensor}.get(word, word) for word in command.split()]
                    words[1:] = [word.replace("O", "out", 1) if word[0] == "O" else word for word in words[1:]]
                    self.ends_well(words, file.name)
                    shutil.copyfile(file, copy)
                for output in self.folder.glob("out*"):
                    shutil.rmtree(output) if output.is_dir() else output.unlink()

    def test_files_of_a_few_bytes_take_little(self):
        for folder in ("gguf", "mckp", "mithril_quantized", "mst", "npy", "npz", "onnx", "open", "pt", "safetensors"):
            for file in sorted((CORPUS / folder).iterdir()):
                for command in ("verify", "stats"):
                    self.ends_well([command, file], file.name)
                self.ends_well(["convert", file, "out.thalia", "--dense", "--dequantize", "--force"], file.name)

    def test_what_claims_too_much_is_refused_by_the_limit(self):
        for words in (
            ["convert", "--dequantize", HOSTILE / "int4_1000m.mq", "o.safetensors"],
            ["convert", "--dequantize", HOSTILE / "dequant_bomb_2e27.pt", "o.thalia"],
            ["convert", HOSTILE / "coo_expand.pt", "o.thalia"],
            ["verify", HOSTILE / "coo_expand.pt"],
            ["stats", HOSTILE / "coo_expand.pt"],
        ):
            result = self.ends_well([str(word) for word in words], str(words[-1]))
            self.assertIn(b"max_allocation_bytes", result.stderr)
            self.assertEqual(result.returncode, 3)
            self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
