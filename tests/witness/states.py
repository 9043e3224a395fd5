"""The state of a brain out of a checkpoint, written from docs/format/states.md, "States"."""

import json

COMPONENTS = {  # of tensors that no tree names, by role
    0: "weights",
    1: "homeostatic",
    2: "region_state",
    3: "learning_state",
    4: "oscillator_state",
    5: "neuromodulator_state",
    6: "optimizer_state",
    7: "buffers",
    8: "other",
    9: "biases",
    10: "normalization",
    11: "embeddings",
}


class Unreadable(Exception):
    """A tree that breaks the document's rules."""


def dense_values(tensor):
    """All elements in row-major order, zeros where a sparse tensor stores none."""
    contents = tensor.contents()
    if tensor.encoding == "dense":
        return contents["values"]
    values = [0.0] * tensor.count
    if tensor.encoding == "csr":
        rows = contents["row_pointers"]
        for row in range(tensor.shape[0]):
            for i in range(rows[row], rows[row + 1]):
                place = row * tensor.shape[1] + contents["column_indices"][i]
                values[place] = contents["values"][i]
    else:
        for i, value in enumerate(contents["values"]):
            place = 0
            for dimension, extent in enumerate(tensor.shape):
                place = place * extent + contents["indices"][dimension][i]
            values[place] = value
    return values


def as_tensor(tensor, reported):
    """What stands in the state: the element type and encoding that it had, shape, values."""
    encoding = reported.get("_encoding", tensor.encoding)
    return {
        "dtype": reported.get("_dtype", tensor.dtype),
        "encoding": "dense" if reported.get("_dense", False) else encoding,
        "shape": list(tensor.shape),
        "values": dense_values(tensor),
    }


class _Region:
    def __init__(self, file, region):
        self.tensors = {t.name: t for t in file.tensors if t.region is region}
        self.config = json.loads(region.config or "{}")
        metadata = json.loads(region.metadata or "{}")
        state = metadata.pop("thalia_state", None)
        self.metadata = {name: self.value(value) for name, value in metadata.items()}
        self.named = set()
        if state is None:
            self.state = {}
        elif state.get("version") != 1:
            raise Unreadable(f"version {state.get('version')}")
        else:
            self.state = {name: self.value(value) for name, value in state["components"].items()}
        if self.config:
            self.state.setdefault("config", self.config)
        for name, tensor in self.tensors.items():
            if name not in self.named:
                component = self.state.setdefault(COMPONENTS[tensor.entry.role], {})
                component[name] = as_tensor(tensor, {})

    def value(self, value):
        if isinstance(value, list):
            return [self.value(element) for element in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("_type")
        if kind == "tensor":
            return as_tensor(self.tensor(value), value)
        if kind == "scalar":
            number = self.tensor(value).contents()["values"][0]
            return float(number) if isinstance(number, str) else number  # "nan", "inf"
        if kind == "config":
            return self.config
        if kind == "number":
            return float(value["_text"].replace("Infinity", "inf"))
        if kind == "object":
            value = value["_members"]
        return {name: self.value(member) for name, member in value.items()}

    def tensor(self, value):
        name = value["_name"]
        if name not in self.tensors:
            raise Unreadable(f"no tensor {name}")
        self.named.add(name)
        return self.tensors[name]


def read_state(file):
    """Regions, pathways, connections and brain-wide state."""
    brain = {"regions": {}, "pathways": {}, "state": {}, "connections": []}
    reported_connections = []
    for region in file.regions:
        found = _Region(file, region)
        if region.name == "brain:state":
            brain["state"] = found.state
            reported_connections = found.metadata.get("connections", [])
        elif region.name.startswith("pathway:"):
            brain["pathways"][region.name.removeprefix("pathway:")] = found.state
        else:
            brain["regions"][region.name] = found.state
    matrices = {t.name: t for t in file.tensors if t.region is None}
    for k, (source, target) in enumerate(file.connections):
        connection = {"source": source, "target": target}
        for kind in ("weights", "delays"):
            if tensor := matrices.get(f"{k}.{kind}"):
                reported = reported_connections[k].get(kind, {}) if k < len(reported_connections) else {}
                connection[kind] = as_tensor(tensor, reported)
        brain["connections"].append(connection)
    return brain
