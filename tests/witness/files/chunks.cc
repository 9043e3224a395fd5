// Writes chunks for chunk_codecs_test.py: NAME.raw, and beside it NAME.CODEC for each codec of this
// library's own and NAME.FILTER for each filter.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "codec/exponents/packed_exponents.h"
#include "codec/planes/split.h"
#include "codec/rans/plane_entropy.h"
#include "parts.h"
#include "support/bytes.h"

namespace witness::chunks {

using namespace thalia;
using codec::Content;
using codec::ElementLayout;

namespace {

using Bytes = std::vector<std::byte>;

void write(const std::filesystem::path& path, ByteSpan bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

// Elements whose highest bytes are few different ones, and whose others are noise; then a tail.
Bytes elements(std::size_t width, std::size_t count) {
  Bytes bytes = test::random_bytes(width * count + width / 2, width);
  for (std::size_t i = 0; i < count; ++i) {
    const auto noise = std::to_integer<unsigned>(bytes[(i + 1) * width - 1]);
    const unsigned exponent = noise < 8 ? noise : 0x38 + noise % 5;
    bytes[(i + 1) * width - 1] = static_cast<std::byte>(exponent | (noise & 0x80));
  }
  return bytes;
}

void write_chunk(const std::filesystem::path& folder, const std::string& name, ElementLayout layout,
                 const Bytes& raw) {
  write(folder / (name + ".raw"), raw);
  Bytes out;
  if (codec::plane_entropy_encode(layout, raw, out)) write(folder / (name + ".plane_entropy"), out);
  if (codec::packed_exponents_encode(layout, raw, out))
    write(folder / (name + ".packed_exponents"), out);
  out.resize(raw.size());
  for (const std::size_t width : {2, 4, 8}) {
    codec::split_planes(width, raw, out);
    write(folder / (name + ".byte_planes_" + std::to_string(width)), out);
    if (width == 2) continue;
    codec::split_difference_planes(width, raw, out);
    write(folder / (name + ".difference_planes_" + std::to_string(width)), out);
  }
}

}  // namespace

void run(const std::filesystem::path& folder) {
  write_chunk(folder, "bf16", {Content::floats, 2, 8}, elements(2, 3000));
  write_chunk(folder, "f16", {Content::floats, 2, 5}, elements(2, 3000));
  write_chunk(folder, "f32", {Content::floats, 4, 8}, elements(4, 3000));
  write_chunk(folder, "f64", {Content::floats, 8, 11}, elements(8, 3000));
  write_chunk(folder, "i64", {Content::integers, 8, 0}, elements(8, 3000));
  write_chunk(folder, "bytes", {Content::bytes, 1, 0}, elements(1, 3000));
  write_chunk(folder, "zeros", {Content::integers, 4, 0}, Bytes(1001));
}

}  // namespace witness::chunks
