"""Lightning's tests of checkpoints, with ThaliaAsyncCheckpointIO: files are written behind the training."""

import swap_lightning
from swap_lightning import _swap, pytest_sessionfinish  # noqa: F401 - pytest finds them here
from thalia_checkpoint.lightning import ThaliaAsyncCheckpointIO

swap_lightning.plugin = ThaliaAsyncCheckpointIO
