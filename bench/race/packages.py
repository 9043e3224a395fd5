"""Formats of others, each with the Python package that is its own, in the way that is fastest there.

write(arrays, path) takes NumPy arrays. `loads` are ways to have all tensors by their names, as NumPy
arrays or torch tensors, the fastest first; `finds` are ways to have one.
"""


def numpy_arrays(tensors):
    """The same memory as NumPy arrays."""
    return {name: each.numpy() if hasattr(each, "untyped_storage") else each for name, each in tensors.items()}


class Pt:
    name = "pt"
    writer = "torch.save"

    def __init__(self):
        import torch

        self._torch = torch
        self.loads = {"torch.load(mmap=True)": self._map, "torch.load": self._load}
        self.finds = {"torch.load(mmap=True)": lambda path, name: self._map(path)[name]}

    def write(self, arrays, path):
        from .state import as_torch

        self._torch.save(as_torch(arrays), path)

    def _map(self, path):
        return self._torch.load(path, mmap=True, weights_only=True)

    def _load(self, path):
        return self._torch.load(path, weights_only=True)


class Safetensors:
    name = "safetensors"
    writer = "safetensors save_file"

    def __init__(self):
        import safetensors.numpy

        self._package = safetensors
        self.loads = {"safetensors.numpy load_file": safetensors.numpy.load_file}
        self.finds = {"safetensors safe_open": self._find}
        try:
            import safetensors.torch

            self.loads = {"safetensors.torch load_file": safetensors.torch.load_file, **self.loads}
        except ImportError:
            pass

    def write(self, arrays, path):
        self._package.numpy.save_file(arrays, path)

    def _find(self, path, name):
        with self._package.safe_open(path, framework="numpy") as file:
            return file.get_tensor(name)


class Npz:
    name = "npz"
    writer = "numpy.savez"

    def __init__(self):
        import numpy

        self._numpy = numpy
        self.loads = {"numpy.load": self._load}
        self.finds = {"numpy.load": self._find}

    def write(self, arrays, path):
        self._numpy.savez(path, **arrays)

    def _load(self, path):
        with self._numpy.load(path) as file:
            return {name: file[name] for name in file.files}

    def _find(self, path, name):
        with self._numpy.load(path) as file:
            return file[name]


class Gguf:
    name = "gguf"
    writer = "gguf.GGUFWriter"

    def __init__(self):
        import gguf

        self._package = gguf
        self.loads = {"gguf.GGUFReader": self._load}
        self.finds = {"gguf.GGUFReader": self._find}

    def write(self, arrays, path, type=None):
        """`type` names that of tensors that are given as bytes of blocks."""
        writer = self._package.GGUFWriter(path, "llama")
        raw = self._package.GGMLQuantizationType[type] if type else None
        for name, array in arrays.items():
            writer.add_tensor(name, array, raw_dtype=raw)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def restored(self, path):
        """All tensors with their blocks as f32."""
        tensors = self._package.GGUFReader(path).tensors
        return {each.name: self._package.quants.dequantize(each.data, each.tensor_type) for each in tensors}

    def _load(self, path):
        return {each.name: each.data for each in self._package.GGUFReader(path).tensors}

    def _find(self, path, name):
        return next(each.data for each in self._package.GGUFReader(path).tensors if each.name == name)


class Onnx:
    name = "onnx"
    writer = "onnx.save"

    def __init__(self):
        import onnx
        import onnx.numpy_helper

        self._package = onnx
        self.loads = {"onnx.load, to_array": self._load}
        self.finds = {"onnx.load, to_array": self._find}

    def write(self, arrays, path):
        tensors = [self._package.numpy_helper.from_array(array, name) for name, array in arrays.items()]
        graph = self._package.helper.make_graph([], "weights", [], [], tensors)
        self._package.save(self._package.helper.make_model(graph), path)

    def _load(self, path):
        to_array = self._package.numpy_helper.to_array
        return {each.name: to_array(each) for each in self._package.load(path).graph.initializer}

    def _find(self, path, name):
        tensors = self._package.load(path).graph.initializer
        return self._package.numpy_helper.to_array(next(each for each in tensors if each.name == name))


ALL = (Pt, Safetensors, Npz, Gguf, Onnx)
