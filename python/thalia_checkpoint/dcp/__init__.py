"""Storage of torch.distributed.checkpoint: .thalia files, and metadata without pickle.

    import torch.distributed.checkpoint as dcp
    from thalia_checkpoint.dcp import ThaliaStorageReader, ThaliaStorageWriter

    dcp.save(state, storage_writer=ThaliaStorageWriter("run/step-1000"))
    dcp.load(state, storage_reader=ThaliaStorageReader("run/step-1000"))

A checkpoint is a folder with a file for each rank that has data, or for several, and
checkpoint.json: docs/use/python.md, "Distributed training".
"""

from __future__ import annotations

import os
import pickle
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from .._distributed import folder as _dcp_folder
from .._distributed import metadata as _dcp_metadata
from .._distributed import parse as _dcp_parse
from .._distributed.metadata import Chunk, Document, StoredFile, StoredTensor, StoredValue
from .._files.writer import checked
from .._keywords import suggests
from .._support import io_errors, made_as, sync
from .._types import Access, Path
from ..errors import IoError, UnsupportedError, UsageError, make_error
from ..torch._tensors import TORCH_DTYPES, in_elements, in_torch
from . import _join
from ._background import async_save
from ._consolidate import consolidate
from ._read import OpenFiles, read_items
from ._write import Place, stored_file

if TYPE_CHECKING:
    from typing import Unpack

    from .._files.writer import SaveOptions

__all__ = ["ThaliaStorageReader", "ThaliaStorageWriter", "async_save", "consolidate"]


# The base is Any to a checker of types that does not see torch.
@suggests
class ThaliaStorageWriter(StorageWriter):  # type: ignore[misc, unused-ignore]
    """Writes checkpoints of dcp.save() and of async_save(), of a thread or a process.

    The folder appears whole when all ranks have written, and takes the place of one that is there;
    until then, and where a rank dies, the old one stays. Ranks write their own elements side by
    side, and what several have is written by one. Values that are no tensors are kept as
    thalia_checkpoint.torch.save() keeps them, without pickle.

    path: the folder; may be left to `checkpoint_id`. All ranks must see the same file system.
    ranks_per_file: how many ranks share a file, such as those of a node: with 8, ranks 0 to 7, 8 to
        15, and so on. Their data is written twice, and needs twice the room until the save ends.
    torch_metadata: also .metadata, by which torch's own tools find a checkpoint: its names, shapes,
        dtypes and chunks, as FileSystemReader.read_metadata() reads them. It is a pickle, the only
        one, and nothing here reads it. The elements are read by ThaliaStorageReader alone.
    options: those of SaveOptions, for each file. replace=False: a checkpoint that is there stays.

    What a save raises comes in dcp's CheckpointException, by rank: ExistsError where the folder is
    not to be replaced or holds something else; UnsupportedError that names a value or tensor that
    cannot be held; UsageError, IoError.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        ranks_per_file: int = 1,
        torch_metadata: bool = False,
        **options: Unpack[SaveOptions],
    ) -> None:
        """Raises UsageError for ranks_per_file under 1, and for an option that cannot be."""
        super().__init__()
        if ranks_per_file < 1:
            raise make_error(
                UsageError,
                f"ranks_per_file: got {ranks_per_file}, expected 1 or more",
                "bad_argument",
                field="ranks_per_file",
                value=str(ranks_per_file),
                expected="1 or more",
            )
        self._folder = None if path is None else os.path.abspath(path)
        self._ranks_per_file = ranks_per_file
        self._torch_metadata = torch_metadata
        self._options = checked(options)
        self._replace = self._options.pop("replace", None) is not False
        self._rank = 0
        self._save_id = ""
        self._lock: _dcp_folder.Lock | None = None

    def __repr__(self) -> str:
        return made_as(self, path=self._folder, **self._options)

    def reset(self, checkpoint_id: Path | None = None) -> None:
        if checkpoint_id is not None:
            self._folder = os.path.abspath(checkpoint_id)
        self._save_id = str(uuid.uuid4())
        self._lock = None

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        ranks = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
        # With no_dist=True each rank saves by itself, and says that it is rank 0: as rank 0 does without.
        if not kwargs.get("use_collectives", True) and ranks > 1:
            raise make_error(
                UnsupportedError,
                f"use_collectives=False with {ranks} ranks: those that do not talk to each other cannot tell when a "
                "checkpoint is whole; a rank that saves by itself takes no_dist=True without it",
                "unsupported_feature",
                field="use_collectives",
                value="False",
                expected="True",
            )
        rank = kwargs.get("rank")
        if rank is None:
            rank = dist.get_rank() if dist.is_initialized() else 0
        self._rank = int(rank)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        self._lock = None
        self._lock = _dcp_folder.begin(self.checkpoint_id, replace=self._replace)
        # At once, also where nobody asks: saves beside it leave an empty folder alone, as one just made.
        _join.announce(_dcp_folder.saving(self.checkpoint_id), len(plans))
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        # Ranks find it by its name alone: with cached plans nothing can be sent to them.
        folder = _dcp_folder.saving(self.checkpoint_id)
        if not os.path.isdir(folder):
            raise make_error(
                IoError,
                f"{folder}: rank {self._rank} does not see the folder that the coordinator made; expected one file "
                "system for all ranks",
                "io",
                path=folder,
            )
        with _dcp_folder.giving_up(self.checkpoint_id):
            results = _join.write_data(folder, self._rank, self._ranks_per_file, plan, planner, self._options)
        # dcp lets go of the results when the save has ended, but maybe not of this object.
        results.append(WriteResult(MetadataIndex(""), 0, self._lock))
        self._lock = None
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        with _dcp_folder.giving_up(self.checkpoint_id):
            self._finish(metadata, results)
        metadata.storage_data = None
        metadata.storage_meta = self.storage_meta()

    def _finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        folder = _dcp_folder.saving(self.checkpoint_id)
        document = _document(metadata, _join.joined(result for of_rank in results for result in of_rank))
        for file in document.files:
            path = os.path.join(folder, file.name)
            if (found := stored_file(path)) != file:
                raise make_error(
                    IoError,
                    f"{path}: got {found}, expected {file}: another process wrote it",
                    "io",
                    path=path,
                )
        data = _dcp_metadata.to_bytes(document)
        # What could not be read again is not written.
        _dcp_parse.from_bytes(data, os.path.join(folder, _dcp_metadata.NAME))
        contents = {_dcp_metadata.NAME: data}
        if self._torch_metadata:
            # Without storage_data torch's reader would not take it.
            own = replace(metadata, storage_data={}, storage_meta=self.storage_meta())
            contents[_dcp_metadata.TORCH_NAME] = pickle.dumps(own)
        with io_errors():
            for name, content in contents.items():
                path = os.path.join(folder, name)
                with open(path, "xb") as out:
                    out.write(content)
                if self._options.get("durability") != "none":
                    sync(path)
            _dcp_folder.clear(folder, but={*contents, *(file.name for file in document.files)})
        durable = self._options.get("durability") in (None, "full")
        _dcp_folder.commit(self.checkpoint_id, durable=durable)

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self._save_id)

    @property
    def checkpoint_id(self) -> str:
        """The folder. Raises UsageError where none was given."""
        return _given(self._folder)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Path) -> bool:
        return "://" not in os.fspath(checkpoint_id)


@suggests
class ThaliaStorageReader(StorageReader):  # type: ignore[misc, unused-ignore]
    """Reads checkpoints of ThaliaStorageWriter with dcp.load(), into any world size and sharding.

    Each rank reads the elements that it needs, and of a file that is not compressed no others, into
    the memory of its tensors if they are on the CPU.

    path: the folder, wherever it is now; may be left to `checkpoint_id`.
    verify: check what is read against the files' checksums.
    access: "copied" reads with checked calls and maps nothing.

    What a load raises comes in dcp's CheckpointException, by rank: MissingFileError, IoError;
    FormatError for files that are not as they were written; IntegrityError for damaged elements.
    What read_metadata() raises, dcp makes an AssertionError with the same text.
    """

    def __init__(self, path: Path | None = None, *, verify: bool = True, access: Access = "mapped") -> None:
        super().__init__()
        self._folder = None if path is None else os.path.abspath(path)
        self._verify = verify
        self._access: Access = access
        self._document: Document | None = None

    def __repr__(self) -> str:
        return made_as(self, path=self._folder, verify=self._verify, access=self._access)

    def reset(self, checkpoint_id: Path | None = None) -> None:
        if checkpoint_id is not None:
            self._folder = os.path.abspath(checkpoint_id)
        self._document = None

    # Not **kwargs: dcp would ask again for metadata of the rank alone, which no checkpoint has.
    def read_metadata(self, *args: Any, **options: Any) -> Metadata:
        """Raises MissingFileError, IoError; FormatError for metadata that are not as they were written;
        UnsupportedError for a dtype that this torch lacks."""
        with io_errors():
            self._document = _dcp_parse.read(_dcp_folder.to_read(self.checkpoint_id))
        return _metadata(self._document, self.checkpoint_id)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return replace(plan, storage_data=self._document.sha256 if self._document else None)

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        for rank, plan in enumerate(plans):
            if plan.storage_data != plans[0].storage_data:
                raise make_error(
                    IoError,
                    f"{self.checkpoint_id}: rank {rank} sees another checkpoint than rank 0; expected one file system "
                    "for all ranks, and no save meanwhile",
                    "io",
                    path=self.checkpoint_id,
                )
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        if self._document is None:
            self.read_metadata()
        assert self._document is not None
        with OpenFiles(_dcp_folder.to_read(self.checkpoint_id), self._access, self._verify) as files:
            read_items(files, self._document, plan, planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @property
    def checkpoint_id(self) -> str:
        """The folder. Raises UsageError where none was given."""
        return _given(self._folder)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Path) -> bool:
        return os.path.isfile(os.path.join(_dcp_folder.to_read(os.fspath(checkpoint_id)), _dcp_metadata.NAME))


def _given(folder: str | None) -> str:
    if folder is None:
        raise make_error(
            UsageError,
            "path: got none, expected the folder of a checkpoint, here or as dcp's checkpoint_id",
            "bad_argument",
            field="path",
        )
    return folder


def _document(metadata: Metadata, results: list[WriteResult]) -> Document:
    """What ranks wrote, as the file of the metadata has it. Raises UsageError for what none wrote."""
    stored: dict[MetadataIndex, Place | StoredValue] = {result.index: result.storage_data for result in results}

    def find(index: MetadataIndex) -> Any:
        if index not in stored:
            raise make_error(UsageError, f"{index}: no rank wrote it", "wrong_state", tensor=index.fqn)
        return stored[index]

    tensors: dict[str, StoredTensor] = {}
    values: dict[str, StoredValue] = {}
    for name, facts in metadata.state_dict_metadata.items():
        if isinstance(facts, BytesStorageMetadata):
            values[name] = find(MetadataIndex(name))
            continue
        places: list[Place] = [find(MetadataIndex(name, chunk.offsets)) for chunk in facts.chunks]
        dtype = places[0].dtype
        chunks = [
            Chunk(
                in_elements(dtype, chunk.offsets),
                in_elements(dtype, chunk.sizes),
                place.file,
                place.region,
                place.name,
            )
            for chunk, place in zip(facts.chunks, places, strict=True)
        ]
        tensors[name] = StoredTensor(dtype, in_elements(dtype, facts.size), chunks)
    used = {chunk.file: None for tensor in tensors.values() for chunk in tensor.chunks}
    used |= {value.file: None for value in values.values() if value.file is not None}
    files: list[StoredFile] = sorted(used, key=lambda file: file.name)
    return Document(files, tensors, values, _paths(metadata))


def _paths(metadata: Metadata) -> dict[str, tuple[str | int, ...]] | None:
    data = metadata.planner_data
    if data is None:
        return None
    if not isinstance(data, dict) or not all(isinstance(path, tuple) for path in data.values()):
        raise make_error(
            UnsupportedError,
            f"planner_data: cannot save {type(data).__qualname__}; expected where each name is in the state, as "
            "DefaultSavePlanner has it",
            "unsupported_feature",
            field="planner_data",
        )
    return {name: path for name, path in data.items() if name in metadata.state_dict_metadata}


def _metadata(document: Document, folder: str) -> Metadata:
    known: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    for name, tensor in document.tensors.items():
        dtype = TORCH_DTYPES.get(tensor.dtype)
        if dtype is None:
            raise make_error(
                UnsupportedError,
                f"{folder}: {name}: torch has no {tensor.dtype}",
                "unsupported_dtype",
                tensor=name,
                value=tensor.dtype,
            )
        chunks = [
            ChunkStorageMetadata(
                offsets=torch.Size(in_torch(tensor.dtype, chunk.offset)),
                sizes=torch.Size(in_torch(tensor.dtype, chunk.shape)),
            )
            for chunk in tensor.chunks
        ]
        size = torch.Size(in_torch(tensor.dtype, tensor.shape))
        known[name] = TensorStorageMetadata(properties=TensorProperties(dtype=dtype), size=size, chunks=chunks)
    known |= {name: BytesStorageMetadata() for name in document.values}
    return Metadata(
        state_dict_metadata=known, planner_data=document.paths, storage_meta=StorageMeta(checkpoint_id=folder)
    )
