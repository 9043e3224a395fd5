// Tensors: what they are, views, and copies into the caller's memory.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/fail.h"
#include "c/arguments.h"
#include "c/guard.h"
#include "c/handles.h"
#include "c/sized.h"
#include "thalia/c/reader.h"
#include "thalia/reader.h"
#include "thalia/tensor.h"

using namespace thalia;
using namespace thalia::c;

namespace {

thalia_tensor_info info_of(const TensorView& tensor) {
  thalia_tensor_info info{};
  info.name = to_text(tensor.name());
  info.region = to_text(Reader::region_name(tensor));
  info.dtype = static_cast<thalia_dtype>(tensor.dtype());
  info.role = static_cast<thalia_role>(tensor.role());
  info.encoding = static_cast<thalia_encoding>(tensor.encoding());
  info.rank = tensor.shape().rank();
  std::ranges::copy(tensor.shape().extents(), info.shape);
  info.element_count = tensor.element_count();
  info.nnz = tensor.nnz();
  info.logical_bytes = tensor.logical_bytes();
  info.stored_bytes = tensor.stored_bytes();
  info.stored_offset = tensor.stored_offset();
  info.wide_indices = tensor.wide_indices() ? 1 : 0;
  info.is_raw = tensor.is_raw() ? 1 : 0;
  info.crc32 = tensor.crc32();
  info.chunk_count = tensor.chunk_count();
  return info;
}

// More ranges than a tensor can have dimensions are not read: the number was a mistake.
std::vector<SliceRange> slice_of(const thalia_range* ranges, std::uint32_t rank) {
  check_option("rank", rank, 0, THALIA_MAX_RANK);
  if (rank != 0) require(ranges, "ranges");
  std::vector<SliceRange> slice;
  for (std::uint32_t i = 0; i < rank; ++i) slice.push_back({ranges[i].begin, ranges[i].end});
  return slice;
}

}  // namespace

void thalia_tensor_close(thalia_tensor* tensor) {
  delete tensor;
}

thalia_status thalia_tensor_describe(const thalia_tensor* tensor, thalia_tensor_info* info) {
  return guarded([&] { give(required(info, "info"), info_of(viewed(tensor)), "info"); });
}

thalia_status thalia_tensor_view(const thalia_tensor* tensor, const void** data, size_t* bytes) {
  return guarded([&] {
    const void*& place = required(data, "data");
    std::size_t& size = required(bytes, "bytes");
    place = nullptr;
    size = 0;
    const ByteSpan view = viewed(tensor).bytes();
    place = view.data();
    size = view.size();
  });
}

thalia_status thalia_tensor_read(const thalia_tensor* tensor, void* out, size_t bytes) {
  return guarded([&] { viewed(tensor).read(memory_at(out, bytes, "out")); });
}

thalia_status thalia_tensor_read_slice(const thalia_tensor* tensor, const thalia_range* ranges,
                                       uint32_t rank, void* out, size_t bytes) {
  return guarded(
      [&] { viewed(tensor).read_slice(slice_of(ranges, rank), memory_at(out, bytes, "out")); });
}

thalia_status thalia_tensor_slice_bytes(const thalia_tensor* tensor, const thalia_range* ranges,
                                        uint32_t rank, size_t* bytes) {
  return guarded(
      [&] { required(bytes, "bytes") = viewed(tensor).slice_bytes(slice_of(ranges, rank)); });
}

thalia_status thalia_tensor_read_dense(const thalia_tensor* tensor, void* out, size_t bytes) {
  return guarded([&] { viewed(tensor).read_dense(memory_at(out, bytes, "out")); });
}

thalia_status thalia_tensor_dense_bytes(const thalia_tensor* tensor, size_t* bytes) {
  return guarded([&] { required(bytes, "bytes") = viewed(tensor).dense_bytes(); });
}
