// What a file says of itself, whichever format it has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspect/training_progress.h"
#include "thalia/formats/file_facts.h"
#include "thalia/options.h"
#include "thalia/state/metadata.h"
#include "thalia/types.h"

namespace thalia::inspect {

// Weights that a quantizer packed into integers: how many there are, as the tables tell it.

/// GPTQ and AWQ (qweight, qzeros, scales), bitsandbytes (weight beside absmax), compressed-tensors
/// (weight_packed), MXFP4 (_blocks beside _scales), NVFP4 (weight beside weight_scale). An integer
/// in such a tensor holds several weights, and the tensors beside it are no weights.
class PackedWords {
 public:
  struct Count {
    std::uint64_t parameters = 0;  ///< of all tensors
    std::uint64_t unknown = 0;     ///< packed tensors whose width no table tells: not counted
  };

  /// Keeps what tells later which tensors belong together.
  void add(const AnyTensor& tensor);
  Count count() const;

 private:
  struct Part {
    DType dtype{};
    std::uint64_t elements = 0;
    std::uint64_t columns = 0;  ///< the last extent; 0 of a scalar
    bool is_parameter = false;
  };
  const Part* find(std::string_view stem, std::string_view last) const;
  std::optional<std::uint64_t> packed(std::string_view stem, std::string_view last,
                                      const Part& part, bool& is_packed) const;
  bool is_companion(std::string_view stem, std::string_view last) const;

  std::unordered_map<std::string, Part> parts_;  ///< integers, and what lies beside them
  std::uint64_t others_ = 0;                     ///< parameters of all other tensors
};

// What the tables of a file say of all tensors together.

struct DTypeTotal {
  DType dtype{};
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;  ///< of csr and coo those stored
  std::uint64_t logical_bytes = 0;
};

/// In memory once it is restored; nullopt of what a delta makes of a base that is not looked at.
std::optional<std::uint64_t> value_bytes_of(const AnyTensor& tensor) noexcept;

class TensorTotals {
 public:
  void add(const AnyTensor& tensor);

  std::uint64_t tensors() const noexcept { return tensors_; }
  /// Stored elements of those that are learned; of words into which a quantizer packed several
  /// weights, these.
  PackedWords::Count parameters() const { return parameters_.count(); }
  std::uint64_t logical_bytes() const noexcept { return logical_bytes_; }
  /// nullopt if that of one tensor is not known.
  const std::optional<std::uint64_t>& stored_bytes() const noexcept { return stored_bytes_; }
  const std::optional<std::uint64_t>& value_bytes() const noexcept { return value_bytes_; }

  std::uint64_t quantized() const noexcept { return quantized_; }
  /// The largest ones; nullopt where the tables have none.
  const std::optional<std::uint16_t>& lossy_generation() const noexcept {
    return lossy_generation_;
  }
  const std::optional<std::uint16_t>& max_lossy_generations() const noexcept {
    return max_lossy_generations_;
  }
  /// Each once, in the order of their codes.
  std::vector<std::string_view> codec_names() const;

  std::uint64_t elements() const noexcept { return elements_; }
  /// That some codec made smaller, or might have.
  std::uint64_t compressed() const noexcept { return compressed_; }
  /// Those that there are, most elements first.
  std::vector<DTypeTotal> dtypes() const;

 private:
  std::array<DTypeTotal, kDTypeCount> dtypes_{};
  std::uint64_t tensors_ = 0;
  std::uint64_t elements_ = 0;
  PackedWords parameters_;
  std::uint64_t logical_bytes_ = 0;
  std::optional<std::uint64_t> stored_bytes_ = 0;
  std::optional<std::uint64_t> value_bytes_ = 0;
  std::uint64_t compressed_ = 0;
  std::uint64_t quantized_ = 0;
  std::optional<std::uint16_t> lossy_generation_{};
  std::optional<std::uint16_t> max_lossy_generations_{};
  std::set<Codec> codecs_;
};

struct DescribedFile : FileFacts {
  std::string path;
  FileFormat format = FileFormat::thalia;
  std::optional<TensorTotals> totals{};
  TrainingProgress progress{};  ///< steps of the header are without a member's name
};

/// 8-4-4-4-12 hexadecimal digits.
std::string uuid_text(const Uuid& uuid);

/// nullopt where the metadata have another kind of growth_history: it is then shown as it is.
std::optional<std::vector<GrowthEvent>> growth_events(std::string_view metadata);

}  // namespace thalia::inspect
