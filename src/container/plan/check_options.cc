// Numbers from callers are checked once, before a file is touched; everything after this relies on
// them.
#include "container/plan/check_options.h"

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/chunk/codec.h"
#include "format/constants.h"

namespace thalia::container {

void check_options(const SaveOptions& options) {
  check_option("checksum", static_cast<std::uint32_t>(options.checksum), 0, 3);
  check_option("leaves", static_cast<std::uint8_t>(options.leaves), 1, 2);
  check_option("block_log2", options.block_log2.value_or(format::kDefaultBlockLog2),
               format::kMinBlockLog2, format::kMaxBlockLog2);
  check_option("chunk_bytes", options.compression.chunk_bytes, 4096, 1u << 30);
  check_option("queue_depth", options.queue_depth, 1, 1024);
  check_option("memory_bytes", options.work.memory_bytes.value_or(kDefaultMemoryBytes), 4 << 20,
               UINT64_MAX);
  if (options.compression.chunk_bytes % 4096 != 0) {
    fail_argument(ErrorCode::bad_argument, "chunk_bytes",
                  std::to_string(options.compression.chunk_bytes), "a multiple of 4096");
  }
  if (options.automatic_codec && options.compression.codec) {
    fail_argument(ErrorCode::bad_argument, "codec",
                  std::to_string(static_cast<int>(*options.compression.codec)),
                  "none beside automatic_codec, which chooses one");
  }
  // A codec that is chosen automatically brings its own level.
  codec::checked_level(options.compression.codec.value_or(Codec::none), options.compression.level);
}

}  // namespace thalia::container
