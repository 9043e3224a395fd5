#include "cli/tensor/npy.h"

#include "base/dtype_facts.h"
#include "formats/source/npy_header.h"
#include "thalia/types.h"

namespace thalia::cli {
namespace {

enum class Form { as_it_is, as_f32, as_byte };

struct NumpyType {
  std::string descr;
  Form form = Form::as_it_is;
};

NumpyType numpy_type(DType dtype) {
  const std::string descr = formats::npy_descr(dtype);
  if (dtype == DType::boolean) return {descr, Form::as_byte};
  // Among the others, NumPy has those that are not bare bytes ("V").
  if (!descr.empty() && descr.find('V') == std::string::npos) return {descr};
  const DTypeKind kind = dtype_facts(dtype).kind;
  if (kind == DTypeKind::floating) return {formats::npy_descr(DType::f32), Form::as_f32};
  return {formats::npy_descr(kind == DTypeKind::signed_integer ? DType::i8 : DType::u8),
          Form::as_byte};
}

}  // namespace

std::string npy_dtype(DType dtype) {
  return numpy_type(dtype).descr;
}

std::string npy_header(DType dtype, const Shape& shape) {
  return formats::make_npy_header(numpy_type(dtype).descr, false, shape);
}

void append_npy(std::string& out, DType dtype, ByteSpan bytes, std::uint64_t count) {
  const Form form = numpy_type(dtype).form;
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
