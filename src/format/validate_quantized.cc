// The side data of a quantized tensor against its entry. Its shape need not fit its payload, so
// lengths are what ties the two together: the arrays that shape, group size and code length ask for
// have to fill the logical bytes exactly. Where groups have widths of their own the length of the
// codes is only compared with its maximum here; QuantizedArrays adds up the widths when it has
// them.
#include "format/validate_quantized.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "base/fail.h"
#include "format/constants.h"
#include "format/payload.h"

namespace thalia::format {
namespace {

constexpr unsigned kMaxBits = 8;

[[noreturn]] void fail(const char* field, std::uint64_t offset, std::string value,
                       std::string bound) {
  fail_field(ErrorCode::bad_value, "directory", field, offset, std::move(value), std::move(bound));
}

void check_error(const char* field, std::uint64_t offset, std::uint64_t bits) {
  const double error = std::bit_cast<double>(bits);
  if (!(std::isfinite(error) && error >= 0))
    fail(field, offset, fmt::format("{}", error), "0 or more, and finite");
}

}  // namespace

#define SIDE(field) #field, side_offset + offsetof(QuantizedSideData, field)
#define ENTRY(field) #field, entry_offset + offsetof(TensorEntry, field)

void validate_quantized_tensor(const QuantizedSideData& side, std::uint64_t side_offset,
                               const TensorEntry& entry, std::uint64_t entry_offset) {
  if (side.bits > kMaxBits) fail(SIDE(bits), std::to_string(side.bits), "0 to 8");
  if (side.zero_01 != 0) fail(SIDE(zero_01), std::to_string(side.zero_01), "0");
  if (side.zero_06 != 0) fail(SIDE(zero_06), std::to_string(std::uint16_t{side.zero_06}), "0");
  if (std::any_of(std::begin(side.zero_38), std::end(side.zero_38),
                  [](std::uint8_t byte) { return byte != 0; }))
    fail(SIDE(zero_38), "non-zero bytes", "zero");
  // Losses add up when quantized tensors are quantized again, so the file counts them and says how
  // many its writer allowed.
  const std::uint16_t generation = side.lossy_generation;
  const std::uint16_t most = side.max_lossy_generations;
  if (generation == 0 || generation > most) {
    fail(SIDE(lossy_generation), std::to_string(generation),
         fmt::format("1 to {}, max_lossy_generations", most));
  }
  const std::uint32_t group = side.group_size;
  // Multiples of 8, so that each group of codes begins at a whole byte whatever its width.
  if (group % 8 != 0 || group > kMaxQuantizedGroup || (group == 0 && side.bits == 0)) {
    fail(SIDE(group_size), std::to_string(group),
         fmt::format("{}a multiple of 8 of at most {}", side.bits == 0 ? "" : "0, or ",
                     kMaxQuantizedGroup));
  }
  check_error(SIDE(max_error), side.max_error);
  check_error(SIDE(rms_error), side.rms_error);

  const Shape shape = shape_of(entry);
  const std::uint64_t elements = shape.element_count().value_or(0);
  const std::uint64_t most_codes =
      quantized_code_length(elements, side.bits == 0 ? kMaxBits : side.bits);
  if (side.bits == 0 ? side.code_length > most_codes : side.code_length != most_codes) {
    fail(SIDE(code_length), std::to_string(std::uint64_t{side.code_length}),
         fmt::format("{}{}", side.bits == 0 ? "at most " : "", most_codes));
  }
  const auto parts = quantized_parts(entry.dtype, shape, side.bits, group, side.code_length);
  if (!parts) {
    fail(ENTRY(dtype), std::string(dtype_name(entry.dtype)),
         "f32, f16, f64 or bf16 of a quantized tensor");
  }
  if (entry.logical_length != parts->length) {
    fail(ENTRY(logical_length), std::to_string(std::uint64_t{entry.logical_length}),
         std::to_string(parts->length));
  }
  if (entry.chunk_count == 0 && entry.stored_length != parts->length) {
    fail(ENTRY(stored_length), std::to_string(std::uint64_t{entry.stored_length}),
         std::to_string(parts->length));
  }
}

#undef SIDE
#undef ENTRY

}  // namespace thalia::format
