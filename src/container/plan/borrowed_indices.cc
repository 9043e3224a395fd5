// Readers refuse indices that are out of range or out of order. A writer has the arrays in memory
// and finds such a fault now, by tensor, rather than in a file. Streamed payloads are not checked:
// they are never whole in memory.
#include "container/plan/borrowed_indices.h"

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/plan/piece_range.h"
#include "container/read/sparse_check.h"
#include "format/payload.h"

namespace thalia::container {
namespace {

// An index array of a payload: in place if it lies whole and aligned in one piece, else a copy.
template <typename Index>
class IndexArray {
 public:
  IndexArray(std::span<const ByteSpan> pieces, format::Extent extent) {
    for_each_part(pieces, extent.offset, extent.offset + extent.length, [&](ByteSpan part) {
      const bool aligned = reinterpret_cast<std::uintptr_t>(part.data()) % alignof(Index) == 0;
      if (part.size() == extent.length && aligned) {
        view_ = {reinterpret_cast<const Index*>(part.data()), part.size() / sizeof(Index)};
        return;
      }
      copy_.resize(extent.length / sizeof(Index));
      std::memcpy(reinterpret_cast<std::byte*>(copy_.data()) + filled_, part.data(), part.size());
      filled_ += part.size();
      view_ = copy_;
    });
  }
  std::span<const Index> view() const { return view_; }

 private:
  std::vector<Index> copy_;
  std::size_t filled_ = 0;
  std::span<const Index> view_;
};

template <typename Index>
void check_indices(const TensorPlan& tensor) {
  const TensorSpec& spec = tensor.spec;
  std::optional<std::string> fault;
  if (spec.encoding == Encoding::csr) {
    const auto parts = *format::sparse_parts(spec.layout());
    const IndexArray<Index> pointers(tensor.pieces, parts.row_pointers);
    const IndexArray<Index> columns(tensor.pieces, parts.indices);
    fault = find_csr_fault<Index>(spec.shape, spec.nnz, pointers.view(), columns.view());
  } else {
    const auto parts = *format::sparse_parts(spec.layout());
    const IndexArray<Index> indices(tensor.pieces, parts.indices);
    fault = find_coo_fault<Index>(spec.shape, spec.nnz, indices.view());
  }
  if (fault) {
    throw UsageError(ErrorCode::bad_argument, *fault,
                     {.field = "indices", .tensor = printable(spec.name)});
  }
}

}  // namespace

void check_borrowed_indices(const FilePlan& plan, unsigned threads) {
  std::vector<const TensorPlan*> sparse;
  for (std::uint32_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorPlan& tensor = plan.tensors[i];
    // Digested ones are copied from a file, whose writer is responsible.
    if (!tensor.digested && !tensor.streamed && plan.is_sparse(i) && !tensor.pieces.empty())
      sparse.push_back(&tensor);
  }
  // Tensor by tensor: a check of one goes through its indices in order.
  parallel_for(sparse.size(), threads, [&](std::size_t i) {
    sparse[i]->spec.wide_indices ? check_indices<std::uint64_t>(*sparse[i])
                                 : check_indices<std::uint32_t>(*sparse[i]);
  });
}

}  // namespace thalia::container
