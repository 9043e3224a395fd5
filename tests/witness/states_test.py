"""The witness reads the state of a brain that the library saved, and finds what was put in.

Usage: states_test.py WITNESS_FILES
tests/state/brain/brain_sample.h is what was put in.
"""

import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from states import read_state

from checkpoint import Checkpoint

WITNESS_FILES = sys.argv[1]


def floats(*shape, first=1.0):
    values = [first + i for i in range(math.prod(shape))]
    return {"dtype": "f32", "encoding": "dense", "shape": list(shape), "values": values}


def mostly_zeros(encoding="dense"):
    values = [0.0] * 110
    values[37] = -0.0
    values[40] = 4.0
    return {"dtype": "f32", "encoding": encoding, "shape": [10, 11], "values": values}


class States(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([WITNESS_FILES, "state", folder], check=True)
            path = pathlib.Path(folder) / "state.thalia"
            cls.file = Checkpoint(path.read_bytes())
            cls.brain = read_state(cls.file)
        cls.cortex = cls.brain["regions"]["cortex"]

    def test_names(self):
        long_name = "a region with a name of more than 31 bytes"
        self.assertEqual(list(self.brain["regions"]), ["cortex", long_name])
        self.assertEqual(self.brain["pathways"], {"cortex_to_striatum": {"weights": {"w": floats(2, 3)}}})

    def test_components_stand_in_their_order(self):
        self.assertEqual(
            list(self.cortex)[:5],
            ["format_of_its_own", "config", "weights", "homeostatic", "region_state"],
        )

    def test_weights_are_dense_again_where_they_were(self):
        weights = self.cortex["weights"]
        self.assertEqual(weights["w_ff"], floats(10, 11))
        self.assertEqual(weights["w_sparse"], mostly_zeros())
        self.assertEqual(math.copysign(1, weights["w_sparse"]["values"][37]), -1)
        self.assertEqual(weights["w_csr"], mostly_zeros("csr"))
        self.assertIsNone(weights["missing"])

    def test_dynamic_state(self):
        cortex = self.cortex
        self.assertEqual(cortex["region_state"]["membrane"], floats(10, first=-3.0))
        self.assertEqual(cortex["neuron_state"]["membrane"], floats(10, first=30.0))
        self.assertEqual(cortex["learning_state"]["stp"]["u"], floats(10, first=0.5))
        self.assertEqual(cortex["learning_state"]["stp"]["tau_ms"], 200.0)
        theta = cortex["oscillator_state"]["theta"]
        self.assertEqual(theta, {"phase": 0.5, "frequency_hz": 8})
        self.assertIsInstance(theta["frequency_hz"], int)
        self.assertTrue(math.isnan(cortex["oscillator_state"]["gamma"]["phase"]))
        self.assertEqual(cortex["neuromodulator_state"]["dopamine"], 0.1)

    def test_what_json_has_no_word_for(self):
        cortex = self.cortex
        self.assertEqual(cortex["device"], {"_type": "torch.device", "_value": "cpu"})
        self.assertEqual(cortex["odd"], {"_type": "tensor", "_name": "no tensor at all"})
        self.assertEqual(cortex["infinite"], -math.inf)
        self.assertEqual(cortex["config"]["seed"], 123456789012345678901234567890)

    def test_lists_of_objects_with_tensors(self):
        self.assertEqual(
            self.cortex["episodes"],
            [{"context": floats(4, first=float(i)), "reward": i * 0.5, "correct": i == 1} for i in range(3)],
        )

    def test_connections(self):
        first, second = self.brain["connections"]
        self.assertEqual(first["source"], "cortex")
        self.assertEqual(first["target"], "a region with a name of more than 31 bytes")
        self.assertEqual(first["weights"], mostly_zeros())
        self.assertEqual(first["delays"], floats(10, 11))
        self.assertEqual(second["weights"], mostly_zeros("csr"))
        self.assertNotIn("delays", second)

    def test_brain_wide_state(self):
        state = self.brain["state"]
        self.assertEqual(state["oscillators"], {"theta": {"phase": 1.5}})
        self.assertEqual(state["scheduler"], {"events_processed": 34, "delays": floats(5)})
        self.assertEqual(state["trial_state"], {"last_action": None})
        self.assertEqual(self.file.header.training_steps, 1000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
