// A chain as one full file.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "container/write/check_options.h"
#include "container/write/compression_probe.h"
#include "container/write/file_digest.h"
#include "container/write/finalize.h"
#include "container/write/payload_store.h"
#include "io/atomic_file.h"
#include "model/delta/draft.h"
#include "model/delta/squash.h"
#include "model/value/in_order.h"
#include "thalia/delta.h"

namespace thalia {
namespace {

constexpr std::uint64_t kReadPiece = 1 << 20;

// Tensors in the order of the file, each in pieces that are taken through all links on as many
// threads as there are: neither a tensor nor a stage of one is ever whole.
class Squash {
 public:
  Squash(const DeltaState& state, const SaveOptions& save)
      : save_(save), draft_(model::draft_of(state)), sources_(model::sources_of(state)) {}

  SaveResult run(const std::filesystem::path& target) {
    io::AtomicFile file(target, {.durability = save_.durability, .cancel = save_.work.cancel});
    if (save_.sha256) container::check_sha256_name(file.path());
    SaveResult saved = finalized(file.fd(), file.path(), [&](container::PayloadStore& store) {
      return container::finalize_file(file, draft_, store, save_);
    });
    if (saved.sha256) container::write_sha256_file(file.path(), *saved.sha256, save_.durability);
    return saved;
  }

  SaveResult run(int fd, const std::filesystem::path& name) {
    return finalized(fd, name, [&](container::PayloadStore& store) {
      return container::finalize_unnamed(draft_, store, save_);
    });
  }

 private:
  template <typename Finalizer>
  SaveResult finalized(int fd, const std::filesystem::path& path, Finalizer finalize) {
    draft_.check_complete();
    container::settle_compression(save_, draft_, fd, path);
    container::PayloadStore store(draft_, fd, path, save_);
    for (const std::uint32_t id : store.layout().file_order()) {
      try {
        stream(store, id);
      } catch (Error& error) {
        error.add_region(printable(sources_[id].key.region));
        error.add_tensor(printable(sources_[id].tensor->spec.name));
        throw;
      }
    }
    store.finish();
    return finalize(store);
  }

  void stream(container::PayloadStore& store, std::uint32_t id) {
    const DeltaTensorSource& source = *sources_[id].tensor;
    const std::uint64_t size = draft_.tensors[id].logical_length;
    const auto bytes = model::open_source(source, size);
    struct Piece {
      std::vector<std::byte> buffer;
      ByteSpan bytes;
    };
    model::for_each_in_order<Piece>(
        size / kReadPiece + (size % kReadPiece != 0), save_.work.threads,
        [&](std::size_t i, Piece& piece) {
          stop_if_cancelled(save_.work.cancel);
          piece.bytes = bytes->part(i * kReadPiece, std::min(kReadPiece, size - i * kReadPiece),
                                    piece.buffer);
        },
        [&](const Piece& piece) { store.write(id, piece.bytes); });
    if (size == 0 || draft_.tensors[id].digest.hash == source.content_hash) return;
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "what the chain makes of the tensor is not what was saved",
                         {.section = "payload", .field = "content_hash"});
  }

  SaveOptions save_;
  container::Draft draft_;
  std::vector<model::DeltaSource> sources_;  ///< by tensor of the draft
};

}  // namespace

namespace model {

SaveResult squash(const DeltaState& state, const std::filesystem::path& target,
                  const SaveOptions& save) {
  try {
    return Squash(state, save).run(target);
  } catch (Error& error) {
    error.add_path(target.string());
    throw;
  }
}

SaveResult squash(const DeltaState& state, int fd, const std::filesystem::path& name,
                  const SaveOptions& save) {
  return Squash(state, save).run(fd, name);
}

}  // namespace model

ResolveResult resolve(const std::filesystem::path& delta, const std::filesystem::path& target,
                      const ChainOptions& options, const SaveOptions& save) {
  const Stopwatch watch;
  container::check_options(save);
  const ChainReader chain = ChainReader::open(delta, options);
  const DeltaState state = delta_state(chain);
  const SaveResult saved = model::squash(state, target, save);
  return {.input_bytes = chain.disk_bytes(),
          .output_bytes = saved.file_bytes,
          .depth = chain.depth(),
          .regions = saved.regions,
          .tensors = saved.tensors,
          .closing_checksum = saved.closing_checksum,
          .seconds = watch.seconds()};
}

}  // namespace thalia
