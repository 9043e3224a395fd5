"""What `thalia store` does to runs on the disk, from their beginning to a damaged end.

store_test.py THALIA MAKE_FILES INTERRUPTION
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from random import Random

import program

LOCK = ".lock"
HYDRA_KEYS = ("optimizer_record", "scheduler_record", "rng_state", "global_step", "phase", "config", "metrics",
              "timestamp", "checkpoint_version")  # fmt: skip


def flip(path, at=-100):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


class Store(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.files = pathlib.Path(folder.name)
        program.make_files(cls.files)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in "basic", "grown", "large", "later":
            shutil.copy(self.files / f"{name}.thalia", self.folder)

    def run_store(self, command, status=0):
        result = program.run(self.folder, "store " + command)
        self.assertEqual(result.returncode, status, (command, result.stdout, result.stderr))
        return result

    def text(self, command, status=0):
        """Standard output; nothing else is said."""
        result = self.run_store(command, status)
        self.assertEqual(result.stderr, b"", command)
        return result.stdout.decode()

    def json(self, command, status=0):
        return json.loads(self.text(command + " --json", status))

    def error(self, command, status):
        result = self.run_store(command, status)
        self.assertEqual(result.stdout, b"", command)
        return result.stderr.decode()

    def checkpoint(self, step, phase="a", run="r"):
        return self.folder / run / phase / "checkpoints" / f"ckpt_{phase}_step{step:08}.thalia"

    def full_files(self):
        """The run saves no deltas."""
        config = self.folder / "r/run.toml"
        text = config.read_text()
        self.assertIn('policy = "cost"', text)
        config.write_text(text.replace('policy = "cost"', 'policy = "never"'))

    def run_of_three(self, more=""):
        """Steps 100, 200 and 300 of one phase; 200 is the best."""
        self.text(f"init r --phases a --metric loss:min {more}")
        self.full_files()
        for step, file, loss in (100, "basic", 0.5), (200, "grown", 0.25), (300, "large", 0.4):
            self.text(f"save r {file}.thalia --step {step} --metric {loss}")


class Beginning(Store):
    def test_run_has_its_folders_and_its_configuration(self):
        self.assertEqual(
            self.text("init runs/x --phases pre,fine --metric loss:min --keep 5 --every-steps 1000 --max-age 7d"),
            "runs/x: a run with 2 phases: pre, fine\n",
        )
        run = self.folder / "runs/x"
        for name in "pre/checkpoints", "fine/checkpoints", "gates":
            self.assertTrue((run / name).is_dir(), name)
        config = (run / "run.toml").read_text()
        for line in ('name = "fine"', 'direction = "min"', "keep_last = 5", "keep_every_steps = 1000",
                     "max_age_seconds = 604800"):  # fmt: skip
            self.assertIn(line, config)
        self.assertEqual(self.error("init runs/x", 2), "thalia: runs/x: there is a run already\n")
        self.text("init j --format json --extension pt")
        self.assertEqual(json.loads((self.folder / "j/run.json").read_text())["extension"], "pt")

    def test_new_run_is_named_by_time_and_seed(self):
        path = self.text("init runs --new --seed 2712847316 --preset hydra")
        self.assertRegex(path, r"^runs/\d{8}_\d{6}_a1b2c3d4\n$")
        self.assertTrue((self.folder / path.strip() / "phase3/opponent_pool").is_dir())
        self.assertEqual([run["id"] for run in self.json("list runs")["runs"]], [path[5:-1]])
        self.assertIn(path[5:-1], self.text("list runs"))

    def test_wrong_usage_says_what_would_be_right(self):
        for command, words in (
            ("init r --metric loss", ["--metric: got 'loss'", "NAME:min or NAME:max"]),
            ("init r --metric :min", ["NAME:min or NAME:max"]),
            ("init r --max-age 3parsecs", ["--max-age", "'3parsecs'", "30min"]),
            ("init r --phases a/b", ["a/b"]),
            ("init r --preset hydra --phases a", ["--phases", "--preset"]),
            ("init r --preset hidra", ["'hidra'", "hydra"]),
            ("lst r", ["no command 'store lst', did you mean 'store list'?"]),
            ("xyzzyx", ["'thalia help store' lists the commands"]),
            ("list missing", ["missing", "run.toml"]),
            ("list .", ["run.toml"]),
            ("save r basic.thalia", ["--step"]),
            ("pool r juggle", ["'juggle'", "list, add, rate, draw"]),
        ):
            text = self.error(command, 2)
            for word in words:
                self.assertIn(word, text, command)
            self.assertEqual(text.count("\n"), 1, text)
        self.assertFalse((self.folder / "r").exists())

    def test_group_lists_its_commands(self):
        listed = self.text("")
        self.assertEqual(program.run(self.folder, "help store").stdout.decode(), listed)
        for name in "init", "save", "latest", "transition":
            self.assertIn(f"\n  store {name} RUN", listed)
        self.assertEqual(self.text("save --help"), program.run(self.folder, "help store save").stdout.decode())
        overview = program.run(self.folder, "help").stdout.decode()
        self.assertIn("\n  store COMMAND", overview)
        self.assertNotIn("store init", overview)


class Saving(Store):
    def test_list_tells_what_there_is(self):
        self.run_of_three()
        listed = self.text("list r")
        self.assertRegex(listed, r"a: 3 checkpoints, [\d.]+ KiB; metric loss, the lower the better\n")
        self.assertRegex(listed, r"\n  +100 .* 0.5 .* KiB  full\n")
        self.assertRegex(listed, r"\n\* +200 .* 0.25 .* KiB  full +best\n")
        self.assertRegex(listed, r"\n> +300 .* 0.4 .* KiB  full +latest\n")
        run = self.json("list r")["run"]
        self.assertEqual((run["current_phase"], run["gates"], run["pool"]), ("a", [], None))
        phase = run["phases"][0]
        self.assertEqual((phase["latest"], phase["best"], phase["gate"]), (300, 200, "a_best"))
        self.assertEqual([one["step"] for one in phase["checkpoints"]], [100, 200, 300])
        self.assertEqual([one["protected_by"] for one in phase["checkpoints"]], [[], ["best"], ["latest"]])
        for one in phase["checkpoints"]:
            self.assertEqual(one["file_bytes"], self.checkpoint(one["step"]).stat().st_size)
        self.assertEqual(run["total_bytes"], sum(one["file_bytes"] for one in phase["checkpoints"]))
        subprocess.run("sha256sum -c --quiet *.sha256", shell=True, check=True, cwd=self.checkpoint(1).parent)

    def test_save_says_what_came_of_it(self):
        self.text("init r --phases a --metric loss:max --keep 2")
        self.full_files()
        self.assertRegex(
            self.text("save r basic.thalia --step 1 --metric 1"),
            r"^r/a/checkpoints/ckpt_a_step00000001.thalia: a full file, [\d.]+ KiB in \d+\.\d\d s; the best of a\n$",
        )
        self.assertNotIn("best", self.text("save r basic.thalia --step 2 --metric 0.5"))
        removed = self.text("save r basic.thalia --step 3").split("\n")[1]
        self.assertEqual(removed, "removed: ckpt_a_step00000002.thalia")
        saved = self.json("save r grown.thalia --step 4")
        self.assertEqual((saved["best"], saved["removed"]), (False, ["ckpt_a_step00000003.thalia"]))
        self.assertEqual(saved["checkpoint"]["step"], 4)

    def test_step_is_saved_once(self):
        self.run_of_three()
        before = self.checkpoint(300).read_bytes()
        self.assertIn("--force replaces it", self.error("save r basic.thalia --step 300", 2))
        self.assertEqual(self.checkpoint(300).read_bytes(), before)
        self.text("save r basic.thalia --step 300 --force")
        self.assertEqual(self.checkpoint(300).read_bytes(), (self.folder / "basic.thalia").read_bytes())

    def test_phase_is_named_where_it_is_not_clear(self):
        self.text("init r --phases a,b")
        self.assertIn("one of a, b", self.error("save r basic.thalia --step 1", 2))
        self.assertIn("did you mean 'b'", self.error("save r basic.thalia --step 1 --phase bb", 2) + "did you mean 'b'")
        self.text("save r basic.thalia --step 1 --phase b")
        self.text("save r basic.thalia --step 2")
        self.assertTrue(self.checkpoint(2, "b").exists())

    def test_damaged_file_is_not_saved(self):
        self.text("init r")
        flip(self.folder / "basic.thalia", 1000)
        self.error("save r basic.thalia --step 1", 3)
        self.assertIn("main: no checkpoint", self.text("list r"))

    def test_other_files_are_kept_as_they_are(self):
        self.text("init r --extension pt")
        (self.folder / "x.pt").write_bytes(b"anything")
        self.text("save r x.pt --step 7")
        self.assertEqual(self.text("latest r"), "r/main/checkpoints/ckpt_main_step00000007.pt\n")
        self.text("restore r y.pt")
        self.assertEqual((self.folder / "y.pt").read_bytes(), b"anything")

    def test_delta_stands_for_the_file(self):
        values = [float(i) for i in range(200_000)]
        self.text("init r")
        config = self.folder / "r/run.toml"
        # By the default it would depend on how long a read takes.
        config.write_text(config.read_text().replace('"cost"', '"every"'))
        for step in 1, 2, 3:
            values[step] = 0.5
            program.write_safetensors(self.folder / "m.safetensors", {"w.weight": values})
            program.run(self.folder, f"convert m.safetensors m{step}.thalia")
            self.text(f"save r m{step}.thalia --step {step}")
        entries = self.json("list r")["run"]["phases"][0]["checkpoints"]
        self.assertEqual([one["delta"] for one in entries], [False, True, True], entries)
        self.assertRegex(self.text("list r"), r"\n> +3 .* delta on 2 +latest\n")
        self.text("restore r out.thalia")
        result = program.run(self.folder, "diff m3.thalia out.thalia --values")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_save_that_is_interrupted_leaves_a_run_to_go_on_with(self):
        self.run_of_three()
        for command in "save r basic.thalia --step 4", "prune r --keep 0", "promote r --force":
            for step in 1, 2, 3, 5, 8, 13, 21, 34:
                environment = {
                    "LD_PRELOAD": program.INTERRUPTION,
                    "ASAN_OPTIONS": "verify_asan_link_order=0",
                    "THALIA_TEST_SIGNAL": str(int(signal.SIGTERM)),
                    "THALIA_TEST_STEP": str(step),
                }
                made = command + f"{step:02}" * command.startswith("save")  # another step each time
                result = program.run(self.folder, "store " + made, environment)
                self.assertIn(result.returncode, (0, -signal.SIGTERM), (made, step, result.stderr))
                latest = self.text("latest r").strip()
                verified = program.run(self.folder, "verify " + latest)
                self.assertEqual(verified.returncode, 0, (made, step))
                if result.returncode == 0:
                    break
        self.text("save r basic.thalia --step 500")
        self.assertEqual(list(self.folder.rglob("*tmp*")), [])


class Keeping(Store):
    def test_latest_passes_over_what_is_damaged(self):
        self.run_of_three()
        self.assertEqual(self.text("latest r"), "r/a/checkpoints/ckpt_a_step00000300.thalia\n")
        self.assertEqual(self.text("latest r --best"), "r/a/checkpoints/ckpt_a_step00000200.thalia\n")
        flip(self.checkpoint(300))
        result = self.run_store("latest r")
        self.assertEqual(result.stdout, b"r/a/checkpoints/ckpt_a_step00000200.thalia\n")
        self.assertRegex(result.stderr, rb"^thalia: warning: passed over: r/a/checkpoints/ckpt_a_step00000300.thalia: ")
        found = self.json("latest r")
        self.assertEqual([one["failure"] is None for one in found["attempts"]], [False, True])
        self.assertEqual(found["checkpoint"]["step"], 200)
        for step in 100, 200:
            flip(self.checkpoint(step))
        lines = self.error("latest r", 3).splitlines()
        self.assertEqual(len(lines), 4, lines)
        self.assertEqual(lines[-1], "thalia: r: no checkpoint of a can be loaded, of 3 that were tried")
        self.assertEqual(self.error("latest r --json", 3).count("ckpt_a_step"), 3)
        self.assertIn("ckpt_a_step00000200", self.error("latest r --best", 3))

    def test_latest_wants_a_checkpoint(self):
        self.text("init r --phases a --metric loss:min")
        self.assertIn("no checkpoint", self.error("latest r", 2))
        self.text("save r basic.thalia --step 1")
        self.assertIn("no best checkpoint", self.error("latest r --best", 2))

    def test_restored_file_is_the_one_that_was_saved(self):
        self.run_of_three()
        self.assertRegex(self.text("restore r out.thalia"), r"^out.thalia: step 300 of a, [\d.]+ KiB")
        self.assertEqual((self.folder / "out.thalia").read_bytes(), (self.folder / "large.thalia").read_bytes())
        self.assertIn("--force replaces it", self.error("restore r out.thalia --step 100", 2))
        restored = self.json("restore r out.thalia --step 100 --force")
        self.assertEqual((self.folder / "out.thalia").read_bytes(), (self.folder / "basic.thalia").read_bytes())
        self.assertEqual(restored["output_bytes"], (self.folder / "out.thalia").stat().st_size)
        self.assertIn("no checkpoint of step 101", self.error("restore r new.thalia --step 101", 2))
        flip(self.checkpoint(300))
        self.error("restore r new.thalia --step 300", 3)
        self.assertFalse((self.folder / "new.thalia").exists())
        self.assertIn(b"passed over", self.run_store("restore r new.thalia").stderr)
        self.assertEqual((self.folder / "new.thalia").read_bytes(), (self.folder / "grown.thalia").read_bytes())

    def test_prune_says_why(self):
        self.run_of_three()
        dry = self.text("prune r --dry-run --keep 1")
        self.assertRegex(dry, r"\nremove +100 .*\nkeep +200 .* best\nkeep +300 .* latest\n")
        self.assertRegex(dry, r"1 checkpoint would be removed, [\d.]+ KiB freed: a dry run changes nothing\n$")
        self.assertTrue(self.checkpoint(100).exists())
        self.assertIn("0 checkpoints would be", self.text("prune r --dry-run --every-steps 100"))
        self.assertIn("1 checkpoint would be", self.text("prune r --dry-run --max-bytes 1"))
        self.assertIn("0 checkpoints would be", self.text("prune r --dry-run --max-age 1h"))
        pruned = self.json("prune r --phase a --keep 1")
        self.assertEqual(pruned["phases"][0]["removed"], ["ckpt_a_step00000100.thalia"])
        self.assertEqual([one["fate"] for one in pruned["phases"][0]["decisions"]], ["remove", "keep", "keep"])
        self.assertEqual(sorted(path.name for path in self.checkpoint(1).parent.glob("ckpt_*.thalia")),
                         ["ckpt_a_step00000200.thalia", "ckpt_a_step00000300.thalia"])  # fmt: skip
        self.assertIn("0 checkpoints were removed", self.text("prune r"))

    def test_gate_has_nothing_that_stands_in_for_it(self):
        self.run_of_three()
        self.assertRegex(self.text("promote r"), r"^r/gates/a_best.thalia: step 200 of a, [\d.]+ KiB")
        self.assertIn("--force replaces it", self.error("promote r --step 100", 2))
        promoted = self.json("promote r --step 100 --force")
        self.assertEqual((promoted["gate"]["step"], promoted["gate"]["name"]), (100, "a_best"))
        self.text("promote r --gate other")
        listed = self.text("list r")
        self.assertRegex(listed, r"\n  a_best +a +100 ")
        self.assertRegex(listed, r"\n +100 .* full +gate a_best\n")
        self.text("prune r --keep 0")
        self.assertTrue(self.checkpoint(100).exists())
        self.text("restore r gate.thalia --gate a_best")
        self.assertEqual((self.folder / "gate.thalia").read_bytes(), (self.folder / "basic.thalia").read_bytes())
        self.assertIn("no gate 'none'", self.error("restore r new.thalia --gate none", 2))
        flip(self.folder / "r/gates/a_best.thalia")
        self.assertIn("a_best.thalia", self.error("restore r new.thalia --gate a_best", 3))
        self.assertFalse((self.folder / "new.thalia").exists())

    def test_lock_is_waited_for_only_if_that_is_asked(self):
        self.run_of_three()
        with open(self.folder / "r" / LOCK, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for command in ("save r basic.thalia --step 400", "prune r", "promote r", "repair r"):
                self.assertIn("taking the lock, which", self.error(command, 3), command)
            for command in "list r", "latest r", "prune r --help", "verify r", "restore r out.thalia":
                self.text(command)
            threading.Timer(0.5, lambda: fcntl.flock(lock, fcntl.LOCK_UN)).start()
            self.text("save r basic.thalia --step 400 --wait")
        self.assertTrue(self.checkpoint(400).exists())

    def test_verify_and_repair_find_what_is_wrong(self):
        self.run_of_three()
        self.text("promote r")
        self.assertRegex(self.text("verify r"), r"^r: ok: 4 checkpoints, [\d.]+ KiB checked in \d+\.\d\d s\n$")
        flip(self.checkpoint(100))
        found = self.text("verify r", 1)
        self.assertRegex(found, r"ckpt_a_step00000100.thalia: error: (damaged|bad_digest): ")
        self.assertNotIn(": ok", found)
        self.text("verify r --quick")
        self.assertFalse(self.json("verify r", 1)["ok"])
        digest = pathlib.Path(f"{self.checkpoint(200)}.sha256")
        kept = digest.read_text()
        digest.unlink()
        self.checkpoint(1).with_name("ckpt_a_step00000050.thalia.sha256").write_text("0" * 64 + "  x\n")
        self.assertIn("; can be repaired", self.text("repair r --dry-run", 1))
        self.assertFalse(digest.exists())
        kinds = {one["kind"]: one["repaired"] for one in self.json("repair r", 1)["findings"]}
        self.assertEqual((kinds["missing_digest"], kinds["lone_digest"]), (True, True), kinds)
        self.assertEqual(digest.read_text(), kept)
        flip(self.checkpoint(100))
        self.text("repair r --dry-run")


class Watching(Store):
    def frames(self, process):
        """A thread's queue would do; lines are enough here, with a time limit of the test's own."""
        return json.loads(process.stdout.readline())

    def watch(self, command, **more):
        process = subprocess.Popen([program.THALIA, "store", "watch", *command.split()], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)  # fmt: skip
        guard = threading.Timer(60, process.kill)
        guard.start()
        self.addCleanup(guard.cancel)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        return process

    def test_every_change_is_a_line(self):
        self.run_of_three()
        process = self.watch("r --interval 0.05 --json")
        steps = [one["step"] for one in self.frames(process)["run"]["phases"][0]["checkpoints"]]
        self.assertEqual(steps, [100, 200, 300])
        self.text("save r basic.thalia --step 400")
        while steps[-1] != 400:  # a look may come between the save and its links
            steps = [one["step"] for one in self.frames(process)["run"]["phases"][0]["checkpoints"]]
        shutil.rmtree(self.folder / "r/a")
        while steps:
            steps = [one["step"] for one in self.frames(process)["run"]["phases"][0]["checkpoints"]]
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
        self.assertEqual(process.stderr.read(), b"")

    def test_nothing_is_said_twice(self):
        self.run_of_three()
        process = self.watch("r --interval 0.02")
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
        self.assertEqual(process.stdout.read().count(b"3 checkpoints"), 1)

    def test_terminal_is_redrawn_in_place(self):
        self.run_of_three()
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, 0x5414, struct.pack("HHHH", 5, 40, 0, 0))  # TIOCSWINSZ
        process = subprocess.Popen([program.THALIA, "store", "watch", "r", "--interval", "0.05"], cwd=self.folder,
                                   stdout=terminal, stderr=terminal)  # fmt: skip
        os.close(terminal)
        shown = b""
        while shown.count(b"\x1b[J") < 3:
            shown += os.read(controller, 65536)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
        os.close(controller)
        frame = shown.split(b"\x1b[J")[0]
        self.assertEqual(frame.count(b"\n"), 4)  # all but the last row, the newest below
        self.assertIn(b"300", frame)

    def test_wrong_usage_ends_it_at_once(self):
        self.text("init r")
        self.assertIn("--interval", self.error("watch r --interval 0", 2))
        self.error("watch r --phase b", 2)
        self.error("watch none", 2)


class Following(Store):
    def follow(self, command):
        process = subprocess.Popen([program.THALIA, "store", "follow", *command.split()], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        guard = threading.Timer(60, process.kill)
        guard.start()
        self.addCleanup(guard.cancel)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        return process

    def holds(self, file):
        """True if now.thalia is whole and has the tensors of that file."""
        self.assertEqual(program.run(self.folder, "verify now.thalia").returncode, 0)
        return program.run(self.folder, f"diff now.thalia {file}").returncode == 0

    def test_each_step_is_a_line_until_a_signal(self):
        for number in signal.SIGINT, signal.SIGTERM:
            shutil.rmtree(self.folder / "r", ignore_errors=True)
            self.run_of_three()
            process = self.follow("r --into now.thalia --json")
            self.assertEqual(json.loads(process.stdout.readline())["step"], 300)
            self.assertTrue(self.holds("large.thalia"))
            self.text("save r basic.thalia --step 400")
            update = json.loads(process.stdout.readline())
            self.assertEqual((update["step"], update["phase"], update["number"]), (400, "a", 2))
            self.assertTrue(self.holds("basic.thalia"))
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=60), -number)
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(list((self.folder / "r/a/followers").iterdir()), [])

    def test_what_cannot_be_read_is_told_and_passed_over(self):
        self.run_of_three()
        flip(self.checkpoint(300), 5)
        result = self.run_store("follow r --once --json")
        update = json.loads(result.stdout)
        self.assertEqual((update["step"], update["fell_back"]), (200, True))
        self.assertIn(b"passed over: ", result.stderr)
        self.assertIn("step00000300", update["reason"])

    def test_a_folder_without_a_run(self):
        (self.folder / "new").mkdir()
        process = self.follow("new --into now.thalia --poll --interval 0.02")
        (self.folder / "basic.thalia").rename(self.folder / "new/basic.thalia")
        self.assertIn(b"whole, ", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
        self.error("follow none", 2)
        self.error("follow new --phase a", 2)
        self.error("follow new --into new/now.thalia", 2)
        self.assertEqual(self.text("follow new --timeout 1s --into now.thalia --once").count("nothing changed"), 1)

    def test_a_killed_follower_leaves_a_whole_file_and_goes_on(self):
        numbers = list(range(1 << 18))
        states = ["one.thalia", "two.thalia"]
        for i, state in enumerate(states):
            numbers[i::7] = [-1 - i] * len(numbers[i::7])
            program.write_safetensors(self.folder / "m.safetensors", {"w": numbers, "v": numbers[:1000]})
            self.assertEqual(program.run(self.folder, f"convert m.safetensors {state}").returncode, 0)
        self.text("init r --phases a")
        random = Random(1)
        found, kills = set(), 24
        for step in range(kills):
            # Either a process that is there already takes the new state, or one that starts.
            early = self.follow("r --into now.thalia") if step > 0 and random.random() < 0.5 else None
            if early:
                early.stdout.readline()
            self.text(f"save r {states[step % 2]} --step {step + 1}")
            process = early or self.follow("r --into now.thalia")
            time.sleep(random.random() * 0.06)
            process.kill()
            self.assertEqual(process.wait(timeout=60), -signal.SIGKILL)
            if (self.folder / "now.thalia").exists():
                held = [self.holds(state) for state in states]
                self.assertEqual(sum(held), 1, held)
                found.add(held[step % 2])
        self.assertEqual(found, {False, True})  # the state before, and the new one
        self.text("follow r --into now.thalia --once")
        self.assertTrue(self.holds(states[(kills - 1) % 2]))


class Hydra(Store):
    def setUp(self):
        super().setUp()
        self.text("init r --preset hydra")
        tensors = {"model_record.w.weight": [1.0, 2.0], "model_record.policy.weight": [4.0]}
        tensors["optimizer_record.w.exp_avg"] = [3.0, 3.0]
        program.write_safetensors(self.folder / "m.safetensors", tensors)
        program.run(self.folder, "convert m.safetensors m.thalia --regions 1")
        members = " ".join(f"{key}=1" for key in (*HYDRA_KEYS, "teacher_state_dict", "opponent_pool_metadata"))
        self.assertEqual(program.run(self.folder, f"set m.thalia {members} feature_dropout=0").returncode, 0)

    def test_record_needs_its_keys(self):
        self.assertIn("record", self.error("save r basic.thalia --phase phase1 --step 1", 2))

    def test_pool_takes_rates_and_draws(self):
        self.text("save r m.thalia --phase phase3 --step 500 --metric 1")
        self.assertIn("--mu: store pool add needs it", self.error("pool r add --step 500", 2))
        self.assertRegex(
            self.text("pool r add --step 500 --mu 27.5 --sigma 1"),
            r"^version 1: pool_v0001_step00000500.thalia, step 500 of phase3, mu 27.5, sigma 2.77778, ",
        )
        added = self.json("pool r add --step 500 --mu 28 --sigma 3")
        self.assertEqual((added["member"]["version"], added["evicted"]), (2, []))
        tensors = program.run(self.folder, "ls r/phase3/opponent_pool/pool_v0001_step00000500.thalia -r").stdout
        self.assertIn(b"model_record/", tensors)
        self.assertNotIn(b"exp_avg", tensors)
        rated = self.text("pool r rate 2 --mu 26 --sigma 1.5 --games 40 --win-rate 0.55")
        self.assertIn("mu 26, sigma 1.5, 40 games", rated)
        self.assertIn("no version 9", self.error("pool r rate 9 --mu 1 --sigma 1 --games 1 --win-rate 0", 2))
        listed = self.text("pool r")
        self.assertRegex(listed, r"^pool of phase3: 2 versions, 0 anchors")
        self.assertRegex(listed, r"\n +2  phase3 +500 +26 +1.5 +21.5 +40 +55 %")
        self.assertEqual(self.json("pool r list")["pool"]["next_version"], 3)
        draws = [self.text(f"pool r draw --seed 7 --index {i}") for i in range(20)]
        self.assertEqual(draws, [self.text(f"pool r draw --seed 7 --index {i}") for i in range(20)])
        self.assertEqual({re.split("[:\n]", draw)[0] for draw in draws}, {"self", "pool"})
        self.assertIn("pool of phase3: 2 versions", self.text("list r"))

    def test_next_phase_begins_with_its_plan(self):
        self.text("save r m.thalia --phase phase1 --step 10000 --metric 0.5")
        self.assertIn("phase1 to phase2, phase2 to phase3", self.error("transition r phase1 phase3", 2))
        self.error("transition r phase1 phase2 --seed 7", 2)  # there is no gate
        self.text("promote r")
        begun = self.json("transition r phase1 phase2 --seed 7")
        self.assertTrue((self.folder / begun["start"]).is_file())
        self.assertGreater(len(begun["carried"]), 0)
        self.assertIn("load", [step["name"] for step in begun["steps"]])
        self.error("transition r phase1 phase2 --seed 7", 2)
        self.assertIn(f"seed {begun['seed']}", self.text("transition r phase1 phase2 --seed 7 --force"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
