// The object that a .pt file is written of: a graph over the tensors of a sink.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/pickle/value.h"
#include "formats/source/tensor_sink.h"
#include "thalia/state/value.h"

namespace thalia::formats::pt {

/// What the bytes of a storage are, of one tensor of the sink.
enum class PayloadPart : std::uint8_t { whole, indices, columns, values };

struct PtPayload {
  std::size_t tensor = 0;
  PayloadPart part = PayloadPart::whole;
};

struct PtPlan {
  /// Keys of its storages are not set.
  Graph graph{};
  std::vector<PtPayload> payloads{};  ///< for each storage
  std::string folder = "archive";
  std::string version = "3";
  std::string serialization_id{};  ///< empty: none is known
  /// Records that newer versions of torch write.
  bool format_version = true, storage_alignment = true, byte_order = true, with_id = true;
  std::vector<std::string> losses{};
};

/// By the tree in the metadata, if it fits the tensors; else a dictionary of all of them.
/// Nothing of the metadata is trusted. @throws UnsupportedError for tensors that torch has none of.
PtPlan make_plan(const SinkInput& input, const ReadLimits& limits);

/// By that tree alone; nullopt if there is none that fits the tensors.
std::optional<PtPlan> plan_of_tree(const SinkInput& input, const Value& metadata);

}  // namespace thalia::formats::pt
