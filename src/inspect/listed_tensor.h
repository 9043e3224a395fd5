// A tensor as the tables of its file describe it, whichever format that has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/options.h"
#include "thalia/quantization.h"
#include "thalia/tensor.h"
#include "thalia/tensor_layout.h"

namespace thalia::inspect {

/// nullopt: the format does not say.
struct ListedTensor {
  std::string region;  ///< empty: it is in none
  std::string name;
  TensorLayout layout{};
  /// The format's own name of the element type, where the layout does not tell it; else empty.
  std::string type{};
  std::optional<Role> role{};
  std::uint64_t logical_bytes = 0;
  std::optional<std::uint64_t> stored_bytes{};
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint32_t> chunks{};
  std::vector<Codec> codecs{};
  std::optional<bool> byte_planes{};  ///< whether bytes of elements are grouped by their place
  std::optional<std::uint32_t> crc32{};
  std::optional<Digest128> content_hash{};
  /// Bits of a code, of a quantized tensor; what else is known where the file tells of its loss.
  std::optional<double> bits{};
  std::optional<TensorQuantization> quantization{};

  /// What it takes of the file, or in memory where the format does not say.
  std::uint64_t size() const noexcept { return stored_bytes.value_or(logical_bytes); }
  /// Stored elements: of csr and coo those that there are, else all of the shape; at most 2^64 - 1.
  std::uint64_t elements() const noexcept;
  bool is_compressed() const noexcept;
  /// Whether it is learned: by its role, or by its name where that tells more.
  bool is_parameter() const;
  /// In memory once it is restored; nullopt of what a delta makes of a base that is not looked at.
  std::optional<std::uint64_t> value_bytes() const noexcept;
};

}  // namespace thalia::inspect
