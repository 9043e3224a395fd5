"""Orbax's tests of StandardCheckpointHandler: the handler is ours.

One process with eight devices of the processor, as its own runner starts them. What its arguments have
and ours lack is refused by TypeError: strict=False, layouts, casts while saving. They need absl-py,
chex, flax, optax, portpicker and treescope.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import portpicker
from absl import flags
from absl.testing import absltest  # noqa: F401 - has the flag
from orbax.checkpoint._src import testing
from orbax.checkpoint._src.handlers import standard_checkpoint_handler_test_utils as handlers
from orbax.checkpoint._src.serialization import type_handlers
from thalia_checkpoint.orbax import ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave

jax.distributed.initialize(f"localhost:{portpicker.pick_unused_port()}", num_processes=1, process_id=0)
flags.FLAGS(["tests", f"--test_tmpdir={os.path.abspath('temporary')}"])
swapped = 0


class Handler(ThaliaCheckpointHandler):
    def save(self, directory, args):
        global swapped
        swapped += 1
        if args.save_args is not None:
            raise TypeError("save_args")
        super().save(directory, ThaliaSave(args.item, custom_metadata=args.custom_metadata))

    def restore(self, directory, args=None):
        if args is None:
            return super().restore(directory)
        if not args.strict or args.support_layout or args.fallback_sharding is not None:
            raise TypeError("strict, support_layout, fallback_sharding")
        return super().restore(directory, ThaliaRestore(args.item))


handlers.StandardCheckpointHandler = Handler
# Which asks how the files of a folder are laid out.
type_handlers.is_ocdbt_checkpoint = lambda directory: os.path.isfile(os.path.join(directory, "state.thalia"))
# The installed package lacks what its tests are derived from.
testing.__path__.append(os.path.join(os.environ["THALIA_OTHERS_SOURCES"], "checkpoint/orbax/checkpoint/_src/testing"))


def pytest_sessionfinish(exitstatus):
    if exitstatus in (0, 1):  # the tests ran
        assert swapped > 10, f"only {swapped} items were saved by this package"
