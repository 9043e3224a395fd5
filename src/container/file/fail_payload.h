// Payloads that are not the ones that were written.
#pragma once

#include <cstdint>

#include "base/fail.h"

namespace thalia::container {

/// The CRC-32 of a tensor's payload at `offset` is not the directory's.
[[noreturn]] inline void fail_payload_crc(std::uint64_t offset, std::uint32_t computed,
                                          std::uint32_t expected) {
  throw IntegrityError(ErrorCode::checksum_mismatch, "the payload is not the one that was written",
                       {.section = "payload",
                        .field = "crc32",
                        .offset = offset,
                        .value = fmt::format("{:#010x}", computed),
                        .bound = fmt::format("{:#010x}", expected)});
}

}  // namespace thalia::container
