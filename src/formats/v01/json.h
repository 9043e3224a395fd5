// JSON as Python's json.dumps(value, indent=2) writes it, which the original program uses.
// docs/format/v01.md, "JSON of version 0.1".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/state/value.h"

namespace thalia::formats {

/// What is in the text for a tensor.
using TensorTag = std::function<Value(const Tensor& tensor, const std::string& path)>;

/// The name of a value below a tree, for messages and warnings: "weights.w_ff", "history[3].t".
std::string v01_member_path(const std::string& path, std::string_view name);
std::string v01_element_path(const std::string& path, std::size_t i);

/// The value of a number that is an integer from 0 to 2^64 - 1; nullopt for all other values.
std::optional<std::uint64_t> v01_unsigned(const Value& value) noexcept;

/// Tensors are asked for depth first, in the order of members. @throws UsageError (bad_argument)
/// for a tensor where `tag` is empty; UnsupportedError (unsupported_feature) for a string that no
/// Python string can be, or, where `tag` is not empty, an object that would be read as a tensor.
std::string python_json(const Value& value, const TensorTag& tag = {});

}  // namespace thalia::formats
