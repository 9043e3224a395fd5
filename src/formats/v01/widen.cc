// 0.1 files have six element types. Each other type goes to the narrowest of them that holds every
// one of its values, so widening never changes a number; it only takes more room, and is reported.
#include "formats/v01/widen.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <variant>

#include "base/dtype_facts.h"
#include "base/utf8.h"
#include "formats/source/legal_elements.h"
#include "formats/source/list_names.h"
#include "formats/v01/tensor.h"
#include "state/tensor/conversion.h"
#include "state/tensor/counted_tensor.h"
#include "state/tensor/element_decoder.h"
#include "thalia/error.h"
#include "thalia/state/brain.h"

namespace thalia::formats {
namespace {

[[noreturn]] void fail_dtype(DType dtype, std::string bound) {
  throw UnsupportedError(
      ErrorCode::unsupported_feature, "0.1 files have no type for these elements",
      {.field = "dtype", .value = std::string(dtype_name(dtype)), .bound = std::move(bound)});
}

// Elements of up to 32 bits, which a double holds exactly.
template <typename Out>
Tensor converted(DType dtype, const Shape& shape, ByteSpan bytes, io::MemoryBudget& budget) {
  Tensor wide = state::counted_tensor(
      budget, "elements", {.dtype = DTypeOf<Out>::value, .shape = shape}, [](MutableByteSpan) {});
  const std::span<Out> out = wide.mutable_as<Out>();
  std::vector<double> piece(std::min<std::size_t>(out.size(), 4096));
  for (std::size_t at = 0; at < out.size(); at += piece.size()) {
    const auto some = std::span(piece).first(std::min(piece.size(), out.size() - at));
    state::decode_elements<double>(dtype, bytes, at, some);
    std::ranges::transform(some, out.begin() + static_cast<std::ptrdiff_t>(at),
                           [](double element) { return static_cast<Out>(element); });
  }
  return wide;
}

// The top bit of every element is clear, so the bytes are the same in both types.
Tensor as_signed(const Shape& shape, ByteSpan bytes, io::MemoryBudget& budget) {
  // The most significant byte of each element.
  for (std::size_t at = 7; at < bytes.size(); at += 8) {
    if ((bytes[at] & std::byte{0x80}) != std::byte{0})
      fail_dtype(DType::u64, "elements of at most 2^63 - 1");
  }
  return state::counted_copy(budget, "elements", {.dtype = DType::i64, .shape = shape}, bytes);
}

Tensor widened_elements(DType dtype, DType holder, const Shape& shape, ByteSpan bytes,
                        io::MemoryBudget& budget) {
  if (dtype == DType::u64) return as_signed(shape, bytes, budget);
  if (dtype == DType::bf16) {
    budget.take("elements", bytes.size(), dtype_bits(holder) / dtype_bits(dtype));
    return state::convert_tensor(Tensor::borrow(dtype, shape, bytes), holder, 1);
  }
  if (holder == DType::i32) return converted<std::int32_t>(dtype, shape, bytes, budget);
  if (holder == DType::i64) return converted<std::int64_t>(dtype, shape, bytes, budget);
  return converted<float>(dtype, shape, bytes, budget);
}

}  // namespace

std::optional<DType> v01_holder(DType dtype) noexcept {
  if (v01_dtype(dtype)) return dtype;
  const DTypeFacts& facts = dtype_facts(dtype);
  switch (facts.kind) {
    case DTypeKind::signed_integer:
    case DTypeKind::unsigned_integer:
      return facts.bits < 32 ? DType::i32 : DType::i64;
    case DTypeKind::floating:
      return DType::f32;
    case DTypeKind::boolean:
    case DTypeKind::complex:
      break;
  }
  return std::nullopt;
}

Tensor v01_widened(const Tensor& tensor, io::MemoryBudget& budget) {
  const auto holder = v01_holder(tensor.dtype());
  if (!holder) fail_dtype(tensor.dtype(), v01_dtype_list());
  if (*holder == tensor.dtype()) return tensor;
  if (tensor.is_dense())
    return widened_elements(tensor.dtype(), *holder, tensor.shape(), tensor.bytes(), budget);
  const Tensor coo = v01_wide_coo(tensor);
  // Only the values change; the indices are copied.
  const Tensor values = widened_elements(coo.dtype(), *holder, {coo.nnz()}, coo.values(), budget);
  const auto arrays = std::get<CooArrays<std::uint64_t>>(coo.coo());
  budget.take("elements", as_byte_span(arrays.indices).size() + values.bytes().size());
  return Tensor::coo<std::uint64_t>(*holder, coo.shape(), {arrays.indices, values.bytes()});
}

void V01Widener::widen(Value& tree, std::string_view region) {
  for_each_tensor(tree, [&](const std::string& path, Tensor& tensor) {
    try {
      const DType before = tensor.dtype();
      const std::string name = fmt::format("{}/{}", printable(region), path);
      if (tensor.encoding() == Encoding::csr) rows_.push_back(name);
      check_legal(tensor.layout(), tensor.bytes());
      tensor = v01_widened(tensor, budget_);
      if (tensor.dtype() != before) widened_[{before, tensor.dtype()}].push_back(name);
    } catch (Error& error) {
      error.add_region(printable(region));
      error.add_tensor(path);
      throw;
    }
  });
}

std::vector<std::string> V01Widener::sentences() const {
  std::vector<std::string> sentences;
  for (const auto& [types, names] : widened_) {
    sentences.push_back(fmt::format("elements of type {} are stored as {}: {}",
                                    dtype_name(types.first), dtype_name(types.second),
                                    list_names(names)));
  }
  if (!rows_.empty())
    sentences.push_back(fmt::format("csr tensors are stored as coo: {}", list_names(rows_)));
  return sentences;
}

}  // namespace thalia::formats
