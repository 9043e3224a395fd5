// Writing a GGUF file whose payloads come one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/source/tensor_sink.h"
#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {

/// What comes before the payloads, and where those end.
struct GgufPlan {
  std::string header;  ///< padded to the alignment
  std::uint32_t alignment = 0;
  std::vector<std::uint64_t> payload_bytes{};
};

/// The `bytes` and offsets of the tensors are not looked at. @throws UsageError, UnsupportedError
/// as save_gguf().
GgufPlan plan_file(const std::vector<GgufTensor>& tensors, const GgufKeyValues& key_values,
                   bool long_names);

struct GgufWriteOptions {
  OutputOptions output{};
  Work work{};
};

/// `emit` is asked for each tensor in order. @throws UsageError (size_mismatch) if it hands on
/// another number of bytes; IoError. @return bytes of the file.
std::uint64_t write_file(const std::filesystem::path& path, const GgufPlan& plan,
                         const GgufWriteOptions& options, const EmitPayload& emit);

}  // namespace thalia::formats::gguf
