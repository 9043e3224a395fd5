// Quantized tensors of an open file: what their side data says, and their elements. The decoded
// codes are checked against the limit on allocations; the elements are the caller's memory, whose
// size it had from dense_bytes().
#include <vector>

#include "base/fail.h"
#include "base/inside.h"
#include "container/file/open_file.h"
#include "container/read/chunk_reader.h"
#include "container/read/quantized_arrays.h"
#include "container/read/tensor_reading.h"
#include "format/quantized.h"
#include "format/tensor.h"
#include "format/validate_quantized.h"
#include "io/memory/allocation_limit.h"

namespace thalia {

const format::QuantizedSideData& detail::OpenFile::quantized_tensor(
    const format::TensorEntry& entry) const {
  // For messages: an entry is a reference into the directory, so its address tells its offset.
  const auto entry_offset =
      static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&entry) - bytes_.data());
  return named([&]() -> const format::QuantizedSideData& {
    if (entry.side_data_length != format::kQuantizedTensorLength) {
      fail_field(ErrorCode::bad_value, "directory", "side_data_length",
                 entry_offset + offsetof(format::TensorEntry, side_data_length),
                 std::to_string(entry.side_data_length),
                 std::to_string(format::kQuantizedTensorLength));
    }
    const auto& side = *reinterpret_cast<const format::QuantizedSideData*>(side_data(entry).data());
    format::validate_quantized_tensor(
        side, header_.directory_offset + directory_->side_data_offset + entry.side_data_offset,
        entry, entry_offset);
    return side;
  });
}

const format::QuantizedSideData* detail::OpenFile::quantization_of(const TensorView& view) {
  if (view.encoding() != Encoding::quantized) return nullptr;
  const OpenFile& file = *Inside::file(view);
  return container::with_names(file, Inside::region(view), view.name(),
                               [&] { return &file.quantized_tensor(*Inside::entry(view)); });
}

void container::read_quantized(const detail::OpenFile& file, const format::TensorEntry& entry,
                               MutableByteSpan out) {
  const format::QuantizedSideData& side = file.quantized_tensor(entry);
  std::vector<std::byte> decoded;
  ByteSpan logical;
  if (entry.chunk_count == 0) {
    logical = file.verified_payload(entry, entry.stored_offset, entry.stored_length);
  } else {
    io::MemoryBudget(file.options().input.limits, entry.stored_length)
        .take("payload", entry.logical_length);
    decoded.resize(entry.logical_length);
    ChunkReader(file, entry).decode_all(decoded);
    logical = decoded;
  }
  QuantizedArrays(entry, side, logical).restore_all(out, file.options().work.threads);
}

QuantizedView TensorView::quantized() const {
  return container::with_names(*file_, region_, name_, [&] {
    container::require_encoding(*this, Encoding::quantized);
    container::require_raw(*this, "quantized() into memory");
    const format::QuantizedSideData& side = file_->quantized_tensor(*entry_);
    const ByteSpan logical =
        file_->verified_payload(*entry_, entry_->stored_offset, entry_->stored_length);
    return container::QuantizedArrays(*entry_, side, logical).view();
  });
}

QuantizedView TensorView::quantized(MutableByteSpan storage) const {
  return container::with_names(*file_, region_, name_, [&] {
    container::require_encoding(*this, Encoding::quantized);
    container::require_aligned(storage);
    const format::QuantizedSideData& side = file_->quantized_tensor(*entry_);
    container::read_logical(*this, *file_, *entry_, storage);
    return container::QuantizedArrays(*entry_, side, storage).view();
  });
}

}  // namespace thalia
