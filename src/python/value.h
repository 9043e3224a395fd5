// Trees of values between Python and the library. docs/format/states.md, "States".
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <nanobind/nanobind.h>

#include "python/buffers.h"
#include "thalia/state/tensor_value.h"
#include "thalia/state/value.h"

namespace thalia::python {

/// An array of Python's on its way into a tree. Anybody who takes the tensor takes the buffer that
/// it borrows from, too: a tree has each of these once.
struct BorrowedTensor {
  Tensor tensor;
  std::optional<HeldBuffer> held;
};

/// A tensor of a tree that was loaded.
struct LoadedTensor {
  Tensor tensor;
};

/// None, booleans, numbers, texts, lists, tuples, dictionaries with texts for keys, and
/// BorrowedTensors, whose buffers `held` gets. @throws TypeError for anything else.
Value value_of(nanobind::handle object, std::vector<HeldBuffer>& held);

/// The same back; tensors become what `object` makes of them, by itself LoadedTensors that share
/// their bytes with the value's. @throws ValueError for an integer longer than Python reads.
nanobind::object object_of(const Value& value,
                           const std::function<nanobind::object(const Tensor&)>& object = {});

}  // namespace thalia::python
