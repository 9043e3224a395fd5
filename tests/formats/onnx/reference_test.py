"""The library against the package onnx, and models that it writes in ONNX Runtime.

usage: reference_test.py TOOL VECTORS, the program of reference_tool.cc and the folder tests/data/formats/onnx.
Where THALIA_ONNX_MODELS names a folder, all models below it are read, too. Exits with 77 where the package is missing.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

try:
    import ml_dtypes
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}; tools/test installs what tests/requirements.txt names")
    sys.exit(77)
try:
    import onnxruntime
except ImportError:
    onnxruntime = None

TOOL = Path(sys.argv[1])
VECTORS = Path(sys.argv[2])

# Ours by theirs, and what an element is in an array.
DTYPES = {
    "FLOAT": ("f32", numpy.float32), "UINT8": ("u8", numpy.uint8), "INT8": ("i8", numpy.int8),
    "UINT16": ("u16", numpy.uint16), "INT16": ("i16", numpy.int16), "INT32": ("i32", numpy.int32),
    "INT64": ("i64", numpy.int64), "BOOL": ("bool", numpy.bool_), "FLOAT16": ("f16", numpy.float16),
    "DOUBLE": ("f64", numpy.float64), "UINT32": ("u32", numpy.uint32), "UINT64": ("u64", numpy.uint64),
    "COMPLEX64": ("c64", numpy.complex64), "COMPLEX128": ("c128", numpy.complex128),
    "BFLOAT16": ("bf16", ml_dtypes.bfloat16), "FLOAT8E4M3FN": ("f8_e4m3", ml_dtypes.float8_e4m3fn),
    "FLOAT8E4M3FNUZ": ("f8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz), "FLOAT8E5M2": ("f8_e5m2", ml_dtypes.float8_e5m2),
    "FLOAT8E5M2FNUZ": ("f8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz), "UINT4": ("u4", ml_dtypes.uint4),
    "INT4": ("i4", ml_dtypes.int4), "FLOAT4E2M1": ("f4_e2m1", ml_dtypes.float4_e2m1fn),
    "FLOAT8E8M0": ("f8_e8m0", ml_dtypes.float8_e8m0fnu), "UINT2": ("u2", ml_dtypes.uint2),
    "INT2": ("i2", ml_dtypes.int2), "FLOAT6E2M3": ("f6_e2m3", ml_dtypes.float6_e2m3fn),
    "FLOAT6E3M2": ("f6_e3m2", ml_dtypes.float6_e3m2fn),
}  # fmt: skip
NAMES = {ours: theirs for theirs, (ours, _) in DTYPES.items()}
# The bits of an element that is no whole byte.
PACKED = {"u4": 4, "i4": 4, "f4_e2m1": 4, "u2": 2, "i2": 2, "f6_e2m3": 6, "f6_e3m2": 6}


def packed(array, dtype):
    """The bytes of an array, as ours and as raw_data have them."""
    if dtype not in PACKED:
        return array.tobytes()
    number = 0
    for i, element in enumerate(array.ravel().view(numpy.uint8).tolist()):
        number |= (element & ((1 << PACKED[dtype]) - 1)) << i * PACKED[dtype]
    return number.to_bytes((array.size * PACKED[dtype] + 7) // 8, "little")


def dense(sparse, folder):
    """The array of a SparseTensorProto."""
    values, indices = (numpy_helper.to_array(t, str(folder)) for t in (sparse.values, sparse.indices))
    array = numpy.zeros(list(sparse.dims), values.dtype)
    if indices.ndim == 2:
        indices = numpy.ravel_multi_index(indices.T, array.shape)
    array.reshape(-1)[indices] = values
    return array


def initialisers(path):
    """Name and array of each initialiser, as the package has them."""
    model = onnx.load(path, load_external_data=False)
    found = {t.name: numpy_helper.to_array(t, str(path.parent)) for t in model.graph.initializer}
    found.update({s.values.name: dense(s, path.parent) for s in model.graph.sparse_initializer})
    return found


def walk(graph):
    """Every tensor that is no string, whatever it belongs to."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (t for t in [attribute.t, *attribute.tensors] if t.data_type not in (0, TensorProto.STRING))
            for inner in [attribute.g, *attribute.graphs]:
                yield from walk(inner)


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tool(self, *arguments):
        return subprocess.run([TOOL, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()

    def dump(self, path):
        """What the library says of each tensor of a model, and its bytes."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        lines = self.tool("dump", path, folder).split("\n")[:-1]
        return [(json.loads(line), (folder / str(i)).read_bytes()) for i, line in enumerate(lines)]

    def compare(self, path):
        """The initialisers of a model by both. @return how many there are."""
        expected = initialisers(path)
        found = {said["name"]: (said, content) for said, content in self.dump(path) if said["initialiser"]}
        self.assertEqual(list(found), list(expected))
        for name, array in expected.items():
            said, content = found[name]
            self.assertEqual(numpy.dtype(DTYPES[NAMES[said["dtype"]]][1]), array.dtype, name)
            self.assertEqual(tuple(said["shape"]), array.shape, name)
            self.assertEqual(content, packed(array, said["dtype"]), name)
        return len(expected)

    def compare_all(self, path):
        """Also constants and what is in subgraphs, whose names are the library's. @return how many there are."""
        self.compare(path)
        model = onnx.load(path)
        theirs = []
        for tensor in walk(model.graph):
            array = numpy_helper.to_array(tensor)
            theirs.append((list(tensor.dims), packed(array, DTYPES[TensorProto.DataType.Name(tensor.data_type)][0])))
        ours = [(said["shape"], content) for said, content in self.dump(path) if said["nnz"] == 0]
        self.assertEqual(sorted(ours), sorted(theirs))
        return len(ours)

    def test_vectors_are_read_alike(self):
        self.assertEqual([self.compare(path) for path in sorted(VECTORS.glob("*.onnx"))], [1, 2, 27, 2, 27])

    def test_random_models_are_read_alike(self):
        chance = random.Random(1)
        for i in range(25):
            tensors = []
            for number in range(chance.randint(1, 12)):
                kind = chance.choice(list(DTYPES))
                shape = [chance.choice([0, 1, 2, 3, 5]) for _ in range(chance.randint(0, 4))]
                count = int(numpy.prod(shape))
                name = f"{kind}.{number}"
                if chance.random() < 0.5 and not kind.startswith("FLOAT8E8M0"):
                    # Through the package's own conversion into the typed fields.
                    lowest = -2 if kind.startswith(("INT", "FLOAT4", "FLOAT6")) else 0
                    values = [chance.randint(lowest, 1) for _ in range(count)]
                    data_type = TensorProto.DataType.Value(kind)
                    tensors.append(helper.make_tensor(name, data_type, shape, values))
                else:
                    bits = numpy.frombuffer(chance.randbytes(count * 16), numpy.uint8)
                    array = numpy.abs(bits[:count].astype(numpy.int32) % 2).reshape(shape).astype(DTYPES[kind][1])
                    if kind not in ("BOOL", *(NAMES[ours] for ours in PACKED)):
                        width = array.dtype.itemsize
                        array = bits[: count * width].view(array.dtype).reshape(shape)
                    tensors.append(numpy_helper.from_array(array, name))
            graph = helper.make_graph([], "random", [], [], initializer=tensors)
            path = self.folder / f"{i}.onnx"
            model = helper.make_model(graph, ir_version=14, opset_imports=[helper.make_opsetid("", 28)])
            external = chance.random() < 0.4
            onnx.save_model(
                model,
                path,
                save_as_external_data=external,
                all_tensors_to_one_file=chance.random() < 0.5,
                size_threshold=chance.choice([0, 64]),
                location=f"{i}.data",
            )
            with self.subTest(i=i):
                self.assertEqual(self.compare(path), len(tensors))

    def test_models_of_the_package_are_read_alike(self):
        paths = sorted(Path(onnx.__file__).parent.rglob("*.onnx"))
        if "THALIA_ONNX_MODELS" in os.environ:
            paths += sorted(Path(os.environ["THALIA_ONNX_MODELS"]).rglob("*.onnx"))
        tensors = 0
        for path in paths:
            with self.subTest(path=path):
                tensors += self.compare_all(path)
        self.assertGreater(len(paths), 100)
        self.assertGreater(tensors, 2000)
        print(f"{tensors} tensors of {len(paths)} models")

    def test_the_checker_accepts_what_is_written(self):
        for external in ([], ["external"]):
            path = self.folder / "saved.onnx"
            self.tool("save", path, *external)
            with self.subTest(external=external):
                onnx.checker.check_model(path, full_check=True)
                self.assertEqual(self.compare(path), 34)
                model = onnx.load(path)
                self.assertEqual({p.key: p.value for p in model.metadata_props}, {"key": "value", "names": "ünïcode"})
                self.assertEqual(len(model.graph.output), 34)
                self.assertEqual(onnx.shape_inference.infer_shapes(model, strict_mode=True).graph, model.graph)

    def test_a_model_of_weights_comes_back_byte_for_byte(self):
        (self.folder / "again").mkdir()
        for external in ([], ["external"]):
            names = ["w.onnx"] + ["w.onnx.data"] * len(external)
            self.tool("save", self.folder / "w.onnx", *external)
            self.tool("copy", self.folder / "w.onnx", self.folder / "again/w.onnx")
            for name in names:
                self.assertEqual((self.folder / name).read_bytes(), (self.folder / "again" / name).read_bytes())

    def test_weights_of_models_that_compute_are_accepted_as_models(self):
        light = Path(onnx.__file__).parent / "backend/test/data/light"
        for path in [*sorted(VECTORS.glob("*.onnx")), *sorted(light.glob("*.onnx"))]:
            copy = self.folder / path.name
            self.tool("copy", path, copy)
            with self.subTest(path=path):
                onnx.checker.check_model(copy, full_check=True)
                before = {said["name"]: content for said, content in self.dump(path)}
                after = {said["name"]: content for said, content in self.dump(copy)}
                self.assertEqual(before, after)

    @unittest.skipIf(onnxruntime is None, "onnxruntime is not installed")
    def test_onnx_runtime_gives_the_weights_as_outputs(self):
        """Of models with the types that it has in numpy."""
        ours = ("f32", "u8", "i8", "u16", "i16", "i32", "i64", "bool", "f16", "f64", "u32", "u64")
        chance = random.Random(3)
        tensors = []
        for dtype in ours:
            kind = numpy.dtype(DTYPES[NAMES[dtype]][1])
            array = numpy.array([chance.randint(0, 1) for _ in range(2000)]).astype(kind).reshape(20, 100)
            tensors.append(numpy_helper.from_array(array, dtype))
        graph = helper.make_graph([], "weights", [], [], initializer=tensors)
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 15)])
        onnx.save_model(model, self.folder / "in.onnx", save_as_external_data=True, location="in.data")
        self.tool("copy", self.folder / "in.onnx", self.folder / "out.onnx")
        self.assertTrue((self.folder / "out.onnx.data").exists())
        session = onnxruntime.InferenceSession(self.folder / "out.onnx", providers=["CPUExecutionProvider"])
        results = dict(zip([o.name for o in session.get_outputs()], session.run(None, {}), strict=True))
        self.assertEqual(list(results), list(ours))
        for tensor in tensors:
            numpy.testing.assert_array_equal(results[tensor.name], numpy_helper.to_array(tensor))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main(argv=sys.argv[:1])
