"""Files of one version of the format as files of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._core import MigrateResult, Migration
from .._keywords import suggests
from .._operations.convert import migrate as migrate_file
from .._support import made_as
from .._warn import warn_caller

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions
    from .._types import Path


@suggests
class FormatMigrator:
    """Static functions that share nothing: any thread may call any of them. The versions are 0.1, the original
    program's, and 1.0."""

    def __repr__(self) -> str:
        return made_as(self)

    @staticmethod
    def migrate(
        source_path: Path,
        target_path: Path,
        target_version: str,
        *,
        across_major: bool = False,
        **options: Unpack[SaveOptions],
    ) -> MigrateResult:
        """Writes a checkpoint as a file of another version; the source stays as it is. A file at target_path is
        replaced unless replace=False.

        What the target has no place for, and what is odd about the source, is a UserWarning each.

        target_version: "0.1" or "1.0", also with a third number.
        across_major: go down from 1.0 to 0.1, with what that loses.
        options: SaveOptions.

        Raises UnsupportedError where can_migrate() says no, and for a delta; UsageError for another version,
        for a migration that has to be asked for, and where source and target are one file; IoError, FormatError,
        IntegrityError.
        """
        given: SaveOptions = {"replace": True, **options}
        result = migrate_file(source_path, target_path, to=target_version, across_major=across_major, **given)
        for text in (*result.warnings, *result.losses):
            warn_caller(text)
        return result

    @staticmethod
    def can_migrate(from_version: str, to_version: str) -> bool:
        """Whether files of the one version can become files of the other; migration() says more. Raises UsageError
        for what is no version."""
        return _core.can_migrate(from_version, to_version).possible

    @staticmethod
    def migration(from_version: str, to_version: str) -> Migration:
        """What such a migration is: possible, lossy, automatic, and the reason. Raises as can_migrate()."""
        return _core.can_migrate(from_version, to_version)
