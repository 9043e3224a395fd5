// Writing a safetensors file whose payloads are fetched one after the other, so that tensors that
// have to be decompressed never lie in memory all at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "thalia/options.h"
#include "thalia/safetensors.h"

namespace thalia::interop {

struct SafetensorsWriteOptions {
  std::uint64_t max_header_bytes = 0;
  Durability durability = Durability::full;
  Progress progress;
};

/// The payload of `tensors[i]`, valid until the next call. Called once each, in the file's order.
using FetchPayload = std::function<ByteSpan(std::size_t i)>;

/// As save_safetensors(); the `bytes` of the tensors are not looked at.
std::uint64_t write_safetensors(const std::filesystem::path& path,
                                const std::vector<SafetensorsTensor>& tensors,
                                const std::optional<SafetensorsMetadata>& metadata,
                                const SafetensorsWriteOptions& options, const FetchPayload& fetch);

}  // namespace thalia::interop
