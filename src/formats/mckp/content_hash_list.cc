// The hash is over the tensors in the order of their names, each as a record of fixed layout before
// its digest. So it depends neither on the order of adding nor on how a tensor is stored,
// and two files with equal hashes hold equal tensors. A length precedes each name and a rank
// the extents: without them, two lists could give the same bytes. Sparse tensors are told by
// bits that no dtype has.
#include "formats/mckp/content_hash_list.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/little_endian.h"
#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "integrity/sha256.h"

namespace thalia::formats {
namespace {

template <typename T>
void append_structure(std::string& out, const T& structure) {
  out.append(reinterpret_cast<const char*>(&structure), sizeof(structure));
}

constexpr std::uint32_t kCsr = 1 << 8;
constexpr std::uint32_t kCoo = 1 << 9;

}  // namespace

Digest256 tensor_digest(const Digest128& xxh3) noexcept {
  Digest256 digest;
  std::memcpy(digest.bytes, xxh3.bytes, sizeof xxh3.bytes);
  return digest;
}

Digest256 tensor_digest(LeafAlgorithm algorithm, ByteSpan bytes, unsigned threads) {
  if (algorithm == LeafAlgorithm::sha256) return integrity::sha256(bytes);
  return tensor_digest(integrity::content_digest(bytes, threads).hash);
}

void ContentHashList::add(std::string name, const TensorLayout& layout, std::uint64_t size,
                          const Digest256& digest) {
  const auto dtype = static_cast<std::uint32_t>(layout.dtype);
  const std::uint32_t encoding = layout.encoding == Encoding::csr   ? kCsr
                                 : layout.encoding == Encoding::coo ? kCoo
                                                                    : 0;
  std::string text;
  append_structure(text, format::le32(static_cast<std::uint32_t>(name.size())));
  text += name;
  append_structure(text, format::le32(dtype | encoding));
  append_structure(text, format::le32(layout.shape.rank()));
  for (const std::uint64_t extent : layout.shape.extents())
    append_structure(text, format::le64(extent));
  if (encoding != 0) {
    append_structure(text, format::le64(layout.nnz));
    append_structure(text, format::le32(layout.wide_indices ? 64 : 32));
  }
  append_structure(text, format::le64(size));
  text.append(reinterpret_cast<const char*>(digest.bytes), integrity::leaf_length(algorithm_));
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

}  // namespace thalia::formats
