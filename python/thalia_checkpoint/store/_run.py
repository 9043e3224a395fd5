"""A run for those who read it, and how one begins."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._html import of_repr, of_rows
from .._keywords import suggests
from .._progress import Progress, callback
from .._types import Path
from ..errors import ThaliaError, UsageError, make_error
from ._facts import (
    CheckpointEntry,
    Entries,
    GateEntry,
    LoadedBytes,
    LoadedCheckpoint,
    RestoreResult,
    RunSummary,
    StoreReport,
    loaded_bytes_of,
    loaded_of,
    warn_all,
)

if TYPE_CHECKING:
    from .._core import PoolView

Check = Literal["digest", "on_touch"]


@suggests
def create_run(folder: Path, config: Mapping[str, Any], *, format: Literal["json", "toml"] = "json") -> Run:
    """Makes the folder of a run, with its configuration as run.json or run.toml.

    config: the members that docs/format/store.md describes, of which "phases" is needed:
        {"phases": [{"name": "train", "metric": {"name": "loss", "direction": "min"},
        "retention": {"keep_last": 3}}]}.

    Raises ExistsError if there is a run; FormatError that names the member that is wrong; IoError.
    """
    return Run._of(_core.Run.create(folder, config_text(config), format))


def find_runs(folder: Path) -> list[RunSummary]:
    """The folders below this one that are runs, in the order of their names, which for run ids is that of their
    start. Empty if there is no such folder. Raises IoError."""
    return _core.find_runs(folder)


@suggests
def run_id(master_seed: int, started_at: int | None = None) -> str:
    """The name of a run's folder: "20260115_143022_a1b2c3d4", of the time of the start in UTC and the low 32 bits of
    the seed, 0 to 2**64 - 1.

    started_at: seconds since 1970; now.
    """
    return _core.run_id(int(time.time()) if started_at is None else started_at, master_seed)


def is_run_id(text: str) -> bool:
    """Whether it is a text as run_id() makes them."""
    return _core.is_run_id(text)


@suggests
class Run:
    """A run, for those who read it. Any number of processes may, while one saves.

    `phase` may be left out of all calls where the run has one alone. Any number of threads may use one.
    """

    def __init__(self, folder: Path) -> None:
        """Raises NotFoundError where the folder is no run; FormatError for an invalid configuration;
        IoError."""
        self._raw = _core.Run.open(folder)

    @classmethod
    def _of(cls, raw: _core.Run) -> Run:
        run = cls.__new__(cls)
        run._raw = raw
        return run

    @property
    def folder(self) -> FilePath:
        """The folder that it was opened by."""
        return FilePath(self._raw.folder)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as create_run() takes it; a copy each time."""
        config: dict[str, Any] = json.loads(self._raw.config_json)
        return config

    @property
    def phases(self) -> tuple[str, ...]:
        """Their names, in their order."""
        return tuple(phase["name"] for phase in self.config["phases"])

    @property
    def current_phase(self) -> str | None:
        """The last one that has a checkpoint. Raises IoError."""
        return self._raw.current_phase()

    def is_due(self, step: int, phase: str | None = None) -> bool:
        """Whether the phase's `save_interval` has a checkpoint at this step."""
        return self._raw.is_due(self._phase(phase), step)

    def path_of(self, entry: CheckpointEntry) -> FilePath:
        """Where a checkpoint's file lies."""
        return FilePath(self._raw.path_of(entry.phase, entry.file))

    def list(self, phase: str | None = None) -> Entries:
        """The checkpoints in the order of their steps; none is opened. Raises NotFoundError for a phase;
        IoError."""
        return self._raw.entries(self._phase(phase))

    def latest(self, phase: str | None = None) -> CheckpointEntry | None:
        """What was saved last, or is resumed from. Those of larger steps were left behind. Raises as list()."""
        return self._raw.latest(self._phase(phase))

    def best(self, phase: str | None = None) -> CheckpointEntry | None:
        """That with the best metric. Raises as list()."""
        return self._raw.best(self._phase(phase))

    def load(
        self,
        phase: str | None = None,
        *,
        step: int | None = None,
        check: Check = "digest",
    ) -> LoadedCheckpoint:
        """Opens the latest checkpoint, or if that is damaged the next older one, with a UserWarning, and so
        on through all that there are.

        step: of this step, and no other.
        check: "digest" reads all of a file first, and holds it against its SHA-256; "on_touch" leaves it
            to the file's own checks, when its tensors are read.

        Raises NotFoundError if there is no checkpoint, or none of that step; IntegrityError that lists
        all that were tried where none can be loaded; of a `step` what is wrong with it; UsageError for a run
        whose files are no .thalia files; IoError.
        """
        return loaded_of(self._raw.load(self._phase(phase), step, check))

    def load_bytes(self, phase: str | None = None, *, step: int | None = None) -> LoadedBytes:
        """The same of any run: the bytes of the file, held against their digest. Those of a delta are no state.
        Raises as load()."""
        return loaded_bytes_of(self._raw.load_bytes(self._phase(phase), step))

    def gates(self) -> tuple[GateEntry, ...]:
        """Copies that promote() made, by their names. Raises IoError."""
        return tuple(self._raw.gates())

    def gate_path(self, name: str) -> FilePath:
        """Where a gate's file lies."""
        return FilePath(self._raw.gate_path(name))

    def load_gate(self, name: str) -> LoadedCheckpoint:
        """Opens a gate, whose digest has to be there. Nothing takes the place of one that is damaged.

        Raises NotFoundError; IntegrityError; UsageError for a run whose files are no .thalia files; IoError.
        """
        return loaded_of(self._raw.load_gate(name))

    def load_gate_bytes(self, name: str) -> LoadedBytes:
        """The same of any run: the bytes of the file. Raises as load_gate()."""
        return loaded_bytes_of(self._raw.load_gate_bytes(name))

    def pool(self) -> PoolView:
        """Reads the pool of earlier models. Raises NotFoundError where the run has none; IoError."""
        return _core.read_pool(self._raw)

    def restore(
        self,
        target: Path,
        phase: str | None = None,
        *,
        step: int | None = None,
        gate: str | None = None,
        check: Check = "digest",
        replace: bool = False,
        durability: Literal["full", "data", "none"] = "full",
    ) -> RestoreResult:
        """Writes the checkpoint that load() would give to a file outside of the run: the same bytes; of a delta
        the state that it stands for, as a full file.

        step, check: as of load(). gate: this one, instead of a phase's checkpoint.
        replace: takes the place of a file that is there.
        Raises ExistsError; as load() and load_gate().
        """
        chosen = self.phases[0] if gate is not None else self._phase(phase)
        save = {"replace": replace, "durability": durability}
        result, sentences = self._raw.restore(chosen, target, step, gate, check, save)
        warn_all(sentences)
        return result

    def verify(
        self,
        phase: str | None = None,
        *,
        quick: bool = False,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> StoreReport:
        """Reads every checkpoint, gate and version of the pool, and changes nothing: digests, the files' own
        checks, what deltas are based on. RunWriter.repair() repairs what can be.

        phase: this one alone, without gates and pool. quick: names, links and texts only.
        threads: one a core. progress: as of SaveOptions.
        Raises NotFoundError for a phase; IoError where the run itself cannot be read.
        """
        shown = callback(progress, f"verifying {self.folder}")
        return self._raw.verify(phase, quick, threads, shown)

    def _phase(self, phase: str | None) -> str:
        return chosen_phase(phase, self.phases)

    def __repr__(self) -> str:
        return f"<Run {str(self.folder)!r}: {', '.join(self.phases)}>"

    def _repr_html_(self) -> str:
        try:
            entries = [entry for phase in self.phases for entry in self.list(phase)]
        except ThaliaError:
            return of_repr(self)
        rows = [
            (entry.phase, entry.step, entry.metric, _core.human_bytes(entry.file_bytes), ", ".join(entry.protected_by))
            for entry in reversed(entries)
        ]
        return of_rows(repr(self)[1:-1], ("phase", "step", "metric", "size", "stays as"), rows)


def config_text(config: Mapping[str, Any]) -> str:
    """A configuration as the core takes it."""
    return json.dumps({"version": 1, **config})


def chosen_phase(phase: str | None, phases: tuple[str, ...]) -> str:
    """The phase that a call is for. Raises UsageError where none was given and there are several."""
    if phase is not None:
        return phase
    if len(phases) == 1:
        return phases[0]
    raise make_error(
        UsageError,
        f"phase: none was given, and the run has {', '.join(phases)}",
        "bad_argument",
        field="phase",
        expected=", ".join(phases),
    )
