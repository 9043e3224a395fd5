"""A training of jax with Orbax's CheckpointManager: run it again, and it goes on where it was killed.

python orbax_training.py FOLDER [STEPS]"""

import os
import sys
from typing import Any

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from thalia_checkpoint.orbax import ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave


def loss(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    out = jnp.tanh(x @ params["w1"]) @ params["w2"]
    return ((out - x.sum(1, keepdims=True)) ** 2).mean()


@jax.jit
def train(state: dict[str, Any]) -> dict[str, Any]:
    key, drawn = jax.random.split(state["key"])
    grads = jax.grad(loss)(state["params"], jax.random.normal(drawn, (16, 8)))
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], grads)
    params = jax.tree.map(lambda p, m: p - 0.01 * m, state["params"], momentum)
    return {"params": params, "momentum": momentum, "key": key}


folder, steps = os.path.abspath(sys.argv[1]), int((*sys.argv, "40")[2])
key, *keys = jax.random.split(jax.random.key(0), 3)
params = {"w1": jax.random.normal(keys[0], (8, 32)), "w2": jax.random.normal(keys[1], (32, 1))}
state = {"params": params, "momentum": jax.tree.map(jnp.zeros_like, params), "key": key}

options = ocp.CheckpointManagerOptions(save_interval_steps=2, max_to_keep=2)
with ocp.CheckpointManager(folder, options=options, item_handlers=ThaliaCheckpointHandler()) as manager:
    last = manager.latest_step()
    if last is not None:
        state = manager.restore(last, args=ThaliaRestore(state))
    for step in range((last or 0) + 1, steps + 1):
        state = train(state)
        manager.save(step, args=ThaliaSave(state))  # every second step, beside the training
        print(step, flush=True)
print(steps, {name: float(param.sum()).hex() for name, param in state["params"].items()})
