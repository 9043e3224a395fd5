"""Writes the models of this folder, with the package onnx (1.23.2), and those of tests/fuzz/corpus/onnx.

Elements are bytes that count up, so that both the library's tests and test_onnx.py know them.
"""

import sys
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

BITS = {
    "FLOAT": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64, "BOOL": 8,
    "FLOAT16": 16, "DOUBLE": 64, "UINT32": 32, "UINT64": 64, "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16,
    "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "UINT4": 4, "INT4": 4,
    "FLOAT4E2M1": 4, "FLOAT8E8M0": 8, "UINT2": 2, "INT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6,
}  # fmt: skip
SHAPE = [3, 5]
SIGNED = ("INT8", "INT16", "INT32")


def payload(name):
    """Bytes of the tensor of a type: 15 elements."""
    bits = 15 * BITS[name]
    data = bytearray((7 * i + 129) % 256 for i in range((bits + 7) // 8))
    if name == "BOOL":
        data = bytearray(b % 2 for b in data)
    if bits % 8:
        data[-1] &= (1 << bits % 8) - 1
    return bytes(data)


def empty(name, shape):
    tensor = TensorProto(name=name.lower(), data_type=TensorProto.DataType.Value(name))
    tensor.dims.extend(shape)
    return tensor


def raw(name):
    tensor = empty(name, SHAPE)
    tensor.raw_data = payload(name)
    return tensor


def typed(name):
    tensor, data = empty(name, SHAPE), payload(name)
    if name in ("FLOAT", "COMPLEX64"):
        tensor.float_data.extend(numpy.frombuffer(data, "<f4").tolist())
    elif name in ("DOUBLE", "COMPLEX128"):
        tensor.double_data.extend(numpy.frombuffer(data, "<f8").tolist())
    elif name == "INT64":
        tensor.int64_data.extend(numpy.frombuffer(data, "<i8").tolist())
    elif name in ("UINT32", "UINT64"):
        tensor.uint64_data.extend(numpy.frombuffer(data, f"<u{BITS[name] // 8}").tolist())
    elif BITS[name] == 6:
        number = int.from_bytes(data, "little")
        tensor.int32_data.extend(number >> 6 * i & 63 for i in range(15))
    else:
        kind = "i" if name in SIGNED else "u"
        tensor.int32_data.extend(numpy.frombuffer(data, f"<{kind}{max(1, BITS[name] // 8)}").tolist())
    return tensor


def model(graph, ir_version=14, opset=28, **facts):
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version, producer_name="make", **facts
    )


def weights(tensors, sparse=()):
    outputs = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in tensors]
    return helper.make_graph([], "weights", [], outputs, initializer=tensors, sparse_initializer=list(sparse))


def sparse(name, dims, indices, linear):
    values = helper.make_tensor(name, TensorProto.FLOAT, [len(indices)], [1.5 * i - 2 for i in range(len(indices))])
    if linear:
        places = numpy.ravel_multi_index(numpy.array(indices).T, dims).tolist()
        tensor = helper.make_tensor("", TensorProto.INT64, [len(indices)], places)
    else:
        tensor = numpy_helper.from_array(numpy.array(indices, numpy.int64))
    return helper.make_sparse_tensor(values, tensor, dims)


def computing():
    """A graph that computes: constants, and graphs in a node whose tensors have the same names."""

    def floats(name, *numbers):
        return helper.make_tensor(name, TensorProto.FLOAT, [len(numbers)], numbers)

    def branch(name, number):
        node = helper.make_node("Add", ["w", "c"], [f"{name}_out"])
        constant = helper.make_node("Constant", [], ["c"], value=floats("inner", number))
        output = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [1])
        return helper.make_graph([constant, node], name, [], [output], initializer=[floats("w", number + 1)])

    strings = helper.make_tensor("texts", TensorProto.STRING, [1], [b"text"])
    nodes = [
        helper.make_node("Constant", [], ["scale"], value=floats("ignored", 3.0)),
        helper.make_node("Constant", [], ["words"], value=strings),
        helper.make_node(
            "If", ["which"], ["out"], "choose", then_branch=branch("a", 10.0), else_branch=branch("b", 20.0)
        ),
    ]
    inputs = [helper.make_tensor_value_info("which", TensorProto.BOOL, [])]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1])]
    graph = helper.make_graph(nodes, "computing", inputs, outputs, [floats("weight", 1.0, 2.0)], doc_string="a graph")
    made = model(graph, 8, 15, producer_version="1.0", domain="org.example", model_version=7, doc_string="a model")
    helper.set_model_props(made, {"author": "someone", "config": '{"a": 1}'})
    return made


def main(folder, corpus):
    made = {
        "raw.onnx": model(weights([raw(name) for name in BITS])),
        "typed.onnx": model(weights([typed(name) for name in BITS])),
        "sparse.onnx": model(
            weights(
                [],
                [
                    sparse("linear", [4, 5], [[0, 1], [2, 0], [3, 4]], True),
                    sparse("coordinates", [2, 3, 4], [[0, 0, 1], [0, 2, 0], [1, 2, 3]], False),
                ],
            ),
            8,
            15,
        ),
        "computing.onnx": computing(),
    }
    for name, proto in made.items():
        onnx.checker.check_model(proto, full_check=name != "computing.onnx")
        (folder / name).write_bytes(proto.SerializeToString())
        (corpus / name).write_bytes(proto.SerializeToString())
    large = numpy.arange(600, dtype=numpy.float32).reshape(20, 30)
    external = model(weights([numpy_helper.from_array(large, "large"), raw("INT8")]), 8, 15)
    (folder / "external.data").unlink(missing_ok=True)
    onnx.save_model(
        external, folder / "external.onnx", save_as_external_data=True, location="external.data", size_threshold=100
    )
    (corpus / "external.onnx").write_bytes((folder / "external.onnx").read_bytes())


if __name__ == "__main__":
    main(Path(__file__).parent, Path(sys.argv[1]))
