// A chain as one full file. It holds what the chain makes, tensor by tensor in the order of the
// file, and each tensor is held against the content hash that the chain's top has for it: a full
// file of wrong bytes is never put in place.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/write/file_save.h"
#include "state/delta/save_state.h"
#include "state/delta/state_plan.h"
#include "state/value/in_order.h"
#include "thalia/state/delta.h"

namespace thalia {
namespace {

constexpr std::uint64_t kReadPiece = 1 << 20;

// Streams a tensor in pieces, which threads take through all links and which are written in order:
// neither the tensor nor a stage of it is ever whole in memory.
void stream(const TensorSource& source, std::uint32_t id, container::FileSave& save) {
  const std::uint64_t size = save.plan().tensors[id].logical_length;
  const Work& work = save.options().work;
  const auto bytes = state::open_tensor_bytes(source, size);
  struct Piece {
    std::vector<std::byte> buffer;
    ByteSpan bytes;
  };
  state::for_each_in_order<Piece>(
      size / kReadPiece + (size % kReadPiece != 0), work.threads,
      [&](std::size_t i, Piece& piece) {
        stop_if_cancelled(work.cancel);
        piece.bytes =
            bytes->part(i * kReadPiece, std::min(kReadPiece, size - i * kReadPiece), piece.buffer);
      },
      [&](const Piece& piece) { save.store().write(id, piece.bytes); });
  if (size == 0 || !source.content_hash) return;
  if (save.plan().tensors[id].digest.hash == *source.content_hash) return;
  throw IntegrityError(ErrorCode::checksum_mismatch,
                       "what the chain makes of the tensor is not what was saved",
                       {.section = "payload", .field = "content_hash"});
}

// Tensors in the order of the file.
SaveResult save_state(const StateSource& state, container::FileSave& save) {
  const std::vector<state::KeyedTensor> sources = state::keyed_tensors(state);
  // The order in which payloads lie, so that the file is written from front to back.
  for (const std::uint32_t id : save.store().layout().file_order()) {
    try {
      stream(*sources[id].tensor, id, save);
    } catch (Error& error) {
      error.add_region(printable(sources[id].key.region));
      error.add_tensor(printable(sources[id].tensor->spec.name));
      throw;
    }
  }
  return save.commit();
}

}  // namespace

namespace state {

SaveResult save_state(const StateSource& state, const std::filesystem::path& target,
                      const container::CheckedOptions& options) {
  return with_path(target.native(), [&] {
    container::FileSave save(target, options, plan_of(state));
    return thalia::save_state(state, save);
  });
}

SaveResult save_state(const StateSource& state, int fd, const std::filesystem::path& name,
                      const SaveOptions& options) {
  container::FileSave save(fd, name, options, plan_of(state));
  return thalia::save_state(state, save);
}

}  // namespace state

}  // namespace thalia
