// Owns everything of one save: options, target, plan, store. The store borrows the other three and
// is made late, when nothing is declared any more: layout and codec are settled then. It is
// destroyed first.
#include "container/write/file_save.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/chunk/codec.h"
#include "container/file/closing_checksum.h"
#include "container/plan/file_plan.h"
#include "container/plan/header_builder.h"
#include "container/write/compression_probe.h"
#include "container/write/extent_scheduler.h"
#include "container/write/extent_writer.h"
#include "container/write/file_digest.h"
#include "container/write/file_pieces.h"
#include "container/write/payload_digest.h"
#include "container/write/payload_store.h"
#include "container/write/sections.h"
#include "format/header.h"
#include "format/overlay.h"
#include "io/output/atomic_file.h"
#include "io/output/save_time.h"
#include "thalia/options.h"
#include "thalia/writer.h"

namespace thalia::container {
namespace {

// The last act of a save: tables, checksum and header around payloads that are placed.
// docs/format/writing.md, "Commit".
//
// The order is what makes a save atomic: sections, tables, integrity table and checksum are in the
// file before the header is, and the name comes after the sync. Every length is known before the
// image is written (only digests come later), so the tables can be placed first. The image borrows
// from this object and from the store; both outlive it. docs/format/writing.md, "Commit".

/// Takes a whole file, of `length` bytes, out of its image. @return seconds of syncs.
using ImageSink = std::function<double(const FilePieces& image, std::uint64_t length)>;

/// Digests the borrowed payloads that are not digested yet, writes everything that is not in the
/// file yet, the header last, syncs, and gives the file its name.
/// @param file null if it has no name: then it is neither synced nor put anywhere.
/// @param sink if the image is in memory alone: gets it once it is complete.
/// @return what SaveResult says, but for `seconds`. @throws IoError, UsageError.
SaveResult finalize(io::AtomicFile* file, FilePlan& plan, PayloadStore& store,
                    const SaveOptions& options, const ImageSink& sink = {});

using format::struct_bytes;

class Finalizer {
 public:
  Finalizer(io::AtomicFile* file, FilePlan& plan, PayloadStore& store, const SaveOptions& options,
            const ImageSink& sink)
      : file_(file),
        sink_(sink),
        plan_(plan),
        layout_(store.layout()),
        options_(options),
        image_(store.image()),
        extents_(store.extents()),
        progress_(store.progress()),
        sections_(plan, layout_),
        header_(build_header(plan, layout_)) {}

  SaveResult run() {
    // Zeros for now: leaves are hashed with a zero header, and a crash leaves no file that opens.
    image_.add(0, struct_bytes(written_header_));
    sections_.add_sections(image_, raw());  // other payloads lie in the file, or the store has them
    complete_header();
    sections_.add_tables(image_, header_);
    image_.set_length(header_.file_length);
    image_.sort();
    extents_.set_end(header_.integrity_offset, header_.integrity_block_log2);
    if (options_.sha256) {
      digest_.emplace(image_, plan_.delta ? ByteSpan(plan_.delta->prefix) : ByteSpan(),
                      struct_bytes(header_), extents_.end(), extents_.extent_bytes());
    }
    // Compressed payloads were digested while they were compressed.
    PayloadDigest payloads(plan_, raw() ? layout_.file_order() : std::span<const std::uint32_t>());
    write_extents(extents_, payloads, late_bytes(), options_, progress_);
    // For a block tree, this hashes the leaves. The other types cover the whole file, and cost one
    // more pass over it.
    checksum_ = closing_checksum(header_, extents_.leaves(), [&](const auto& visit) {
      image_.for_each(sizeof header_, header_.integrity_offset, visit);
    });
    // After all other pieces, so the image stays sorted.
    if (digest_) digest_->finish_extents();  // its thread reads the image, which grows now
    image_.add(header_.integrity_offset, extents_.leaves());
    image_.add(header_.file_length - sizeof checksum_, as_byte_span(checksum_.bytes));
    std::optional<Digest256> sha256;
    if (digest_) sha256 = digest_->finish(header_.file_length);
    written_header_ = header_;
    // Mode and owner first: the sync that follows the header covers them.
    if (file_) file_->prepare();
    const std::optional<double> synced = extents_.finish(header_.file_length);

    SaveResult result;
    result.sync_seconds = synced.value_or(0);
    if (file_) result.sync_seconds += file_->commit(synced.has_value());
    if (sink_) result.sync_seconds += sink_(image_, header_.file_length);
    result.file_bytes = header_.file_length;
    for (const TensorPlan& tensor : plan_.tensors) result.payload_bytes += tensor.logical_length;
    result.regions = header_.num_regions;
    result.tensors = static_cast<std::uint32_t>(plan_.tensors.size());
    result.total_neurons = header_.total_neurons;
    result.total_synapses = header_.total_synapses;
    result.closing_checksum = checksum_;
    result.identity = identity();
    result.digests = digests();
    result.sha256 = sha256;
    result.codec = options_.compression.codec.value();
    result.io = extents_.io();
    result.io_fallback = extents_.io_fallback();
    return result;
  }

 private:
  bool raw() const { return options_.compression.codec == Codec::none && !plan_.delta; }

  FileIdentity identity() const {
    return {.closing_checksum = checksum_,
            .file_uuid = header_.file_uuid,
            .generation = header_.generation,
            .file_length = header_.file_length,
            .training_steps = header_.training_steps};
  }

  // The digests of the tensors that a reader gets; a delta's stored bytes have digests of their
  // own.
  std::vector<TensorDigest> digests() const {
    std::vector<TensorDigest> out;
    out.reserve(plan_.tensors.size());
    for (const TensorPlan& tensor : plan_.tensors) {
      TensorDigest& digest =
          out.emplace_back(TensorDigest{tensor.digest.crc32, tensor.digest.hash});
      if (!tensor.delta) continue;
      digest.crc32 = tensor.delta->crc32;
      digest.content_hash = tensor.delta->content_hash;
    }
    return out;
  }

  LateBytes late_bytes() {
    LateBytes late{
        .header_offset = [this](std::uint32_t tensor) { return sections_.header_offset(tensor); },
        .complete_header = [this](std::uint32_t tensor) { sections_.complete_header(tensor); },
        .tables_offset = header_.directory_offset,
        .complete_tables = [this] { sections_.complete_directory(); }};
    if (digest_) late.written = [this](std::uint64_t e) { digest_->extent_is_final(e); };
    return late;
  }

  void complete_header() {
    place_tables(header_, layout_.end(), sections_.build_directory(), options_.checksum,
                 options_.leaves, options_.block_log2);
    header_.timestamp = options_.timestamp ? *options_.timestamp : io::save_time(options_.output);
    if (options_.file_uuid) {
      header_.file_uuid = *options_.file_uuid;
    } else if (options_.output.reproducible) {
      set_derived_uuid(header_);
    } else {
      set_random_uuid(header_);
    }
    set_header_crc(header_);
  }

  io::AtomicFile* file_;
  const ImageSink& sink_;
  FilePlan& plan_;
  const Layout& layout_;
  const SaveOptions& options_;
  FilePieces& image_;
  ExtentWriter& extents_;
  ProgressMeter& progress_;
  Sections sections_;
  format::Header header_;
  // What the image borrows besides.
  format::Header written_header_{};  ///< zero until everything else is written
  Digest256 checksum_{};
  std::optional<FileDigest> digest_;  ///< destroyed first: its thread reads the rest
};

SaveResult finalize(io::AtomicFile* file, FilePlan& plan, PayloadStore& store,
                    const SaveOptions& options, const ImageSink& sink) {
  return Finalizer(file, plan, store, options, sink).run();
}

}  // namespace

FileSave::FileSave(const std::filesystem::path& target, CheckedOptions options, FilePlan plan)
    : options_(std::move(options).get()),
      target_(std::in_place, target,
              io::AtomicFileOptions{.output = options_.output, .cancel = options_.work.cancel}),
      plan_(std::move(plan)) {
  if (options_.sha256) check_sha256_name(path(), options_.output);
}

FileSave::FileSave(int fd, std::filesystem::path name, CheckedOptions options, FilePlan plan)
    : options_(std::move(options).get()), fd_(fd), name_(std::move(name)), plan_(std::move(plan)) {}

FileSave::FileSave(const FramesTarget& target, CheckedOptions options, FilePlan plan)
    : options_(std::move(options).get()), plan_(std::move(plan)) {
  if (options_.sha256) {
    fail_argument(ErrorCode::bad_argument, "sha256", "true",
                  "false for a file that is compressed as a whole");
  }
  form_ = {.codec = target.codec, .level = codec::checked_level(target.codec, target.level)};
  options_.io = IoMode::buffered;
  frames_.emplace(target.path, options_.output, options_.work.cancel);
  name_ = frames_->path();
}

PayloadStore& FileSave::store() {
  process_.require("the file that is written", path().native());
  if (!store_) {
    plan_.check_complete();
    if (frames_ && std::ranges::any_of(plan_.tensors, &TensorPlan::streamed)) {
      throw UsageError(ErrorCode::wrong_state, "a streamed payload of a file in frames",
                       {.path = path().string()});
    }
    // First, since it writes to the file and empties it again.
    choose_codec(options_, plan_, fd(), path());
    store_.emplace(plan_, fd(), path(), options_);
  }
  return *store_;
}

SaveResult FileSave::commit() {
  store().finish();
  if (target_ && options_.sha256 && options_.output.replace)
    remove_sha256_file(path(), options_.output);
  if (frames_) {
    SaveResult result = finalize(nullptr, plan_, *store_, options_,
                                 [this](const FilePieces& image, std::uint64_t length) {
                                   return write_frames(image, length);
                                 });
    result.file_bytes = frames_->size();
    result.codec = form_.codec;
    return result;
  }
  SaveResult result = finalize(target_ ? &*target_ : nullptr, plan_, *store_, options_);
  // After the file has its name: a sum without its file would be worse than a file without its sum.
  if (target_ && result.sha256) write_sha256_file(path(), *result.sha256, options_.output);
  return result;
}

double FileSave::write_frames(const FilePieces& image, std::uint64_t length) {
  Work work = options_.work;
  work.progress = {};  // that of the digests was the whole
  container::write_frames(
      {.size = length,
       .read = [&](std::uint64_t offset,
                   MutableByteSpan out) { image.copy(offset, offset + out.size(), out); }},
      form_, work, *frames_);
  stop_if_cancelled(work.cancel);
  return frames_->commit();
}

void FileSave::discard() noexcept {
  if (target_) target_->discard();
  frames_.reset();
}

}  // namespace thalia::container
