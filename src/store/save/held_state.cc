#include "store/save/held_state.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "base/stream_copy.h"
#include "format/payload.h"
#include "state/delta/state_plan.h"

namespace thalia::store {
namespace {

// Large tensors are cut, so that all threads have a share of one.
constexpr std::size_t kPiece = 4 << 20;

/// Calls use(source, i) for each tensor, in the order of SavedState.
template <typename State, typename Use>
void for_each_source(State& state, const Use& use) {
  std::size_t i = 0;
  for (auto& region : state.regions)
    for (auto& tensor : region.tensors) use(tensor, i++);
  for (auto& connection : state.connections) {
    use(connection.weights, i++);
    if (connection.delays) use(*connection.delays, i++);
  }
}

Tensor loaded(const TensorSource& source) {
  if (!source.open) return source.load();
  const TensorLayout layout = source.spec.layout();
  const PartReader read = source.open();
  return Tensor::filled(layout, [&](MutableByteSpan out) {
    for (std::size_t begin = 0; begin < out.size(); begin += kPiece)
      read(begin, out.subspan(begin, std::min(kPiece, out.size() - begin)));
  });
}

}  // namespace

std::vector<Tensor> load_tensors(const StateSource& state) {
  std::vector<Tensor> tensors;
  for_each_source(
      state, [&](const TensorSource& source, std::size_t) { tensors.push_back(loaded(source)); });
  return tensors;
}

StateSource over_tensors(const StateSource& state, const std::vector<Tensor>& tensors) {
  StateSource over = state;
  for_each_source(over, [&](TensorSource& source, std::size_t i) {
    source.load = [&tensors, i] { return tensors[i]; };
    source.open = {};
  });
  return over;
}

void copy_tensors(const std::vector<Tensor>& from, std::vector<Tensor>& to, unsigned threads,
                  const std::function<bool(std::size_t)>& is_there) {
  struct Piece {
    ByteSpan from;
    std::byte* to;
  };
  std::vector<Piece> pieces;
  to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (is_there && is_there(i)) continue;
    if (to[i].layout() != from[i].layout())
      to[i] = Tensor::filled(from[i].layout(), [](MutableByteSpan) {});
    const ByteSpan bytes = from[i].bytes();
    std::byte* const out = to[i].mutable_bytes().data();
    for (std::size_t begin = 0; begin < bytes.size(); begin += kPiece)
      pieces.push_back({bytes.subspan(begin, std::min(kPiece, bytes.size() - begin)), out + begin});
  }
  parallel_for(pieces.size(), threads, [&](std::size_t i) {
    // Nobody reads it before the next state, and those who follow work meanwhile.
    stream_copy(pieces[i].from, pieces[i].to);
    fence_stream_copies();
  });
}

SavedState HeldState::saved(const std::filesystem::path& path) const {
  return {.path = path,
          .identity = written_.identity,
          .state = over_tensors(state_, tensors_),
          .digests = written_.digests};
}

void HeldState::copy(WrittenState written, const StateSource& state,
                     const std::vector<Tensor>& tensors, unsigned threads) {
  // Also of a state that is not that of a file any more: the digests are of what is in memory.
  const std::vector<TensorDigest> before =
      holds_ ? std::move(written_.digests) : decltype(before)();
  holds_ = false;
  copy_tensors(tensors, tensors_, threads, [&](std::size_t i) {
    return i < before.size() && tensors_[i].layout() == tensors[i].layout() &&
           before[i].content_hash == written.digests[i].content_hash;
  });
  describe(std::move(written), state);
}

void HeldState::take(WrittenState written, const StateSource& state, std::vector<Tensor>& tensors) {
  holds_ = false;
  tensors_.swap(tensors);
  describe(std::move(written), state);
}

void HeldState::describe(WrittenState written, const StateSource& state) {
  state_ = state;
  for_each_source(state_, [](TensorSource& source, std::size_t) {
    source.load = {};
    source.open = {};
  });
  written_ = std::move(written);
  holds_ = true;
}

}  // namespace thalia::store
