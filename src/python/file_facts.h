// What a file of any format says of itself; thalia_checkpoint.FileInfo documents it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/convert.h"
#include "thalia/delta.h"
#include "thalia/quantization.h"
#include "thalia/tensor_layout.h"

namespace thalia::python {

/// Of a tensor, what its file's tables tell. nullopt: the format does not say.
struct TensorEntry {
  std::string_view name;
  TensorLayout layout{};
  std::optional<Role> role{};
  std::uint64_t logical_bytes = 0;
  std::optional<std::uint64_t> stored_bytes{};
  std::vector<Codec> codecs{};
  std::optional<TensorQuantization> quantization{};
};

/// Sums over tensors. A sum with something unknown is unknown.
struct TensorSums {
  struct OfDType {
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;  ///< of csr and coo those stored
    std::uint64_t logical_bytes = 0;
  };
  std::array<OfDType, kDTypeCount> dtypes{};
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;  ///< elements of tensors that are learned
  std::uint64_t logical_bytes = 0;
  std::optional<std::uint64_t> value_bytes = 0;
  std::optional<std::uint64_t> stored_bytes = 0;
  std::set<Codec> codecs{};
  std::uint64_t quantized = 0;
  std::optional<std::uint16_t> lossy_generation{};
  std::optional<std::uint16_t> max_lossy_generations{};

  void add(const TensorEntry& tensor);
};

struct WrapperFacts {
  Codec codec = Codec::zstd;
  std::optional<std::uint64_t> frames{};
};

struct BaseFacts {
  std::optional<std::string> path{};  ///< or key
  std::string checksum;
  std::optional<std::uint64_t> training_steps{};
  std::optional<unsigned> depth{};
};

struct FileFacts {
  FileFormat format = FileFormat::thalia;
  std::optional<std::string> version{};
  bool is_side_file = false;
  std::uint64_t disk_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t dead_bytes = 0;
  std::uint64_t debris_bytes = 0;
  std::optional<WrapperFacts> wrapper{};
  std::optional<std::uint64_t> regions{};
  std::optional<std::uint64_t> connections{};
  std::optional<TensorSums> tensors{};  ///< nullopt of a 0.1 delta
  std::optional<std::uint64_t> total_neurons{};
  std::optional<std::uint64_t> total_synapses{};
  std::optional<std::uint64_t> training_steps{};
  std::optional<std::uint64_t> timestamp{};
  std::optional<std::uint64_t> generation{};
  std::optional<std::string> file_uuid{};
  std::string checksum_type = "none";
  std::optional<std::string> checksum{};
  std::optional<std::string> content_hash{};
  std::optional<BaseFacts> delta_base{};
  std::vector<std::string> warnings{};
  std::string metadata_json{};  ///< empty: none
  std::string growth_json{};    ///< the growth history; empty: of another kind
};

/// thalia where neither content nor name tells, so that opening it says what is wrong.
/// @throws as detect_format().
FileFormat known_format(const std::filesystem::path& path);

/// Reads no payload, but all of a 0.1 file; bases of a delta are not opened.
/// @throws what opening the file throws.
FileFacts describe_file(const std::filesystem::path& path, const ChainOptions& options);

}  // namespace thalia::python
