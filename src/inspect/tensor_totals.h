// What the tables of a file say of all tensors together.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "inspect/packed_words.h"
#include "thalia/formats/any_tensor.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::inspect {

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
  /// nullopt where that of one tensor is not known.
  const std::optional<std::uint64_t>& stored_bytes() const noexcept { return stored_bytes_; }
  const std::optional<std::uint64_t>& value_bytes() const noexcept { return value_bytes_; }

  std::uint64_t quantized() const noexcept { return quantized_; }
  /// The largest ones; nullopt where the tables tell of none.
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

}  // namespace thalia::inspect
