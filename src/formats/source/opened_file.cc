#include "formats/source/opened_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/suggestion.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "state/tensor/slice.h"
#include "thalia/error.h"

namespace thalia {

std::uint64_t AnyTensor::elements() const noexcept {
  if (is_sparse(layout.encoding)) return layout.nnz;
  return layout.shape.element_count().value_or(std::numeric_limits<std::uint64_t>::max());
}

bool AnyTensor::is_compressed() const noexcept {
  return std::ranges::any_of(codecs, [](Codec codec) { return codec != Codec::none; });
}

// What is in memory as a whole is cut when it is asked for.
TensorElements elements_of(Tensor tensor) {
  TensorElements elements{.layout = tensor.layout()};
  if (tensor.is_dense()) {
    elements.read = [tensor](std::span<const SliceRange> ranges, MutableByteSpan out) {
      state::copy_slice(tensor.dtype(), tensor.shape(), tensor.bytes(), ranges, out);
    };
  }
  elements.all = std::move(tensor);
  return elements;
}

namespace formats {

AnyTensor OpenedFile::stored(std::size_t i) const {
  AnyTensor tensor = facts_.tensors[i];
  tensor.logical_bytes = format::payload_length(tensor.layout).value_or(UINT64_MAX);
  if (tensor.path.empty()) tensor.path = tensor.name;
  if (tensor.in_place) tensor.codecs = {Codec::none};
  if (tensor.stored_encoding) tensor.layout.encoding = *tensor.stored_encoding;
  // The bytes of the codes, not of the numbers that they stand for.
  if (tensor.bits) {
    tensor.logical_bytes = static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(tensor.elements()) * *tensor.bits / 8));
  }
  return tensor;
}

std::optional<std::size_t> OpenedFile::find(std::string_view name) const {
  names_known_.run([&] {
    for (std::size_t i = 0; i < facts_.tensors.size(); ++i)
      places_.emplace(facts_.tensors[i].name, i);
  });
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t OpenedFile::at(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(name, facts_.tensors, &AnyTensor::name),
                   {.tensor = printable(name)});
}

bool OpenedFile::has_region(std::string_view name) const {
  for (std::size_t i = 0; i < region_count(); ++i)
    if (region_name(i) == name) return true;
  return false;
}

std::vector<LinkFacts> OpenedFile::links(const std::string& path) const {
  const FileFacts& of = facts();
  LinkFacts link{of, path};
  if (link.disk_bytes == 0) link.disk_bytes = of.file_bytes;
  return {link};
}

void OpenedFile::check_all() const {
  for (std::size_t i = 0; i < tensor_count(); ++i) check(i);
}

}  // namespace formats
}  // namespace thalia
