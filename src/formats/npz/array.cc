// Most arrays are viewed where they lie. What is converted is checked against the limit first, with
// all that the conversion holds at once.
#include "formats/npz/array.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/npz/elements.h"
#include "formats/source/swap_bytes.h"
#include "formats/zip/deflate.h"
#include "formats/zip/directory.h"
#include "integrity/crc32.h"
#include "state/tensor/counted_tensor.h"

namespace thalia::formats::npz {
namespace {

bool is_reordered(const NpyHeader& header) noexcept {
  return header.fortran_order && header.shape.rank() > 1;
}

TensorLayout layout_of(const NpyHeader& header) {
  return {.dtype = header.type.dtype, .shape = header.logical_shape()};
}

// `elements` are `out`, or lie apart from it.
void convert_elements(const NpyHeader& header, ByteSpan elements, MutableByteSpan out) {
  if (is_reordered(header)) {
    to_row_major(elements, header.shape, header.element_bytes(), out);
  } else if (elements.data() != out.data()) {
    std::copy(elements.begin(), elements.end(), out.begin());
  }
  if (header.type.swapped) swap_bytes(header.type.dtype, out);
}

}  // namespace

NpyArray describe_array(std::string name, const NpyHeader& header) {
  return {.name = std::move(name),
          .dtype = header.type.dtype,
          .shape = header.logical_shape(),
          .descr = header.descr,
          .fortran_order = header.fortran_order};
}

bool is_converted(const NpyHeader& header) noexcept {
  return header.type.swapped || is_reordered(header);
}

Tensor view_elements(const NpyHeader& header, ByteSpan elements,
                     const std::shared_ptr<const void>& owner, const ReadLimits& limits) {
  const TensorLayout layout = layout_of(header);
  if (!is_converted(header)) return Tensor::adopt(layout, elements, owner);
  io::MemoryBudget budget(limits, elements.size());
  return state::counted_tensor(budget, "array", layout, [&](MutableByteSpan out) {
    convert_elements(header, elements, out);
  });
}

Tensor inflate_elements(const NpyHeader& header, const ZipMember& member, ByteSpan deflated,
                        const ReadLimits& limits) {
  const TensorLayout layout = layout_of(header);
  io::MemoryBudget budget(limits, deflated.size());
  // In the file's order too, if that is another.
  if (is_reordered(header)) budget.take("array", *layout.shape.byte_length(layout.dtype));
  InflateStream stream(deflated);
  auto head = budget.vector<std::byte>("npy header", header.header_bytes);
  stream.read(head);
  const auto inflate_into = [&](MutableByteSpan out) {
    stream.read(out);
    stream.finish();
    check_zip_crc(member, integrity::crc32(out, integrity::crc32(head)));
  };
  return state::counted_tensor(budget, "array", layout, [&](MutableByteSpan out) {
    if (!is_reordered(header)) {
      inflate_into(out);
      return convert_elements(header, out, out);
    }
    std::vector<std::byte> elements(out.size());
    inflate_into(elements);
    convert_elements(header, elements, out);
  });
}

}  // namespace thalia::formats::npz
