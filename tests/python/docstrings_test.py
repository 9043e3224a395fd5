"""The docstrings of what needs numpy alone, and their examples; tests/python/frameworks has the others."""

import pytest
from docstrings import PACKAGE, examples, run, undocumented, untold_errors, untyped_options

MODULES = [PACKAGE, *(f"{PACKAGE}.{name}" for name in ("brain", "errors", "mithril", "numpy"))]
WEIGHT = "import numpy as np; weight = np.ones((8, 4), np.float32)\n"
WRITER = "from thalia_checkpoint import Writer\n"
#: What each takes for given.
BEFORE = {
    PACKAGE: WEIGHT,
    "AsyncSaver": WEIGHT
    + WRITER
    + "from thalia_checkpoint import AsyncSaver\nwriter = Writer('a.thalia'); writer.add('a/weight', weight)\n",
    "Follower": """
        import threading
        import numpy as np
        from thalia_checkpoint import Follower, store
        run = "runs/20260115_143022_a1b2c3d4"
        store.create_run(run, {"phases": [{"name": "train"}]})
        with store.RunWriter(run) as training, training.new_checkpoint(1) as writer:
            writer.add("layers/0.weight", np.ones((8, 4), np.float32))
        lock, weights = threading.Lock(), np.zeros((8, 4), np.float32)
        def serve(array, step):
            assert array.all() and step == 1
            follower.wake()
    """,
    "Publisher": WEIGHT
    + "from thalia_checkpoint import Publisher, store\n"
    + "store.create_run('runs/20260115_143022_a1b2c3d4', {'phases': [{'name': 'train'}]})\n",
    "Writer": WEIGHT + WRITER,
    "brain": """
        import numpy as np
        from thalia_checkpoint.brain import BrainRegion, RegionFacts
        class Brain:
            cortex = BrainRegion({"weights": {"w": np.ones((4, 3), np.float32)}}, RegionFacts(n_neurons=4))
            state = {"regions": {"cortex": cortex}, "training_steps": 1}
            def get_full_state(self): return self.state
            def load_full_state(self, state): self.state = state
        brain = Brain()
    """,
    "brain.PrecisionPolicy": "from thalia_checkpoint.brain import PrecisionPolicy\n",
    "mithril": """
        import numpy as np
        from thalia_checkpoint.mithril import Compressor
        class Model:
            state = {"w": np.arange(4096, dtype=np.float32)}
            def state_dict(self): return self.state
            def load_state_dict(self, state): self.state = state
        model = Model()
        Compressor(storage="local:///tmp/checkpoints").save(model.state_dict(), key="step_900")
    """,
    "store": WEIGHT,
}
EXAMPLE_MODULES = [PACKAGE, *(f"{PACKAGE}.{name}" for name in ("brain", "errors", "mithril", "numpy", "store"))]
EXAMPLES = {name: code for module in EXAMPLE_MODULES for name, code in examples(module)}
#: Of torch, and of objects that a training has made; tests/python/frameworks runs them.
ELSEWHERE = {"safe_open", "brain.CurriculumTrainer"}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module):
    assert undocumented(module) == []


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_name_the_errors_that_are_raised(module):
    assert untold_errors(module) == []


#: What is no option: facts of growth, by any name.
ANY_NAME = [f"{PACKAGE}.brain.CurriculumTrainer.record_growth"]


def test_a_checker_of_types_sees_every_misspelt_option():
    found = [name for module in [*MODULES, f"{PACKAGE}.loom", f"{PACKAGE}.store"] for name in untyped_options(module)]
    assert found == ANY_NAME


def test_every_example_is_run_here_or_elsewhere():
    assert set(EXAMPLES) == set(BEFORE) | ELSEWHERE


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = EXAMPLES[name].replace("/tmp/checkpoints", str(tmp_path))
    before = BEFORE[name].replace("/tmp/checkpoints", str(tmp_path))
    run(name, code, before)
    assert list(tmp_path.iterdir()) or name == "brain.PrecisionPolicy"  # which saves nothing
