// Tensors as text for people, the way NumPy prints arrays.
#pragma once

#include "cli/tensor/slice.h"
#include "cli/terminal/output.h"
#include "inspect/opened_tensor.h"

namespace thalia::cli {

/// Above this many elements, or entries, only the edges are shown.
inline constexpr std::uint64_t kSummaryThreshold = 1000;

/// Nested brackets, the elements in columns. If there are more than kSummaryThreshold elements,
/// only the first and last three of each dimension are read and shown; with `all` every one,
/// without columns and with the innermost dimension on one line.
void print_array(Output& out, const inspect::OpenedTensor& source, const Slice& slice, bool all);

/// A sparse tensor's entries, "(row, column) value", one on each line. Coordinates count from the
/// tensor's start, also in a slice. Without `all`, of more than kSummaryThreshold entries only the
/// first and the last twenty are shown.
void print_entries(Output& out, const inspect::OpenedTensor& source, const Slice& slice, bool all);

}  // namespace thalia::cli
