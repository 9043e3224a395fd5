// Writing a safetensors file whose payloads come one after the other, so that tensors that
// have to be decompressed never lie in memory all at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "interop/shared/piece_sink.h"
#include "thalia/options.h"
#include "thalia/safetensors.h"

namespace thalia::interop {

struct SafetensorsWriteOptions {
  std::uint64_t max_header_bytes = 0;
  OutputOptions output{};
  Work work{};  ///< progress and the stop
};

/// Hands on the payload of `tensors[i]`, in pieces of any size. Called once each, in the file's
/// order.
using EmitPayload = std::function<void(std::size_t i, const PieceSink& sink)>;

/// As save_safetensors(); the `bytes` of the tensors are not looked at.
std::uint64_t write_safetensors(const std::filesystem::path& path,
                                const std::vector<SafetensorsTensor>& tensors,
                                const std::optional<SafetensorsMetadata>& metadata,
                                const SafetensorsWriteOptions& options, const EmitPayload& emit);

}  // namespace thalia::interop
