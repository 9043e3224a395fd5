"""A brain's state as loading gives it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any


class BrainState(dict[str, Any]):
    """A state that was loaded: the dictionary that was saved, with what the file says beside it."""

    def __init__(self, members: Mapping[str, Any], metadata: dict[str, Any], training_steps: int) -> None:
        super().__init__(members)
        self.metadata = metadata
        """That of the file."""
        self.training_steps = training_steps
        """The file's; 0 where it does not say."""

    @property
    def regions(self) -> Mapping[str, Any]:
        """Of a state with regions, by name."""
        found: Mapping[str, Any] = self.get("regions", {})
        return found

    @property
    def pathways(self) -> Mapping[str, Any]:
        """The same of pathways; empty where the state has none."""
        found: Mapping[str, Any] = self.get("pathways", {})
        return found


class LazyRegion(MutableMapping[str, Any]):
    """A region that is read when it is first touched, from any thread, once. It keeps the file open
    until then. That touch raises IntegrityError for damage, FormatError for a region beyond max_bytes.
    """

    def __init__(self, read: Callable[[], dict[str, Any]]) -> None:
        self._read: Callable[[], dict[str, Any]] | None = read
        self._members: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        """Whether it was read."""
        return self._read is None

    def _there(self) -> dict[str, Any]:
        if self._read is not None:
            with self._lock:
                if self._read is not None:
                    self._members = self._read()
                    self._read = None
        return self._members

    def __getitem__(self, name: str) -> Any:
        return self._there()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._there()[name] = value

    def __delitem__(self, name: str) -> None:
        del self._there()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._there())

    def __len__(self) -> int:
        return len(self._there())

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is a dictionary: a file can be neither copied nor sent to another process.
        return dict, (dict(self._there()),)

    def __repr__(self) -> str:
        return repr(self._members) if self.is_loaded else "<LazyRegion, not read yet>"
