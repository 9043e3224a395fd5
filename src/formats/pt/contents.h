// What an open .pt file holds: its pickles as graphs, over the archive that their storages lie in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/pickle/value.h"
#include "formats/pt/archive.h"
#include "formats/pt/listing.h"
#include "formats/pt/tree.h"
#include "io/memory/allocation_limit.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/storage.h"

namespace thalia::formats::pt {

/// A pickle and the records that its storages are.
struct Part {
  StoredBytes pickle{};
  Graph graph{};
  std::vector<const ZipMember*> members{};  ///< for each storage of the graph
  PtTree tree{};
};

/// Immutable; any number of threads.
class Contents : public std::enable_shared_from_this<Contents> {
 public:
  /// @param budget of the call that opens the file. @throws FormatError, IntegrityError,
  /// UnsupportedError, without a path.
  static std::shared_ptr<const Contents> read(StoredBytes file, const ReadOptions& options,
                                              io::MemoryBudget& budget);

  const PtArchive& archive() const noexcept { return archive_; }
  const Part& state() const noexcept { return state_; }
  /// The constants that the code of a TorchScript program names; without tensors in other files.
  const Part& constants() const noexcept { return constants_; }
  const std::vector<std::string>& losses() const noexcept { return losses_; }

  /// One tensor or array of a part, row by row. In the file where it lies there so. @throws
  /// FormatError, IntegrityError, UnsupportedError.
  Tensor read(const Part& part, NodeId node, bool dequantize) const;
  Tensor read(const Part& part, const Span& span) const;
  /// Compares checksums of the records that it lies in. @throws IntegrityError.
  void check(const Part& part, NodeId node) const;
  void check(const Part& part, const Span& span) const;
  /// Where its bytes lie in the file as read() gives them; nullptr if they do not.
  const ZipMember* raw_member(const Part& part, NodeId node, bool dequantize) const;

  Contents(StoredBytes file, const ReadOptions& options, io::MemoryBudget& budget);

 private:
  void read_part(Part& part, std::string_view record, std::string_view prefix,
                 io::MemoryBudget& budget);
  void keep_shared_records(const Part& part, io::MemoryBudget& budget);
  void find_losses();
  // The records that a tensor lies in, of a sparse or quantized one also those of its parts.
  std::vector<const ZipMember*> members_of(const Part& part, NodeId node) const;
  Tensor read(const Part& part, NodeId node, bool dequantize, io::MemoryBudget& budget) const;
  Tensor read_array(const ArrayRecord& array, io::MemoryBudget& budget) const;
  Tensor read_strided(const Part& part, const TensorRecord& tensor, bool dequantize,
                      io::MemoryBudget& budget) const;
  Tensor read_sparse(const Part& part, const TensorRecord& tensor, io::MemoryBudget& budget) const;
  Tensor dequantized(const Part& part, const TensorRecord& tensor, const Tensor& codes,
                     io::MemoryBudget& budget) const;
  std::vector<double> numbers(const Part& part, NodeId node, io::MemoryBudget& budget) const;
  bool swaps(DType dtype) const noexcept { return archive_.big_endian() && dtype_bits(dtype) > 8; }

  ReadLimits limits_;
  PtArchive archive_;
  Part state_;
  Part constants_;
  std::vector<std::string> losses_;
};

}  // namespace thalia::formats::pt
