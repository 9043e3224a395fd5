// Tensors come before the JSON text that names their offsets. The plan therefore makes the
// text, tensor by tensor, while it assigns offsets; write_v01_tree() then writes what was planned,
// and lengths cannot differ.
#include "formats/v01/tree.h"

#include <array>
#include <utility>

#include "format/extent.h"
#include "formats/v01/json.h"
#include "formats/v01/tensor.h"
#include "thalia/error.h"

namespace thalia::formats {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::array<std::byte, kAlignment> kZeros{};

Value place_of(std::uint64_t offset, std::uint64_t bytes) {
  Value place = Value::object();
  place.add("_type", "tensor");
  place.add("_offset", offset);
  place.add("_bytes", bytes);
  return place;
}

// Zeros before a tensor so that its elements or indices start on a multiple of 64.
std::uint64_t padding_before(const Tensor& storable, std::uint64_t offset) {
  const std::uint64_t start = offset + v01_tensor_bytes(storable) - storable.bytes().size();
  return format::align_up(start, kAlignment) - start;
}

}  // namespace

PlannedTree plan_v01_tree(const Value& tree, bool aligned, std::uint64_t& offset) {
  PlannedTree planned;
  planned.json = python_json(tree, [&](const Tensor& tensor, const std::string& path) {
    try {
      Tensor storable = v01_storable(tensor);
      const std::uint64_t bytes = v01_tensor_bytes(storable);
      const std::uint64_t padding = aligned ? padding_before(storable, offset) : 0;
      // The bytes that _bytes counts include the tensor's header, but no padding.
      Value place = place_of(offset + padding, bytes);
      offset += padding + bytes;
      planned.tensors.push_back({padding, std::move(storable)});
      return place;
    } catch (Error& error) {
      error.add_tensor(path);
      throw;
    }
  });
  return planned;
}

void write_v01_tree(const PlannedTree& planned, const WriteBytes& write) {
  for (const auto& [padding, tensor] : planned.tensors) {
    write(ByteSpan(kZeros).first(padding));
    write(v01_tensor_header(tensor));
    write(tensor.bytes());
  }
  write(as_byte_span(planned.json));
}

}  // namespace thalia::formats
