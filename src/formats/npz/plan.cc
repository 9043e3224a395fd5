// Arrays that the metadata name come first, in their order there, and in the form that they had.
#include "formats/npz/plan.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "formats/npz/archive.h"
#include "formats/source/list_names.h"
#include "formats/source/lost_metadata.h"
#include "formats/source/npy_header.h"
#include "formats/source/refuse_tensor.h"
#include "formats/zip/member.h"
#include "io/memory/allocation_limit.h"
#include "thalia/text.h"

namespace thalia::formats::npz {
namespace {

void check_layout(const SinkTensor& tensor) {
  if (tensor.layout.encoding != Encoding::dense)
    refuse_tensor(tensor.name, "NumPy has no sparse arrays");
  if (!npy_descr(tensor.layout.dtype).empty()) return;
  throw UnsupportedDtypeError(
      std::string(dtype_name(tensor.layout.dtype)), "NumPy has no packed element types",
      {.tensor = printable(tensor.name), .value = std::string(dtype_name(tensor.layout.dtype))});
}

bool is_lost(DType dtype) {
  return dtype != DType::bf16 && npy_descr(dtype).find('V') != std::string_view::npos;
}

// Whether elements of the type that the origin says are the tensor's; where they are, sets the
// shape that the header says.
bool fits(const NpyType& type, const TensorLayout& layout, Shape& shape) {
  if (type.dtype != layout.dtype) return false;
  shape = layout.shape;
  if (type.opaque <= 1) return true;
  const unsigned rank = layout.shape.rank();
  if (rank == 0 || layout.shape[rank - 1] != type.opaque) return false;
  shape = Shape(layout.shape.extents().first(rank - 1));
  return true;
}

PlannedArray plan_array(const SinkTensor& tensor, const ArrayOrigin& origin,
                        const ReadLimits& limits) {
  const TensorLayout& layout = tensor.layout;
  PlannedArray array{.bytes = *layout.shape.byte_length(layout.dtype)};
  std::string descr = origin.descr;
  const auto type = npy_type(descr);
  if (type && fits(*type, layout, array.shape)) {
    array.type = *type;
  } else {
    descr = npy_descr(layout.dtype);
    array.type = {.dtype = layout.dtype};
    array.shape = layout.shape;
  }
  array.element_bytes = array.type.opaque != 0 ? array.type.opaque : dtype_bits(layout.dtype) / 8;
  array.reordered = origin.fortran_order && array.shape.rank() > 1;
  // The tensor as it comes, and in the other order.
  if (array.reordered) io::MemoryBudget(limits, array.bytes).take("array", 2, array.bytes);
  array.head = make_npy_header(descr, origin.fortran_order, array.shape, origin.header_bytes,
                               origin.version);
  array.member = tensor.name;
  if (!origin.bare || tensor.name.ends_with(kArraySuffix)) array.member += kArraySuffix;
  return array;
}

// numpy.load takes "a.npy" for the array "a" where both are there.
void check_names(const SinkInput& input) {
  std::unordered_set<std::string_view> names;
  for (const SinkTensor& tensor : input.tensors) names.insert(tensor.name);
  for (const SinkTensor& tensor : input.tensors) {
    if (tensor.name.ends_with(kArraySuffix) && names.contains(array_name(tensor.name)))
      refuse_tensor(tensor.name, "NumPy reads another array under this name", "name",
                    printable(array_name(tensor.name)));
  }
}

bool wants_deflate(const Origin& origin, const SinkOptions& options) {
  const auto codec = options.save.compression.codec;
  return codec ? *codec != Codec::none : origin.deflated;
}

}  // namespace

Plan plan_arrays(const SinkInput& input, const SinkOptions& options) {
  const Origin origin = origin_from_json(input.metadata, options.limits.max_json_depth);
  Plan plan{.deflated = wants_deflate(origin, options), .old_zip64 = origin.old_zip64};
  check_names(input);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < input.tensors.size(); ++i) places.emplace(input.tensors[i].name, i);
  std::vector<bool> planned(input.tensors.size());
  const auto add = [&](std::size_t i, const ArrayOrigin& of) {
    const SinkTensor& tensor = input.tensors[i];
    check_layout(tensor);
    plan.arrays.push_back(plan_array(tensor, of, options.limits));
    plan.arrays.back().tensor = i;
    plan.bytes += plan.arrays.back().bytes;
    planned[i] = true;
  };
  for (const ArrayOrigin& of : origin.arrays) {
    const auto found = places.find(of.name);
    if (found != places.end()) add(found->second, of);
  }
  for (std::size_t i = 0; i < planned.size(); ++i)
    if (!planned[i]) add(i, {});

  std::vector<std::string> without_type;
  for (const PlannedArray& array : plan.arrays) {
    const SinkTensor& tensor = input.tensors[array.tensor];
    if (is_lost(tensor.layout.dtype) && array.head.find("<V1") != std::string::npos)
      without_type.push_back(tensor.name);
  }
  if (!without_type.empty()) {
    plan.losses.push_back(fmt::format("element types that NumPy lacks, written as bytes (V1): {}",
                                      list_names(without_type)));
  }
  add_lost_metadata(plan.losses, input, origin.other_keys);
  return plan;
}

}  // namespace thalia::formats::npz
