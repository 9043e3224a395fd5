// What a file says of itself, whichever format it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/tensor_totals.h"
#include "inspect/training_progress.h"
#include "thalia/bytes.h"
#include "thalia/formats/file_format.h"
#include "thalia/growth_history.h"
#include "thalia/options.h"
#include "thalia/reader.h"

namespace thalia::inspect {

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
struct FileFacts {
  std::string path;
  FileFormat format = FileFormat::thalia;
  std::optional<std::string> version{};
  bool is_delta = false;
  bool is_side_file = false;
  std::uint64_t disk_bytes = 0;
  std::uint64_t file_bytes = 0;  ///< unwrapped and without debris; of a side file, its source's
  std::optional<WrapperFacts> wrapper{};
  std::uint64_t dead_bytes = 0;
  std::uint64_t debris_bytes = 0;
  std::optional<std::uint64_t> regions{};
  std::optional<std::uint64_t> connections{};
  std::optional<TensorTotals> totals{};
  std::optional<std::uint64_t> neurons{};
  std::optional<std::uint64_t> synapses{};
  TrainingProgress progress{};  ///< steps of the header are without a member's name
  std::optional<std::uint64_t> timestamp{};
  std::optional<std::uint64_t> generation{};
  std::optional<Uuid> uuid{};
  std::vector<std::string_view> flags{};
  ChecksumFacts checksum{};
  std::optional<std::string> content_hash{};
  std::optional<BaseFacts> base{};
  std::vector<std::string> warnings{};
  std::vector<std::string> beside{};  ///< what the file holds beside tensors and metadata
  std::string metadata{};             ///< a JSON object; empty: none
};

/// 8-4-4-4-12 hexadecimal digits.
std::string uuid_text(const Uuid& uuid);
/// The flags that are set: "compressed", "sparse".
std::vector<std::string_view> flag_names(const FileFlags& flags);
ChecksumFacts checksum_facts(const Reader& reader);

/// nullopt where the metadata have another kind of growth_history: it is then shown as it stands.
std::optional<std::vector<GrowthEvent>> growth_events(std::string_view metadata);

}  // namespace thalia::inspect
