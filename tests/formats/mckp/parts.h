// MCKP files that are put together by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fail.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"
#include "integrity/xxh64.h"
#include "support/bytes.h"
#include "support/files.h"

namespace thalia::test {

template <typename T>
std::string structure(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A file put together by hand, whose parts may contradict each other.
struct Parts {
  std::uint32_t version = 1;
  std::uint32_t flags = 0;
  std::string json;
  std::string blocks;
  std::uint64_t total = 0;

  std::string bytes() const {
    std::vector<std::byte> frame;
    codec::zstd_encode(3, bytes_of(json), frame);
    return with_header(text_of(frame));
  }
  std::string with_header(const std::string& frame) const {
    std::string file = "MCKP" + structure(format::le32(version)) + structure(format::le32(flags));
    file += structure(format::le32(static_cast<std::uint32_t>(frame.size()))) + frame + blocks;
    file += structure(format::le64(integrity::xxh64(bytes_of(file))));
    return file + structure(format::le64(total));
  }
};

inline std::string mckp_block(const std::string& name, const std::string& payload,
                              std::uint64_t original, std::uint32_t method) {
  return structure(format::le32(static_cast<std::uint32_t>(name.size()))) + name +
         structure(format::le64(payload.size())) + structure(format::le64(original)) +
         structure(format::le32(method)) + payload;
}

inline std::string hex16(std::uint64_t number) {
  return fmt::format("{:016x}", number);
}

// One u8 tensor "t" of `size` bytes with this payload.
inline Parts one_tensor(const std::string& payload, std::uint64_t size, std::uint32_t method,
                        const std::string& dtype = "U8", const std::string& shape = "",
                        const std::string& quant = "null") {
  Parts parts;
  parts.json = fmt::format(
      R"({{"original_size":{0},"training_step":null,"previous_checkpoint_hash":null,)"
      R"("previous_key":null,"content_hash":null,"compression_params":{{}},"tensor_metadata":[)"
      R"({{"name":"t","dtype":"{1}","shape":{2},"original_size":{0},"compressed_size":{3},)"
      R"("offset":0,"method":{4},"quant":{5},"xxh64":"{6}"}}],"metadata":{{}}}})",
      size, dtype, shape.empty() ? fmt::format("[{}]", size) : shape, payload.size(), method, quant,
      hex16(integrity::xxh64(bytes_of(payload))));
  parts.blocks = mckp_block("t", payload, size, method);
  parts.total = payload.size();
  return parts;
}

}  // namespace thalia::test
