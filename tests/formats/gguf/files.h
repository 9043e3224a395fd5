// GGUF files of tests: the reference's, and some that are made by hand, byte by byte.
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "format/little_endian.h"
#include "support/files.h"
#include "thalia/formats/gguf.h"

namespace thalia::test::gguf {

inline std::filesystem::path vector_path(std::string_view name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/gguf" / name;
}

/// A part of a file, in the order of calls.
class Bytes {
 public:
  Bytes& u8(std::uint8_t number) { return put(number); }
  Bytes& u32(std::uint32_t number) { return put(format::le32(number)); }
  Bytes& u64(std::uint64_t number) { return put(format::le64(number)); }
  Bytes& text(std::string_view characters) {
    u64(characters.size());
    return raw(characters);
  }
  Bytes& raw(std::string_view characters) {
    bytes += characters;
    return *this;
  }
  /// A tensor of the header; the dimensions as the file has them, innermost first.
  Bytes& tensor(std::string_view name, std::initializer_list<std::uint64_t> dimensions,
                std::uint32_t type, std::uint64_t offset) {
    text(name).u32(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) u64(dimension);
    return u32(type).u64(offset);
  }
  Bytes& pad(std::size_t alignment = 32) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }

  std::string bytes{};

 private:
  template <typename T>
  Bytes& put(const T& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
};

/// The first 24 bytes.
inline Bytes start(std::uint64_t tensors, std::uint64_t key_values, std::uint32_t version = 3) {
  return Bytes().raw("GGUF").u32(version).u64(tensors).u64(key_values);
}

inline GgufFile from_text(std::string text, const ReadLimits& limits = {}) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return GgufFile::from_bytes({.bytes = bytes_of(*owner), .owner = owner}, "test.gguf", limits);
}

}  // namespace thalia::test::gguf
