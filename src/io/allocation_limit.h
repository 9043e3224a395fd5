// What ReadLimits::max_allocation_bytes allows: what the caller said, or what suits the file and
// the machine. docs/security.md, "Limits".
#pragma once

#include <cstdint>
#include <string_view>

#include "thalia/options.h"

namespace thalia::io {

/// Bytes that may be allocated for what `stored_bytes` of a file claim to hold. Unless the caller
/// has set max_allocation_bytes: the larger of 1 GiB and 64 times the stored bytes, and at most
/// three quarters of the memory that there is.
std::uint64_t allocation_limit(const ReadLimits& limits, std::uint64_t stored_bytes) noexcept;

/// @throws FormatError (limit_exceeded), naming max_allocation_bytes, where `bytes` are more.
void check_allocation(std::string_view section, std::uint64_t bytes, const ReadLimits& limits,
                      std::uint64_t stored_bytes);

/// @throws FormatError (limit_exceeded), naming max_file_bytes, where a file of `bytes` is larger.
void check_file_bytes(std::string_view section, std::uint64_t bytes, const ReadLimits& limits);

/// For JSON texts of untrusted files: compares `bytes` of text with max_json_bytes, and the memory
/// that reading them takes with the limit on allocations. @throws FormatError (limit_exceeded).
void check_json_length(std::string_view section, std::uint64_t bytes, const ReadLimits& limits,
                       std::uint64_t stored_bytes);

}  // namespace thalia::io
