"""Connections between the regions of a brain on their way into a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._warn import warn_caller
from ._arrays import is_torch
from ._facts import Beside, RegionFacts

_KEYS = ("source", "target", "weights", "delays")


class Wire(NamedTuple):
    """A connection as a file gets it."""

    source: str
    target: str
    weights: Any
    delays: Any
    entry: dict[str, Any]
    """The one of the state that it is of."""


def connections_of(
    state: Mapping[str, Any],
    regions: Mapping[str, Any],
    facts: Mapping[str, RegionFacts],
    beside: Beside | None,
    *,
    itself: bool,
) -> tuple[list[Wire], bool]:
    """The connections of a state, by the names that its regions have now, and whether they are its member.

    regions, facts: by their names in the file. beside: what the file said that the state is of, or its
    owner has loaded; `itself`: the former.
    """
    value = state.get("connections")
    kept = [] if beside is None else beside.connections
    renamed = {f.loaded_as: name for name, f in facts.items() if name in regions and f.loaded_as is not None}
    members = isinstance(value, list) and (value is kept or _are_connections(value, {*regions, *renamed}))
    if not members and itself and "connections" not in state:
        return [], False  # its owner took them away

    def now(name: str) -> str:
        return name if name in regions else renamed.get(name, name)

    found = [
        Wire(now(c["source"]), now(c["target"]), c["weights"], c.get("delays"), c)
        for c in (value if members else kept) or ()
    ]
    return [wire for wire in found if wire.source in regions and wire.target in regions], members


def _are_connections(value: list[Any], names: set[str]) -> bool:
    """Whether a list is what loading gives for the connections of a file."""
    # One with keys in another order, or without delays, would come back as another one.
    if not value or any(type(c) is not dict or tuple(c) != _KEYS for c in value):
        return False
    pairs = {(c["source"], c["target"]) for c in value if isinstance(c["source"], str) and isinstance(c["target"], str)}
    kinds = {_kind(c["weights"]) for c in value} | {_kind(c["delays"]) for c in value if c["delays"] is not None}
    return len(pairs) == len(value) and {*sum(pairs, ())} <= names and kinds in ({"numpy"}, {"torch"})


def _kind(matrix: Any) -> str:
    return "torch" if is_torch(matrix) else "numpy" if type(matrix) is np.ndarray else "other"


def check_fit(connections: list[Wire], counts: Mapping[str, int]) -> None:
    """A UserWarning for each that a brain has not given itself, and that its regions have outgrown."""
    for connection in connections:
        ends = counts[connection.source], counts[connection.target]
        shape = tuple(connection.weights.shape)
        if all(ends) and len(shape) == 2 and shape not in (ends, ends[::-1]):
            warn_caller(
                f"connection {connection.source}->{connection.target}: weights of the shape {list(shape)}, which "
                f"were loaded, between {ends[0]} and {ends[1]} neurons; expected connections in the brain's state"
            )
