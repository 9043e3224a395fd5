// Files that hold what an implementer may get wrong, one kind of thing in each. The first ones of
// tests/data/vectors were correct for readers with most of the mistakes of mistakes.txt.
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "state/delta/sample.h"
#include "thalia/reader.h"
#include "thalia/state/quantization.h"
#include "vectors/valid_file.h"

namespace thalia::test {
namespace {

namespace fs = std::filesystem;

std::uint64_t next(std::uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return state >> 11;
}

// More than a piece of the content hash, in chunks that stay small.
void write_large(const fs::path& path) {
  SaveOptions save = options();
  save.compression = {.codec = Codec::zstd, .chunk_bytes = 1 << 19};
  File file(path, save);
  file.tensor(file->add_region({.name = "r"}), {.name = "large"}, long_tensor((1 << 20) + 100));
  file.commit();
}

// As many raw bytes as a page asks for, and one less.
void write_page(const fs::path& path) {
  File file(path);
  const RegionId region = file->add_region({.name = "r"});
  file.tensor(region, {.name = "page"}, long_tensor(65'536));
  file.commit();
}

// Every code of every type of 8 bits and less, and what is special in f16 and bf16.
void write_values(const fs::path& path) {
  File file(path);
  const RegionId region = file->add_region({.name = "r"});
  for (unsigned code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    const unsigned width = dtype_bits(dtype);
    if (width > 8) continue;
    const std::uint64_t count = dtype == DType::boolean   ? 2
                                : dtype == DType::ternary ? 8
                                                          : 1U << width;
    Tensor tensor = Tensor::zeros(dtype, {count});
    for (std::uint64_t i = 0; i < count; ++i) {
      unsigned value = static_cast<unsigned>(i);
      if (dtype == DType::ternary) value = std::vector<unsigned>{0, 1, 3}[i % 3];
      tensor.mutable_bytes()[i * width / 8] |= static_cast<std::byte>(value << i * width % 8);
      if (i * width % 8 + width > 8)
        tensor.mutable_bytes()[i * width / 8 + 1] |=
            static_cast<std::byte>(value >> (8 - i * width % 8));
    }
    file.tensor(region, {.name = std::string(dtype_name(dtype))}, tensor);
  }
  const std::vector<std::uint16_t> f16{0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00,
                                       0xC100, 0x7BFF, 0x7C00, 0xFC00, 0x7E01, 0xFC01};
  const std::vector<std::uint16_t> bf16{0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x3F80,
                                        0xC040, 0x7F7F, 0x7F80, 0xFF80, 0x7FC1, 0xFF81};
  file.tensor(region, {.name = "f16"}, bits(DType::f16, {3, 4}, f16));
  file.tensor(region, {.name = "bf16"}, bits(DType::bf16, {12}, bf16));
  file.commit();
}

// Numbers of both signs and of 2 and more, so that a rotation by one bit carries ones.
void write_signs(const fs::path& path, Codec codec) {
  SaveOptions save = options();
  save.compression = {.codec = codec, .chunk_bytes = 4096};
  File file(path, save);
  const RegionId region = file->add_region({.name = "r"});
  std::uint64_t noise = 7;
  const auto floats = [&](const std::string& name, DType dtype, std::uint64_t count,
                          unsigned mantissa) {
    Tensor tensor = Tensor::zeros(dtype, {count});
    const unsigned width = dtype_bits(dtype);
    const std::uint64_t bias = (1U << (width - 2 - mantissa)) - 1;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t drawn = next(noise);
      const std::uint64_t exponent = bias + 1 + drawn % 2 + (drawn % 61 == 0 ? 5 : 0);
      const std::uint64_t element = (drawn >> 50 & 1) << (width - 1) | exponent << mantissa |
                                    (next(noise) & ((std::uint64_t{1} << mantissa) - 1));
      std::memcpy(tensor.mutable_bytes().data() + i * width / 8, &element, width / 8);
    }
    file.tensor(region, {.name = name}, tensor);
  };
  floats("f32", DType::f32, 640, 23);
  floats("f32.odd", DType::f32, 1500, 23);
  floats("bf16", DType::bf16, 1024, 7);
  floats("f16", DType::f16, 1001, 10);
  floats("f64", DType::f64, 448, 52);
  file.commit();
}

// Neighbours whose difference wraps at the width of a word.
void write_differences(const fs::path& path) {
  SaveOptions save = options();
  save.compression = {.codec = Codec::zstd, .chunk_bytes = 4096};
  File file(path, save);
  const RegionId region = file->add_region({.name = "r"});
  std::vector<std::uint32_t> words(1500);
  std::vector<std::uint64_t> longs(700);
  std::uint64_t noise = 11;
  for (std::size_t i = 1; i < words.size(); ++i)
    words[i] = words[i - 1] + 0xC000'0005U + static_cast<std::uint32_t>(next(noise) % 3);
  for (std::size_t i = 1; i < longs.size(); ++i)
    longs[i] = longs[i - 1] + 0xB000'0000'0000'0007U + next(noise) % 3;
  file.tensor(region, {.name = "i32"}, bits(DType::i32, {words.size()}, words));
  file.tensor(region, {.name = "i64"}, bits(DType::i64, {longs.size()}, longs));
  file.commit();
}

// Shapes and indices at their limits, and weights whose first payload is not the first by name.
void write_extents(const fs::path& path) {
  File file(path);
  const RegionId csr_later = file->add_region({.name = "csr_later"});
  Tensor few = Tensor::zeros(DType::f32, {4, 5});
  few.mutable_as<float>()[7] = 3;
  few.mutable_as<float>()[9] = -2;
  file.dense(csr_later, {.name = "b", .shape = {2}});
  file.tensor(csr_later, {.name = "a"}, few.to_csr());
  const RegionId csr_first = file->add_region({.name = "csr_first"});
  file.tensor(csr_first, {.name = "b"}, few.to_csr());
  file.tensor(csr_first, {.name = "a"}, few.to_coo());

  const RegionId region = file->add_region({.name = "limits"});
  for (const Role role : {Role::bias, Role::normalization, Role::embedding})
    file.dense(file->add_region({.name = std::string(role_name(role))}),
               {.name = "alone", .shape = {2, 2}, .role = role});
  const std::uint64_t most = 0xFFFF'FFFF;
  const std::vector<std::uint32_t> narrow{3, 0xFFFF'FFFE, 0, 1};
  const std::vector<std::uint8_t> two{7, 9};
  file.tensor(region, {.name = "coo.narrow"},
              Tensor::coo(DType::u8, {most, 2},
                          CooArrays<std::uint32_t>{narrow, std::as_bytes(std::span(two))}));
  const std::vector<std::uint64_t> pointers{0, 2, 2, 3}, columns{1, 0x1'0000'0003, 0x1'FFFF'FFFF};
  const std::vector<double> three{1.5, -2.25, 1e300};
  file.tensor(
      region, {.name = "csr.wide"},
      Tensor::csr(DType::f64, {3, 0x2'0000'0000},
                  CsrArrays<std::uint64_t>{pointers, columns, std::as_bytes(std::span(three))}));
  const std::vector<std::uint8_t> flags{1, 0, 1};
  file.tensor(
      region, {.name = "csr.wide.bool"},
      Tensor::csr(DType::boolean, {3, 0x2'0000'0000},
                  CsrArrays<std::uint64_t>{pointers, columns, std::as_bytes(std::span(flags))}));
  file.dense(region, {.name = "rows.i4", .dtype = DType::i4, .shape = {3, 3}});
  file.dense(region, {.name = "rows.binary", .dtype = DType::binary, .shape = {3, 5}});
  file.dense(region, {.name = "folded", .dtype = DType::u8, .shape = {2, 3, 2, 5}});
  file.dense(region, {.name = "folded.beyond", .shape = {0, 1, 1ULL << 40, 1ULL << 40}});
  file.commit();
}

// Names whose order by bytes is not that of UTF-16 or of numbers, and more than ten connections.
void write_order(const fs::path& path) {
  File file(path);
  // The first 22 bytes of the last one end within a character.
  std::string snow;
  for (int i = 0; i < 12; ++i) snow += "\u2603";
  const std::vector<std::string> names{"b", "a", "\U0001F600", "\uFF5E", snow};
  for (const std::string& name : names) {
    const RegionId region = file->add_region({.name = name, .n_neurons = 2});
    for (const char* tensor : {"t10", "t9", "\U0001F600", "\uFF5E", "T"})
      file.dense(region, {.name = tensor, .dtype = DType::u8, .shape = {2}});
  }
  for (const std::string& source : names) {
    for (const std::string& target : names)
      if (source != target) file.connect(source, target, source == "b");
  }
  file.commit();
}

std::string nested(int depth) {
  return "{\"deep\":" + std::string(static_cast<std::size_t>(depth) - 1, '[') +
         std::string(static_cast<std::size_t>(depth) - 1, ']') + "}";
}

// Texts that RFC 8259 and the page allow.
void write_texts(const fs::path& path) {
  File file(path);
  file->set_metadata(
      " \t\r\n{\"twice\":1,\"other\":[],\"twice\":{\"\\u0000\":\"\\ud83d\\ude00\"}} \n");
  file->add_region({.name = "first",
                    .config_json = "{\"big\":123456789012345678901234567890.5e+400,\"zero\":-0,"
                                   "\"small\":1E-999,\"u64\":18446744073709551616}",
                    .metadata_json = "{\"\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\u00e9\x7F\"}"});
  file->add_region({.name = "depth", .config_json = nested(256), .metadata_json = "{}"});
  file.commit();
}

// Numbers of the four types that come out of codes.
void write_quantized_types(const fs::path& folder) {
  const fs::path plain = folder / "plain";
  {
    File file(plain);
    const RegionId region = file->add_region({.name = "r"});
    std::mt19937_64 random(12);
    const Tensor numbers = normal_tensor({10, 15}, random, 2);
    std::vector<std::uint16_t> bf16, f16;
    std::vector<double> f64;
    for (const float number : numbers.as<float>()) {
      std::uint32_t raw;
      std::memcpy(&raw, &number, sizeof raw);
      bf16.push_back(static_cast<std::uint16_t>(raw >> 16));
      f16.push_back(static_cast<std::uint16_t>((raw >> 16 & 0x8000) | 0x3800 | (raw & 0x7FF)));
      f64.push_back(std::ldexp(static_cast<double>(number), -600) + 1e-185);
    }
    file.tensor(region, {.name = "bf16"}, bits(DType::bf16, {10, 15}, bf16));
    file.tensor(region, {.name = "f16"}, bits(DType::f16, {10, 15}, f16));
    file.tensor(region, {.name = "f32"}, numbers);
    file.tensor(region, {.name = "f64"}, Tensor::copy_of({10, 15}, f64));
    file.dense(region, {.name = "nothing", .shape = {0, 4}});
    file.commit();
  }
  const auto quantize = [&](const char* name, const QuantizationOptions& how) {
    quantize_file(plain, folder / name, how, {.save = options()});
  };
  quantize("quantized_types.thalia", {.bits = 5, .group_size = 16, .min_elements = 0});
  quantize("quantized_whole.thalia", {.bits = 7, .group_size = 0, .min_elements = 0});
  fs::remove(plain);
}

}  // namespace

void write_details(const fs::path& folder) {
  write_large(folder / "large.thalia");
  write_page(folder / "page.thalia");
  write_values(folder / "values.thalia");
  write_signs(folder / "plane_entropy_signs.thalia", Codec::plane_entropy);
  write_signs(folder / "packed_exponents_signs.thalia", Codec::packed_exponents);
  write_differences(folder / "differences.thalia");
  write_extents(folder / "extents.thalia");
  write_order(folder / "order.thalia");
  write_texts(folder / "texts.thalia");
  write_quantized_types(folder);
  write_chains(folder);
}

}  // namespace thalia::test
