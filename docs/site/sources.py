"""The folder that Sphinx reads: what is written anew is what has changed, so that it reads no more than that."""

from __future__ import annotations

from pathlib import Path


class Sources:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: set[Path] = set()

    def put(self, name: str, content: str | bytes) -> None:
        path = self._folder / name
        data = content.encode() if isinstance(content, str) else content
        self._written.add(path)
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def remove_others(self) -> None:
        """What was written by an earlier run and is no more."""
        for path in self._folder.rglob("*"):
            if path.is_file() and path not in self._written:
                path.unlink()
