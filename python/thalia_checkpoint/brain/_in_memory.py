"""A brain's state handed to the library to be changed, and taken back from it."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from .. import _core
from .._support import paths, save_options
from .._types import Access, Path
from .._warn import warn_caller
from ..errors import UsageError, make_error
from . import _metadata
from ._decode import Dialect
from ._facts import Beside, remember, remembered
from ._load import MAX_BYTES
from ._put_back import PutBack
from ._save import PATHWAY, Encoded, Region, encode, history_of, state_of
from ._state import BrainState

HISTORY = "growth_history"


class InMemory:
    """A brain in Python whose state the library has, with its arrays borrowed."""

    def __init__(self, brain: Any, *, to_change: bool = True) -> None:
        """to_change: take_back() follows. Raises UnsupportedError that names the place of what the library
        cannot take; UsageError."""
        self._brain = brain
        self.state = state_of(brain)
        self._is_object = not isinstance(brain, Mapping)
        if to_change and self._is_object and not callable(getattr(brain, "load_full_state", None)):
            raise make_error(
                UsageError,
                f"brain: got {type(brain).__qualname__}, expected load_full_state() or a dictionary",
                "bad_argument",
                field="brain",
            )
        self._loaded = self.state if isinstance(self.state, BrainState) else None
        self.beside = remembered(brain) if self._loaded is None else self._loaded.beside
        state = self.state
        if self.beside is not None and state.get("metadata") is self.beside.metadata:
            state = {key: value for key, value in state.items() if key != "metadata"}
        if isinstance(state.get(HISTORY), list | tuple):
            state = {key: value for key, value in state.items() if key != HISTORY}
        self._encoded: Encoded = encode(state, self.beside, self._loaded)

    @property
    def has_torch(self) -> bool:
        return self._encoded.kinds.torch

    def core(self, *, metadata: bool = False) -> _core.Brain:
        """The state in the library. metadata: with the brain's; else with none, and what it gets is new."""
        return self._encoded.core(self._metadata() if metadata else {})

    def take_back(self, core: _core.Brain, *, metadata: bool = False) -> None:
        """Puts what has changed where the old was, and new events into the growth history.

        metadata: the library had the brain's, and has given it other ones, and other training steps. Raises
        UnsupportedError, before anything has changed, where something cannot take its change.
        """
        put = PutBack(self._dialect())
        regions, pathways, connections, own, found, steps = core.take()
        by_name = {region.name: region for region in self._encoded.regions}
        for prefix, taken in (("", regions), (PATHWAY, pathways)):
            for name, tree, n_neurons, n_inputs, updated in taken:
                self._region(put, by_name[prefix + name], tree, (n_neurons, n_inputs, updated))
        for wire, matrices in zip(self._encoded.wires, connections, strict=True):
            for name, old, node in zip(("weights", "delays"), (wire.weights, wire.delays), matrices, strict=True):
                new = old if old is None else put.array(old, node)
                if new is not old:
                    put.later(partial(operator.setitem, wire.entry, name, new))
        put.members(self.state, own, self._encoded.own.states, "state")
        if metadata:
            self._note_metadata(put, found, steps)
        else:
            self._note(put, found.get(HISTORY, []))
        put.apply()
        if self._is_object:
            self._brain.load_full_state(self.state)

    def _dialect(self) -> Dialect:
        return Dialect("torch" if self.has_torch else "numpy", None, python=True, original=False, classes={})

    def _region(self, put: PutBack, region: Region, tree: dict[str, Any], counts: tuple[int, int, int]) -> None:
        facts, members = region.facts, region.members
        changed = put.members(members, tree, region.states, region.name)
        owner = self._owner(region)
        if changed and owner is not members:
            take = getattr(owner, "load_full_state", None)
            if not callable(take):
                raise make_error(
                    UsageError,
                    f"{region.name}: got {type(owner).__qualname__}, expected load_full_state() or a dictionary",
                    "bad_argument",
                    field=region.name,
                )
            put.later(lambda: take(members))
        if changed or counts[:2] != (region.n_neurons, region.n_inputs):

            def follow() -> None:
                facts.n_neurons, facts.n_inputs, facts.homeostatic_updated = counts
                facts.read(members)

            put.later(follow)

    def _owner(self, region: Region) -> Any:
        name = region.name
        if not self._encoded.in_regions:
            return self.state[name]
        in_pathways = name.startswith(PATHWAY)
        return self.state["pathways" if in_pathways else "regions"][name.removeprefix(PATHWAY)]

    def _metadata(self) -> dict[str, Any]:
        known = {} if self.beside is None else self.beside.metadata
        own = [*self._histories()]
        return _metadata.given(known, own[0] if own else None)

    def _histories(self) -> Iterable[list[Any] | tuple[Any, ...]]:
        """The growth histories that the brain keeps, the one that counts first."""
        kept = [None if self._loaded is None else self._loaded.metadata.get(HISTORY), self.state.get(HISTORY)]
        if self._is_object:
            kept += [history_of(self._brain), None if self.beside is None else self.beside.metadata.get(HISTORY)]
        return [history for history in kept if isinstance(history, list | tuple)]

    def _note(self, put: PutBack, events: list[dict[str, Any]]) -> None:
        if events:
            self._set_history(put, lambda history: [*history, *events])

    def _set_history(self, put: PutBack, changed: Any) -> None:
        state, brain, beside = self.state, self._brain, self.beside
        noted: set[int] = set()

        def note(history: Any, store: Any) -> bool:
            """False where there is none."""
            if not isinstance(history, list | tuple):
                return False
            if id(history) not in noted:
                noted.add(id(history))
                new = changed(history)
                if isinstance(history, list):
                    put.later(lambda: history.__setitem__(slice(None), new))
                else:
                    put.later(lambda: store(new))
            return True

        def into(mapping: Any) -> Any:
            return lambda new: mapping.__setitem__(HISTORY, new)

        found = note(state.get(HISTORY), into(state))
        if self._is_object:
            for name in ("growth_history", "_growth_history"):
                found |= note(getattr(brain, name, None), lambda new, name=name: setattr(brain, name, new))
        if beside is None and not found and self._is_object:
            beside = self.beside = Beside({})
            put.later(lambda: remember(brain, beside))
        if beside is not None:
            if not note(beside.metadata.get(HISTORY), into(beside.metadata)):
                put.later(lambda: beside.metadata.__setitem__(HISTORY, changed([])))
        elif not found:
            put.later(lambda: into(state)(changed([])))

    def _note_metadata(self, put: PutBack, found: dict[str, Any], steps: int) -> None:
        history = found.pop(HISTORY, [])
        for own in (_metadata.MEMBER, _metadata.SOURCE):
            found.pop(own, None)
        if self.beside is None and self._is_object:
            self.beside = beside = Beside({})
            put.later(lambda: remember(self._brain, beside))
        if self.beside is not None:
            kept = self.beside.metadata
            put.later(lambda: kept.update(found))
        self._set_history(put, lambda _: list(history))
        state, loaded = self.state, self._loaded
        if loaded is not None:
            put.later(lambda: setattr(loaded, "training_steps", steps))
        if loaded is None or "training_steps" in state:
            put.later(lambda: state.__setitem__("training_steps", steps))  # type: ignore[index]


def is_path(brain: Any) -> bool:
    return isinstance(brain, str | os.PathLike)


class InFile:
    """The state of a file, which never becomes objects of Python."""

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, search: Iterable[Path] = (), access: Access = "mapped"
    ) -> None:
        self._path = path
        self.core = _core.Brain.load(path, max_bytes, paths(search), access, 0)
        for text in self.core.warnings:
            warn_caller(_core.printable(f"{os.fspath(path)}: {text}"))
        self._metadata = self.core.metadata

    def save(self, out: Path, options: Mapping[str, Any], inputs: Iterable[Path] = ()) -> None:
        """Writes the state as a full file, in the element types that this one has."""
        mark = self._metadata.get(_metadata.MEMBER)
        flat = isinstance(mark, dict) and mark.get("layout") == "flat"
        save = save_options(options, out, (self._path, *inputs))
        self.core.save(
            out,
            _core.BrainSaveOptions(
                self._policy(), include_homeostatic=True, sparse=True, roles_by_name=flat, save=save
            ),
        )

    def keep_own(self) -> None:
        """Members of the metadata that say something of this file alone stay what they were."""
        for name in (_metadata.MEMBER, _metadata.SOURCE, "precision_policy"):
            self.core.set_metadata(name, self._metadata.get(name))

    def _policy(self) -> str | None:
        """What narrows types that are wide in memory to those that the file has."""
        text = self._metadata.get("precision_policy")
        if not isinstance(text, str) or text == "fp32":
            return None
        try:
            _core.precision_policy(text)
        except UsageError:
            return None  # somebody else's member of that name
        return text
