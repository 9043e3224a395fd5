"""thalia-demo does what it says: both tours end well, their last words work, and it notices when
they should not."""

import json
import os
import re
import shlex
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

DEMO = os.environ["THALIA_DEMO"]
THALIA = os.environ.get("THALIA_PROGRAM")
SOURCE = Path(__file__).parents[2]
VECTORS = Path(os.environ.get("THALIA_VECTORS", SOURCE / "../shared/vectors"))

needs_program = unittest.skipUnless(THALIA, "built without the program thalia")


def demo(*words, folder):
    return subprocess.run([DEMO, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=120)


def write_model(path, names):
    """A safetensors file of f32 tensors whose bytes lie in the order of `names`."""
    header, payload = {"__metadata__": {"format": "pt"}}, b""
    for i, name in enumerate(names):
        values = struct.pack("<6f", *(i + k / 8 for k in range(6)))
        header[name] = {
            "dtype": "F32",
            "shape": [2, 3],
            "data_offsets": [len(payload), len(payload) + len(values)],
        }
        payload += values
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + payload)


class Tour(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scope = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scope.name)
        program = ("--thalia", THALIA) if THALIA else ()
        cls.result = demo("tour", "--neurons", 2000, "--dir", "out", *program, folder=cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.scope.cleanup()

    def test_ends_well_and_says_what_happened(self):
        self.assertEqual(self.result.returncode, 0, self.result.stdout + self.result.stderr)
        self.assertEqual(self.result.stderr, "")
        for words in (
            "2,000 neurons in 5 regions",
            "all 100 steps have the spikes of the first run",
            "the\n          state at the end is the same bit for bit",
            " 0 findings",
            "Try next",
        ):
            self.assertIn(words, self.result.stdout)

    def test_one_region_touches_less_than_the_file(self):
        touched, whole = re.search(r"touched so far: ([\d,]+) of ([\d,]+) bytes", self.result.stdout).groups()
        touched, whole = (int(number.replace(",", "")) for number in (touched, whole))
        self.assertEqual(whole, (self.folder / "out/network.thalia").stat().st_size)
        self.assertGreater(touched, 0)
        self.assertLess(touched, whole)

    def test_flipped_bit_is_named(self):
        place = re.search(r"which lies in (\w+)/(\S+)\n", self.result.stdout)
        self.assertIn(f"region {place[1]}, tensor {place[2]}:", self.result.stdout)
        self.assertIn("read    refused: ", self.result.stdout)
        self.assertFalse((self.folder / "out/network.thalia.damaged").exists())

    @needs_program
    def test_what_to_try_next_works(self):
        lines = self.result.stdout.split("Try next\n")[1].splitlines()
        self.assertGreaterEqual(len(lines), 4)
        for line in lines:
            words = shlex.split(line, comments=True)
            with self.subTest(command=words):
                done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout)

    def test_spikes_do_not_depend_on_threads(self):
        first = (self.folder / "out/spikes.txt").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "out").mkdir()
            run = ("run", "--neurons", 2000, "--threads", 3, "--dir", "out")
            self.assertEqual(demo(*run, folder=folder).returncode, 0)
            self.assertEqual(Path(folder, "out/spikes.txt").read_bytes(), first)
            resume = demo("resume", "--threads", 1, "--dir", "out", folder=folder)
            self.assertEqual(resume.returncode, 0, resume.stdout + resume.stderr)


class Failures(unittest.TestCase):
    def setUp(self):
        scope = tempfile.TemporaryDirectory()
        self.addCleanup(scope.cleanup)
        self.folder = Path(scope.name)
        (self.folder / "out").mkdir()

    def run_small(self):
        run = demo("run", "--neurons", 300, "--steps", 20, "--more", 5, "--dir", "out", folder=self.folder)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_other_spikes_fail_the_comparison(self):
        self.run_small()
        spikes = self.folder / "out/spikes.txt"
        lines = spikes.read_text().splitlines(keepends=True)
        step, count, digest = lines[3].split()
        lines[3] = f"{step} {count} {int(digest, 16) ^ 1:x}\n"
        spikes.write_text("".join(lines))
        resume = demo("resume", "--dir", "out", folder=self.folder)
        self.assertEqual(resume.returncode, 1)
        self.assertIn(f"DIFFERENT at step {step}", resume.stdout)

    def test_damaged_file_is_not_resumed(self):
        self.run_small()
        file = self.folder / "out/network.thalia"
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        resume = demo("resume", "--dir", "out", folder=self.folder)
        self.assertIn(resume.returncode, (1, 3), resume.stdout + resume.stderr)

    def test_missing_and_foreign_files_are_unreadable(self):
        (self.folder / "text").write_text("no checkpoint\n")
        for words in (("resume", "--dir", "out"), ("inspect", "none"), ("damage", "text")):
            with self.subTest(words=words):
                done = demo(*words, folder=self.folder)
                self.assertEqual(done.returncode, 3)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_wrong_usage(self):
        for words in (
            (),
            ("dance",),
            ("tour", "extra"),
            ("tour", "--neurons", "199"),
            ("tour", "--neurons", "many"),
            ("tour", "--neurons"),
            ("run", "--colour", "red"),
            ("inspect",),
            ("damage", "a", "b"),
            ("model",),
        ):
            with self.subTest(words=words):
                done = demo(*words, folder=self.folder)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_step_that_fails_fails_the_tour(self):
        write_model(self.folder / "model.safetensors", ["weight"])
        words = ("model", "model.safetensors", "--thalia", "/bin/false", "--dir", "out")
        done = demo(*words, folder=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Try next", done.stdout)


@needs_program
class ModelTour(unittest.TestCase):
    def setUp(self):
        scope = tempfile.TemporaryDirectory()
        self.addCleanup(scope.cleanup)
        self.folder = Path(scope.name)

    def tour_over(self, model):
        done = demo("model", model, "--dir", "out dir", "--thalia", THALIA, folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in done.stdout.split("Try next\n")[1].splitlines():
            words = shlex.split(line, comments=True)
            with self.subTest(command=words):
                next_step = subprocess.run(words, cwd=self.folder, capture_output=True)
                self.assertEqual(next_step.returncode, 0, next_step.stderr)
        return done.stdout

    def test_model_as_the_reference_writes_it_comes_back_byte_for_byte(self):
        names = [f"layers.{i}.{part}" for i in range(4) for part in ("bias", "weight")]
        write_model(self.folder / "model.safetensors", names)
        self.assertIn("every one\n", self.tour_over("model.safetensors"))

    def test_model_in_another_order_comes_back_byte_for_byte(self):
        names = [f"layers.{i}.{part}" for i in range(4) for part in ("weight", "bias")]
        write_model(self.folder / "model.safetensors", names)
        self.assertIn("bytes are those of", self.tour_over("model.safetensors"))

    def test_trained_model(self):
        model = VECTORS / "real/silero_vad_16k.safetensors"
        if not model.exists():
            self.skipTest(f"{model} is not there; THALIA_VECTORS names another folder")
        self.tour_over(model)


if __name__ == "__main__":
    unittest.main()
