// A stream whose units are made, not read: each is a piece of one tensor that a worker takes
// through all links of the chain, in the memory where it is handed out. Feeder, memory, order and
// damage are those of every stream. The plan finds each tensor in all files once; workers read the
// mappings, and tell the kernel what comes kAhead units later.
#include "state/delta/chain_stream.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "container/stream/session.h"
#include "state/delta/file_chain.h"
#include "state/delta/tensor_chain.h"

namespace thalia::state {
namespace {

using container::StreamPlan;
using container::StreamUnit;
using container::StreamWork;

// Units that the kernel hears about before they are made: enough for a disk, and little beside what
// a stream may keep in memory.
constexpr std::size_t kAhead = 8;

// What the workers share. A tensor's digests are written by its units, each its own, and read by
// the worker that brings the last one.
class ChainUnits {
 public:
  explicit ChainUnits(const ChainReader& chain)
      : chain_(chain),
        checks_(state::files_of(chain).options().read.verification != Verification::off) {}

  // Adds a tensor to the plan, which it becomes number plan.tensors.size() of.
  void add(const TensorView& view, std::size_t index, StreamPlan& plan) {
    const FileChain& files = state::files_of(chain_);
    const std::string_view region = Reader::region_name(view);
    container::with_names(files.file(0), region, view.name(), [&] {
      Tensor& tensor = tensors_.emplace_back(Tensor{find_tensor(files, view), {}});
      const ChainTensor& result = tensor.chain.result();
      if (plan.regions.empty() || plan.regions.back() != region) plan.regions.emplace_back(region);
      const std::uint64_t size = result.logical_bytes;
      plan.tensors.push_back({.view = view,
                              .index = index,
                              .offset = index,
                              // What a limit on memory is measured by: all that it may be made of.
                              .stored_bytes = size == 0 ? 0 : chain_.disk_bytes(),
                              .logical_bytes = size,
                              .result_bytes = size,
                              .layout = result.layout,
                              .crc32 = 0,
                              .content_hash = {},
                              .chunk_count = 0,
                              .first_chunk = 0,
                              .quantized = SIZE_MAX,
                              .region = static_cast<std::uint32_t>(plan.regions.size() - 1),
                              .name_begin = plan.names.size(),
                              .name_length = view.name().size()});
      plan.names += view.name();
      if (checks_ && tensor.chain.is_made()) tensor.digests.resize(content_pieces(size));
    });
  }

  // The units of tensor `number`.
  void cut(std::size_t number, StreamPlan& plan) const {
    const std::uint64_t size = plan.tensors[number].logical_bytes;
    const std::uint64_t piece = tensors_[number].chain.piece_bytes();
    for (std::uint64_t begin = 0; begin < size; begin += piece) {
      plan.units.push_back({begin, std::min(begin + piece, size), number, number + 1, 0});
      ++plan.tensors[number].units;
    }
    plan.total_bytes += size;
  }

  // Empty tensors to the front, as every plan has them.
  void sort(StreamPlan& plan) {
    std::vector<std::size_t> order(plan.tensors.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t i) { return plan.tensors[i].logical_bytes == 0; });
    std::vector<container::StreamTensor> planned;
    std::vector<Tensor> tensors;
    for (const std::size_t i : order) {
      planned.push_back(plan.tensors[i]);
      tensors.push_back(std::move(tensors_[i]));
    }
    plan.tensors = std::move(planned);
    tensors_ = std::move(tensors);
  }

  void run(StreamWork& work) {
    while (const auto number = work.scheduler.take(true)) {
      const StreamUnit& unit = work.plan.units[*number];
      const std::size_t tensor = unit.first_tensor;
      if (*number + kAhead < work.plan.units.size()) prefetch(work.plan.units[*number + kAhead]);
      container::StreamPayload& payload = *work.payloads[tensor];
      work.attempt(tensor, [&] { make(unit, payload.out().bytes); });
      if (payload.finish_unit()) {
        work.attempt(tensor, [&] { finish(tensor, payload.error() == nullptr); });
        work.scheduler.complete_tensor(tensor);
      }
      work.scheduler.complete_unit();
      work.bytes_read.fetch_add(unit.end - unit.begin, std::memory_order_relaxed);
      work.report(unit.end - unit.begin);
    }
  }

 private:
  struct Tensor {
    TensorChain chain;
    std::vector<integrity::PieceDigest> digests;  ///< none if it is not checked
  };

  void prefetch(const StreamUnit& unit) const {
    tensors_[unit.first_tensor].chain.prefetch(unit.begin, unit.end - unit.begin);
  }

  void make(const StreamUnit& unit, MutableByteSpan out) {
    Tensor& tensor = tensors_[unit.first_tensor];
    const MutableByteSpan part = out.subspan(unit.begin, unit.end - unit.begin);
    std::span<integrity::PieceDigest> digests(tensor.digests);
    if (!digests.empty())
      digests = digests.subspan(unit.begin / format::kContentPiece, content_pieces(part.size()));
    tensor.chain.make(unit.begin, part, digests);
  }

  void finish(std::size_t number, bool whole) const {
    const Tensor& tensor = tensors_[number];
    if (whole && !tensor.digests.empty()) tensor.chain.check(tensor.digests);
  }

  const ChainReader chain_;  // keeps the files that the tensors borrow
  const bool checks_;
  std::vector<Tensor> tensors_;
};

}  // namespace

StreamReader stream_chain(const ChainReader& chain, const std::vector<TensorView>& tensors,
                          const StreamOptions& options) {
  container::check_options(options);
  if (options.quantized == StreamedQuantized::codes) {
    fail_argument(ErrorCode::bad_argument, "quantized", "codes",
                  "restored, as the tensors of a delta are made of several files");
  }
  const auto units = std::make_shared<ChainUnits>(chain);
  StreamPlan plan;
  for (std::size_t i = 0; i < tensors.size(); ++i) units->add(tensors[i], i, plan);
  units->sort(plan);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) units->cut(i, plan);
  const std::shared_ptr<const detail::OpenFile>& file = state::files_of(chain).link(0).file();
  auto strategy = std::make_unique<const container::ReadStrategy>(
      *file, plan, options, "the files of a chain are read through the page cache");
  return container::stream_of(std::make_unique<container::StreamSession>(
      file, std::move(plan), options, std::move(strategy),
      [units](StreamWork& work) { units->run(work); }));
}

}  // namespace thalia::state
