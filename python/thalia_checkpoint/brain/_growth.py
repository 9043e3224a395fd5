"""Growth, pruning and capacity of brains in memory and in files. docs/format/growth.md."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

import numpy as np

from .. import _core
from .._core import (
    AppendResult,
    CapacityMetrics,
    GrowFileResult,
    GrownTensor,
    GrowthResult,
    LoadIntoResult,
    PrunedTensor,
    PruningResult,
)
from .._files.dtypes import numpy_dtype
from .._files.writer import SaveOptions
from .._keywords import suggests
from .._types import Path
from ..errors import UnsupportedError, UsageError, make_error
from ._arrays import borrowed, is_torch, reader
from ._in_memory import InFile, InMemory, is_path

if TYPE_CHECKING:
    from typing import Unpack

__all__ = [
    "AppendResult",
    "CapacityMetrics",
    "GrowFileOptions",
    "GrowFileResult",
    "GrownTensor",
    "GrowthOptions",
    "GrowthResult",
    "LoadIntoResult",
    "PrunedTensor",
    "PruningResult",
    "auto_grow",
    "auto_prune",
    "capacity_metrics",
    "check_growth_needs",
    "get_capacity_metrics",
    "grow_file",
    "grow_file_source",
    "grow_output",
    "grow_source",
    "load_into",
    "prune_synapses",
    "remove_neurons",
    "undo_pruning",
]

Initialization = Literal["sparse_random", "xavier", "uniform"]
#: What the axes of tensors count, by path: {"weights.w_rec": ["neurons", "neurons"]}.
Axes = Mapping[str, Sequence[str]]
Result = TypeVar("Result")
_U32 = (1 << 32) - 1
_U64 = (1 << 64) - 1


class GrowthOptions(TypedDict, total=False):
    """Keyword arguments of everything that grows. docs/format/growth.md, "Growth"."""

    initialization: Initialization
    """How new weights are drawn; "sparse_random". The same seed draws the same on every machine, in every language."""
    sparsity: float
    """The share of new connections that "sparse_random" makes, 0 to 1; 0.1."""
    scale: float | None
    """The bound of new weights; 0.3. For "xavier" it is a factor; 1."""
    seed: int
    """0"""
    population: str
    """Which population grows, where the region has several."""
    axes: Axes | None
    """What axes count; before `axes` in the region's metadata."""
    grow_targets: bool
    """Inputs that other regions have from this one grow with it."""
    reason: str
    """For the growth history."""


class GrowFileOptions(GrowthOptions, total=False):
    """Keyword arguments of what grows in a file. No grow_targets: that is refused."""

    compression: str | None
    """That of the tensors that grow; by itself the region's."""
    compression_level: int | None
    timestamp: int | None
    wait: bool
    """Until nobody else changes the file; else that is an IoError."""
    durability: Literal["full", "data", "none"]


@suggests
def grow_output(
    brain: Any,
    region: str,
    n_new: int,
    initialization: Initialization = "sparse_random",
    sparsity: float = 0.1,
    *,
    scale: float | None = None,
    seed: int = 0,
    population: str = "",
    axes: Axes | None = None,
    grow_targets: bool = False,
    reason: str = "",
    out: Path | None = None,
    save: SaveOptions | None = None,
) -> GrowthResult:
    """Adds neurons after the last one: rows of every matrix, and elements of all that has an axis of neurons.

    Connections from and to the region grow with it. What was there keeps its place and its bits. An event
    goes into the growth history.

    brain: a dictionary, which gets new arrays in the places of those that grow; an object with
        get_full_state(), whose load_full_state() then gets the state; or the path of a file, whose grown
        state is written to `out`. (grow_file() changes a file in place.)
    region: its name, or "pathway:NAME". It has to have neurons: RegionFacts.n_neurons of a BrainRegion, or
        as many as its membrane has elements.
    initialization, sparsity, scale, seed, population, axes, grow_targets, reason: as GrowthOptions has them.
    out, save: of a path, where the new file goes, and SaveOptions for it; it is not replaced unless they say so.

    Raises UsageError for a region that is not there ("not_found") or has no neurons ("wrong_state"), for axes
    that are ambiguous or do not fit, and for options out of bounds; UnsupportedError for what the library
    cannot take, or an object that cannot take its change back. After an error nothing has changed, unless it
    is one that load_full_state() or load_state_dict() raises.
    """
    options = _growth(initialization, sparsity, scale, seed, population, axes, grow_targets, reason)
    count = _whole("n_new", n_new, _U32)
    return _changed(brain, out, save, lambda core, _: core.grow_output(_text("region", region), count, options))


@suggests
def grow_source(
    brain: Any,
    region: str,
    source_name: str,
    new_size: int,
    initialization: Initialization = "sparse_random",
    sparsity: float = 0.1,
    *,
    scale: float | None = None,
    seed: int = 0,
    population: str = "",
    axes: Axes | None = None,
    reason: str = "",
    out: Path | None = None,
    save: SaveOptions | None = None,
) -> GrowthResult:
    """Gives a region `new_size` inputs from one source: columns of that source's tensors only.

    Does nothing if it has as many, and says so in `nothing_done`. The other arguments are those of
    grow_output(). Raises as grow_output(); UsageError ("not_found"), naming the sources that there are, for
    another.
    """
    options = _growth(initialization, sparsity, scale, seed, population, axes, grow_targets=False, reason=reason)
    size = _whole("new_size", new_size, _U64)
    source = _text("source_name", source_name)
    return _changed(brain, out, save, lambda core, _: core.grow_source(_text("region", region), source, size, options))


@suggests
def grow_file(path: Path, region: str, n_new: int, **options: Unpack[GrowFileOptions]) -> GrowFileResult:
    """grow_output() of a region of a .thalia file in place, as `thalia grow` does: other regions are neither read
    nor moved. A crash leaves the old state or the new one.

    options: GrowFileOptions.
    Raises as grow_output(); IoError, FormatError, IntegrityError; UnsupportedError for a file that cannot be
    appended to, such as a delta.
    """
    growth, append = _in_file(**options)
    return _core.grow_file(path, _text("region", region), _whole("n_new", n_new, _U32), growth, append)


@suggests
def grow_file_source(
    path: Path, region: str, source_name: str, n_new: int, **options: Unpack[GrowFileOptions]
) -> GrowFileResult:
    """The same of inputs: `n_new` more from that source. Raises as grow_file() and grow_source()."""
    growth, append = _in_file(**options)
    count, source = _whole("n_new", n_new, _U32), _text("source_name", source_name)
    return _core.grow_file_source(path, _text("region", region), source, count, growth, append)


@suggests
def prune_synapses(
    brain: Any,
    region: str,
    threshold: float = 0.01,
    min_age: int = 10_000,
    importance_history_window: int = 50_000,
    *,
    importance_threshold: float = 0.001,
    task_is_changing: bool = False,
    protected: Iterable[str] = (),
    reason: str = "",
    out: Path | None = None,
    save: SaveOptions | None = None,
) -> PruningResult:
    """Removes synapses that are weak, old and were unimportant for long: their weights become 0.

    Conservative: what the state does not say to be unused stays, and `spared` tells why. It has to have
    learning_state.synapse_age and .synapse_importance for each matrix, .importance_window_steps, and
    `task_change` of the whole brain (docs/format/growth.md, "Pruning").

    threshold: absolute values of weights below it are weak.
    min_age: steps that a synapse must have been there.
    importance_history_window: steps over which its importance must have been tracked, and since the last
        change of task.
    importance_threshold: importance below it counts as none.
    task_is_changing: nothing is pruned.
    protected: regions, and tensors as "REGION/weights.NAME", that are left alone.
    brain, region, out, save: as of grow_output(). `log` of the result is for undo_pruning().

    Raises UsageError for a region that is not there, for ages or importances of another shape than their
    matrix, and for options out of bounds; as grow_output().
    """
    guard = _core.PruneGuard(task_is_changing, _texts("protected", protected), _text("reason", reason))
    options = _prune(threshold, min_age, importance_history_window, importance_threshold, guard)
    return _changed(
        brain, out, save, lambda core, decode: core.prune_synapses(_text("region", region), options, decode)
    )


@suggests
def remove_neurons(
    brain: Any,
    region: str,
    n_remove: int,
    strategy: Literal["least_active"] = "least_active",
    *,
    min_silent: int = 100_000,
    strong_weight: float = 0.1,
    task_window: int = 50_000,
    protected_neurons: Iterable[int] = (),
    axes: Axes | None = None,
    task_is_changing: bool = False,
    protected: Iterable[str] = (),
    reason: str = "",
    out: Path | None = None,
    save: SaveOptions | None = None,
) -> PruningResult:
    """Removes up to `n_remove` neurons that are silent and have no strong connection, in or out.

    What has an axis of neurons shrinks, connections and the inputs of other regions too. It has to be known
    for how long neurons were silent (learning_state.silent_steps), and that the task does not change.

    strategy: which go first: "least_active", those that were silent longest.
    min_silent: neurons are silent that have not fired for more steps.
    strong_weight: a neuron with a weight of this size or more, in or out, stays.
    task_window: steps since the last change of task.
    protected_neurons: indices that stay.
    The other arguments are those of prune_synapses() and grow_output().

    Raises as prune_synapses(); UsageError for a region with populations or groups of neurons.
    """
    if strategy != "least_active":
        raise _bad("strategy", strategy, "'least_active'")
    kept = [_whole("protected_neurons", neuron, _U64) for neuron in protected_neurons]
    guard = _core.PruneGuard(task_is_changing, _texts("protected", protected), _text("reason", reason))
    options = _core.RemoveOptions(
        _whole("min_silent", min_silent, _U64),
        _number("strong_weight", strong_weight),
        _whole("task_window", task_window, _U64),
        kept,
        _axes(axes),
        guard,
    )
    count = _whole("n_remove", n_remove, _U64)
    return _changed(
        brain, out, save, lambda core, decode: core.remove_neurons(_text("region", region), count, options, decode)
    )


@suggests
def undo_pruning(
    brain: Any, log: Mapping[str, Any] | PruningResult, *, out: Path | None = None, save: SaveOptions | None = None
) -> None:
    """Puts back what was removed: where nothing has changed since, bit for bit. Other changes since then stay.

    log: a PruningResult, or its log. A state may have kept that, and been saved and loaded. The growth history
    keeps the pruning and gets an event of type growth. A result that removed nothing has no log, and undoing
    it does nothing.

    Raises UsageError for a tree that is no log, and where the state no longer has the tensors or shapes; as
    grow_output().
    """
    tree = log.log if isinstance(log, PruningResult) else log
    if not isinstance(tree, Mapping) and (tree is not None or tree is log):
        raise _bad("log", tree, "the log of a PruningResult")
    node = None if tree is None else _log_node(tree, "log")
    _changed(brain, out, save, lambda core, _: None if node is None else core.undo_pruning(node))


@suggests
def capacity_metrics(brain: Any, region: str) -> CapacityMetrics:
    """How much of a region's neurons and weights is in use. brain: a dictionary, an object, or the path of a file.

    Raises UsageError for a region that is not there; as grow_output().
    """
    return _core_of(brain).capacity_metrics(_text("region", region))


#: The source specification's name.
get_capacity_metrics = capacity_metrics


def check_growth_needs(brain: Any) -> dict[str, CapacityMetrics]:
    """The metrics of every region and pathway that has neurons, by name. Raises as capacity_metrics()."""
    return _core_of(brain).check_growth_needs()


@suggests
def auto_grow(
    brain: Any,
    threshold: float = 0.8,
    *,
    out: Path | None = None,
    save: SaveOptions | None = None,
    **growth: Unpack[GrowthOptions],
) -> dict[str, GrowthResult]:
    """Grows each region whose utilization is above the threshold: by the recommended number of neurons, else by a
    tenth, at least 8. What each region that has grown got, by name.

    growth: GrowthOptions. brain, out, save: as of grow_output(). Raises as grow_output(); UsageError for a
    threshold that is not from 0 to 1. After an error nothing has changed, in no region.
    """
    least = _number("threshold", threshold)
    options = _given(growth)
    return _changed(brain, out, save, lambda core, _: core.auto_grow(least, options))


@suggests
def auto_prune(
    brain: Any,
    enable: bool = False,
    safety_level: Literal["conservative", "aggressive"] = "conservative",
    *,
    threshold: float = 0.01,
    min_age: int = 10_000,
    importance_history_window: int = 50_000,
    importance_threshold: float = 0.001,
    task_is_changing: bool = False,
    protected: Iterable[str] = (),
    reason: str = "",
    out: Path | None = None,
    save: SaveOptions | None = None,
) -> dict[str, PruningResult]:
    """prune_synapses() of every region and pathway, if it is enabled. Neurons are never removed.

    safety_level: "aggressive" takes twice the thresholds; all other rules stay.
    The other arguments are those of prune_synapses(). Raises as that. After an error nothing has changed, in
    no region.
    """
    guard = _core.PruneGuard(task_is_changing, _texts("protected", protected), _text("reason", reason))
    options = _prune(threshold, min_age, importance_history_window, importance_threshold, guard)
    level = _text("safety_level", safety_level)
    return _changed(brain, out, save, lambda core, decode: core.auto_prune(bool(enable), level, options, decode))


@suggests
def load_into(
    target: Any,
    older: Any,
    on_larger: Literal["refuse", "grow"] = "refuse",
    *,
    out: Path | None = None,
    save: SaveOptions | None = None,
    **growth: Unpack[GrowthOptions],
) -> LoadIntoResult:
    """Loads an older, smaller state into a target that was built in larger shapes.

    Each tensor fills the corner of the target's of the same path and element type; what lies outside keeps
    the target's own. Values that are no tensors are taken over, but for those of a component `config`; so are
    the training steps and the metadata. What either has without a counterpart is named in the result.

    target: as `brain` of grow_output(): a dictionary or an object, or a path with `out`.
    older: a dictionary, an object with get_full_state(), or a path.
    on_larger: "grow" has the target grow, by the rules of growth, where the older state is larger.
    growth: GrowthOptions, of how it grows.

    Raises UsageError for a tensor of another rank or element type, for one that is larger in the older state if
    that is to be refused, and for a region without neurons whose counterpart has some; as grow_output().
    """
    options, larger = _given(growth), _text("on_larger", on_larger)
    source = InFile(older).core if is_path(older) else InMemory(older, to_change=False).core(metadata=True)
    if is_path(target):
        file = _file(target, out)
        result = file.core.load_into(source, larger, options)
        file.keep_own()
        assert out is not None
        file.save(out, save or {}, [older] if is_path(older) else [])
        return result
    _no_out(out, save)
    memory = InMemory(target)
    core = memory.core(metadata=True)
    result = core.load_into(source, larger, options)
    memory.take_back(core, metadata=True)
    return result


def _changed(
    brain: Any,
    out: Path | None,
    save: SaveOptions | None,
    work: Callable[[_core.Brain, Callable[[Any], Any]], Result],
) -> Result:
    """What work(core, decode) did to a brain, in memory or from file to file."""
    if is_path(brain):
        file = _file(brain, out)
        result = work(file.core, _log_of)
        assert out is not None
        file.save(out, save or {})
        return result
    _no_out(out, save)
    memory = InMemory(brain)
    core = memory.core()
    result = work(core, _log_of)
    memory.take_back(core)
    return result


def _core_of(brain: Any) -> _core.Brain:
    return InFile(brain).core if is_path(brain) else InMemory(brain, to_change=False).core()


def _file(path: Path, out: Path | None) -> InFile:
    if out is None:
        raise make_error(
            UsageError,
            f"{os.fspath(path)}: out: got None, expected the path of the new file; grow_file() grows one in place",
            "bad_argument",
            path=os.fspath(path),
            field="out",
        )
    return InFile(path)


def _no_out(out: Path | None, save: SaveOptions | None) -> None:
    for name, value in (("out", out), ("save", save)):
        if value is not None:
            raise _bad(name, value, "None for a brain in memory, which is changed itself")


def _log_of(node: Any) -> Any:
    """The log of a pruning, which a state may hold: its tensors as arrays, or as torch's where numpy has no type."""
    if isinstance(node, _core.LoadedTensor):
        try:
            numpy_dtype(node.dtype)
        except UnsupportedError:
            return reader("torch")(node)
        return reader("numpy")(node)
    if isinstance(node, dict):
        return {key: _log_of(value) for key, value in node.items()}
    return [_log_of(item) for item in node] if isinstance(node, list) else node


def _log_node(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return {_text(where, key): _log_node(member, f"{where}.{key}") for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_log_node(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, np.ndarray) or is_torch(value):
        return borrowed(where, value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise _bad(where, value, "what the log of a pruning holds")


def _growth(
    initialization: str,
    sparsity: float,
    scale: float | None,
    seed: int,
    population: str,
    axes: Axes | None,
    grow_targets: bool,
    reason: str,
) -> _core.GrowthOptions:
    return _core.GrowthOptions(
        _text("initialization", initialization),
        _number("sparsity", sparsity),
        None if scale is None else _number("scale", scale),
        _whole("seed", seed, _U64),
        _text("population", population),
        _axes(axes),
        bool(grow_targets),
        _text("reason", reason),
    )


@suggests
def _in_file(
    *,
    compression: str | None = None,
    compression_level: int | None = None,
    timestamp: int | None = None,
    wait: bool = False,
    durability: Literal["full", "data", "none"] = "full",
    **growth: Unpack[GrowthOptions],
) -> tuple[_core.GrowthOptions, _core.AppendOptions]:
    """GrowFileOptions taken apart. Raises TypeError for a name that is none of them."""
    return _given(growth), _core.AppendOptions(compression, compression_level, timestamp, wait, durability)


def _given(growth: GrowthOptions) -> _core.GrowthOptions:
    """Raises TypeError for a name that is none of GrowthOptions."""
    return _options(**growth)


@suggests
def _options(
    *,
    initialization: str = "sparse_random",
    sparsity: float = 0.1,
    scale: float | None = None,
    seed: int = 0,
    population: str = "",
    axes: Axes | None = None,
    grow_targets: bool = False,
    reason: str = "",
) -> _core.GrowthOptions:
    return _growth(initialization, sparsity, scale, seed, population, axes, grow_targets, reason)


def _prune(
    threshold: float, min_age: int, window: int, importance_threshold: float, guard: _core.PruneGuard
) -> _core.PruneOptions:
    return _core.PruneOptions(
        _number("threshold", threshold),
        _whole("min_age", min_age, _U64),
        _whole("importance_history_window", window, _U64),
        _number("importance_threshold", importance_threshold),
        guard,
    )


def _axes(axes: Axes | None) -> dict[str, list[str]]:
    if axes is None:
        return {}
    if not isinstance(axes, Mapping):
        raise _bad("axes", axes, "a dictionary of lists of texts")
    return {_text("axes", path): _texts(f"axes.{path}", of) for path, of in axes.items()}


def _texts(field: str, values: Any) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _bad(field, values, "a list of texts")
    return [_text(field, value) for value in values]


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _bad(field, value, "a text")
    return value


def _number(field: str, value: Any) -> float:
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise _bad(field, value, "a number")


def _whole(field: str, value: Any, most: int) -> int:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= most:
        raise _bad(field, value, f"a whole number from 0 to {most}")
    return number


def _bad(field: str, value: object, expected: str) -> Exception:
    return make_error(
        UsageError,
        f"{field}: got {str(value)[:200]!r}, expected {expected}",
        "bad_argument",
        field=field,
        value=str(value)[:200],
        expected=expected,
    )
