"""A server's side of a training: its newest state, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._core import FollowedTensor, FollowUpdate
from .._files.async_saver import close_at_exit
from .._files.file import Tensors
from .._files.flat import FlatSource
from .._files.source import Buffer
from .._files.tensor import Tensor
from .._keywords import suggests
from .._missing import ByName, not_found
from .._support import ClosedAtEnd, OpenHere, from_json, paths, texts
from .._types import Path
from ._facts import warn_all
from ._memory import OwnMemory, grouped, own_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

__all__ = ["FollowUpdate", "FollowedState", "FollowedTensor", "Follower"]


class _StateSource(FlatSource):
    """A tensor in the memory of a state."""

    __slots__ = ("_raw", "encoding", "region", "role", "wide_indices")

    def __init__(self, raw: _core.StateTensor) -> None:
        self._raw = raw
        self.name = raw.name
        self.region = raw.region
        self.role = raw.role
        self.dtype = raw.dtype
        self.shape = raw.shape
        self.nbytes = raw.nbytes
        self.encoding = raw.encoding
        self.wide_indices = raw.wide_indices
        self.offset = 0

    def payload(self) -> Buffer:
        return self._raw.payload()

    def sparse(self) -> Sequence[Buffer]:
        return self._raw.sparse()


class FollowedState(OpenHere, ByName[Tensor]):
    """One state of a training, in memory: tensors by name, as those of an open file.

    It stays as it is while newer ones come, and after the follower was closed; but for tensors in memory of the
    server's own, which change with apply(). A tensor's numpy() and raw() are read-only and copy nothing, and
    anybody who has one keeps the state's memory. A name is that of Tensors, or REGION/NAME; an unknown one raises
    NotFoundError, a KeyError. Any number of threads may use one.
    """

    _instead = "pickle the numpy() of its tensors"

    def __init__(self, raw: _core.FollowedState) -> None:
        self._raw = raw
        self._tensors = Tensors([Tensor(_StateSource(tensor)) for tensor in raw.tensors])
        self._by_path = {tensor.path: tensor for tensor in self._tensors.values()}

    @property
    def step(self) -> int:
        """The training's step that it was saved at."""
        return self._raw.step

    @property
    def phase(self) -> str:
        """The run's phase; empty in a folder that is no run."""
        return self._raw.phase

    @property
    def path(self) -> FilePath:
        """The checkpoint, which may have been removed since."""
        return FilePath(self._raw.path)

    @property
    def metadata(self) -> dict[str, Any]:
        """The file's metadata; a copy each time."""
        text = self._raw.metadata_json
        found: dict[str, Any] = from_json(text, str(self.path)) if text else {}
        return found

    @property
    def tensors(self) -> Tensors:
        """All tensors, by one flat name each, in the order of their regions and names."""
        return self._tensors

    def __getitem__(self, name: str) -> Tensor:
        found = self._by_path.get(name)
        if found is None:
            found = self._tensors[name] if name in self._tensors else None
        if found is None:
            raise not_found(f"{name}: the state has no such tensor", name, self._tensors, tensor=name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._tensors or name in self._by_path

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"<FollowedState: step {self.step}, {len(self)} tensors>"


@suggests
class Follower(ClosedAtEnd, OpenHere):
    """Follows the newest checkpoint of a training, as it is saved.

        with Follower("runs/20260115_143022_a1b2c3d4") as follower:
            for update in follower:              # until wake() is called
                state = follower.current()       # stays as it is for as long as somebody has it
                serve(state["layers/0.weight"].numpy(), update.step)

    What it takes is read and verified before anybody sees it: the deltas in order over what it holds, or else a
    full file. A server with memory of its own hands that in, and changes it under its own lock:

        follower = Follower("runs/20260115_143022_a1b2c3d4", memory={"layers/0.weight": weights})
        if follower.prepare():                   # touches nothing that is in use
            with lock:
                follower.apply()                 # copies what changed

    One thread at a time waits, prepares and applies: another one raises UsageError meanwhile. Any thread may call
    current(), wake() and close(). A process that was forked from this one may use what current() gives, and makes
    a follower of its own. What is not an error and should be known, as a checkpoint that cannot be read and is
    passed over, comes as a UserWarning, also while wait() goes on. docs/use/follow.md.
    """

    _instead = "make one in the worker"

    def __init__(
        self,
        folder: Path,
        *,
        phase: str | None = None,
        into: Path | None = None,
        include: str | Iterable[str] = (),
        memory: Mapping[str, Any] | Callable[[FollowedTensor], Any] | None = None,
        interval: float = 1.0,
        polling: bool = False,
        lease: bool = True,
        access: Literal["mapped", "copied"] = "mapped",
        search: Path | Iterable[Path] = (),
        threads: int = 0,
        memory_bytes: int | None = None,
        durability: Literal["full", "data", "none"] = "full",
    ) -> None:
        """
        folder: of a run, or one with .thalia and .delta.thalia files.
        phase: of a run; by itself the last one that has a checkpoint.
        into: a file, outside of the folder, that holds the newest state: a whole .thalia file at each moment. No
            state is in memory then, and current() is None.
        include: patterns of the tensors that are followed, as in a precision policy: "layers/*". All by itself.
        memory: of the server's own, by names, as add_memory() takes it; tensors that are the same memory may be in
            the file under any of their names. Or a function of a FollowedTensor that gives memory for it, or None
            where the follower is to hold it; it is called in a thread of the library's, once for each tensor and
            again where its dtype or shape changes.
        interval: seconds between two looks at the folder where the system reports no changes, and besides.
        polling: does not ask the system to report changes.
        lease: tells a run that this follower is there, so that its retention keeps what is held and needed next.
        access: how files are read, as of open().
        search: folders with the bases of deltas, of a folder that is no run.
        threads: that read, decode and verify; 0: one for each core.
        memory_bytes: of buffers.
        durability: of `into`, as of SaveOptions.

        Raises NotFoundError for a folder or a phase; UsageError for an option, and for memory as add_memory();
        IoError.
        """
        of_each = memory if callable(memory) else None
        self._raw = _core.Follower(
            folder,
            phase=phase or "",
            into="" if into is None else into,
            include=texts(include),
            interval=interval,
            polling=polling,
            lease=lease,
            memory=None if of_each is None else lambda tensor: _given(of_each, tensor),
            access=access,
            search=paths(search),
            threads=threads,
            memory_bytes=memory_bytes,
            save={"durability": durability},
        )
        self._folder = os.fspath(folder)
        close_at_exit(self)
        if isinstance(memory, Mapping):
            self._add_all(memory)

    def add_memory(self, name: str, array: Any, *, region: str | None = None) -> None:
        """Hands in memory for a tensor. The follower keeps it, and nothing else changes it. Before the first update.

        name: "region/name"; with `region`, or in whichever region the tensor is, its own name.
        array: of numpy, or a tensor of torch on the CPU, of the tensor's dtype and shape, which the first update
            checks; or bytes as the file has them, in an array of uint8 of one dimension or another buffer, for
            dtypes that have no other.

        Raises UsageError for what is not writable and contiguous, for a tensor that has some, after the first
        update and with `into`.
        """
        self._add([name], own_memory(name, array), region)

    def add_module(self, module: torch.nn.Module, *, prefix: str = "") -> None:
        """Hands in a module of torch: its parameters and its buffers that are saved, all of which the state has to
        have. Before the first update.

        They are changed in place, below autograd: the module computes with the new values from the next apply()
        on. Tied parameters are one memory, which the file may have by any of its names. Code of the module's own
        that load_state_dict() would call is not called.

        prefix: before the module's names in the file: "model." for what save({"model": …}) wrote.
        Raises as add_memory().
        """
        places = import_module("thalia_checkpoint.torch._follow").module_tensors(module)
        memory = {f"{prefix}{name}": own_memory(f"{prefix}{name}", tensor) for name, tensor in places.items()}
        for names, own in grouped(memory):
            self._raw.add_memory(None, names, own.dtype, own.shape, own.data)

    def wait(self, timeout: float | None = None) -> FollowUpdate | None:
        """Waits for a checkpoint that is newer than what is held, at first for any, and takes it.

        timeout: in seconds; None: for good. Gives None after these, and after wake(). Ctrl-C ends it, and the
        follower goes on with the next call. What cannot be read is passed over with a warning, and what was held
        stays.

        Raises UsageError for memory that a tensor does not fit, or that the state has no tensor for; after
        close(), and while another thread waits; IoError where the folder cannot be read, or `into` not be written;
        what `memory` raises.
        """
        update = self._raw.wait(timeout, warn_all)
        warn_all(self._raw.take_warnings())
        return update

    def prepare(self, timeout: float | None = None) -> FollowUpdate | None:
        """The same without applying it: what is in use is not touched. A newer one takes the place of one that was
        prepared and not applied. Raises as wait(); UsageError after an apply() that has not ended."""
        update = self._raw.prepare(timeout, warn_all)
        warn_all(self._raw.take_warnings())
        return update

    def apply(
        self,
        *,
        before: Callable[[FollowedTensor], object] | None = None,
        after: Callable[[FollowedTensor], object] | None = None,
    ) -> FollowUpdate:
        """Applies what prepare() has prepared, in the calling thread: then current() is the new state. It reads no
        file, but with `into`.

        before, after: called around each tensor that changes, so that a server can keep its readers out of one at
            a time. What they raise ends apply(), which goes on with that tensor when it is called again.
        Raises UsageError where nothing is prepared, and after close(); what hooks raise; for `into` IoError.
        """
        return self._raw.apply(before, after)

    def current(self) -> FollowedState | None:
        """The state that was applied last; None before the first, and with `into`. Raises UsageError after close()."""
        raw = self._raw.current()
        return None if raw is None else FollowedState(raw)

    def wake(self) -> None:
        """Ends the wait that is under way, or else the next one. Does nothing after close()."""
        self._raw.wake()

    @property
    def is_polling(self) -> bool:
        """Whether the system reports no changes, so that the folder is looked at each `interval`."""
        return self._raw.is_polling

    def close(self) -> None:
        """Ends a wait that is under way, and lets go of the lease and the memory. States that somebody has stay
        valid. All else raises UsageError then."""
        self._raw.close()

    def __iter__(self) -> Iterator[FollowUpdate]:
        """wait() until it gives None, which it does after wake()."""
        while (update := self.wait()) is not None:
            yield update

    def __repr__(self) -> str:
        return f"<Follower of {os.fsdecode(self._folder)!r}{'' if self._raw.is_open else ', closed'}>"

    def _add_all(self, memory: Mapping[str, Any]) -> None:
        for names, own in grouped({name: own_memory(name, array) for name, array in memory.items()}):
            if len(names) == 1:
                self._add(names, own, None)
            else:
                self._raw.add_memory(None, names, own.dtype, own.shape, own.data)

    def _add(self, names: list[str], own: OwnMemory, region: str | None) -> None:
        if region is None and "/" in names[0]:
            region, _, name = names[0].partition("/")
            names = [name]
        self._raw.add_memory(region, names, own.dtype, own.shape, own.data)


def _given(memory: Callable[[FollowedTensor], Any], tensor: FollowedTensor) -> OwnMemory | None:
    given = memory(tensor)
    return None if given is None else own_memory(f"{tensor.region}/{tensor.name}", given)
