"""MithrilCheckpointHandler: the sketch of mithril's specification, and items of Orbax that are compressed."""

import pytest
import thalia_checkpoint as thalia

pytest.importorskip("orbax.checkpoint")

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from thalia_checkpoint.mithril.orbax import MithrilCheckpointHandler, MithrilRestore, MithrilSave
from thalia_checkpoint.orbax import NAME, ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave

SKETCH = """
import orbax.checkpoint as ocp
from thalia_checkpoint.mithril.orbax import MithrilCheckpointHandler

handler = MithrilCheckpointHandler(compression_level=3)
checkpointer = ocp.Checkpointer(handler)
"""


def state():
    weights = jax.random.normal(jax.random.key(0), (512, 512)) * 0.02
    return {"weights": weights.astype(jnp.bfloat16), "layers": [jnp.arange(7), np.float32(2)], "step": 3}


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    return all(
        np.asarray(x).tobytes() == np.asarray(y).tobytes()
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


def test_the_sketch_saves_and_restores(tmp_path):
    names = {}
    exec(compile(SKETCH, "sketch", "exec"), names)
    checkpointer = names["checkpointer"]
    checkpointer.save(tmp_path / "a", state())
    assert same(checkpointer.restore(tmp_path / "a"), state())
    assert same(checkpointer.restore(tmp_path / "a", args=MithrilRestore(state())), state())
    # Any handler of Thalia's reads it.
    assert same(ocp.Checkpointer(ThaliaCheckpointHandler()).restore(tmp_path / "a", args=ThaliaRestore()), state())


def test_what_is_stored_is_compressed_as_asked_for(tmp_path):
    sizes = {}
    for name, handler in {
        "plain": ThaliaCheckpointHandler(),
        "weights": MithrilCheckpointHandler(),
        "zstd": MithrilCheckpointHandler(compression_level=3),
        "lz4": MithrilCheckpointHandler(compression="lz4", durability="none"),
    }.items():
        save = ThaliaSave if name == "plain" else MithrilSave
        ocp.Checkpointer(handler).save(tmp_path / name, args=save(state()))
        sizes[name] = (tmp_path / name / NAME).stat().st_size
    assert sizes["weights"] < 0.72 * sizes["plain"] and sizes["zstd"] < 0.8 * sizes["plain"]
    assert sizes["lz4"] > sizes["zstd"]


def test_managers_take_it(tmp_path):
    with ocp.CheckpointManager(tmp_path, item_handlers=MithrilCheckpointHandler()) as manager:
        manager.save(1, args=MithrilSave(state(), custom_metadata={"a": 1}))
        manager.wait_until_finished()
        assert same(manager.restore(1, args=MithrilRestore()), state())
        assert manager.latest_step() == 1
    with ocp.AsyncCheckpointer(MithrilCheckpointHandler(compression_level=1)) as saver:
        saver.save(tmp_path / "async", args=MithrilSave(state()))
        saver.wait_until_finished()
        assert same(saver.restore(tmp_path / "async", args=MithrilRestore()), state())


def test_options_are_checked_where_they_are_given():
    with pytest.raises(thalia.UsageError, match="level"):
        MithrilCheckpointHandler(compression_level=23)
    with pytest.raises(thalia.UsageError, match="compression"):
        MithrilCheckpointHandler(compression="zip")
    with pytest.raises(TypeError, match="compression_level"):
        MithrilCheckpointHandler(compresion_level=3)
