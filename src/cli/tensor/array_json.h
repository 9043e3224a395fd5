// Tensors as one JSON object each.
#pragma once

#include "cli/tensor/slice.h"
#include "cli/terminal/output.h"
#include "inspect/opened_tensor.h"

namespace thalia::cli {

/// {"region", "tensor", "dtype", "encoding", "shape": of the whole tensor, "slice": [[begin, end],
/// ...], "values": nested arrays, without the dimensions that the slice dropped}. Elements: see
/// append_json. All of an empty tensor's values are [].
void print_array_json(Output& out, const inspect::OpenedTensor& source, const Slice& slice);

/// The same with "entries": [[row, column, value], ...] in the place of "values", coordinates
/// counting from the tensor's start.
void print_entries_json(Output& out, const inspect::OpenedTensor& source, const Slice& slice);

}  // namespace thalia::cli
