#include "container/seal.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/fail.h"
#include "container/closing_checksum.h"
#include "container/directory_builder.h"
#include "container/file_image.h"
#include "container/header_builder.h"
#include "container/image_writer.h"
#include "container/section_image.h"
#include "format/overlay.h"
#include "integrity/block_tree.h"
#include "io/posix_file.h"

namespace thalia::container {
namespace {

using format::struct_bytes;

class Seal {
 public:
  Seal(io::AtomicFile& file, const Draft& draft, const Layout& layout, const SaveOptions& options)
      : file_(file),
        draft_(draft),
        layout_(layout),
        options_(options),
        image_(file.fd(), file.path()),
        sections_(draft, layout),
        header_(draft_header(draft, layout)) {}

  SaveResult run() {
    add_sections();
    add_tables();
    complete_header();
    io::set_file_size(file_.fd(), header_.file_length, file_.path());
    image_.sort();
    ImageWrite written = write_image(image_, header_.integrity_offset, options_);
    if (written.io == IoMode::direct) {  // whose last extent is a multiple of 4096 bytes
      io::set_file_size(file_.fd(), header_.file_length, file_.path());
    }
    const Digest256 checksum = closing_checksum(written.leaves);
    const std::vector<ByteSpan> tail{written.leaves, as_byte_span(checksum.bytes)};
    io::pwritev_all(file_.fd(), header_.integrity_offset, tail, file_.path());
    io::pwrite_all(file_.fd(), 0, struct_bytes(header_), file_.path());

    SaveResult result;
    result.sync_seconds = file_.commit();
    result.file_bytes = header_.file_length;
    for (const DraftTensor& tensor : draft_.tensors) result.payload_bytes += tensor.logical_length;
    result.regions = header_.num_regions;
    result.tensors = static_cast<std::uint32_t>(draft_.tensors.size());
    result.closing_checksum = checksum;
    result.io = written.io;
    result.io_fallback = std::move(written.io_fallback);
    return result;
  }

 private:
  void add_payload(std::uint32_t i) {
    const DraftTensor& tensor = draft_.tensors[i];
    payload_headers_.push_back(payload_header(tensor));
    image_.add(tensor.stored_offset - sizeof(format::TensorHeader),
               struct_bytes(payload_headers_.back()));
    const bool in_file = tensor.streamed || options_.compression != format::Codec::store;
    if (in_file) {
      image_.add_written(tensor.stored_offset, tensor.stored_length);
      return;
    }
    std::uint64_t at = tensor.stored_offset;
    for (const ByteSpan piece : tensor.pieces) {
      image_.add(at, piece);
      at += piece.size();
    }
  }

  void add_sections() {
    sections_.add_to(image_);
    for (std::uint32_t i = 0; i < draft_.tensors.size(); ++i) add_payload(i);
  }

  void add_tables() {
    directory_ = build_directory(draft_);
    place_tables(header_, layout_.end(), directory_.size(), options_.checksum, options_.leaves,
                 options_.block_log2);
    image_.add(header_.directory_offset, directory_);
    image_.add(header_.region_index_offset, std::as_bytes(sections_.region_index()));
  }

  std::uint64_t timestamp() const {
    using namespace std::chrono;
    const auto now = duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
    return options_.timestamp.value_or(static_cast<std::uint64_t>(now));
  }

  void complete_header() {
    header_.timestamp = timestamp();
    if (options_.file_uuid) {
      std::copy(options_.file_uuid->begin(), options_.file_uuid->end(), header_.file_uuid);
    } else {
      set_random_uuid(header_);
    }
    set_header_crc(header_);
    image_.add(header_.integrity_offset - sizeof header_,
               struct_bytes(header_));  // the commit record
  }

  Digest256 closing_checksum(ByteSpan leaves) const {
    if (options_.checksum == format::ChecksumType::block_tree)
      return integrity::closing_checksum(header_, leaves);
    return whole_file_checksum(header_, [&](const auto& visit) {
      image_.for_each(sizeof header_, header_.integrity_offset, visit);
    });
  }

  io::AtomicFile& file_;
  const Draft& draft_;
  const Layout& layout_;
  const SaveOptions& options_;
  FileImage image_;
  SectionImage sections_;
  format::Header header_;
  // What the image borrows; deques, so that growing moves nothing.
  std::deque<format::TensorHeader> payload_headers_;
  std::vector<std::byte> directory_;
};

}  // namespace

SaveResult seal_file(io::AtomicFile& file, const Draft& draft, const Layout& layout,
                     const SaveOptions& options) {
  return Seal(file, draft, layout, options).run();
}

}  // namespace thalia::container
