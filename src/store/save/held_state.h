// The state that a publisher has published last, in memory of its own: what a delta is taken
// against without reading a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/folder/folder.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::store {

/// The tensors of a state in the order of SavedState: what its sources give, which may be borrowed.
std::vector<Tensor> load_tensors(const StateSource& state);
/// The state with sources that give these, which it borrows.
StateSource over_tensors(const StateSource& state, const std::vector<Tensor>& tensors);

/// Makes `to` hold bytes of its own that are those of `from`; memory that fits is used again.
/// @param is_there of those that need no copy.
void copy_tensors(const std::vector<Tensor>& from, std::vector<Tensor>& to, unsigned threads,
                  const std::function<bool(std::size_t)>& is_there = {});

/// A file that was written, as the result of its save has it.
struct WrittenState {
  std::string file;
  io::EntryFacts facts;  ///< just after it was written
  FileIdentity identity;
  std::vector<TensorDigest> digests;
};

/// Externally synchronised.
class HeldState {
 public:
  bool is(const std::string& file, const std::optional<io::EntryFacts>& facts) const {
    return holds_ && written_.file == file && written_.facts == facts;
  }
  /// What was saved in the file, which is at `path`. Borrows what is held.
  SavedState saved(const std::filesystem::path& path) const;

  /// Copies of these tensors are held from now on; where the digests tell that one is held already,
  /// it is not copied. After an error nothing is held.
  void copy(WrittenState written, const StateSource& state, const std::vector<Tensor>& tensors,
            unsigned threads);
  /// The tensors themselves are held from now on, and `tensors` is memory that is free.
  void take(WrittenState written, const StateSource& state, std::vector<Tensor>& tensors);
  /// Memory stays, and nothing is held.
  void forget() noexcept { holds_ = false; }

 private:
  void describe(WrittenState written, const StateSource& state);
  bool holds_ = false;
  WrittenState written_;
  StateSource state_;  ///< what its sources give is of no use
  std::vector<Tensor> tensors_;
};

}  // namespace thalia::store
