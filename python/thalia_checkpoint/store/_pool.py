"""The pool of earlier models: to play against, or to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import PoolAddResult, PoolConfig, PoolDraw, PoolMember, PoolRating, PoolView, Rating
from .._files.file import File
from .._keywords import suggests
from .._types import Access

if TYPE_CHECKING:
    from ._writer import RunWriter

__all__ = [
    "Pool",
    "PoolAddResult",
    "PoolCache",
    "PoolConfig",
    "PoolDraw",
    "PoolMember",
    "PoolRating",
    "PoolView",
    "Rating",
]


@suggests
class Pool:
    """Changes the pool of a run that is open for saving: RunWriter.pool. Any number of threads may use one.

    `phase` may be left out: it is that of the pool.
    """

    def __init__(self, run: RunWriter) -> None:
        self._run = run

    def __repr__(self) -> str:
        return f"<Pool of {self._run.run!r}>"

    def view(self) -> PoolView:
        """The pool as it is now; its draw() tells whom to play.

        Raises NotFoundError where the run has none; IoError.
        """
        return self._run.run.pool()

    def add(self, step: int, rating: Rating, phase: str | None = None) -> PoolAddResult:
        """Strips a checkpoint of the run to what inference needs, and adds it as the next version. No number comes
        twice.

        rating: that of the model now. The version's sigma is at least the configuration's floor.
        The oldest versions beyond the configuration's `keep` go; their ratings stay in pool_evictions.jsonl.
        Raises NotFoundError where the run has no pool, or no such checkpoint; IntegrityError; UsageError for a run
        whose files are no .thalia files; IoError.
        """
        result = self._run._raw.pool_add(self._phase(phase), step, rating)
        self._run._warn()
        return result

    def add_bytes(self, step: int, rating: Rating, data: Any, phase: str | None = None) -> PoolAddResult:
        """Adds bytes that the caller has stripped, of any kind. Raises as add(), which it is like otherwise."""
        result = self._run._raw.pool_add_bytes(self._phase(phase), step, rating, data)
        self._run._warn()
        return result

    def rate(self, version: int, rating: Rating, *, games_played: int, win_rate: float) -> PoolMember:
        """What games have shown of a version. The rating that it had goes to its history.

        games_played: in all. win_rate: 0 to 1.
        Raises NotFoundError for a version that is not there; UsageError for another win rate; IoError.
        """
        member = self._run._raw.pool_rate(version, rating, games_played, win_rate)
        self._run._warn()
        return member

    def _phase(self, phase: str | None) -> str:
        return phase if phase is not None else self.view().config.phase


@suggests
class PoolCache:
    """The models of a pool that were used last, open. A file that somebody has stays open whatever the cache does.

    Any number of threads may use one.
    """

    def __init__(self, capacity: int = 5, *, access: Access = "mapped", threads: int = 0) -> None:
        """capacity: files that it keeps open. access, threads: as of open(). Raises UsageError for an access."""
        self._raw = _core.PoolCache(capacity, access, threads)

    def __repr__(self) -> str:
        return f"<PoolCache: {len(self)} files open>"

    def get(self, member: PoolMember) -> File:
        """The file of a version or an anchor, held against its digest when it is opened.

        Raises IntegrityError; IoError.
        """
        return File(self._raw.get(member))

    def __len__(self) -> int:
        return len(self._raw)

    @property
    def hits(self) -> int:
        """Calls of get() that found it open."""
        return self._raw.hits

    @property
    def misses(self) -> int:
        """Calls of get() that opened it."""
        return self._raw.misses
