"""BrainCheckpoint: a brain's whole state in one call each way."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any, NamedTuple, TypeVar, overload

from . import _brain_save, _core
from ._brain_arrays import Framework
from ._brain_decode import decode_region
from ._brain_facts import remember
from ._brain_load import MAX_BYTES, Loader, check_size, open_brain
from ._brain_metadata import FORMAT_VERSION, ORIGINAL_VERSION, events_in
from ._brain_policy import PrecisionPolicy, policy_from, policy_of, statistics
from ._brain_state import BrainState
from ._file import Path
from ._keywords import suggests
from ._operations import paths, save_options
from ._verify import verify
from .errors import ThaliaError, UnsupportedError, UsageError, make_error

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
        **options: Any,
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
        form = _brain_save.form_of(path, compression, compression_level)
        policy = policy_of(precision_policy)
        plan = _brain_save.plan(
            brain,
            metadata,
            include_homeostatic=include_homeostatic,
            policy=policy,
            sparse=sparse,
            options=options,
        )
        written = _brain_save.write(plan, FilePath(path), form, options, policy=policy)
        return _summary(path, form, written.checksum)

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
        search: Iterable[Path] = (),
        **options: Any,
    ) -> dict[str, Any]:
        """Writes what the state has that the base, a full checkpoint or a delta itself, has not.

        The delta finds its base by the path from its own folder, so that folders may be moved
        whole, and needs exactly that file.

        threshold: 0 loses nothing; else weights that moved by less keep the base's value. (The
            specification's default is 1e-5.)
        precision_policy: by itself the base's; "keep" for none.
        search: folders in which bases of the base are looked for.
        The other arguments are those of save().

        Returns what save() does, and base_checkpoint, delta_checkpoint, base_size_mb,
        delta_size_mb, compression_ratio (base to delta), savings_percent, changed_regions,
        changed_pathways. Raises MissingFileError for a base that is not there; UnsupportedError for
        one of the original program (migrate() makes one that serves); as save() and delta().
        """
        form = _brain_save.form_of(path, compression, compression_level)
        search = paths(search)  # it is gone through several times
        save_options({}, path, (base_checkpoint,))  # not the base itself
        base = open_brain(base_checkpoint, warn=False, verification="off", search=search)
        if base.file.path != os.fspath(base_checkpoint):
            raise make_error(
                UnsupportedError,
                f"{base.path}: a checkpoint of the original program; migrate(path, out, to='1.0') makes one that a "
                "delta may be based on",
                "unsupported_feature",
                path=base.path,
                field="base_checkpoint",
            )
        if precision_policy is None:
            precision_policy = policy_from(base.metadata.get("precision_policy"))
        policy = policy_of(precision_policy)
        plan = _brain_save.plan(
            brain,
            metadata,
            include_homeostatic=include_homeostatic,
            policy=policy,
            sparse=sparse,
            options=options,
        )
        base.file.close()
        written = _brain_save.write(
            plan,
            FilePath(path),
            form,
            options,
            policy=policy,
            base=base_checkpoint,
            threshold=threshold,
            search=search,
        )
        sizes = os.path.getsize(base_checkpoint), os.path.getsize(path)
        return {
            **_summary(path, form, written.checksum, search),
            "base_checkpoint": os.fspath(base_checkpoint),
            "delta_checkpoint": os.fspath(path),
            "base_size_mb": sizes[0] / (1 << 20),
            "delta_size_mb": sizes[1] / (1 << 20),
            "compression_ratio": sizes[0] / sizes[1],
            "savings_percent": 100 * (1 - sizes[1] / sizes[0]),
            "changed_regions": sum(not name.startswith(_brain_save.PATHWAY) for name in written.changed),
            "changed_pathways": sum(name.startswith(_brain_save.PATHWAY) for name in written.changed),
        }

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
        **options: Any,
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
        **options: Any,
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
        **options: Any,
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
        check_size(path, max_bytes)
        brain = open_brain(path, search=search, **options)
        if brain.file.is_delta and not resolve_deltas:
            raise make_error(
                UnsupportedError,
                f"{os.fspath(path)}: a delta; resolve_deltas=True gives the state that it stands for",
                "unsupported_feature",
                path=os.fspath(path),
                field="resolve_deltas",
            )
        loader = Loader(brain, brain.dialect(framework, device, classes), max_bytes)
        state = loader.state(regions, lazy)
        if into is None:
            return state
        into.load_full_state(state)
        remember(into, state.beside)
        return into

    @staticmethod
    def info(path: Path, *, search: Iterable[Path] = ()) -> dict[str, Any]:
        """What a checkpoint says of itself; no tensor is read, but of the original program's files all.

        file_path, file_size, version (of the format), timestamp (ISO 8601, local), num_regions,
        total_neurons, total_synapses, training_steps, regions (names, those of pathways as
        "pathway:NAME"), metadata, growth_history (events as docs/format/states.md names their members) and
        is_delta. Raises as load().
        """
        brain = open_brain(path, warn=False, search=search)
        header = brain.file.header
        names = brain.names()
        return {
            "file_path": os.fspath(path),
            "file_size": os.path.getsize(path),
            "version": ORIGINAL_VERSION if brain.file.path != os.fspath(path) else FORMAT_VERSION,
            "timestamp": datetime.datetime.fromtimestamp(header["timestamp"]).isoformat(),
            "num_regions": len(names),
            "total_neurons": header["total_neurons"],
            "total_synapses": brain.synapses(),
            "training_steps": header["training_steps"],
            "regions": names,
            "metadata": brain.shown_metadata(),
            "growth_history": events_in(brain.metadata),
            "is_delta": brain.file.is_delta,
        }

    @staticmethod
    def validate(path: Path, *, search: Iterable[Path] = ()) -> Validation:
        """Whether every byte is what was written, of a delta's bases too, and the state can be made.

        Returns (valid, issues), a sentence each. Never raises for what the file holds, or where
        there is none.
        """
        search = paths(search)
        if not os.path.exists(path):
            return Validation(False, [f"File not found: {os.fspath(path)}"])
        try:
            # Files of the original program are read to their last byte when they are opened.
            if _core.detect_format(path) != "thalia-0.1":
                report = verify(path, search=search)
                if not report.ok:
                    return Validation(False, [f.message for f in report.findings if f.severity == "error"])
            brain = open_brain(path, warn=False, verification="off", search=search)
            dialect = brain.dialect("numpy", None, ())
            for region in brain.file.values():
                decode_region(region, dialect, lambda tensor, dtype: None)
            events_in(brain.metadata)
            return Validation(True, [])
        except (ThaliaError, OSError) as error:
            return Validation(False, [str(error)])


def _summary(path: Path, form: _brain_save.Form, checksum: str, search: Iterable[Path] = ()) -> dict[str, Any]:
    brain = open_brain(path, verification="off", search=search)
    names = brain.names()
    header = brain.file.header
    size = os.path.getsize(path)
    return {
        "path": os.fspath(path),
        "file_size": size,
        "file_size_mb": size / (1 << 20),
        "num_regions": sum(not name.startswith(_brain_save.PATHWAY) for name in names),
        "num_pathways": sum(name.startswith(_brain_save.PATHWAY) for name in names),
        "total_neurons": header["total_neurons"],
        "total_synapses": header["total_synapses"],
        "checksum": checksum,
        "compression": form.frames or form.codec,
        "compression_level": form.level,
        "precision_policy": brain.metadata.get("precision_policy", "keep"),
        "precision_stats": statistics(tensor for region in brain.file.values() for tensor in region.values()),
    }
