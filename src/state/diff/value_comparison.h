// Two tensors of one name compared element by element, in pieces that threads may share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/system/process.h"
#include "state/diff/tally.h"
#include "thalia/state/diff.h"

namespace thalia::state {

/// Made for one pair, asked how many pieces it has, and told to compare each once.
class ValueComparison {
 public:
  ValueComparison(ComparedTensor before, ComparedTensor after, const Tolerance& tolerance);
  ~ValueComparison();

  std::uint64_t pieces() const noexcept { return pieces_; }
  /// Bytes of both sides that comparing a piece reads, about.
  std::uint64_t piece_bytes() const noexcept { return piece_bytes_; }
  /// Compares one piece. May be called from several threads at once, for one comparison too. What
  /// was read for all pieces is released with the last. @throws FormatError, IntegrityError,
  /// IoError.
  void compare(std::uint64_t piece);
  /// After the last piece.
  ValueDiff result() const;

 private:
  struct Loaded;

  void plan();
  void load();
  template <typename T>
  DifferenceTally compare_as(std::uint64_t piece) const;
  template <typename T>
  DifferenceTally compare_dense(std::uint64_t piece) const;
  template <typename T>
  DifferenceTally compare_sparse(std::uint64_t piece) const;

  ComparedTensor before_;
  ComparedTensor after_;
  Tolerance tolerance_;
  std::string skipped_;
  Shape shape_;
  std::uint64_t elements_ = 0;
  bool both_sparse_ = false;
  std::uint64_t pieces_ = 0;
  std::uint64_t piece_bytes_ = 0;
  std::vector<DifferenceTally> tallies_;  ///< one a piece
  io::Once loading_;
  std::unique_ptr<Loaded> loaded_;  ///< null if both sides are read in parts
  std::atomic<std::uint64_t> left_ = 0;
};

}  // namespace thalia::state
