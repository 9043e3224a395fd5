"""The peers, each with the settings that make it fastest here, and this library's Python package.

save(path) leaves the state in the page cache, or on the disk once disk.make_durable() has been
there. load(path, use) calls use() with all tensors as NumPy arrays or torch tensors while they may
be touched; those with fills_state load into the arrays of the state, which are there already.
"""

import os


class TorchSave:
    name = "torch.save"
    load_name = "torch.load"
    suffix = ".pt"

    def __init__(self, arrays):
        import torch

        from .state import as_torch

        # Its CRC-32 of every tensor costs time, and loading does not need it.
        torch.serialization.set_crc32_options(False)
        self._torch = torch
        self._tensors = as_torch(arrays)

    def save(self, path, durable):
        self._torch.save(self._tensors, path)

    def load(self, path, use):
        use(self._torch.load(path, weights_only=True))


class TorchMapped(TorchSave):
    load_name = "torch.load(mmap=True)"

    def load(self, path, use):
        use(self._torch.load(path, mmap=True, weights_only=True))


class Safetensors:
    name = "safetensors save_file"
    load_name = "safetensors load_file"
    suffix = ".safetensors"

    def __init__(self, arrays):
        try:
            import safetensors.torch as package

            from .state import as_torch

            self._tensors = as_torch(arrays)
        except ImportError:
            import safetensors.numpy as package

            self._tensors = arrays
        self._package = package

    def save(self, path, durable):
        self._package.save_file(self._tensors, path)

    def load(self, path, use):
        use(self._package.load_file(path))


class DistributedCheckpoint:
    name = load_name = "torch.distributed.checkpoint"
    fills_state = True
    suffix = ".dcp"

    def __init__(self, arrays):
        import torch.distributed.checkpoint as package

        from .state import as_torch

        self._package = package
        self._tensors = as_torch(arrays)

    def save(self, path, durable):
        writer = self._package.FileSystemWriter(path, sync_files=durable, thread_count=os.cpu_count() or 1)
        self._package.save(self._tensors, storage_writer=writer, no_dist=True)

    def load(self, path, use):
        reader = self._package.FileSystemReader(path)
        self._package.load(self._tensors, storage_reader=reader, no_dist=True)
        use(self._tensors)


class Hdf5:
    name = load_name = "h5py"
    fills_state = True
    suffix = ".h5"

    def __init__(self, arrays):
        import h5py

        self._h5py = h5py
        self._arrays = arrays

    def save(self, path, durable):
        with self._h5py.File(path, "w", libver="latest") as file:
            for name, array in self._arrays.items():
                file.create_dataset(name, data=array)

    def load(self, path, use):
        with self._h5py.File(path, "r") as file:
            for name, array in self._arrays.items():
                file[name].read_direct(array)
        use(self._arrays)


class TensorStore:
    name = load_name = "tensorstore (zarr3)"
    suffix = ".zarr"

    def __init__(self, arrays):
        import tensorstore

        self._tensorstore = tensorstore
        self._arrays = arrays

    def _open(self, path, name, **options):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/{name}/"}}
        return self._tensorstore.open({**spec, **options})

    def save(self, path, durable):
        little = [{"name": "bytes", "configuration": {"endian": "little"}}]
        writes = []
        for name, array in self._arrays.items():
            metadata = {"shape": list(array.shape), "data_type": array.dtype.name, "codecs": little}
            context = {"file_io_sync": durable}
            store = self._open(path, name, metadata=metadata, context=context, create=True)
            writes.append(store.result().write(array))
        for write in writes:
            write.result()

    def load(self, path, use):
        stores = {name: self._open(path, name) for name in self._arrays}
        reads = {name: store.result().read() for name, store in stores.items()}
        use({name: read.result() for name, read in reads.items()})


class Orbax:
    name = load_name = "Orbax"
    suffix = ".orbax"

    def __init__(self, arrays):
        import orbax.checkpoint

        self._checkpointer = orbax.checkpoint.PyTreeCheckpointer()
        self._arrays = arrays

    def save(self, path, durable):
        self._checkpointer.save(path, self._arrays)

    def load(self, path, use):
        use(self._checkpointer.restore(path))


class FastSafetensors:
    """Loads the file that Safetensors saves."""

    name = None
    load_name = "fastsafetensors"
    suffix = ".safetensors"

    def __init__(self, arrays):
        from fastsafetensors import fastsafe_open

        self._open = fastsafe_open

    def load(self, path, use):
        with self._open(filenames=[str(path)], nogds=True, device="cpu") as file:
            use({name: file.get_tensor(name) for name in file.keys()})


class ModelStreamer:
    """Loads the file that Safetensors saves. Its buffers are used again, so tensors are copied."""

    name = None
    load_name = "Run:ai model streamer"
    fills_state = True
    suffix = ".safetensors"

    def __init__(self, arrays):
        from runai_model_streamer import SafetensorsStreamer

        from .state import as_torch

        self._streamer = SafetensorsStreamer
        self._tensors = as_torch(arrays)

    def load(self, path, use):
        with self._streamer() as streamer:
            streamer.stream_file(str(path))
            for name, tensor in streamer.get_tensors():
                self._tensors[name].copy_(tensor)
        use(self._tensors)


class NumpyFile:
    """This library's own. Its durable saves sync by themselves, and all of it reads one file."""

    name = "Thalia, numpy.save_file"
    load_name = "Thalia, numpy.load_file"
    kind = "ours"
    suffix = ".thalia"

    def __init__(self, arrays):
        import thalia_checkpoint.numpy as package

        self._package = package
        self._tensors = arrays

    def save(self, path, durable):
        self._package.save_file(self._tensors, path, durability="full" if durable else "none")

    def load(self, path, use):
        use(self._package.load_file(path))


class NumpyMapped(NumpyFile):
    load_name = "Thalia, numpy.load_file(mmap=True)"

    def load(self, path, use):
        use(self._package.load_file(path, mmap=True))


class TorchFile(NumpyFile):
    name = "Thalia, torch.save_file"
    load_name = "Thalia, torch.load_file"

    def __init__(self, arrays):
        import thalia_checkpoint.torch as package

        from .state import as_torch

        self._package = package
        self._tensors = as_torch(arrays)


class TorchObject(TorchFile):
    name = "Thalia, torch.save"
    load_name = "Thalia, torch.load"

    def save(self, path, durable):
        self._package.save(self._tensors, path, durability="full" if durable else "none")

    def load(self, path, use):
        use(self._package.load(path))


class TorchObjectMapped(TorchObject):
    load_name = "Thalia, torch.load(mmap=True)"

    def load(self, path, use):
        use(self._package.load(path, mmap=True))


OWN = (NumpyFile, NumpyMapped, TorchFile, TorchObject, TorchObjectMapped)
ALL = (
    TorchSave,
    TorchMapped,
    Safetensors,
    DistributedCheckpoint,
    Hdf5,
    TensorStore,
    Orbax,
    FastSafetensors,
    ModelStreamer,
)
