// What files of all formats say about themselves, next to their tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia {

/// A frame around the whole file.
struct WrapperFacts {
  Codec codec = Codec::zstd;
  bool has_seek_table = false;
  std::optional<std::uint64_t> frames{};
  std::optional<bool> checksum_inside{};  ///< of version 0.1
};

struct ChecksumFacts {
  std::string type = "none";
  std::optional<std::uint64_t> tensors{};  ///< that it covers, where it does not cover all
  std::optional<std::string> leaves{};
  std::optional<std::uint64_t> block_bytes{};
  std::optional<std::string> digest{};
};

/// What a delta says of the file that it was taken against.
struct BaseFacts {
  std::optional<std::string> path{};  ///< or key
  std::string checksum;
  std::optional<std::uint64_t> training_steps{};
  std::optional<unsigned> depth{};
};

/// nullopt: the format does not say.
struct StateFacts {
  bool is_delta = false;
  std::optional<std::uint64_t> training_steps{};  ///< not those that metadata alone tell
  std::optional<std::uint64_t> timestamp{};
  std::uint64_t disk_bytes = 0;
};

/// nullopt: the format does not say. `disk_bytes` are those of a file that may be wrapped, or have
/// debris; else 0.
struct FileFacts : StateFacts {
  std::string version{};  ///< of the format; empty: the file does not say
  bool is_side_file = false;
  /// Its tensors are listed. Those of a delta of version 0.1 are in a Python pickle, which is
  /// never opened.
  bool lists_tensors = true;
  std::uint64_t file_bytes = 0;  ///< unwrapped and without debris; of all files of a model
  std::optional<WrapperFacts> wrapper{};
  std::uint64_t dead_bytes = 0;
  std::uint64_t debris_bytes = 0;
  std::optional<std::uint64_t> regions{};
  std::optional<std::uint64_t> connections{};
  std::optional<std::uint64_t> neurons{};
  std::optional<std::uint64_t> synapses{};
  std::optional<std::uint64_t> generation{};
  std::optional<Uuid> uuid{};
  std::vector<std::string_view> flags{};    ///< that are set: "compressed", "sparse"
  std::optional<ChecksumFacts> checksum{};  ///< nullopt: AnyTensor::checksum is all there is
  std::optional<std::string> content_hash{};
  std::optional<BaseFacts> base{};
  std::vector<std::string> warnings{};
  /// What the file holds beside tensors and metadata, a sentence each: conversions lose it.
  std::vector<std::string> losses{};
  /// A JSON object. Of most formats {"format":NAME,NAME:{…}}: what a .thalia file made of this one
  /// holds, with all that it takes to write the file again.
  std::string metadata = "{}";
};

/// A region of a file that has some. Texts are valid as long as the file is open.
struct RegionFacts {
  std::string_view name;
  std::uint64_t tensor_count = 0;
  std::optional<std::uint32_t> n_neurons{};
  std::optional<std::uint32_t> n_inputs{};
  std::optional<NeuronType> neuron_type{};
  std::uint64_t logical_bytes = 0;
  std::optional<std::uint64_t> stored_bytes{};
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint64_t> length{};
  std::string_view config{};    ///< a JSON object; empty: none
  std::string_view metadata{};  ///< the same

  /// What its tensors take of the file, or in memory where the format does not say.
  std::uint64_t size() const noexcept { return stored_bytes.value_or(logical_bytes); }
};

/// A checkpoint, or one that it is based on.
struct LinkFacts : StateFacts {
  std::string name{};  ///< a path, or the key of a checkpoint in a store

  std::string_view kind() const noexcept { return is_delta ? "delta" : "full"; }
};

struct ConnectionFacts {
  std::string source;
  std::string target;
  std::size_t weights = 0;  ///< the number of the tensor
  std::optional<std::size_t> delays{};
};

}  // namespace thalia
