// The whole plan is made before the first read, on the caller's thread, from the file's tables.
// Everything that workers need of the tables is copied into the plan: a file that shrinks later
// then makes reads fail, and raises no signal. Units begin and end on whole blocks of the tree (or
// on what direct reads need), hold at most kStreamExtent unless one block is larger, and no block
// is in two units of one range. Each tensor counts the units with bytes of it, and is complete when
// they are. docs/contribute/design.md, "Streaming".
#include "container/stream/plan.h"

#include <algorithm>

#include "container/read/chunk_reader.h"
#include "container/read/tensor_reading.h"
#include "format/extent.h"
#include "format/header.h"
#include "io/memory/aligned_buffer.h"
#include "thalia/reader.h"

namespace thalia::container {
namespace {

// Gaps up to this size are read through: starting a new read costs a disk as much time.
constexpr std::uint64_t kGap = 256 << 10;
// Tensors that are asked for within so many bytes of each other are read in the file's order. This
// is also how much a tensor may wait for others that were asked for later.
constexpr std::uint64_t kWindow = 32 << 20;

class Planner {
 public:
  Planner(const detail::OpenFile& file, const StreamOptions& options)
      : file_(file), order_(options.order) {
    plan_.restores = options.quantized == StreamedQuantized::restored;
    const bool verifies = file.options().verification != Verification::off;
    plan_.verifies_blocks = verifies && file.blocks() != nullptr;
    plan_.verifies_tensors = verifies && file.blocks() == nullptr;
    const format::Header& header = file.header();
    const std::uint64_t block = plan_.verifies_blocks ? 1ull << header.integrity_block_log2 : 0;
    grain_ = std::max<std::uint64_t>(block, io::kDirectAlignment);
    step_ = std::max(block, kStreamExtent);
    // Blocks of the tree end where the integrity table begins; nothing is read after them.
    limit_ = plan_.verifies_blocks ? header.integrity_offset : header.file_length;
  }

  StreamPlan run(const std::vector<StreamRequest>& asked) {
    plan_.tensors.reserve(asked.size());
    for (const StreamRequest& request : asked) add(request);
    sort();
    plan_units();
    return std::move(plan_);
  }

 private:
  void add(const StreamRequest& source) {
    const TensorView& view = source.view;
    const std::string_view region = Reader::region_name(view);
    with_names(file_, region, view.name(), [&] {
      const bool is_quantized = view.encoding() == Encoding::quantized;
      const bool restores = is_quantized && plan_.restores;
      TensorLayout layout = view.layout();
      if (restores) layout.encoding = Encoding::dense;
      if (!is_plain(view.encoding()) && !is_quantized) fail_unresolved(view.encoding());
      // What the file has for a tensor of no bytes is not read.
      const bool empty = view.logical_bytes() == 0;
      // One copy of a region's name for a run of its tensors, and one string for all tensors'
      // names: a plan may have a million of them.
      if (plan_.regions.empty() || plan_.regions.back() != region)
        plan_.regions.emplace_back(region);
      plan_.tensors.push_back({.view = view,
                               .index = plan_.tensors.size(),
                               .offset = view.stored_offset(),
                               .stored_bytes = empty ? 0 : view.stored_bytes(),
                               .logical_bytes = view.logical_bytes(),
                               .result_bytes = restores ? view.dense_bytes() : view.logical_bytes(),
                               .layout = layout,
                               .crc32 = view.crc32(),
                               .content_hash = view.content_hash(),
                               .chunk_count = empty ? 0 : view.chunk_count(),
                               .first_chunk = plan_.chunks.size(),
                               .quantized = is_quantized ? plan_.quantized.size() : SIZE_MAX,
                               .region = static_cast<std::uint32_t>(plan_.regions.size() - 1),
                               .name_begin = plan_.names.size(),
                               .name_length = view.name().size()});
      plan_.names += view.name();
      if (is_quantized)
        plan_.quantized.push_back({*source.entry, file_.quantized_tensor(*source.entry)});
      if (empty || view.is_raw()) return;
      // The copies are used unchecked from here on.
      ChunkReader(file_, *source.entry).check_entries();
      for (std::uint32_t i = 0; i < view.chunk_count(); ++i)
        plan_.chunks.push_back(file_.chunk_entry(source.entry->first_chunk + i));
    });
  }

  // Empty tensors first, since they are in no unit. as_asked sorts within windows; the other orders
  // read the file from its begin to its end.
  void sort() {
    auto& tensors = plan_.tensors;
    const auto by_offset = [](const StreamTensor& a, const StreamTensor& b) {
      return a.offset < b.offset;
    };
    const auto first = std::stable_partition(
        tensors.begin(), tensors.end(), [](const StreamTensor& t) { return t.stored_bytes == 0; });
    if (order_ != StreamOrder::as_asked) return std::stable_sort(first, tensors.end(), by_offset);
    for (auto begin = first; begin != tensors.end();) {
      auto end = begin;
      for (std::uint64_t bytes = 0; end != tensors.end() && (end == begin || bytes < kWindow);
           ++end) {
        bytes += std::min(end->stored_bytes, kWindow);
      }
      std::stable_sort(begin, end, by_offset);
      begin = end;
    }
  }

  // Neighbours become one range. A range ends where the next tensor does not follow in the file,
  // because the order that was asked for goes back, or where a gap is too wide to read through.
  void plan_units() {
    const auto& tensors = plan_.tensors;
    std::size_t first = 0;
    while (first < tensors.size() && tensors[first].stored_bytes == 0) ++first;
    while (first < tensors.size()) {
      format::Extent range = rounded(tensors[first]);
      std::uint64_t end = range.offset + range.length;
      std::size_t last = first + 1;
      for (; last < tensors.size(); ++last) {
        const format::Extent next = rounded(tensors[last]);
        if (tensors[last].offset < tensors[last - 1].end() || next.offset > end + kGap) break;
        end = std::max(end, next.offset + next.length);
      }
      cut(range.offset, end, first, last);
      first = last;
    }
  }

  format::Extent rounded(const StreamTensor& tensor) const {
    const std::uint64_t begin = tensor.offset & ~(grain_ - 1);
    const std::uint64_t end = std::min(format::align_up(tensor.end(), grain_), limit_);
    return {begin, end - begin};
  }

  // Cuts a range at multiples of step_ in the file, not of the range's begin: so no unit splits a
  // block. Units in which no tensor has bytes, in a gap, are left out.
  void cut(std::uint64_t begin, std::uint64_t end, std::size_t first, std::size_t last) {
    std::size_t at = first;
    std::size_t behind = first;
    while (begin < end) {
      const std::uint64_t next = std::min(end, (begin / step_ + 1) * step_);
      while (at < last && plan_.tensors[at].end() <= begin) ++at;
      behind = std::max(behind, at);
      while (behind < last && plan_.tensors[behind].offset < next) ++behind;
      if (at < behind) add_unit(begin, next, at, behind);
      begin = next;
    }
  }

  void add_unit(std::uint64_t begin, std::uint64_t end, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) ++plan_.tensors[i].units;
    plan_.units.push_back({begin, end, first, last, plan_.leaves.size()});
    plan_.total_bytes += end - begin;
    if (!plan_.verifies_blocks) return;
    const format::Header& header = file_.header();
    const std::uint64_t first_block = begin >> header.integrity_block_log2;
    const std::uint64_t blocks = ((end - 1) >> header.integrity_block_log2) - first_block + 1;
    const ByteSpan leaves =
        file_.named([&] { return file_.blocks()->leaves(first_block, blocks); });
    plan_.leaves.insert(plan_.leaves.end(), leaves.begin(), leaves.end());
  }

  const detail::OpenFile& file_;
  const StreamOrder order_;
  std::uint64_t grain_;  ///< what units begin and end on
  std::uint64_t step_;   ///< what units are cut at
  std::uint64_t limit_;
  StreamPlan plan_;
};

}  // namespace

StreamPlan plan_stream(const detail::OpenFile& file, const std::vector<StreamRequest>& asked,
                       const StreamOptions& options) {
  return Planner(file, options).run(asked);
}

}  // namespace thalia::container
