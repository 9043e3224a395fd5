"""Training in stages: a checkpoint at each boundary, growth between them, and resuming from any."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._files.file import File
from .._files.open import open as open_file
from .._keywords import suggests
from .._operations.verify import verify
from .._types import Path
from .._warn import warn_caller
from ..errors import ExistsError, FormatError, IntegrityError, MissingFileError, NotFoundError, ThaliaError, make_error
from ._checkpoint import BrainCheckpoint
from ._facts import remember, remembered
from ._growth import auto_grow
from ._metadata import bad_argument, events_in, events_of, to_json
from ._save import history_of

if TYPE_CHECKING:
    from typing import Unpack

    from ._options import LoadOptions, StageOptions

#: The name of what is saved, until it is whole and takes its stage's.
_WRITTEN = "next.thalia"

#: What tells a file from another that took its name.
Identity = tuple[int, int]

#: What a policy may give: neurons by region, or events.
Growth = Mapping[str, int] | Iterable[Mapping[str, Any]] | None


@suggests
@dataclass(frozen=True)
class StageConfig:
    """One stage of a curriculum."""

    epochs: int
    difficulty: float = 0.0
    data_config: Mapping[str, Any] = field(default_factory=dict)
    """What the training makes its data from; kept in the checkpoint's metadata."""
    name: str = ""
    checkpoint_every: int = 0
    """Epochs between checkpoints within the stage; 0 for its end alone."""


@suggests
class CurriculumTrainer:
    """Trains a brain stage by stage, with a checkpoint after each.

        trainer = CurriculumTrainer(brain, "curriculum", train_epoch=train)
        trainer.resume()
        for config in stages[trainer.stage :]:
            trainer.train_stage(config)

    A trainer writes only over checkpoints that it knows: those that it wrote, and those that were
    there when it resumed or loaded one. Only one trainer at a time is to use a folder.

    brain: an object with get_full_state() and load_full_state(). Random states that training draws
        from belong into its state; then a run that died goes on bit for bit.
    checkpoint_dir: gets stage1.thalia, stage2.thalia, …, or with `delta` stage2.delta.thalia, each on
        top of the one before.
    train_epoch: called with the brain, the StageConfig and the epoch's number in the stage, from 0;
        what it returns, if a dictionary of JSON, is kept in `history`. By itself brain.train_epoch,
        called without the brain.
    growth_policy: called at the beginning of each stage with the brain and the StageConfig, to grow
        the brain; it returns how many neurons each region got, or events. If it returns None,
        the events are those that it added to the brain's `growth_history`. "auto" calls
        brain.auto_grow(), or auto_grow(brain) for a brain that has none. None grows nothing.
    options: of BrainCheckpoint.save() or save_delta(), such as precision_policy.

    Raises UsageError for a brain that lacks a function that is needed, another growth_policy, or an
    option that cannot be; TypeError for one that does not exist.
    """

    def __init__(
        self,
        brain: Any,
        checkpoint_dir: Path,
        growth_policy: Literal["auto"] | Callable[[Any, StageConfig], Growth] | None = None,
        *,
        train_epoch: Callable[[Any, StageConfig, int], Any] | None = None,
        delta: bool = False,
        **options: Unpack[StageOptions],
    ) -> None:
        self.brain = brain
        self._folder = FilePath(checkpoint_dir)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._grow = self._growth(growth_policy)
        self._train = train_epoch or self._own("train_epoch", lambda own: lambda _, config, epoch: own(config, epoch))
        self._delta = delta
        self._options = _tried(options, delta=delta)
        self._known: set[Identity] = set()
        self.stage: int = 0
        """Stages that are done."""
        self.epoch: int = 0
        """Epochs of the next stage that are done."""
        self.growth_history: list[dict[str, Any]] = []
        self.history: list[dict[str, Any]] = []
        """Stage, epochs and metrics of each stage that is done. The metrics are those of the last epoch."""

    def __repr__(self) -> str:
        return f"<CurriculumTrainer {str(self._folder)!r}: {self.stage} stages done>"

    def train_stage(self, stage_config: StageConfig) -> FilePath:
        """Trains the next stage, or what is left of it, and saves. Returns the checkpoint's path.

        A stage that is trained again, after load_checkpoint(), takes the place of the one there was,
        and the checkpoints of later ones go once it is saved. Raises ExistsError if that would
        replace or remove a checkpoint that this trainer does not know; UsageError for a config or
        metrics that are no JSON; as BrainCheckpoint.save().
        """
        _check(stage_config)
        number = self.stage + 1
        self._replaced(number)  # before hours of training
        if self.epoch == 0 and self._grow is not None:
            before = len(history_of(self.brain) or ())
            growth = self._grow(self.brain, stage_config)
            self._record((history_of(self.brain) or ())[before:] if growth is None else growth)
        metrics: Any = None
        while self.epoch < stage_config.epochs:
            metrics = self._train(self.brain, stage_config, self.epoch)
            if isinstance(metrics, Mapping):
                to_json(metrics, "train_epoch()")  # now, not when the stage is saved
            self.epoch += 1
            every = stage_config.checkpoint_every
            if every and self.epoch % every == 0 and self.epoch < stage_config.epochs:
                self._save(number, stage_config, done=False, history=self.history)
        metrics = metrics if isinstance(metrics, Mapping) else {}
        history = [*self.history, {"stage": number, "epochs": stage_config.epochs, "metrics": metrics}]
        path = self._save(number, stage_config, done=True, history=history)
        self.stage, self.epoch, self.history = number, 0, history
        return path

    def record_growth(self, region: str, neurons_added: int, reason: str = "", **facts: Any) -> None:
        """An event for the growth history, of growth that no policy did."""
        self._record([{"region": region, "neurons_added": neurons_added, "reason": reason, **facts}])

    def load_checkpoint(self, stage: int | None = None, **options: Unpack[LoadOptions]) -> FilePath:
        """Loads a stage's checkpoint, by itself the latest one, into the brain; training goes on from there.

        options: those of BrainCheckpoint.load(). Raises NotFoundError if there is none;
        FormatError for one that no trainer wrote; as BrainCheckpoint.load().
        """
        if stage is None:
            self._finish()
        found = self.checkpoints()
        known = {_identity(path) for path in found.values()}
        stage = max(found, default=0) if stage is None else stage
        if stage not in found:
            there = ", ".join(map(str, found)) or "none"
            raise make_error(
                NotFoundError,
                f"{self._folder}: no checkpoint of stage {stage}; there are {there}",
                "not_found",
                path=os.fspath(self._folder),
                field="stage",
                value=str(stage),
            )
        path = found[stage]
        state = BrainCheckpoint.load(path, **options)
        epoch, done, history = _facts(path, state.metadata, stage)
        self.brain.load_full_state(state)
        remember(self.brain, state.beside)
        self.stage, self.epoch = (stage, 0) if done else (stage - 1, epoch)
        self.history = history
        self.growth_history = events_in(state.metadata)
        self._known |= known
        return path

    def resume(self, **options: Unpack[LoadOptions]) -> bool:
        """Loads the latest checkpoint that can be read, if there is any. False if there is none.

        A save that was cut short after its file was whole is finished first. One that is damaged, or a
        delta whose base is not there, is passed over for the one before it, with a UserWarning: the stages
        after that one will be trained again, and replaced. Raises the last error if there are some and
        none can be read; at once what load_checkpoint() raises for other reasons.
        """
        self._finish()
        failed: ThaliaError | None = None
        for stage in reversed(self.checkpoints()):
            try:
                self.load_checkpoint(stage, **options)
            except (FormatError, IntegrityError, MissingFileError) as error:
                if error.code == "limit_exceeded":
                    raise
                warn_caller(f"stage {stage} is passed over: {error}")
                failed = error
            else:
                return True
        if failed is not None:
            raise failed
        return False

    def checkpoints(self) -> dict[int, FilePath]:
        """Paths of the checkpoints that there are, by stage, in the order of the stages."""
        found = {}
        for path in self._folder.iterdir():
            match = re.fullmatch(r"stage([1-9]\d{0,8})(\.delta)?\.thalia", path.name)
            if match is not None:
                found[int(match[1])] = path
        return dict(sorted(found.items()))

    def _replaced(self, number: int) -> dict[int, FilePath]:
        """The checkpoints that one of this stage takes the place of. Raises ExistsError for one that is not known."""
        found = {stage: path for stage, path in self.checkpoints().items() if stage >= number}
        for path in found.values():
            if _identity(path) not in self._known:
                raise make_error(
                    ExistsError,
                    f"{path}: a checkpoint that this trainer neither wrote nor found when it resumed; resume() or "
                    "load_checkpoint() goes on from there, and another folder keeps it",
                    "exists",
                    path=os.fspath(path),
                    field="checkpoint_dir",
                )
        return found

    def _save(self, number: int, config: StageConfig, *, done: bool, history: list[dict[str, Any]]) -> FilePath:
        # Another trainer that saves here meanwhile is waited for, and then its checkpoint is one that is not known.
        with _core.HeldFolder.hold(self._folder, {}):
            return self._saved(number, config, done=done, history=history)

    def _saved(self, number: int, config: StageConfig, *, done: bool, history: list[dict[str, Any]]) -> FilePath:
        replaced = self._replaced(number)
        base = self.checkpoints().get(number - 1) if self._delta else None
        path = self._folder / f"stage{number}{'.delta' if base else ''}.thalia"
        written = self._folder / _WRITTEN
        loaded = remembered(self.brain)
        kept = {} if loaded is None else loaded.metadata
        info = kept.get("training_info")
        metadata = {
            **kept,
            "training_info": {
                **(info if isinstance(info, Mapping) else {}),
                "curriculum_stage": number,
                "epoch": self.epoch,
                "done": done,
                "total_epochs": _epochs(history) + (0 if done else self.epoch),
                "history": history,
                "stage_config": asdict(config),
            },
            "growth_history": self.growth_history,
        }
        if base is None:
            BrainCheckpoint.save(self.brain, written, metadata=metadata, **self._options)
        else:
            BrainCheckpoint.save_delta(self.brain, written, base, metadata=metadata, **self._options)
        self._put(written, path, replaced)
        self._known.add(_identity(path))
        return path

    def _put(self, written: FilePath, path: FilePath, replaced: Mapping[int, FilePath]) -> None:
        # A crash may leave fewer stages, and never one that did not follow from those before it. What was
        # written is there then, and is put in its place by the next resume().
        gone = [old.name for _, old in sorted(replaced.items(), reverse=True) if old != path]
        _core.publish_file(self._folder, written.name, path.name, gone)

    def _finish(self) -> None:
        """Ends a save that was cut short between its file and its name: it is the newest state there is."""
        with _core.HeldFolder.hold(self._folder, {}):  # not one that is just going on
            self._finish_held()

    def _finish_held(self) -> None:
        written = self._folder / _WRITTEN
        if not written.exists():
            return
        try:
            if not (report := verify(written)).ok:
                why = report.findings[0].message
                raise make_error(IntegrityError, f"{written}: {why}", "checksum_mismatch", path=os.fspath(written))
            with open_file(written) as file:
                assert isinstance(file, File)
                metadata, is_delta = file.metadata, file.is_delta
            info = metadata.get("training_info")
            number = info.get("curriculum_stage") if isinstance(info, Mapping) else None
            _facts(written, metadata, number if type(number) is int else 0)
        except (FormatError, IntegrityError, MissingFileError) as error:
            warn_caller(f"what a save that was cut short left is passed over: {error}")
            return
        assert isinstance(number, int)
        path = self._folder / f"stage{number}{'.delta' if is_delta else ''}.thalia"
        self._put(written, path, {stage: old for stage, old in self.checkpoints().items() if stage >= number})

    def _record(self, growth: Growth) -> None:
        if growth is None:
            return
        if isinstance(growth, Mapping):
            growth = [{"region": name, "neurons_added": n, "reason": "auto"} for name, n in growth.items() if n]
        steps = getattr(self.brain, "training_steps", None)
        step = steps if isinstance(steps, int) else _epochs(self.history) + self.epoch
        events = events_of(growth)  # now, not when the stage is saved
        self.growth_history += [{"step": step, **event} for event in events]

    def _growth(
        self, policy: Literal["auto"] | Callable[[Any, StageConfig], Growth] | None
    ) -> Callable[[Any, StageConfig], Growth] | None:
        if policy == "auto":
            if not callable(getattr(self.brain, "auto_grow", None)):
                return _auto_grown
            own: Callable[[Any, StageConfig], Growth] = self._own("auto_grow", lambda grow: lambda _, _config: grow())
            return own
        if policy is not None and not callable(policy):
            raise bad_argument("growth_policy", policy, "'auto', a function of the brain and its stage, or None")
        return policy

    def _own(self, name: str, wrap: Callable[[Any], Any]) -> Any:
        method = getattr(self.brain, name, None)
        if not callable(method):
            raise bad_argument("brain", type(self.brain).__qualname__, f"an object with {name}()")
        return wrap(method)


def _auto_grown(brain: Any, _: StageConfig) -> Growth:
    return {name: result.neurons_added for name, result in auto_grow(brain).items()}


def _tried(options: Mapping[str, Any], *, delta: bool) -> dict[str, Any]:
    """The options of saves to come, after a save of one number with them: hours of training lie between these."""
    tried = {key: value for key, value in options.items() if key != "progress"}
    base: dict[str, Any] = {"durability": "none"} if delta else tried
    brain = {"regions": {"region": {"tried": 0}}}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a policy that has nothing to convert here
        BrainCheckpoint.save(brain, FilePath(folder, "base"), **base)
        if delta:
            BrainCheckpoint.save_delta(brain, FilePath(folder, "delta"), FilePath(folder, "base"), **tried)
    return {**options}


def _identity(path: FilePath) -> Identity:
    facts = path.stat()
    return facts.st_ino, facts.st_mtime_ns


def _epochs(history: list[dict[str, Any]]) -> int:
    return sum(entry["epochs"] for entry in history)


def _check(config: StageConfig) -> None:
    for name, least in (("epochs", 1), ("checkpoint_every", 0)):
        value = getattr(config, name)
        if type(value) is not int or value < least:
            raise bad_argument(f"StageConfig.{name}", value, f"a whole number from {least}")
    to_json(asdict(config), "StageConfig")


def _facts(path: FilePath, metadata: Mapping[str, Any], stage: int) -> tuple[int, bool, list[dict[str, Any]]]:
    """Where in the curriculum a checkpoint was made, as its metadata say."""
    info = metadata.get("training_info")
    info = info if isinstance(info, Mapping) else {}
    epoch, done, history = info.get("epoch"), info.get("done"), info.get("history")
    fits = (
        info.get("curriculum_stage") == stage
        and type(epoch) is int
        and epoch >= 0
        and type(done) is bool
        and isinstance(history, list)
        and all(isinstance(entry, dict) and type(entry.get("epochs")) is int for entry in history)
    )
    if not fits:
        raise make_error(
            FormatError,
            f"{path}: metadata.training_info: got {dict(info)!r}, expected what a CurriculumTrainer writes of "
            f"stage {stage}",
            "bad_value",
            path=os.fspath(path),
            section="metadata",
            field="training_info",
        )
    assert isinstance(epoch, int) and isinstance(done, bool) and isinstance(history, list)
    return epoch, done, history
