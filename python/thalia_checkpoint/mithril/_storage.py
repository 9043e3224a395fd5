"""Storage that users bring: any object with get, put, delete, exists and list."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

_METHODS = ("get", "put", "delete", "exists", "list")


@runtime_checkable
class StorageBackend(Protocol):
    """What Compressor asks of a storage. The methods may be coroutines. One that is missing is a TypeError of
    Compressor's.

    They are called on threads of the library, several at once if several threads use the compressor. What they
    raise comes out of the compressor's method.
    """

    def get(self, key: str) -> Any:
        """The bytes of that key, whole: bytes, bytearray or memoryview. Raises if there are none."""

    def put(self, key: str, data: bytes) -> Any:
        """Puts bytes in place of those of that key. Called once an object, when all of it is there; what was there
        has to stay until the new bytes are whole."""

    def delete(self, key: str) -> Any:
        """Removes those of that key. Called only where exists() was true."""

    def exists(self, key: str) -> Any:
        """Whether there are bytes of that key."""

    def list(self, prefix: str) -> Any:
        """The keys that begin with a text."""


class Asked:
    """A user's storage as the library calls it.

    loop: that of the calls of asave() and aload(), for coroutines; without one each gets a loop of its own.
    Raises TypeError for an object that lacks a method.
    """

    def __init__(self, storage: Any, loop: asyncio.AbstractEventLoop | None = None) -> None:
        missing = [name for name in _METHODS if not callable(getattr(storage, name, None))]
        if missing:
            raise TypeError(
                f"storage: {type(storage).__qualname__} has no {', '.join(f'{name}()' for name in missing)}; expected "
                "a path, a URI, or an object with get, put, delete, exists and list"
            )
        self._storage = storage
        self._loop = loop

    def get(self, key: str) -> bytes:
        found = self._answer(self._storage.get(key))
        if isinstance(found, bytes):
            return found
        # What others may change is copied.
        if isinstance(found, bytearray | memoryview):
            return bytes(found)
        raise TypeError(f"storage.get({key!r}): got {type(found).__qualname__}, expected bytes")

    def put(self, key: str, data: bytes) -> None:
        self._answer(self._storage.put(key, data))

    def delete(self, key: str) -> bool:
        if not self.exists(key):
            return False
        self._answer(self._storage.delete(key))
        return True

    def exists(self, key: str) -> bool:
        return bool(self._answer(self._storage.exists(key)))

    def list(self, prefix: str) -> list[str]:
        found: Iterable[Any] = self._answer(self._storage.list(prefix))
        keys = []
        for key in found:
            if not isinstance(key, str):
                raise TypeError(f"storage.list({prefix!r}): got {type(key).__qualname__}, expected texts")
            keys.append(key)
        return sorted(key for key in keys if key.startswith(prefix))

    def _answer(self, result: Any) -> Any:
        if not inspect.isawaitable(result):
            return result

        async def wait() -> Any:
            return await result

        if self._loop is None:
            return asyncio.run(wait())
        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()
