"""A brain's metadata as Python has them. The library completes them: docs/format/states.md, "Metadata"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .. import _core
from .._leaves import DEPTH, INT_BITS, described, is_text
from ..errors import ThaliaError, UsageError, make_error

#: What this package tells itself of a file: {"version", "layout", "arrays", "keys"}.
MEMBER = "thalia_brain"
#: What a reader of version 0.1 notes about the file that it read. docs/format/v01.md, "States of version 0.1".
SOURCE = "v0_1"


def given(metadata: Mapping[str, Any] | None, events: list[Any] | tuple[Any, ...] | None) -> dict[str, Any]:
    """A user's metadata for a new file, without what only the file that they are of says of itself.

    events: the growth history. Raises UsageError for what is no JSON.
    """
    if metadata is not None and not isinstance(metadata, Mapping):
        raise bad_argument("metadata", metadata, "a dictionary")
    found = {key: value for key, value in (metadata or {}).items() if key not in (MEMBER, SOURCE, "growth_history")}
    if events:
        found["growth_history"] = events_of(events)
    plain: dict[str, Any] = to_json(found, "metadata")
    return plain


def to_json(value: Any, where: str, depth: int = 0) -> Any:
    """Dictionaries, lists, texts and numbers, as the metadata of a state are. Raises UsageError for anything else."""
    if value is None or isinstance(value, bool) or is_text(value):
        return value
    if isinstance(value, np.generic):
        return to_json(value.item(), where, depth)
    if isinstance(value, int) and value.bit_length() <= INT_BITS:
        return int(value)
    if isinstance(value, float):
        return float(value)
    if depth < DEPTH:
        if isinstance(value, Mapping) and all(map(is_text, value)):
            return {key: to_json(v, f"{where}.{key}", depth + 1) for key, v in value.items()}
        if isinstance(value, list | tuple):
            return [to_json(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    raise bad_argument(where, described(value), "what JSON can hold")


def events_of(events: Iterable[Any]) -> list[dict[str, Any]]:
    """Events of growth, of any of the shapes that there ever were, as files have them.

    Raises UsageError for one that is no dictionary.
    """
    listed = list(events)
    if not all(isinstance(event, Mapping) for event in listed):
        raise bad_argument("growth_history", events, "a list of dictionaries")
    found: list[dict[str, Any]] = _core.growth_events(to_json(listed, "growth_history"))
    return found


def events_in(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The growth history of a file. What is no event is left out."""
    found = metadata.get("growth_history")
    return events_of(event for event in found if isinstance(event, dict)) if isinstance(found, list) else []


def shown(metadata: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """What the user of a file is shown: without what this package, or a conversion, noted for itself.

    A file of the original program shows its own members, in their order. state: the state of the whole
    brain, which has some of these.
    """
    source = metadata.get(SOURCE)
    keys = source.get("keys") if isinstance(source, dict) else None
    if not isinstance(keys, list):
        return {key: value for key, value in metadata.items() if key not in (MEMBER, SOURCE)}
    assert isinstance(source, dict)
    values = source.get("values")
    known = {**metadata, **state, **(values if isinstance(values, dict) else {})}
    return {key: known[key] for key in keys if isinstance(key, str) and key in known}


def bad_argument(field: str, value: object, expected: str) -> ThaliaError:
    return make_error(
        UsageError,
        f"{field}: got {value!r}, expected {expected}",
        "bad_argument",
        field=field,
        value=str(value),
        expected=expected,
    )
