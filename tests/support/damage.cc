#include "support/damage.h"

#include <cstring>
#include <stdexcept>

#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "integrity/crc32.h"
#include "integrity/sha256.h"

namespace thalia::test {
namespace {

template <typename T>
ByteSpan bytes_of_struct(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

bool can_seal(const format::Header& layout, std::uint64_t size) {
  const bool inside = layout.directory_offset <= size &&
                      sizeof(format::DirectoryHeader) <= size - layout.directory_offset &&
                      layout.integrity_offset >= sizeof(format::Header) &&
                      layout.file_length >= 32 && layout.file_length <= size &&
                      layout.integrity_offset <= layout.file_length - 32 &&
                      layout.integrity_length == layout.file_length - 32 - layout.integrity_offset;
  if (!inside || layout.checksum_type != ChecksumType::block_tree) return inside;
  const unsigned log2 = layout.integrity_block_log2;
  if (log2 < 12 || log2 > 30 ||
      (layout.leaf_algorithm != LeafAlgorithm::xxh3_128 &&
       layout.leaf_algorithm != LeafAlgorithm::sha256))
    return false;
  const auto algorithm = layout.leaf_algorithm;
  return integrity::block_count(layout.integrity_offset, log2) *
             integrity::leaf_length(algorithm) ==
         layout.integrity_length;
}

Digest256 closing_checksum(std::span<char> file, const format::Header& layout) {
  const MutableByteSpan bytes = std::as_writable_bytes(file);
  const ByteSpan covered = bytes.first(layout.file_length - 32);
  Digest256 out{};
  if (layout.checksum_type == ChecksumType::sha256) return integrity::sha256(covered);
  if (layout.checksum_type == ChecksumType::crc32) {
    const format::le32 crc = integrity::crc32(covered);
    std::memcpy(out.bytes, &crc, sizeof crc);
  } else if (layout.checksum_type == ChecksumType::block_tree) {
    const MutableByteSpan leaves = bytes.subspan(layout.integrity_offset, layout.integrity_length);
    const std::uint64_t leaf = integrity::leaf_length(layout.leaf_algorithm);
    for (std::uint64_t block = 0; block < leaves.size() / leaf; ++block)
      integrity::hash_block(bytes, block, layout, leaves.subspan(block * leaf, leaf));
    format::Header header;
    std::memcpy(&header, file.data(), sizeof header);
    return integrity::closing_checksum(header, leaves);
  }
  return out;
}

}  // namespace

void reseal(std::span<char> file, const format::Header& layout) {
  if (!can_seal(layout, file.size())) return;
  format::DirectoryHeader directory;
  std::memcpy(&directory, &file[layout.directory_offset], sizeof directory);
  directory.directory_crc32 = std::uint32_t{0};
  directory.directory_crc32 = integrity::crc32(bytes_of_struct(directory));
  std::memcpy(&file[layout.directory_offset], &directory, sizeof directory);
  format::Header header;
  std::memcpy(&header, file.data(), sizeof header);
  header.header_crc32 = std::uint32_t{0};
  header.header_crc32 = integrity::crc32(bytes_of_struct(header));
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(&file[layout.integrity_offset - sizeof header], &header, sizeof header);
  const Digest256 closing = closing_checksum(file, layout);
  std::memcpy(&file[layout.file_length - 32], closing.bytes, sizeof closing.bytes);
}

EditableFile::EditableFile(std::string bytes) : bytes_(std::move(bytes)) {
  layout_ = header();
  directory_ = at<format::DirectoryHeader>(layout_.directory_offset);
  unedited_ = bytes_;
}

format::Header& EditableFile::commit_record() {
  return at<format::Header>(layout_.integrity_offset - sizeof(format::Header));
}
format::DirectoryHeader& EditableFile::directory() {
  return at<format::DirectoryHeader>(layout_.directory_offset);
}
format::DirectoryRegion& EditableFile::directory_region(std::uint32_t region) {
  return at<format::DirectoryRegion>(layout_.directory_offset + directory_.regions_offset +
                                     region * sizeof(format::DirectoryRegion));
}
format::le32& EditableFile::region_order(std::uint32_t i) {
  return at<format::le32>(layout_.directory_offset + directory_.region_order_offset + i * 4ull);
}
format::TensorEntry& EditableFile::tensor(std::uint32_t number) {
  return at<format::TensorEntry>(layout_.directory_offset + directory_.tensors_offset +
                                 number * sizeof(format::TensorEntry));
}
format::TensorEntry& EditableFile::tensor(std::string_view name) {
  for (std::uint32_t i = 0; i < directory_.tensor_count; ++i) {
    const std::uint64_t at_entry =
        layout_.directory_offset + directory_.tensors_offset + i * sizeof(format::TensorEntry);
    const auto& entry = *reinterpret_cast<const format::TensorEntry*>(&unedited_[at_entry]);
    const char* text =
        &unedited_[layout_.directory_offset + directory_.names_offset + entry.name_offset];
    if (std::string_view(text, entry.name_length) == name) return tensor(i);
  }
  throw std::runtime_error("no tensor " + std::string(name) + " in the sample");
}
format::ChunkEntry& EditableFile::chunk(std::uint32_t number) {
  return at<format::ChunkEntry>(layout_.directory_offset + directory_.chunks_offset +
                                number * sizeof(format::ChunkEntry));
}
char* EditableFile::names() {
  return &bytes_.at(layout_.directory_offset + directory_.names_offset);
}
format::RegionIndexEntry& EditableFile::region_index(std::uint32_t region) {
  return at<format::RegionIndexEntry>(layout_.region_index_offset +
                                      region * sizeof(format::RegionIndexEntry));
}
std::uint64_t EditableFile::region_start(std::uint32_t region) const {
  const auto* entry = reinterpret_cast<const format::RegionIndexEntry*>(
      &unedited_[layout_.region_index_offset + region * sizeof(format::RegionIndexEntry)]);
  return entry->data_offset;
}
format::RegionHeader& EditableFile::region_header(std::uint32_t region) {
  return at<format::RegionHeader>(region_start(region));
}
format::RegionExtension& EditableFile::region_extension(std::uint32_t region) {
  return at<format::RegionExtension>(region_start(region) + sizeof(format::RegionHeader));
}
format::HomeostaticHeader& EditableFile::homeostatic_header(std::uint32_t region) {
  const auto* header =
      reinterpret_cast<const format::RegionHeader*>(&unedited_[region_start(region)]);
  return at<format::HomeostaticHeader>(region_start(region) + header->homeostatic_offset);
}
format::DynamicStateHeader& EditableFile::dynamic_state_header(std::uint32_t region) {
  const auto* extension = reinterpret_cast<const format::RegionExtension*>(
      &unedited_[region_start(region) + sizeof(format::RegionHeader)]);
  return at<format::DynamicStateHeader>(region_start(region) + extension->dynamic_state_offset);
}
format::ConnectivityHeader& EditableFile::connectivity() {
  return at<format::ConnectivityHeader>(layout_.connectivity_offset);
}
format::ConnectionEntry& EditableFile::connection(std::uint32_t i) {
  return at<format::ConnectionEntry>(layout_.connectivity_offset +
                                     sizeof(format::ConnectivityHeader) +
                                     i * sizeof(format::ConnectionEntry));
}
MutableByteSpan EditableFile::payload(std::string_view tensor_name) {
  const format::TensorEntry& entry = tensor(tensor_name);
  return std::as_writable_bytes(std::span(bytes_))
      .subspan(entry.stored_offset, entry.stored_length);
}
format::TensorHeader& EditableFile::payload_header(std::string_view tensor_name) {
  return at<format::TensorHeader>(tensor(tensor_name).stored_offset - sizeof(format::TensorHeader));
}

void EditableFile::reseal_tensor(std::string_view name) {
  format::TensorEntry& entry = tensor(name);
  const integrity::ContentDigest digest = integrity::content_digest(payload(name), 1);
  entry.crc32 = digest.crc32;
  payload_header(name).checksum = digest.crc32;
  entry.content_hash = digest.hash;
}

}  // namespace thalia::test
