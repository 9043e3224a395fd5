"""Checkpoints of DeepSpeed as .thalia files.

    from thalia_checkpoint.deepspeed import ThaliaCheckpointEngine

    model_engine, *_ = deepspeed.initialize(model=model, config=config)
    model_engine.checkpoint_engine = ThaliaCheckpointEngine()
    model_engine.load_checkpoint("run")
    model_engine.save_checkpoint("run")

The files have the names that DeepSpeed gives them. No pickle is read or written.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from deepspeed.constants import default_pg_timeout
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import CheckpointCommitInfo, CheckpointEngine

from . import _core
from ._deepspeed_objects import as_dictionary, with_objects
from ._files.async_saver import AsyncSaver, SaveHandle
from ._files.writer import Writer, checked
from ._keywords import suggests
from ._support import made_as
from ._types import Path
from .errors import ThaliaError, make_error
from .torch import load
from .torch._objects import declare

if TYPE_CHECKING:
    from typing import Unpack

    from ._files.writer import SaveOptions

__all__ = ["ThaliaAsyncCheckpointEngine", "ThaliaCheckpointEngine"]


if TYPE_CHECKING:
    _Engine: Any  # DeepSpeed says nothing of its types, and what is inferred is not what it means
else:
    _Engine = CheckpointEngine


@suggests
class ThaliaCheckpointEngine(_Engine):  # type: ignore[misc, unused-ignore]
    """To be set as `model_engine.checkpoint_engine` after deepspeed.initialize(), in every rank.

    What a save fails with is raised at the end of the checkpoint, in every rank: one that raised it
    at once would leave the others waiting. `latest` then goes on naming the checkpoint before.

    options: those of SaveOptions.
    """

    def __init__(self, **options: Unpack[SaveOptions]) -> None:
        super().__init__()
        self.name: str = type(self).__name__
        self._options = checked(options)
        self._failed: Exception | None = None
        self._group: Any = None  # of processes; PyTorch says of a new one that it may be a number
        # DeepSpeed may hold its engine, and with it this one, beyond the end of the interpreter.
        atexit.register(self.cleanup)

    def __repr__(self) -> str:
        return made_as(self, **self._options)

    def create(self, info: CheckpointCommitInfo) -> None:
        """Begins a checkpoint, in every rank."""
        self._failed = None

    def save(self, state_dict: Any, path: Path) -> None:
        """Returns when the file is whole, and on the disk; or when it has failed, which commit() tells."""
        try:
            self._write(declare(state_dict, path, self._options, as_dictionary, converts=False))
        except Exception as error:
            self._failed = self._failed or error

    def load(self, path: Path, map_location: Any = None) -> Any:
        """The state, with its tensors on the device `map_location`; on the CPU for None, and for a
        function, which DeepSpeed gives if they are to stay there.

        Raises MissingFileError, a FileNotFoundError; IoError, FormatError, IntegrityError.
        """
        state = load(path, device=None if callable(map_location) else map_location)
        return with_objects(state, path)

    def commit(self, info: CheckpointCommitInfo) -> bool:
        """Returns in every rank when the files of all of them are whole, and on the disk.

        Raises what a save of this rank failed with: UnsupportedError that names the entry of the
        state that is no tensor, array, number, text or container of these; IoError. Where those of
        another rank have failed, ThaliaError that names it.
        """
        self._tell()
        return True

    def cleanup(self) -> None:
        """At the end of the process: lets go of what the ranks tell each other with."""
        group, self._group = self._group, None
        if group is not None and dist.is_initialized():
            with contextlib.suppress(ValueError):  # it went with those of DeepSpeed, which are others by now
                dist.destroy_process_group(group)

    def _write(self, writer: Writer) -> None:
        writer.commit()

    def _tell(self) -> None:
        """Waits for every rank, and raises in all of them what one has failed with."""
        failed, self._failed = self._failed, None
        failures = self._of_all_ranks(None if failed is None else f"{type(failed).__name__}: {failed}")
        if failed is not None:
            raise failed
        for rank, text in enumerate(failures):
            if text is not None:
                raise make_error(ThaliaError, f"rank {rank}: {text}", "other")

    def _of_all_ranks(self, value: Any) -> list[Any]:
        """The values of all ranks, in their order."""
        if self._group is None:
            # Not DeepSpeed's: GPUs would have to come to a stop for it. And nobody else keeps this one.
            # A thread of Gloo that lets go of a tensor once the interpreter has ended kills the process
            # (PyTorch issue 190489), so the group's threads are to end before that.
            backend = "gloo" if dist.is_gloo_available() else None
            self._group = dist.new_group(backend=backend, timeout=default_pg_timeout)
        values = [value] * dist.get_world_size()
        dist.all_gather_object(values, value, group=self._group)
        return values


@suggests
class ThaliaAsyncCheckpointEngine(ThaliaCheckpointEngine):
    """Saves while the training goes on. The training waits for one copy of the state.

    `latest` names a checkpoint once the files of every rank are whole: after the first step that
    finds them so, with the next checkpoint, or in wait(), which every rank is to call after its last
    step. What a save failed with is raised there.

    options: those of SaveOptions.
    """

    def __init__(self, **options: Unpack[SaveOptions]) -> None:
        super().__init__(**options)
        self._saver: AsyncSaver | None = None
        self._handles: list[SaveHandle] = []
        self._unfinished: CheckpointCommitInfo | None = None

    def create(self, info: CheckpointCommitInfo) -> None:
        """Begins a checkpoint, in every rank, after wait() for the one before."""
        self.wait()
        super().create(info)
        self._unfinished = info

    def commit(self, info: CheckpointCommitInfo) -> bool:
        """As ThaliaCheckpointEngine, of what is being written."""
        self._unfinished = None
        self._wait_for_saves()
        return super().commit(info)

    def wait(self) -> None:
        """Until the checkpoint that was begun is whole, and `latest` names it. To be called by every
        rank. Raises as commit(); IoError."""
        info = self._unfinished
        if info is None:
            return
        self.commit(info)
        if info.save_latest and dist.get_rank() == 0:
            try:
                _core.write_text(os.path.join(info.save_dir, "latest"), info.tag)
            except ThaliaError as error:
                self._failed = error
        self._tell()

    def is_decoupled(self) -> bool:
        """True: DeepSpeed commits in a step, as soon as get_commit_info() names the checkpoint."""
        return True

    def get_commit_info(self) -> CheckpointCommitInfo | None:
        """The checkpoint, once no rank would wait for it in commit(); None before, and if there is none."""
        if self._unfinished is not None and all(self._of_all_ranks(all(handle.done for handle in self._handles))):
            return self._unfinished
        return None

    def cleanup(self) -> None:
        """DeepSpeed's destroy() calls this, and so does the end of the process. Waits until the files of
        this rank are whole. `latest` stays, as the other ranks may be gone. Raises what a save failed with."""
        self._wait_for_saves()
        self._saver = None
        super().cleanup()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _write(self, writer: Writer) -> None:
        if self._saver is None:
            # A rank has a file for each layer or expert, so as many as there may be.
            self._saver = AsyncSaver(when_busy="queue", max_unfinished=1024)
        self._handles.append(self._saver.save(writer))

    def _wait_for_saves(self) -> None:
        for handle in self._handles:
            try:
                handle.wait()
            except Exception as error:
                self._failed = self._failed or error
        self._handles = []
