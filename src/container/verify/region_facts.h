// What the directory says of all tensors of a region together, to compare with what headers repeat.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "format/payload.h"
#include "format/region.h"
#include "format/tensor.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

/// Where the tensors of a role lie, from the first one's payload header to the last payload's end.
struct RoleExtent {
  static constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t begin = kNowhere;
  std::uint64_t end = 0;

  bool empty() const { return begin == kNowhere; }
  void add(const RoleExtent& other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

/// Summed up from entries that are sound.
struct VerifiedRegion {
  std::array<RoleExtent, kRoleCount> roles;
  bool first_weights_csr = false;  ///< of the piece, whatever role it has
  std::uint64_t tensors = 0;
  CheckedSum logical_bytes;
  CheckedSum stored_bytes;
  CheckedSum synapses;

  /// @param encoding and elements that count as stored: those of the entry, or of what a delta's
  /// tensor becomes.
  void add(const format::TensorEntry& entry, Encoding encoding, std::uint64_t elements) {
    const RoleExtent own{entry.stored_offset - sizeof(format::TensorHeader),
                         entry.stored_offset + entry.stored_length};
    if (format::piece_of(entry.role) == format::RegionPiece::weights &&
        own.begin < of(format::RegionPiece::weights).begin)
      first_weights_csr = encoding == Encoding::csr;
    if (entry.role == Role::weights) synapses += elements;
    roles[format::code_of(entry.role)].add(own);
    ++tensors;
    logical_bytes += entry.logical_length;
    stored_bytes += entry.stored_length;
  }
  const RoleExtent& of(Role role) const { return roles[format::code_of(role)]; }
  RoleExtent of(format::RegionPiece piece) const {
    RoleExtent extent;
    for (std::uint8_t code = 0; code < kRoleCount; ++code)
      if (format::piece_of(Role{code}) == piece) extent.add(roles[code]);
    return extent;
  }

  static std::uint64_t stored_elements(const format::TensorEntry& entry) {
    if (is_sparse(entry.encoding)) return entry.nnz;
    return format::shape_of(entry).element_count().value_or(0);
  }
};

/// One structure of a file, whose fields are compared with what they should be.
class Place {
 public:
  Place(const char* section, std::uint64_t offset) : section_(section), offset_(offset) {}

  void equal(const char* field, std::size_t at, std::uint64_t value, std::uint64_t expected) const {
    if (value != expected) fail(field, at, std::to_string(value), std::to_string(expected));
  }
  void equal(const char* field, std::size_t at, std::uint64_t value,
             const CheckedSum& expected) const {
    if (expected.value() != value) fail(field, at, std::to_string(value), expected.to_string());
  }
  void zero(const char* field, std::size_t at, std::span<const std::uint8_t> bytes) const {
    if (std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; })) {
      fail(field, at, "non-zero bytes", "zero");
    }
  }
  [[noreturn]] void fail(const char* field, std::size_t at, std::string value,
                         std::string bound) const {
    fail_field(ErrorCode::inconsistent, section_, field, offset_ + at, std::move(value),
               std::move(bound));
  }

 private:
  const char* section_;
  std::uint64_t offset_;
};

}  // namespace thalia::container
