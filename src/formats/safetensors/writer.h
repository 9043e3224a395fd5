// Writing a safetensors file whose payloads come one after the other, so that tensors that
// have to be decompressed never lie in memory all at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "formats/safetensors/header.h"
#include "formats/source/tensor_sink.h"
#include "thalia/formats/safetensors.h"
#include "thalia/options.h"

namespace thalia::formats {

struct SafetensorsWriteOptions {
  std::uint64_t max_header_bytes = 0;
  OutputOptions output{};
  Work work{};  ///< progress and the stop
  std::uint64_t align = 8;
};

/// As save_safetensors(); the `bytes` of the tensors are not looked at, and payloads come in the
/// file's order.
std::uint64_t write_safetensors(const std::filesystem::path& path,
                                const std::vector<NamedArray>& tensors,
                                const std::optional<SafetensorsMetadata>& metadata,
                                const SafetensorsWriteOptions& options, const EmitPayload& emit);

namespace safetensors {

/// How far the payloads of one or several files are.
struct Written {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};
/// Writes a file with this header and commits it. @return bytes of the file.
std::uint64_t write_file(const std::filesystem::path& path, const SafetensorsHeader& header,
                         const OutputOptions& output, const Work& work, Written& written,
                         const EmitPayload& emit);

/// @throws UsageError (size_mismatch) for a tensor whose bytes are not what dtype and shape ask
/// for.
void check_payload_size(const std::filesystem::path& path, const NamedArray& tensor);
void check_payload_sizes(const std::filesystem::path& path, const std::vector<NamedArray>& tensors);

}  // namespace safetensors
}  // namespace thalia::formats
