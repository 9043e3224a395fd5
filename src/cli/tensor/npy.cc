// The header is padded with spaces and ends in a line feed, so that the elements begin at a
// multiple of 64 bytes, as NumPy itself writes them. Elements are little-endian, as in the file
// they come from.
#include "cli/tensor/npy.h"

#include <fmt/format.h>

#include <string_view>

#include "cli/tensor/element.h"

namespace thalia::cli {
namespace {

enum class Form { as_it_is, as_f32, as_byte };

struct NpyType {
  std::string_view descr;
  Form form = Form::as_it_is;
};

NpyType npy_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {"<f4"};
    case DType::f16:
      return {"<f2"};
    case DType::f64:
      return {"<f8"};
    case DType::i8:
      return {"|i1"};
    case DType::i16:
      return {"<i2"};
    case DType::i32:
      return {"<i4"};
    case DType::i64:
      return {"<i8"};
    case DType::u8:
      return {"|u1"};
    case DType::u16:
      return {"<u2"};
    case DType::u32:
      return {"<u4"};
    case DType::u64:
      return {"<u8"};
    case DType::c64:
      return {"<c8"};
    case DType::c128:
      return {"<c16"};
    case DType::boolean:
      return {"|b1", Form::as_byte};
    case DType::bf16:
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e8m0:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f6_e2m3:
    case DType::f6_e3m2:
    case DType::f4_e2m1:
      return {"<f4", Form::as_f32};
    case DType::i4:
    case DType::i2:
    case DType::ternary:
    case DType::binary:
      return {"|i1", Form::as_byte};
    case DType::u4:
    case DType::u2:
      return {"|u1", Form::as_byte};
  }
  return {"|V1"};
}

}  // namespace

std::string npy_dtype(DType dtype) {
  return std::string(npy_type(dtype).descr);
}

std::string npy_header(DType dtype, const Shape& shape) {
  // A tuple of one needs its comma: (3,).
  const std::string extents =
      fmt::format("({}{})", fmt::join(shape.extents(), ", "), shape.rank() == 1 ? "," : "");
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                       npy_type(dtype).descr, extents);
  // Magic, version and the length of the header: 6, 2 and 2 bytes.
  constexpr std::size_t kPrefix = 10;
  constexpr std::size_t kAlignment = 64;
  const std::size_t unpadded = kPrefix + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dictionary += '\n';

  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

void append_npy(std::string& out, DType dtype, ByteSpan bytes, std::uint64_t count) {
  const Form form = npy_type(dtype).form;
  if (form == Form::as_it_is) {
    out.append(reinterpret_cast<const char*>(bytes.data()), count * (dtype_bits(dtype) / 8));
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const Element element = decode_element(dtype, bytes, i);
    if (form == Form::as_f32) {
      const float value = std::get<float>(element);
      out.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else if (const auto* truth = std::get_if<bool>(&element)) {
      out += static_cast<char>(*truth);
    } else if (const auto* natural = std::get_if<std::uint64_t>(&element)) {
      out += static_cast<char>(*natural);
    } else {
      out += static_cast<char>(std::get<std::int64_t>(element));
    }
  }
}

}  // namespace thalia::cli
