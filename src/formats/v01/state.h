// A brain's state from a document of version 0.1, and back. docs/format/v01.md, "States of version
// 0.1".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thalia/formats/v01.h"
#include "thalia/state/brain.h"

namespace thalia {

/// Regions, pathways, connections and brain-wide state of a document. Its tensors are shared, not
/// copied. The metadata gets a member `v0_1` that says how they were written, so that to_v01()
/// gives the same document again. @throws FormatError (bad_value) where `brain:connectivity` holds
/// none; UnsupportedError (unsupported_feature), naming a region of more than 2^32 - 1 neurons.
BrainState from_v01(const V01Document& document);

struct V01StateOptions {
  /// Seconds since 1970 for the header; nullopt: those that from_v01() found, else now.
  std::optional<std::uint64_t> timestamp{};
  /// Limits for what is made of tensors whose types 0.1 does not have.
  ReadLimits limits{};
  std::uint64_t stored_bytes = 0;  ///< of the file that the state is from
};

struct V01Conversion {
  V01Document document;
  /// What 0.1 has no place for, or holds in another form, one sentence each.
  std::vector<std::string> losses;
};

/// Reads regions that were not read. Element types that 0.1 has not become wider ones that hold
/// every element. @throws UnsupportedError (unsupported_feature), naming the tensor, if there is
/// none (c64, c128, u64 above 2^63 - 1), or naming the region where two would have one name;
/// FormatError on a bad index.
V01Conversion to_v01(const BrainState& brain, const V01StateOptions& options = {});

}  // namespace thalia
