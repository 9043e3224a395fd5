// Payloads of sample tensors, put together and taken apart by the tables of docs/format/format.md
// and not by the library's own arithmetic.
#include <cstring>

#include "support/bytes.h"
#include "support/sample.h"

namespace thalia::test {
namespace {

std::uint64_t element_count(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape.extents()) count *= extent;
  return count;
}

// Random elements without illegal codes and without bits after the last one.
std::vector<std::byte> elements(DType dtype, std::uint64_t count, std::uint64_t seed) {
  const std::uint64_t bits = count * dtype_bits(dtype);
  std::vector<std::byte> bytes = random_bytes((bits + 7) / 8, seed);
  for (std::byte& byte : bytes) {
    if (dtype == DType::boolean) byte &= std::byte{1};
    // Among the codes 00, 01, 10, 11 the third is illegal: if the high bit is set, so is the low.
    if (dtype == DType::ternary) byte |= (byte >> 1) & std::byte{0x55};
  }
  if (bits % 8 != 0) bytes.back() &= static_cast<std::byte>((1u << bits % 8) - 1);
  return bytes;
}

// Numbers, in row-major order, of the elements that a sparse tensor stores.
std::vector<std::uint64_t> stored_elements(const Shape& shape, std::uint64_t seed) {
  const std::uint64_t count = element_count(shape);
  const std::vector<std::byte> dice = random_bytes(count, seed + 77);
  std::vector<std::uint64_t> stored;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (std::to_integer<unsigned>(dice[i]) < 85) stored.push_back(i);
  }
  return stored;
}

void append_index(std::vector<std::byte>& out, std::uint64_t index, bool wide) {
  for (unsigned i = 0; i < (wide ? 8u : 4u); ++i) out.push_back(std::byte(index >> (8 * i)));
}

void append_values(std::vector<std::byte>& out, const std::vector<std::byte>& values, DType dtype) {
  while (out.size() % dtype_alignment(dtype) != 0) out.push_back(std::byte{0});
  out.insert(out.end(), values.begin(), values.end());
}

std::vector<std::uint64_t> coordinates(const Shape& shape, std::uint64_t element) {
  std::vector<std::uint64_t> at(shape.rank());
  for (unsigned d = shape.rank(); d-- > 0; element /= shape[d]) at[d] = element % shape[d];
  return at;
}

std::uint64_t index_at(const std::vector<std::byte>& payload, std::uint64_t i, bool wide) {
  std::uint64_t index = 0;
  const std::size_t width = wide ? 8 : 4;
  std::memcpy(&index, payload.data() + i * width, width);
  return index;
}

}  // namespace

SampleTensor dense_tensor(std::string name, DType dtype, Shape shape, Role role,
                          std::uint64_t seed) {
  return {{.name = std::move(name), .dtype = dtype, .shape = shape, .role = role},
          elements(dtype, element_count(shape), seed)};
}

SampleTensor ramp_tensor(std::string name, Shape shape) {
  std::vector<float> numbers(element_count(shape));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 997) / 8;
  const ByteSpan bytes = as_byte_span(numbers);
  return {{.name = std::move(name), .shape = shape}, {bytes.begin(), bytes.end()}};
}

SampleTensor csr_tensor(std::string name, DType dtype, Shape shape, bool wide, std::uint64_t seed) {
  const std::vector<std::uint64_t> stored = stored_elements(shape, seed);
  std::vector<std::byte> payload;
  std::uint64_t before = 0;
  append_index(payload, 0, wide);
  for (std::uint64_t row = 0; row < shape[0]; ++row) {
    while (before < stored.size() && stored[before] / shape[1] == row) ++before;
    append_index(payload, before, wide);
  }
  for (const std::uint64_t element : stored) append_index(payload, element % shape[1], wide);
  append_values(payload, elements(dtype, stored.size(), seed), dtype);
  return {{.name = std::move(name),
           .dtype = dtype,
           .shape = shape,
           .encoding = Encoding::csr,
           .nnz = stored.size(),
           .wide_indices = wide},
          std::move(payload)};
}

SampleTensor coo_tensor(std::string name, DType dtype, Shape shape, bool wide, std::uint64_t seed) {
  const std::vector<std::uint64_t> stored = stored_elements(shape, seed);
  std::vector<std::byte> payload;
  for (unsigned d = 0; d < shape.rank(); ++d) {
    for (const std::uint64_t element : stored)
      append_index(payload, coordinates(shape, element)[d], wide);
  }
  append_values(payload, elements(dtype, stored.size(), seed), dtype);
  return {{.name = std::move(name),
           .dtype = dtype,
           .shape = shape,
           .encoding = Encoding::coo,
           .nnz = stored.size(),
           .wide_indices = wide},
          std::move(payload)};
}

std::vector<std::byte> densified(const SampleTensor& tensor) {
  const TensorSpec& spec = tensor.spec;
  if (spec.encoding == Encoding::dense) return tensor.payload;
  const std::size_t width = dtype_bits(spec.dtype) / 8;
  const std::byte* values = tensor.payload.data() + tensor.payload.size() - spec.nnz * width;
  std::vector<std::byte> out(element_count(spec.shape) * width);
  const auto place = [&](std::uint64_t element, std::uint64_t i) {
    std::memcpy(out.data() + element * width, values + i * width, width);
  };
  if (spec.encoding == Encoding::csr) {
    for (std::uint64_t row = 0; row < spec.shape[0]; ++row) {
      const std::uint64_t end = index_at(tensor.payload, row + 1, spec.wide_indices);
      for (std::uint64_t i = index_at(tensor.payload, row, spec.wide_indices); i < end; ++i) {
        const std::uint64_t column =
            index_at(tensor.payload, spec.shape[0] + 1 + i, spec.wide_indices);
        place(row * spec.shape[1] + column, i);
      }
    }
  } else {
    for (std::uint64_t i = 0; i < spec.nnz; ++i) {
      std::uint64_t element = 0;
      for (unsigned d = 0; d < spec.shape.rank(); ++d) {
        element =
            element * spec.shape[d] + index_at(tensor.payload, d * spec.nnz + i, spec.wide_indices);
      }
      place(element, i);
    }
  }
  return out;
}

}  // namespace thalia::test
