"""From one phase to the next: plans, what of a checkpoint fits a model, and records of earlier versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import _core
from .._core import ModelFit, TransitionResult, TransitionStep
from .._files.dtypes import constructor_names
from .._files.file import File
from .._html import of_result
from .._keywords import suggests
from ..errors import UnsupportedError, UsageError, make_error

__all__ = [
    "MigratedRecord",
    "ModelFit",
    "TransitionPlan",
    "TransitionResult",
    "TransitionStep",
    "check_strictly",
    "compare_with_model",
    "expected_tensors",
    "hydra_config",
    "hydra_transitions",
    "migrate_record",
    "plan_members",
]

_Tensor = tuple[str, str, tuple[int, ...]]
_DTYPES = constructor_names()


@suggests
@dataclass(frozen=True, kw_only=True)
class TransitionPlan:
    """What carries over from one phase to the next, and what begins anew. dataclasses.replace() makes
    another one of it."""

    from_phase: str
    to_phase: str
    gate: str
    """That is loaded; there is nothing to fall back to."""
    checks: Mapping[str, float] = field(default_factory=dict)
    """Members of the gate's metadata that have to have a value: paths through objects, with dots."""
    carries: Sequence[str] = ()
    """Patterns of what is carried over; empty: all but what is reset."""
    resets: Sequence[str] = ()
    """What begins anew: these patterns fit tensors, and members of the metadata by their names."""
    copies: Sequence[tuple[str, str]] = ()
    """Tensors that begin the phase as a copy of others: what names begin with, and what those of the copies do."""
    anchor: Sequence[str] = ()
    """Patterns of the policy that is kept frozen next to the start, as kl_anchor.thalia; empty: none."""
    pool_anchors: Sequence[str] = ()
    """Gates that begin the pool of the next phase."""
    seeds_pool: bool = False
    """Ratings of the pool's members begin anew."""


def plan_members(plan: TransitionPlan) -> dict[str, Any]:
    """A plan as the core takes it."""
    lists = ("carries", "resets", "copies", "anchor", "pool_anchors")
    return {**vars(plan), "checks": dict(plan.checks), **{name: list(getattr(plan, name)) for name in lists}}


def hydra_config() -> dict[str, Any]:
    """The Hydra specification's configuration, for create_run(): three phases, their gates and metrics, the pool, and
    the keys of records."""
    config: dict[str, Any] = json.loads(_core.hydra_config_json())
    return config


def hydra_transitions() -> tuple[TransitionPlan, ...]:
    """The same specification's plans, from phase1 to phase2 and on to phase3."""
    return tuple(TransitionPlan(**members) for members in _core.hydra_transitions())


@suggests
def compare_with_model(file: File, model: Mapping[str, Any], patterns: Iterable[str] = ()) -> ModelFit:
    """What of a file's tensors a model lacks, what it has too much, and what has another shape or dtype. No tensor
    is read.

    model: tensors or arrays of any kind (those of torch may be on the device meta) by their names in the file; as
        values also mappings of these, and objects with state_dict(), whose names follow after a dot:
        {"model_record": module}. A name may be REGION/NAME.
    patterns: which of the file's tensors are held against it, as of a precision policy: "model_record.*". By itself
        all.
    Raises UsageError for a model without a tensor; UnsupportedError for a dtype that no file holds.
    """
    return _core.compare_with_model(file._raw, expected_tensors(model), list(patterns))


@suggests
def check_strictly(file: File, model: Mapping[str, Any], patterns: Iterable[str] = ()) -> None:
    """The same. Raises UsageError that lists all that does not fit, also as compare_with_model()."""
    _core.check_strictly(file._raw, expected_tensors(model), list(patterns))


class MigratedRecord(NamedTuple):
    """A record as this program has them."""

    record: dict[str, Any]
    from_version: int

    def _repr_html_(self) -> str:
        return of_result(self)

    """That it had."""


Migration = Callable[[dict[str, Any]], "dict[str, Any] | None"]


@suggests
def migrate_record(
    record: Mapping[str, Any],
    version: int,
    migrations: Mapping[int, Migration],
    *,
    version_key: str = "checkpoint_version",
) -> MigratedRecord:
    """Takes a record through one migration for each version up to `version`; nothing is guessed.

    record: metadata, or an object that was saved. What is given stays as it is, but for what a migration changes deep
        in it.
    migrations: by the version that each takes: it changes the record, or returns another one, which is of the next
        version.
    Raises UnsupportedError for a record that is newer, or of a version that no migration takes; FormatError for one
    without a version; what a migration raises.
    """
    return MigratedRecord(*_core.migrate_record(dict(record), version, version_key, dict(migrations)))


def expected_tensors(model: Mapping[str, Any]) -> list[_Tensor]:
    """Name, dtype and shape of each tensor of a model. Raises as compare_with_model()."""
    found = list(_tensors_in(model, ""))
    if not found:
        raise make_error(
            UsageError, "model: has no tensor; expected tensors by their names", "bad_argument", field="model"
        )
    return found


def _tensors_in(value: Any, name: str) -> Iterator[_Tensor]:
    state_dict = getattr(value, "state_dict", None)
    if callable(state_dict):
        value = state_dict()
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _tensors_in(inner, f"{name}.{key}" if name else str(key))
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        yield name, _dtype_of(value.dtype, name), tuple(map(int, value.shape))
    else:
        raise make_error(
            UsageError,
            f"model: {name or 'the whole'} is a {type(value).__qualname__}; expected tensors, or mappings of these",
            "bad_argument",
            field="model",
            tensor=name,
        )


def _dtype_of(dtype: Any, name: str) -> str:
    text = str(getattr(dtype, "name", dtype)).removeprefix("torch.")
    found = text if text in _DTYPES.values() else _DTYPES.get(text)
    if found is None:
        raise make_error(
            UnsupportedError,
            f"{name}: a file cannot hold elements of {text}",
            "unsupported_dtype",
            tensor=name,
            value=text,
        )
    return found
