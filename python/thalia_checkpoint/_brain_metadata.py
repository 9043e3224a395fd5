"""Metadata of a brain's checkpoint: the members of docs/format/states.md, "Metadata", and events of growth."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _core
from ._leaves import DEPTH, INT_BITS, described, is_text
from .errors import FormatError, ThaliaError, UsageError, make_error

FORMAT_VERSION = "1.0.0"
ORIGINAL_VERSION = "0.1.0"
#: What this package tells itself of a file: {"version", "layout", "arrays", "keys"}.
MEMBER = "thalia_brain"
#: What a reader of version 0.1 tells of the file that it read. docs/format/v01.md, "States of version 0.1".
ORIGIN = "v0_1"
NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_OLD_NAMES = {
    "component_name": "region",
    "n_neurons_added": "neurons_added",
    "n_synapses_added": "synapses_added",
}


def complete(
    metadata: Mapping[str, Any] | None,
    events: Iterable[Mapping[str, Any]],
    timestamp: int | None,
) -> dict[str, Any]:
    """A user's metadata with the members that every state has. Raises UsageError for what is no JSON.

    timestamp: seconds since 1970; without it `created` is left out.
    """
    found: dict[str, Any] = {"version": FORMAT_VERSION, "thalia_version": _core.__version__}
    if timestamp is not None:
        found["created"] = datetime.datetime.fromtimestamp(timestamp, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found |= {"description": "", "tags": [], "growth_history": [], "training_info": {}, "hardware": {}, "custom": {}}
    # A policy that a user's metadata name, such as those of another file, is not the one of this file.
    mine = {*found, MEMBER, ORIGIN, "created", "precision_policy"}
    mine -= {"description", "tags", "training_info", "hardware", "custom"}
    found |= {key: value for key, value in (metadata or {}).items() if key not in mine}
    found["growth_history"] = [event_of(event) for event in events]
    plain: dict[str, Any] = to_json(found, "metadata")
    return plain


def to_json(value: Any, where: str, depth: int = 0) -> Any:
    """JSON of dictionaries, lists, texts and numbers; numbers that JSON has no text for as objects."""
    if value is None or isinstance(value, bool) or is_text(value):
        return value
    if isinstance(value, np.generic):
        return to_json(value.item(), where, depth)
    if isinstance(value, int) and value.bit_length() <= INT_BITS:
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return number_node(value)
    if depth < DEPTH:
        if isinstance(value, Mapping) and all(map(is_text, value)):
            members = {key: to_json(v, f"{where}.{key}", depth + 1) for key, v in value.items()}
            return {"_type": "object", "_members": members} if value.get("_type") in ("number", "object") else members
        if isinstance(value, list | tuple):
            return [to_json(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    raise bad_argument(where, described(value), "what JSON can hold")


def number_node(value: float) -> dict[str, str]:
    """What stands for a number that JSON has no text for."""
    return {"_type": "number", "_text": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}


def from_json(value: Any) -> Any:
    """The other way round. What breaks the rules stays as it is."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    text = value.get("_text")
    if value.get("_type") == "number" and isinstance(text, str) and text in NUMBERS:
        return NUMBERS[text]
    if value.get("_type") == "object" and isinstance(value.get("_members"), dict):
        value = value["_members"]
    return {key: from_json(v) for key, v in value.items()}


def event_of(event: Any) -> dict[str, Any]:
    """An event of growth under the names of docs/format/states.md, from any of the three shapes there ever were.

    Raises UsageError for one that is no dictionary.
    """
    if not isinstance(event, Mapping):
        raise bad_argument("growth_history", event, "a list of dictionaries")
    found = dict(event)
    for old, new in _OLD_NAMES.items():
        if old in found:
            found.setdefault(new, found[old])
            del found[old]
    if "type" not in found:
        kind = str(found.get("event_type", ""))
        removed = any(_above_zero(found.get(name)) for name in ("synapses_pruned", "neurons_removed"))
        found["type"] = "pruning" if removed or "prun" in kind or "remov" in kind else "growth"
    return found


def _above_zero(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


def events_in(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The growth history of a file. Raises FormatError where it is neither a list nor null."""
    found = metadata.get("growth_history")
    if found is None:
        return []
    if not isinstance(found, list):
        raise make_error(
            FormatError,
            f"metadata.growth_history: got {found!r}, expected an array",
            "bad_value",
            section="metadata",
            field="growth_history",
            value=str(found),
            expected="an array",
        )
    return [event_of(event) for event in found if isinstance(event, dict)]


def as_written(metadata: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """What the user of a file is shown: without what this package, or a conversion, noted for itself.

    Of a file of the original program: its own members, in their order.
    """
    origin = metadata.get(ORIGIN)
    keys = origin.get("keys") if isinstance(origin, dict) else None
    if not isinstance(keys, list):
        return {key: from_json(value) for key, value in metadata.items() if key not in (MEMBER, ORIGIN)}
    assert isinstance(origin, dict)
    values = origin.get("values")
    known = {**metadata, **components, **(values if isinstance(values, dict) else {})}
    return {key: from_json(known[key]) for key in keys if isinstance(key, str) and key in known}


def bad_argument(field: str, value: object, expected: str) -> ThaliaError:
    return make_error(
        UsageError,
        f"{field}: got {value!r}, expected {expected}",
        "bad_argument",
        field=field,
        value=str(value),
        expected=expected,
    )
