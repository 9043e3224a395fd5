#include "container/write/check_options.h"

#include "base/fail.h"
#include "codec/chunk/codec.h"
#include "thalia/format/constants.h"

namespace thalia::container {

void check_options(const SaveOptions& options) {
  check_option("checksum", static_cast<std::uint32_t>(options.checksum), 0, 3);
  check_option("leaves", static_cast<std::uint8_t>(options.leaves), 1, 2);
  check_option("block_log2", options.block_log2.value_or(format::kDefaultBlockLog2),
               format::kMinBlockLog2, format::kMaxBlockLog2);
  check_option("chunk_bytes", options.chunk_bytes, 4096, 1u << 30);
  check_option("queue_depth", options.queue_depth, 1, 1024);
  check_option("memory_bytes", options.memory_bytes, 4 << 20, UINT64_MAX);
  if (options.chunk_bytes % 4096 != 0) {
    fail_argument(ErrorCode::bad_argument, "chunk_bytes", std::to_string(options.chunk_bytes),
                  "a multiple of 4096");
  }
  // An automatic compression brings its own level.
  const format::Codec codec = options.compression.value_or(format::Codec::store);
  check_option("compression", static_cast<std::uint8_t>(codec), 0, format::kCodecCount - 1);
  const auto [lowest, highest, standard] = codec::level_range(codec);
  if (options.compression_level != 0 &&
      (options.compression_level < lowest || options.compression_level > highest)) {
    fail_argument(ErrorCode::bad_argument, "compression_level",
                  std::to_string(options.compression_level),
                  fmt::format("{} to {}, or 0 for {}", lowest, highest, standard));
  }
}

}  // namespace thalia::container
