// An index's length does not depend on the offsets in it, so its entries are written once, after
// the sum of their lengths. All is checked before the first byte is made.
#include "formats/gptrs/layout.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "format/little_endian.h"
#include "formats/gptrs/parse.h"
#include "formats/source/refuse_tensor.h"

namespace thalia::formats::gptrs {
namespace {

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

template <typename Number>
void put(std::string& out, Number number) {
  const format::LittleEndian<Number> field(number);
  out.append(reinterpret_cast<const char*>(&field), sizeof field);
}

std::uint32_t tag_of(DType dtype) {
  const auto* const found = std::find(std::begin(kTagTypes), std::end(kTagTypes), dtype);
  return static_cast<std::uint32_t>(found - std::begin(kTagTypes));
}

void check_planned(const GptrsPlannedTensor& tensor, GptrsFormat format, bool half_types) {
  const std::string& name = tensor.name;
  const bool is_ascii =
      std::none_of(name.begin(), name.end(), [](char c) { return (c & 0x80) != 0; });
  if (format == GptrsFormat::checkpoint && !is_ascii)
    refuse_tensor(name, "a checkpoint's names have ids", "name", printable(name), "ASCII");
  if (!is_valid_utf8(name)) refuse_tensor(name, {}, "name", printable(name), "UTF-8");
  const bool is_half = tensor.dtype == DType::f16 || tensor.dtype == DType::bf16;
  if (tag_of(tensor.dtype) == std::size(kTagTypes) || (is_half && !half_types)) {
    throw UnsupportedDtypeError(
        std::string(dtype_name(tensor.dtype)),
        is_half ? "gpt.rs does not read this type: it is written on request only"
                : "the format lacks this type",
        {.field = "dtype",
         .tensor = printable(name),
         .value = std::string(dtype_name(tensor.dtype)),
         .bound = half_types ? "f32, f16, bf16 or i32" : "f32 or i32"});
  }
  if (tensor.shape.rank() == 0)
    refuse_tensor(name, "gpt.rs has no tensors without dimensions", "shape", "[]", "[1]");
  if (!tensor.shape.byte_length(tensor.dtype))
    refuse_tensor(name, {}, "shape", tensor.shape.to_string(), "fewer than 2^64 bytes");
}

void check_field(std::string_view field, const CheckedSum& number) {
  if (number.value() && *number.value() <= kMost32) return;
  throw UnsupportedError(
      ErrorCode::unsupported_feature, "too long for the format",
      {.field = std::string(field), .value = number.to_string(), .bound = std::to_string(kMost32)});
}

CheckedSum sum_of(std::uint64_t number) {
  CheckedSum sum;
  sum += number;
  return sum;
}

}  // namespace

GptrsPlannedFile plan_file(GptrsFormat format, const std::vector<GptrsPlannedTensor>& tensors,
                           std::string_view config_text, bool half_types) {
  const bool is_checkpoint = format == GptrsFormat::checkpoint;
  std::unordered_set<std::string_view> names;
  CheckedSum index_bytes, data_bytes;
  index_bytes += 4;
  for (const GptrsPlannedTensor& tensor : tensors) {
    check_planned(tensor, format, half_types);
    if (!names.insert(tensor.name).second) {
      throw UsageError(ErrorCode::duplicate, "two tensors have this name",
                       {.tensor = printable(tensor.name)});
    }
    check_field("name_len", sum_of(tensor.name.size()));
    index_bytes += kLeastEntry + (is_checkpoint ? kIdBytes : 0);
    index_bytes += tensor.name.size() + 8 * tensor.shape.rank();
    data_bytes += *tensor.shape.byte_length(tensor.dtype);
  }
  check_field("tensor_count", sum_of(tensors.size()));
  check_field("config_len", sum_of(config_text.size()));
  check_field("index_len", index_bytes);

  GptrsPlannedFile plan;
  std::string& out = plan.start;
  out.append(is_checkpoint ? kCheckpointMagic : kArchiveMagic);
  put(out, kVersion);
  if (is_checkpoint) {
    put(out, static_cast<std::uint32_t>(config_text.size()));
    out.append(config_text);
  }
  put(out, static_cast<std::uint32_t>(*index_bytes.value()));
  CheckedSum offset = data_bytes;
  offset += out.size() + *index_bytes.value();
  if (!offset.value()) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "more bytes than a file can have",
                           {.field = "offset_abs", .value = offset.to_string()});
  }
  plan.data_bytes = *data_bytes.value();
  std::uint64_t next = *offset.value() - plan.data_bytes;
  put(out, static_cast<std::uint32_t>(tensors.size()));
  for (const GptrsPlannedTensor& tensor : tensors) {
    const std::uint64_t length = *tensor.shape.byte_length(tensor.dtype);
    put(out, static_cast<std::uint32_t>(tensor.name.size()));
    out.append(tensor.name);
    if (is_checkpoint) {
      const BaseParamId id = tensor.store_id ? base_param_id(tensor.name) : BaseParamId{};
      const auto bytes = id.disk_bytes();
      out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    put(out, static_cast<std::uint32_t>(tensor.shape.rank()));
    for (const std::uint64_t extent : tensor.shape.extents()) put(out, extent);
    put(out, tag_of(tensor.dtype));
    put(out, tensor.requires_grad);
    put(out, next);
    put(out, length);
    next += length;
  }
  return plan;
}

}  // namespace thalia::formats::gptrs
