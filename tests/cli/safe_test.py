"""With --safe nothing of a file is mapped, whatever its format and whatever is done with it.

    safe_test.py THALIA MAKE_FILES

strace sees each mapping; where it is not installed, or may not trace, the test is left out.
"""

import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

import program

MAPPING = re.compile(r"mmap\([^\n]*<(/[^>\n]*)>")


def traced(folder, words):
    """The result of the program, and the files of the folder that it mapped."""
    log = pathlib.Path(folder, "trace.log")
    command = ["strace", "-f", "-qq", "-y", "-e", "trace=mmap", "-o", log, program.THALIA, *words]
    result = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
    )
    mapped = {path for path in MAPPING.findall(log.read_text()) if path.startswith(str(folder))}
    return result, mapped


def can_trace():
    if shutil.which("strace") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        return traced(folder, ["version"])[0].returncode == 0


class Safe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name).resolve()
        program.make_files(cls.folder)
        for end in ("pt", "npz", "mst", "onnx", "gguf", "gptrs"):
            program.run(cls.folder, f"convert model.safetensors model.{end}")
        program.run(cls.folder, "compress large.thalia large.thalia.lz4")
        program.run(cls.folder, "quantize model.thalia quantized.thalia")
        program.run(cls.folder, "convert model.thalia model.thalia.meta")

    def maps_nothing(self, command):
        with self.subTest(command=command):
            result, mapped = traced(self.folder, [*command.split(), "--safe"])
            self.assertNotIn(b"not expected", result.stderr)
            self.assertIn(result.returncode, (0, 1, 3), result.stderr)
            self.assertEqual(mapped, set())

    def test_a_file_is_mapped_without_it(self):
        self.assertEqual(traced(self.folder, ["stats", "model.thalia"])[1], {str(self.folder / "model.thalia")})

    def test_nothing_is_mapped_of_any_format(self):
        for file in sorted(self.folder.glob("*.*")):
            if file.suffix in (".log", ".svg", ".html"):
                continue
            for command in ("info", "ls", "verify", "stats"):
                self.maps_nothing(f"{command} {file.name}")

    def test_nothing_is_mapped_by_any_command(self):
        for command in (
            "cat model.thalia steps",
            "convert model.thalia o.safetensors",
            "convert model.safetensors o.thalia",
            "convert later.delta.thalia o1.thalia",
            "convert large.thalia.zst o2.thalia",
            "migrate model.thalia o3.thalia --to 0.1",
            "migrate old.thalia o4.thalia --to 1.0",
            "merge model.thalia model.thalia -o o5.thalia --prefer model.thalia",
            "diff basic.thalia grown.thalia --values",
            "diff model.safetensors model.pt",
            "log model.thalia",
            "verify --resolve later.delta.thalia",
            "resolve later.delta.thalia o6.thalia",
            "delta basic.thalia grown.thalia o15.thalia",
            "rebase o15.thalia",
            "salvage model.thalia o7.thalia",
            "compress model.thalia o8.thalia.zst",
            "decompress large.thalia.zst o9.thalia",
            "delta basic.thalia grown.thalia o10.thalia",
            "delta model.mckp model.mckp o11.mckp",
            "quantize model.thalia o12.thalia",
            "report model.thalia -o o13.html",
            "report grown.thalia basic.thalia -o o14.html",
            "set model.safetensors a=1",
            "set model.thalia a=1",
        ):
            self.maps_nothing(command)

    def test_nothing_is_mapped_by_any_command_of_the_store(self):
        program.run(self.folder, "store init run --phases a,b --metric loss:min")
        configuration = self.folder / "run/run.toml"
        text = configuration.read_text().replace('policy = "cost"', 'policy = "every"')
        configuration.write_text(text + '\n[pool]\nphase = "a"\nfolder = "pool"\n')
        for command in (
            "save run basic.thalia --phase a --step 1 --metric 3",
            "save run grown.thalia --phase a --step 2 --metric 2",
            "save run later.delta.thalia --phase b --step 3 --metric 1",
            "latest run",
            "prune run --dry-run",
            "rebase run --phase a",
            "verify run",
            "promote run --phase a",
            "promote run --phase a --step 1 --force",
            "restore run back.thalia --phase a --step 2",
            "save run basic.thalia --phase a --step 2 --force",
            "prune run --phase a --keep 1",
            "repair run --dry-run",
            "pool run add --phase a --step 2 --mu 25 --sigma 8",
            "pool run",
        ):
            self.maps_nothing(f"store {command}")
        for beside in self.folder.glob("run/**/*.sha256"):
            beside.unlink()
        for beside in self.folder.glob("run/gates/*.json"):
            beside.write_text("{}")
        self.maps_nothing("store repair run")

    def test_a_file_that_the_address_space_does_not_hold(self):
        large = self.folder / "large.safetensors"
        size = 1_288_490_189
        header = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
        with large.open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + size)
        self.addCleanup(large.unlink)
        most = 1_000_000 << 10

        def bounded():
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

        for options in ("", " --safe"):
            for command, says in (("info", "1.2 GiB"), ("ls", "1.2 GiB"), ("verify", "ok: 1 tensor")):
                result = program.run(self.folder, f"{command} large.safetensors{options}", preexec_fn=bounded)
                self.assertEqual((result.returncode, result.stderr), (0, b""))
                self.assertIn(says, result.stdout.decode())
            result = program.run(self.folder, "stats large.safetensors" + options, preexec_fn=bounded)
            said = result.stderr.decode()
            self.assertEqual(result.returncode, 3, said)
            for part in ("large.safetensors", "address space", str(most), "ulimit -v"):
                self.assertIn(part, said)


if __name__ == "__main__":
    if not can_trace():
        print("skipped: strace is not installed, or may not trace")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
