"""BrainCheckpoint: a brain's whole state in one call each way."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from .. import _core, _log
from .._files.async_saver import AsyncSaver, PendingSave
from .._keywords import suggests
from .._support import paths
from .._types import Path, ReadOptions
from ..errors import ThaliaError, UnsupportedError, UsageError, make_error
from . import _metadata, _save
from ._arrays import Framework
from ._decode import decode_region
from ._facts import BRAIN, remember
from ._load import MAX_BYTES, Loader, OpenBrain, warn_of
from ._policy import PrecisionPolicy
from ._state import BrainState

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import PlainOptions

Brain = TypeVar("Brain")


class Validation(NamedTuple):
    """What BrainCheckpoint.validate() found: a pair."""

    valid: bool
    issues: list[str]


@suggests
class BrainCheckpoint:
    """Static functions that share nothing: any thread may call any of them."""

    @staticmethod
    def save(
        brain: Any,
        path: Path,
        metadata: Mapping[str, Any] | None = None,
        compression: str | bool | None = None,
        compression_level: int | None = None,
        precision_policy: str | PrecisionPolicy | None = None,
        include_homeostatic: bool = True,
        *,
        base_checkpoint: Path | None = None,
        delta: bool = False,
        sparse: bool = True,
        **options: Unpack[PlainOptions],
    ) -> dict[str, Any]:
        """Writes the whole state. The old file or the new one is there, whatever happens.

        brain: an object with get_full_state(), or a dictionary. Members of `regions` and `pathways`,
            or else all members that are dictionaries, become regions of the file. What a state may
            hold: tensors, arrays, numbers, texts, bytes, dataclasses, enumerations (their values),
            and dictionaries, lists, tuples and sets of these.
        metadata: a JSON object; by itself, of a state that was loaded or of an object that loaded one,
            that of its file. So it is with what the file says of regions (BrainRegion.facts) and with
            connections; a list of these may also be the member "connections" of any state with regions.
            `growth_history` in it, or else the state's or brain's, is kept as events of growth.
            `version`, `thalia_version`, `created` and `precision_policy` are the new file's own.
        compression: "zstd", "lz4", or another of SaveOptions, of the tensors in the file. A path
            that ends in .zst or .lz4 has the whole file compressed so.
        compression_level: 1 to 22 of zstd, 1 to 12 of lz4.
        precision_policy: a name of PRECISION_POLICIES or a PrecisionPolicy; without one all tensors
            stay as they are.
        include_homeostatic: False leaves out the component `homeostatic` of all regions.
        base_checkpoint, delta: as save_delta().
        sparse: tensors of which more than 90 % are zeros are stored as their entries.
        options: those of SaveOptions.

        Returns path, file_size, file_size_mb, num_regions, num_pathways, total_neurons,
        total_synapses, checksum, compression, compression_level, precision_policy, precision_stats.
        Raises UnsupportedError that names the place of what cannot be saved; UsageError, IoError.
        """
        if delta or base_checkpoint is not None:
            if base_checkpoint is None:
                raise make_error(
                    UsageError, "delta: expected base_checkpoint too", "bad_argument", field="base_checkpoint"
                )
            return BrainCheckpoint.save_delta(
                brain,
                path,
                base_checkpoint,
                metadata=metadata,
                compression=compression,
                compression_level=compression_level,
                precision_policy=precision_policy,
                include_homeostatic=include_homeostatic,
                sparse=sparse,
                **options,
            )
        plan = _save.plan(
            brain,
            path,
            metadata,
            compression=compression,
            level=compression_level,
            include_homeostatic=include_homeostatic,
            policy=precision_policy,
            sparse=sparse,
            options=options,
        )
        FilePath(path).parent.mkdir(parents=True, exist_ok=True)
        return summary_of(plan.brain.save(path, plan.options), path, compression, compression_level)

    @staticmethod
    def save_delta(
        brain: Any,
        path: Path,
        base_checkpoint: Path,
        threshold: float = 0.0,
        metadata: Mapping[str, Any] | None = None,
        compression: str | bool | None = None,
        compression_level: int | None = None,
        precision_policy: str | PrecisionPolicy | None = None,
        include_homeostatic: bool = True,
        *,
        sparse: bool = True,
        pack: bool = True,
        search: Iterable[Path] = (),
        **options: Unpack[PlainOptions],
    ) -> dict[str, Any]:
        """Writes what the state has that the base, a full checkpoint or a delta itself, has not.

        The delta finds its base by the path from its own folder, so that folders may be moved
        whole, and needs exactly that file.

        threshold: 0 loses nothing; else weights that moved by less keep the base's value. (The
            specification's default is 1e-5.)
        precision_policy: by itself the base's; "keep" for none.
        pack: a small delta is stored without what follows from the rest of it, docs/format/packed.md. In
            frames it is plain.
        search: folders in which bases of the base are looked for.
        The other arguments are those of save().

        Returns what save() does, and base_checkpoint, delta_checkpoint, base_size_mb,
        delta_size_mb, compression_ratio (base to delta), savings_percent, changed_regions,
        changed_pathways. Raises MissingFileError for a base that is not there; UnsupportedError for
        one of the original program (migrate() makes one that serves); as save() and delta().
        """
        plan, delta = _planned_delta(
            brain,
            path,
            base_checkpoint,
            threshold,
            metadata,
            compression,
            compression_level,
            precision_policy,
            include_homeostatic,
            sparse=sparse,
            pack=pack,
            search=search,
            options=options,
        )
        FilePath(path).parent.mkdir(parents=True, exist_ok=True)
        reported = plan.brain.save_delta(path, base_checkpoint, delta)
        return _delta_summary(reported, path, base_checkpoint, compression, compression_level)

    @staticmethod
    def save_async(
        brain: Any,
        path: Path,
        metadata: Mapping[str, Any] | None = None,
        compression: str | bool | None = None,
        compression_level: int | None = None,
        precision_policy: str | PrecisionPolicy | None = None,
        include_homeostatic: bool = True,
        *,
        saver: AsyncSaver,
        snapshot: Literal["copy", "borrowed"] = "copy",
        sparse: bool = True,
        **options: Unpack[PlainOptions],
    ) -> BrainSaveHandle:
        """As save(), in the background. With snapshot="copy" the brain may change once this is back.

        saver: writes it. With snapshot="borrowed" nothing is copied: arrays stay as they are until the
            handle is done. Tensors on other devices than the CPU are copied from there first.

        Returns a handle whose wait() gives what save() returns. Raises as save() and AsyncSaver.save();
        what goes wrong later comes through the handle.
        """
        plan = _save.plan(
            brain,
            path,
            metadata,
            compression=compression,
            level=compression_level,
            include_homeostatic=include_homeostatic,
            policy=precision_policy,
            sparse=sparse,
            options=options,
        )
        FilePath(path).parent.mkdir(parents=True, exist_ok=True)
        handle = plan.brain.save_async(saver._raw, path, snapshot, plan.options)
        return BrainSaveHandle(handle, lambda reported: summary_of(reported, path, compression, compression_level))

    @staticmethod
    def save_delta_async(
        brain: Any,
        path: Path,
        base_checkpoint: Path,
        threshold: float = 0.0,
        metadata: Mapping[str, Any] | None = None,
        compression: str | bool | None = None,
        compression_level: int | None = None,
        precision_policy: str | PrecisionPolicy | None = None,
        include_homeostatic: bool = True,
        *,
        saver: AsyncSaver,
        snapshot: Literal["copy", "borrowed"] = "copy",
        sparse: bool = True,
        pack: bool = True,
        search: Iterable[Path] = (),
        **options: Unpack[PlainOptions],
    ) -> BrainSaveHandle:
        """As save_delta(), in the background; `saver` and `snapshot` as of save_async().

        The base is a checkpoint that was saved: wait for its handle first. It is opened before this is
        back, and read in the background. Returns a handle whose wait() gives what save_delta() returns.
        Raises as save_delta() and AsyncSaver.save().
        """
        plan, delta = _planned_delta(
            brain,
            path,
            base_checkpoint,
            threshold,
            metadata,
            compression,
            compression_level,
            precision_policy,
            include_homeostatic,
            sparse=sparse,
            pack=pack,
            search=search,
            options=options,
        )
        FilePath(path).parent.mkdir(parents=True, exist_ok=True)
        handle = plan.brain.save_delta_async(saver._raw, path, base_checkpoint, snapshot, delta)
        return BrainSaveHandle(
            handle, lambda reported: _delta_summary(reported, path, base_checkpoint, compression, compression_level)
        )

    @overload
    @staticmethod
    def load(
        path: Path,
        device: Any = None,
        regions: Iterable[str] | None = None,
        lazy: bool = False,
        resolve_deltas: bool = True,
        *,
        into: None = None,
        framework: Framework | None = None,
        classes: Iterable[type] = (),
        max_bytes: int = MAX_BYTES,
        search: Iterable[Path] = (),
        **options: Unpack[ReadOptions],
    ) -> BrainState: ...
    @overload
    @staticmethod
    def load(
        path: Path,
        device: Any = None,
        regions: Iterable[str] | None = None,
        lazy: bool = False,
        resolve_deltas: bool = True,
        *,
        into: Brain,
        framework: Framework | None = None,
        classes: Iterable[type] = (),
        max_bytes: int = MAX_BYTES,
        search: Iterable[Path] = (),
        **options: Unpack[ReadOptions],
    ) -> Brain: ...
    @staticmethod
    def load(
        path: Path,
        device: Any = None,
        regions: Iterable[str] | None = None,
        lazy: bool = False,
        resolve_deltas: bool = True,
        *,
        into: Any = None,
        framework: Framework | None = None,
        classes: Iterable[type] = (),
        max_bytes: int = MAX_BYTES,
        search: Iterable[Path] = (),
        **options: Unpack[ReadOptions],
    ) -> Any:
        """The state that was saved, in memory of its own; of a delta, the one that it stands for.

        Tensors come back in the type and kind that they had, dense; of files of the original
        program as torch tensors. A state with regions has also the file's metadata under
        "metadata".

        device: where torch tensors are put; arrays that the file has of numpy stay arrays, unless
            the whole state has no others.
        regions: names of regions, pathways as "pathway:NAME"; the others are left out or, with
            `lazy`, read on first access. With `lazy` alone all are.
        resolve_deltas: False refuses a delta.
        into: an object whose load_full_state() gets the state; it is what is returned then. Saved
            later, it keeps what the file says beside the state, unless its class has no weak references.
        framework: "numpy" or "torch", whatever was saved.
        classes: dataclasses to make again; those of other classes are dictionaries of their fields.
        max_bytes: of the file, and of all tensors; more is refused.
        search: folders in which a delta's base is looked for when it is not where the delta says.
        options: access, verification and threads of open().

        Raises MissingFileError, IoError, FormatError, IntegrityError; NotFoundError for a region
        that is not there; UnsupportedError for a delta of the original program, which is a pickle;
        UsageError for an `into` without load_full_state(), or another framework; ImportError
        where the state has torch tensors and torch is not installed.
        """
        if into is not None and not callable(getattr(into, "load_full_state", None)):
            raise make_error(
                UsageError,
                f"into: got {type(into).__qualname__}, expected an object with load_full_state()",
                "bad_argument",
                field="into",
            )
        if framework not in (None, "numpy", "torch") or (framework == "numpy" and device is not None):
            raise make_error(
                UsageError,
                f"framework: got {framework!r}, expected 'numpy', without a device, or 'torch'",
                "bad_argument",
                field="framework",
                value=str(framework),
            )
        if isinstance(regions, str):
            regions = [regions]
        names = None if regions is None else list(regions)
        brain = OpenBrain(
            path,
            regions=names or (),
            # No region at all is not all of them.
            lazy=lazy or names == [],
            resolve_deltas=resolve_deltas,
            max_bytes=max_bytes,
            search=search,
            **options,
        )
        warn_of(brain)
        dialect = brain.dialect(framework, device, classes)
        state = Loader(brain, dialect, max_bytes).state(set(names or ()) if lazy or names == [] else None)
        if into is None:
            return state
        into.load_full_state(state)
        remember(into, state.beside)
        return into

    @staticmethod
    def info(path: Path) -> dict[str, Any]:
        """What a checkpoint says of itself; no tensor is read, but of the original program's files all.

        file_path, file_size, version (of the format), timestamp (ISO 8601, local), num_regions,
        total_neurons, total_synapses, training_steps, regions (names, those of pathways as
        "pathway:NAME"), metadata, growth_history (events as docs/format/states.md names their members) and
        is_delta. Raises as load().
        """
        reported = _core.brain_info(path)
        metadata = reported.metadata
        names = [*reported.regions, *(f"{_save.PATHWAY}{name}" for name in reported.pathways)]
        # A file that was converted from the original program's has some of that file's members in the state.
        state: dict[str, Any] = {}
        if _metadata.SOURCE in metadata:
            state = OpenBrain(path, lazy=True, read_tensors=False, verification="off").core.state
        return {
            "file_path": os.fspath(path),
            "file_size": reported.file_bytes,
            "version": reported.version,
            "timestamp": datetime.datetime.fromtimestamp(reported.timestamp).isoformat(),
            "num_regions": len(names),
            "total_neurons": reported.total_neurons,
            "total_synapses": reported.total_synapses,
            "training_steps": reported.training_steps,
            "regions": names,
            "metadata": _metadata.shown(metadata, state),
            "growth_history": _metadata.events_in(metadata),
            "is_delta": reported.is_delta,
        }

    @staticmethod
    def validate(path: Path, *, search: Iterable[Path] = ()) -> Validation:
        """Whether every byte is what was written, of a delta's bases too, and the state can be made.

        Returns (valid, issues), a sentence each. Never raises for what the file holds, or if
        there is none.
        """
        if not os.path.exists(path):
            return Validation(False, [f"File not found: {os.fspath(path)}"])
        try:
            _, issues, opened = _core.validate_brain(path, paths(search))
            if opened is None:
                return Validation(False, issues)
            # What the library takes for values like others: Python's.
            brain = OpenBrain(path, opened=opened)
            dialect = brain.dialect("numpy", None, ())
            for name in brain.names():
                decode_region(name, brain.region(name)[0], dialect, lambda tensor: None)
            decode_region(BRAIN, brain.core.state, dialect, lambda tensor: None)
            return Validation(True, [])
        except (ThaliaError, OSError) as error:
            return Validation(False, [str(error)])


class BrainSaveHandle(PendingSave[dict[str, Any]]):
    """A save of a brain that runs in the background; `await handle` and `handle.wait()` give what the same
    save in the foreground returns.

    The save goes on where nobody keeps its handle. Any thread may use one.
    """

    def __init__(
        self,
        raw: _core.BrainSaveHandle | _core.BrainDeltaHandle,
        summary: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        super().__init__(raw)
        self._summary = summary
        self._summed_up: dict[str, Any] | None = None

    def _result(self, found: dict[str, Any]) -> dict[str, Any]:
        if self._summed_up is None:  # once, as it is told in the log
            self._summed_up = self._summary(found)
        return dict(self._summed_up)


def _planned_delta(
    brain: Any,
    path: Path,
    base_checkpoint: Path,
    threshold: float,
    metadata: Mapping[str, Any] | None,
    compression: str | bool | None,
    compression_level: int | None,
    precision_policy: str | PrecisionPolicy | None,
    include_homeostatic: bool,
    *,
    sparse: bool,
    pack: bool,
    search: Iterable[Path],
    options: Mapping[str, Any],
) -> tuple[_save.Plan, _core.BrainDeltaOptions]:
    if _core.detect_format(base_checkpoint) == "thalia-0.1":
        raise make_error(
            UnsupportedError,
            f"{os.fspath(base_checkpoint)}: a checkpoint of the original program; migrate(path, out, to='1.0') makes "
            "one that a delta may be based on",
            "unsupported_feature",
            path=os.fspath(base_checkpoint),
            field="base_checkpoint",
        )
    plan = _save.plan(
        brain,
        path,
        metadata,
        compression=compression,
        level=compression_level,
        include_homeostatic=include_homeostatic,
        policy=precision_policy,
        sparse=sparse,
        options=options,
    )
    keep = precision_policy is None
    return plan, _save.delta_options(plan, keep_policy=keep, threshold=threshold, pack=pack, search=search)


def summary_of(
    reported: dict[str, Any], path: Path, compression: str | bool | None, level: int | None, what: str = "saved"
) -> dict[str, Any]:
    """What save() returns, and its line in the log. reported: what the library says about the save."""
    _log.saved(what, path, reported["file_size"], reported.pop("seconds"))
    codec = reported.pop("codec", None) or _core.frames_of_name(path) or _save.codec_of(path, compression)
    return {
        **reported,
        "path": os.fspath(path),
        "file_size_mb": reported["file_size"] / (1 << 20),
        "compression": None if codec == "none" else codec,
        "compression_level": level,
    }


def _delta_summary(
    reported: dict[str, Any], path: Path, base: Path, compression: str | bool | None, level: int | None
) -> dict[str, Any]:
    base_size, changed = reported.pop("base_size"), reported.pop("changed_regions")
    pathways = sum(name.startswith(_save.PATHWAY) for name in changed)
    size = reported["file_size"]
    return {
        **summary_of(reported, path, compression, level, "saved delta"),
        "base_checkpoint": os.fspath(base),
        "delta_checkpoint": os.fspath(path),
        "base_size_mb": base_size / (1 << 20),
        "delta_size_mb": size / (1 << 20),
        "compression_ratio": base_size / size,
        "savings_percent": 100 * (1 - size / base_size),
        "changed_regions": len(changed) - pathways,
        "changed_pathways": pathways,
    }
