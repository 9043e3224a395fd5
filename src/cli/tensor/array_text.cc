// Two ways to print: short arrays in columns, whose width needs all texts at once, and with --all
// every element as it is read, without columns. A summary reads only the edges that it shows.
#include "cli/tensor/array_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/print/print.h"
#include "cli/tensor/element.h"
#include "cli/tensor/element_stream.h"
#include "inspect/block_cursor.h"
#include "state/tensor/slice.h"

namespace thalia::cli {
namespace {

// Elements shown at each end of a dimension, as NumPy does; entries at each end of a sparse tensor;
// and columns of a usual terminal.
constexpr std::uint64_t kEdge = 3;
constexpr std::size_t kEdgeEntries = 20;
constexpr std::size_t kLineWidth = 80;

// The parts of the slice that a summary shows, in row-major order. Each is a stretch of one
// innermost row.
void add_edges(const Slice& slice, std::size_t depth, std::vector<SliceRange>& at,
               std::vector<std::vector<SliceRange>>& parts) {
  if (depth == slice.kept.size()) {
    parts.push_back(at);
    return;
  }
  const unsigned d = slice.kept[depth];
  const auto [begin, end] = slice.ranges[d];
  const bool innermost = depth + 1 == slice.kept.size();
  std::vector<SliceRange> shown{{begin, end}};
  if (end - begin > 2 * kEdge) shown = {{begin, begin + kEdge}, {end - kEdge, end}};
  for (const SliceRange& range : shown) {
    const std::uint64_t step = innermost ? range.end - range.begin : 1;
    for (std::uint64_t i = range.begin; i < range.end; i += step) {
      at[d] = {i, i + step};
      add_edges(slice, depth + 1, at, parts);
    }
  }
}

ElementStream edge_stream(const inspect::OpenedTensor& source, const Slice& slice) {
  auto parts = std::make_shared<std::vector<std::vector<SliceRange>>>();
  std::vector<SliceRange> at = slice.ranges;
  add_edges(slice, 0, at, *parts);
  return {source,
          [parts, next = std::size_t{0}]() mutable -> std::optional<std::vector<SliceRange>> {
            if (next == parts->size()) return std::nullopt;
            return (*parts)[next++];
          }};
}

class ArrayPrinter {
 public:
  ArrayPrinter(Output& out, const Shape& shape, ElementStream stream, bool summary, bool align)
      : out_(out), shape_(shape), stream_(std::move(stream)), summary_(summary), align_(align) {}

  void print() {
    if (align_) {
      while (const auto element = stream_.next()) {
        texts_.push_back(text_of(*element));
        width_ = std::max(width_, texts_.back().size());
      }
    }
    print_dimension(0);
    out_.write("\n");
  }

 private:
  static std::string text_of(const Element& element) {
    std::string text;
    append_text(text, element);
    return text;
  }

  void print_element() {
    if (align_) {
      out_.write(std::string(width_ - texts_.front().size(), ' ') + texts_.front());
      texts_.pop_front();
    } else if (const auto element = stream_.next()) {
      out_.write(text_of(*element));
    }
  }

  // Aligned elements wrap at the width of a terminal. Elided rows jump from the third element to
  // the third from the end, in step with add_edges(), which has read no others.
  void print_row() {
    const std::uint64_t extent = shape_[shape_.rank() - 1];
    const bool elided = is_elided(extent);
    std::size_t column = shape_.rank();
    out_.write("[");
    for (std::uint64_t i = 0; i < extent && !out_.closed(); ++i) {
      const bool gap = elided && i == kEdge;
      const std::size_t width = gap ? 3 : width_;
      if (i > 0) {
        const bool wrap = align_ && column + 1 + width > kLineWidth;
        out_.write(wrap ? "\n" + std::string(shape_.rank(), ' ') : " ");
        column = wrap ? shape_.rank() : column + 1;
      }
      column += width;
      if (gap) {
        out_.write("...");
        i = extent - kEdge - 1;
      } else {
        print_element();
      }
    }
    out_.write("]");
  }

  bool is_elided(std::uint64_t extent) const { return summary_ && extent > 2 * kEdge; }

  void print_dimension(unsigned d) {
    if (d == shape_.rank()) return print_element();
    if (d + 1 == shape_.rank()) return print_row();
    const std::string separator =
        std::string(shape_.rank() - 1 - d, '\n') + std::string(d + 1, ' ');
    const bool elided = is_elided(shape_[d]);
    out_.write("[");
    for (std::uint64_t i = 0; i < shape_[d] && !out_.closed(); ++i) {
      if (i > 0) out_.write(separator);
      if (elided && i == kEdge) {
        out_.write("..." + separator);
        i = shape_[d] - kEdge;
      }
      print_dimension(d + 1);
    }
    out_.write("]");
  }

  Output& out_;
  Shape shape_;
  ElementStream stream_;
  bool summary_;
  bool align_;  ///< all texts are held, to know the widest
  std::deque<std::string> texts_;
  std::size_t width_ = 0;
};

}  // namespace

void print_array(Output& out, const inspect::OpenedTensor& source, const Slice& slice, bool all) {
  const std::uint64_t elements = state::range_elements(slice.ranges);
  if (elements == 0) {
    out.write("[]\n");
    return;
  }
  const bool summary = !all && elements > kSummaryThreshold;
  ElementStream stream = summary ? edge_stream(source, slice) : ElementStream(source, slice.ranges);
  ArrayPrinter(out, slice.shape, std::move(stream), summary, !all).print();
  if (!summary) return;
  std::uint64_t shown = 1;
  for (const std::uint64_t extent : slice.shape.extents()) shown *= std::min(extent, 2 * kEdge);
  out.print("# {} of {} shown; --all shows every one\n", grouped(shown),
            counted(elements, "element", "elements"));
}

void print_entries(Output& out, const inspect::OpenedTensor& source, const Slice& slice, bool all) {
  const auto for_each = [&](const state::SparseEntries::Visit& visit) {
    source.entries->visit(slice.ranges, visit);
  };
  const ByteSpan values = source.entries->values();
  const auto line = [&](std::span<const std::uint64_t> at, std::uint64_t entry) {
    std::string text = fmt::format("({})  ", fmt::join(at, ", "));
    append_text(text, decode_element(source.layout.dtype, values, entry));
    return text + "\n";
  };
  // Counted first, without decoding: only then is it known where the last entries begin.
  std::uint64_t total = 0;
  if (!all) {
    for_each([&](auto, auto) {
      ++total;
      return true;
    });
  }
  const bool summary = !all && total > kSummaryThreshold;
  std::uint64_t number = 0;
  for_each([&](std::span<const std::uint64_t> at, std::uint64_t entry) {
    const bool shown = !summary || number < kEdgeEntries || number >= total - kEdgeEntries;
    if (shown) out.write(line(at, entry));
    if (summary && number == kEdgeEntries) {
      out.print("... and {} more, which --all shows\n", grouped(total - 2 * kEdgeEntries));
    }
    ++number;
    return !out.closed();
  });
}

}  // namespace thalia::cli
