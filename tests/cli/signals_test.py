"""What commands leave behind when a signal ends them: what was there before.

    signals_test.py THALIA MAKE_FILES INTERRUPTION

The library INTERRUPTION (interruption.cc) raises the signal as the program is about to change files
for the n-th time, and lets it go on when it has noticed.
"""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import program

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP

# Of each command the ways in which it writes. "out/" is where it does; what is there before has the
# name's bytes, or is the file that INITIAL names.
WAYS = {
    "convert": [
        "convert model.safetensors out/to.thalia",
        "convert model.safetensors out/to.thalia --precision fp16",
        "convert model.safetensors out/to.thalia --codec zstd --sha256",
        "convert model.thalia out/to.safetensors",
        "convert model.thalia out/to.mckp",
        "convert model.mckp out/to.mckp",
        "convert model.mckp out/to.thalia",
        "convert model.mckp out/to.safetensors",
        "convert old.thalia out/to.thalia",
        "convert later.delta.thalia out/to.thalia",
        "convert large.thalia.zst out/to.thalia",
        "convert large.thalia out/to.thalia.meta",
        *(
            f"convert model.safetensors out/to.{format_} --to {format_}"
            for format_ in ("safetensors", "thalia-0.1", "mst", "pt", "npz", "gguf", "onnx")
        ),
    ],
    "migrate": [
        "migrate model.thalia out/to.thalia --to 0.1",
        "migrate old.thalia out/to.thalia --to 1.0",
        "migrate old.thalia out/to.thalia.zst --to 0.1",
    ],
    "extract": ["extract basic.thalia out/to.thalia --regions cortex"],
    "merge": ["merge basic.thalia large.thalia -o out/to.thalia"],
    "delta": ["delta basic.thalia grown.thalia out/to.thalia"],
    "resolve": ["resolve later.delta.thalia out/to.thalia"],
    "quantize": ["quantize large.thalia out/to.thalia"],
    "prune": ["prune prunable.thalia out/to.thalia"],
    "salvage": ["salvage large.thalia out/to.thalia"],
    "compress": ["compress large.thalia out/to.zst"],
    "decompress": ["decompress large.thalia.zst out/to.thalia"],
    "cat": [
        "cat basic.thalia w_in -o out/to.txt",
        "cat large.thalia matrix --format raw -o out/to.raw",
    ],
    "plot": [
        "plot growth grown.thalia -o out/to.svg",
        "plot weights large.thalia -o out/to.svg",
        "plot diff basic.thalia grown.thalia -o out/to.svg",
        "plot chain later.delta.thalia -o out/to.svg",
    ],
    "report": [
        "report large.thalia -o out/to.html",
        "report later.delta.thalia basic.thalia -o out/to.html",
    ],
    "append": ["append out/grown.thalia large.thalia --regions r"],
    "compact": ["compact out/grown.thalia", "compact grown.thalia out/to.thalia"],
    "grow": ["grow out/basic.thalia cortex --neurons 2 --axes cortex/w_in=source:eye,neurons"],
    "set": ["set out/basic.thalia a=1"],
    "rename": ["rename out/basic.thalia cortex/w_in w"],
    "rm": ["rm out/basic.thalia cortex/w_in"],
    "recover": ["recover out/torn.thalia"],
    "store restore": ["store restore run out/to.thalia"],
    "bench": ["bench --dir out --size 1MiB --rounds 1"],
}
IN_PLACE = {"append", "grow", "set", "rename", "rm", "recover", "bench"}
# Those that write nothing that has a name.
READING = {"info", "log", "ls", "stats", "verify", "diff", "version", "help", "store", "store list", "store latest",
           "store verify"}  # fmt: skip
# What they leave is a run that goes on.
IN_STORE_TEST = {
    f"store {name}"
    for name in (
        "init",
        "save",
        "watch",
        "follow",
        "publish",
        "repair",
        "prune",
        "promote",
        "pool",
        "transition",
        "rebase",
    )
}
# It changes a chain file by file; the tests of the state kill it at its system calls.
IN_STATE_TEST = {"rebase"}
INITIAL = {"basic.thalia": "basic.thalia", "grown.thalia": "grown.thalia", "torn.thalia": "torn.thalia"}
STEPS = 1, 2, 3, 4, 6, 9, 14, 21, 32, 48, 72, 108, 162, 243


PRELOADED = {"LD_PRELOAD": program.INTERRUPTION, "ASAN_OPTIONS": "verify_asan_link_order=0"}


def run(folder, command, **more):
    """The result of the program in the folder, where signals do what they do by default."""

    def heed_signals():
        for number in SIGNALS:
            signal.signal(number, more.get("disposition", signal.SIG_DFL))

    environment = {"TMPDIR": str(folder / "tmp"), **more.get("environment", {})}
    return program.run(folder, command, environment, heed_signals)


def interrupted(folder, command, number, step, **more):
    environment = {
        **PRELOADED,
        "THALIA_TEST_SIGNAL": str(int(number)),
        "THALIA_TEST_STEP": str(step),
    }
    return run(folder, command, environment=environment, **more)


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def output_of(command):
    return next(word for word in command.split() if word.startswith("out"))


class Signals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = pathlib.Path(cls.folder.name, "files")
        (cls.files / "tmp").mkdir(parents=True)
        program.make_files(cls.files)
        for command in "store init run", "store save run basic.thalia --step 1":
            assert program.run(cls.files, command).returncode == 0, command
        torn = bytearray((cls.files / "large.thalia").read_bytes())
        torn[:16] = bytes(16)
        (cls.files / "torn.thalia").write_bytes(torn)

    def fresh(self, command):
        """A folder with all files, and something at the output."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder.name))
        shutil.copytree(self.files, folder, dirs_exist_ok=True)
        (folder / "out").mkdir()
        name = pathlib.Path(output_of(command)).name
        if name in INITIAL:
            shutil.copy(self.files / INITIAL[name], folder / "out" / name)
        elif name != "out":
            (folder / "out" / name).write_bytes(name.encode())
        return folder

    def ways(self):
        """Over something that is there: only what changes a file in place replaces it unasked."""
        for name, ways in WAYS.items():
            for way in ways:
                replaces = name in IN_PLACE or pathlib.Path(output_of(way)).name in INITIAL
                yield name, way if replaces else f"{way} --force"

    def test_every_command_is_looked_at(self):
        self.assertEqual(len(list(self.ways())), sum(len(ways) for ways in WAYS.values()))
        tree = json.loads(run(self.files, "help --json").stdout)["commands"]
        self.assertEqual({command["name"] for command in tree}, set(WAYS) | READING | IN_STORE_TEST | IN_STATE_TEST)

    def test_old_output_stays_and_nothing_else(self):
        for name, way in self.ways():
            for number in SIGNALS:
                with self.subTest(way=way, signal=number.name):
                    folder = self.fresh(way)
                    before = contents(folder)
                    result = interrupted(folder, way, number, 1)
                    self.assertEqual((result.returncode, result.stderr), (-number, b""))
                    after = contents(folder)
                    if name == "recover":  # its one write is the repair
                        after["out/torn.thalia"] = before["out/torn.thalia"]
                    self.assertEqual(sorted(after), sorted(before))
                    self.assertEqual(after, before)
                    shutil.rmtree(folder)

    def test_old_output_or_new_one_whenever_the_signal_comes(self):
        for _, way in self.ways():
            for step in STEPS:
                with self.subTest(way=way, step=step):
                    folder = self.fresh(way)
                    before = contents(folder)
                    result = interrupted(folder, way, signal.SIGTERM, step)
                    if result.returncode == 0:  # it was done before
                        shutil.rmtree(folder)
                        break
                    self.assertEqual((result.returncode, result.stderr), (-signal.SIGTERM, b""))
                    self.check_old_or_new(folder, way, before)
                    shutil.rmtree(folder)

    def check_old_or_new(self, folder, way, before):
        after = contents(folder)
        output = output_of(way)
        names = set(after) - {output + ".sha256"}
        self.assertEqual(sorted(names), sorted(before))
        if after.get(output) != before.get(output) and output.endswith((".thalia", ".mckp")):
            result = run(folder, "verify " + output)
            self.assertEqual(result.returncode, 0, result.stdout)
            before[output] = after[output]
        before.update({name: after[name] for name in after if name.startswith(output)})
        self.assertEqual(after, before)

    def test_commands_that_read_leave_nothing_either(self):
        for way in (
            "diff basic.thalia later.delta.thalia --values",
            "verify later.delta.thalia --resolve",
            "info large.thalia.zst",
            "ls large.thalia.zst",
        ):
            for number in SIGNALS:
                with self.subTest(way=way, signal=number.name):
                    folder = self.fresh("out/none")
                    before = contents(folder)
                    result = interrupted(folder, way, number, 1)
                    self.assertIn(result.returncode, (0, 1, -number))
                    self.assertEqual(contents(folder), before)
                    shutil.rmtree(folder)

    def test_every_output_is_synced_and_its_folder_too(self):
        for _, way in self.ways():
            for kind in "file", "folder":
                if kind == "folder" and output_of(way).split("/")[-1] in INITIAL:
                    continue  # changed in place, but for what compact puts there
                with self.subTest(way=way, kind=kind):
                    folder = self.fresh(way)
                    environment = {**PRELOADED, "THALIA_TEST_UNSYNCED": kind}
                    result = run(folder, way, environment=environment)
                    self.assertEqual(result.returncode, 3, result)
                    self.assertIn(b"Input/output error", result.stderr)
                    shutil.rmtree(folder)

    def test_signal_ends_what_waits_for_a_lock(self):
        folder = self.fresh("out/grown.thalia")
        with open(folder / "out/grown.thalia", "rb") as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            for way in "append out/grown.thalia large.thalia --regions r", "recover out/grown.thalia":
                result = interrupted(folder, way + " --wait", signal.SIGTERM, "flock")
                self.assertEqual(result.returncode, -signal.SIGTERM, result)

    def test_ignored_signals_stay_ignored(self):
        folder = self.fresh("out/to.thalia")
        result = run(folder, "convert basic.thalia out/to.thalia --force", disposition=signal.SIG_IGN)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_signal_ends_what_waits_for_a_reader(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while os.write(writer, bytes(4096)):
                pass
        except BlockingIOError:
            os.set_blocking(writer, True)
        with subprocess.Popen(
            [program.THALIA, "cat", "large.thalia", "matrix"], cwd=self.files, stdout=writer
        ) as process:
            os.close(writer)
            while not self.is_writing(process):
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
        os.close(reader)

    @staticmethod
    def is_writing(process):
        try:
            call = pathlib.Path(f"/proc/{process.pid}/syscall").read_text()
        except PermissionError:
            return True  # it will be, or has been told before
        return call.startswith("1 0x1 ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
