#include "interop/content_hash_list.h"

#include <algorithm>
#include <utility>

#include "integrity/sha256.h"
#include "thalia/format/little_endian.h"

namespace thalia::interop {
namespace {

template <typename T>
void append(std::string& out, const T& structure) {
  out.append(reinterpret_cast<const char*>(&structure), sizeof(structure));
}

}  // namespace

void ContentHashList::add(std::string name, DType dtype, const Shape& shape, std::uint64_t size,
                          const Digest256& sha256) {
  std::string text;
  append(text, format::le32(static_cast<std::uint32_t>(name.size())));
  text += name;
  append(text, format::le32(static_cast<std::uint32_t>(dtype)));
  append(text, format::le32(shape.rank()));
  for (const std::uint64_t extent : shape.extents()) append(text, format::le64(extent));
  append(text, format::le64(size));
  append(text, sha256.bytes);
  entries_.push_back({std::move(name), std::move(text)});
}

Digest256 ContentHashList::finish() const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return a->name < b->name; });
  integrity::Sha256 hash;
  for (const Entry* entry : order) hash.update(as_byte_span(entry->text));
  return hash.finish();
}

}  // namespace thalia::interop
