// Each block has a leaf of its own, so blocks can be hashed and checked in any order and on any
// thread; the functions share nothing. docs/format/format.md, "Block tree". Lengths are those that
// the caller has checked against the file; here they are only asserted.
#include "integrity/block_tree.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <string_view>
#include <variant>

#include "integrity/content_hash.h"
#include "integrity/sha256.h"

namespace thalia::integrity {
namespace {

using format::Header;

// Before what the closing checksum covers, so that no SHA-256 of other data can stand for one.
constexpr std::string_view kDomain = "THALIA-TREE-1";
constexpr std::array<std::byte, sizeof(Header)> kNoHeader = {};

template <typename Digest>
void write_digest(const Digest& digest, MutableByteSpan out) {
  assert(out.size() == sizeof(digest.bytes));
  std::memcpy(out.data(), digest.bytes, sizeof(digest.bytes));
}

}  // namespace

std::uint64_t leaf_length(LeafAlgorithm algorithm) noexcept {
  return algorithm == LeafAlgorithm::sha256 ? sizeof(Digest256) : sizeof(Digest128);
}

std::uint64_t block_count(std::uint64_t integrity_offset, unsigned block_log2) noexcept {
  const std::uint64_t block_bytes = std::uint64_t{1} << block_log2;
  return (integrity_offset >> block_log2) + ((integrity_offset & (block_bytes - 1)) != 0 ? 1 : 0);
}

struct LeafHasher::State {
  std::variant<Xxh3, Sha256> hasher;
};

LeafHasher::LeafHasher(LeafAlgorithm algorithm) : state_(std::make_unique<State>()) {
  if (algorithm == LeafAlgorithm::sha256) state_->hasher.emplace<Sha256>();
}

LeafHasher::~LeafHasher() = default;
LeafHasher::LeafHasher(LeafHasher&&) noexcept = default;
LeafHasher& LeafHasher::operator=(LeafHasher&&) noexcept = default;

void LeafHasher::update(ByteSpan bytes) {
  std::visit([&](auto& hasher) { hasher.update(bytes); }, state_->hasher);
}

void LeafHasher::finish(MutableByteSpan out) {
  if (Xxh3* const xxh3 = std::get_if<Xxh3>(&state_->hasher)) {
    write_digest(xxh3->finish(), out);
    xxh3->reset();
  } else {
    write_digest(std::get<Sha256>(state_->hasher).finish(), out);
  }
}

namespace {

ByteSpan bytes_of_block(ByteSpan file, std::uint64_t block, const Header& header) {
  const std::uint64_t end_of_blocks = header.integrity_offset;
  const std::uint64_t start = block << header.integrity_block_log2;
  assert(start < end_of_blocks && end_of_blocks <= file.size());
  return file.subspan(
      start, std::min(std::uint64_t{1} << header.integrity_block_log2, end_of_blocks - start));
}

void hash_bytes_of_block(ByteSpan bytes, std::uint64_t block, const Header& header,
                         MutableByteSpan out) {
  // The one-call function is faster than the streaming one, and needs no memory.
  if (block != 0 && header.leaf_algorithm == LeafAlgorithm::xxh3_128)
    return write_digest(xxh3_128(bytes), out);

  LeafHasher hasher(header.leaf_algorithm);
  if (block == 0) {
    // The header is written last, by the commit, when the leaves are done. Zeros stand for it here,
    // and the closing checksum covers the header itself.
    const std::size_t covered = std::min(bytes.size(), kNoHeader.size());
    hasher.update(ByteSpan(kNoHeader).first(covered));
    bytes = bytes.subspan(covered);
  }
  hasher.update(bytes);
  hasher.finish(out);
}

}  // namespace

void hash_block(ByteSpan file, std::uint64_t block, const Header& header, MutableByteSpan out) {
  hash_bytes_of_block(bytes_of_block(file, block, header), block, header, out);
}

bool bytes_match(ByteSpan bytes, std::uint64_t block, const Header& header, ByteSpan leaf) {
  std::array<std::byte, sizeof(Digest256)> computed;
  hash_bytes_of_block(bytes, block, header, MutableByteSpan(computed).first(leaf.size()));
  return std::equal(leaf.begin(), leaf.end(), computed.begin());
}

bool block_matches(ByteSpan file, std::uint64_t block, const Header& header, ByteSpan leaves) {
  return leaf_matches(bytes_of_block(file, block, header), block, header, leaves);
}

bool leaf_matches(ByteSpan bytes, std::uint64_t block, const Header& header, ByteSpan leaves) {
  const std::uint64_t length = leaf_length(header.leaf_algorithm);
  return bytes_match(bytes, block, header, leaves.subspan(block * length, length));
}

Digest256 closing_checksum(const Header& header, ByteSpan leaves) {
  // Bytes as the format has them: the types have no alignment, so there is no padding between them.
  struct {
    LeafAlgorithm algorithm;
    std::uint8_t block_log2;
    format::le64 integrity_offset;
  } const parameters = {header.leaf_algorithm, header.integrity_block_log2,
                        header.integrity_offset};
  static_assert(sizeof(parameters) == 10);
  return Sha256()
      .update(as_byte_span(kDomain))
      .update(std::as_bytes(std::span(&parameters, 1)))
      .update(std::as_bytes(std::span(&header, 1)))
      .update(leaves)
      .finish();
}

}  // namespace thalia::integrity
