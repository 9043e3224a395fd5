// Numbers that both sides have and that differ are changed; those beyond the corner that two shapes
// have in common are added or removed. A part of a bar is never scaled down to nothing.
#include "cli/print/diff_stat.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/print/diff_text.h"
#include "cli/print/print.h"
#include "cli/print/tensor_table.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

constexpr std::size_t kShortestStatBar = 10;

struct StatLine {
  std::string name;
  Change change = Change::changed;
  std::uint64_t changed = 0;
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
  std::string note{};  ///< what differs if no number does

  std::uint64_t numbers() const noexcept { return changed + added + removed; }
};

// A sparse tensor may have more than 2^64.
std::uint64_t elements_of(const TensorFacts& facts) {
  return facts.layout.shape.element_count().value_or(std::uint64_t{1} << 62);
}

StatLine line_of(std::string name, const TensorDiff& tensor) {
  StatLine line{.name = std::move(name), .change = tensor.change};
  const std::uint64_t compared = tensor.values ? tensor.values->elements : 0;
  if (tensor.values) line.changed = tensor.values->differing;
  if (tensor.change == Change::added) {
    line.added = elements_of(*tensor.after);
  } else if (tensor.change == Change::removed) {
    line.removed = elements_of(*tensor.before);
  } else if (tensor.shape_changed()) {
    line.added = elements_of(*tensor.after) - compared;
    line.removed = elements_of(*tensor.before) - compared;
  }
  if (line.numbers() == 0 || (tensor.values && !tensor.values->skipped.empty()))
    line.note = tensor_change_text(tensor);
  return line;
}

std::vector<StatLine> lines_of(const Diff& diff) {
  std::vector<StatLine> lines;
  for (const TensorDiff& tensor : diff.tensors)
    lines.push_back(line_of(escape_name(tensor.name), tensor));
  for (const RegionDiff& region : diff.regions) {
    for (const TensorDiff& tensor : region.tensors)
      lines.push_back(line_of(shown_name(region.name, tensor.name), tensor));
  }
  for (const ConnectionDiff& connection : diff.connections) {
    for (const TensorDiff& matrix : connection.matrices) {
      lines.push_back(line_of(
          escape_name(fmt::format("{}->{}.{}", connection.source, connection.target, matrix.name)),
          matrix));
    }
  }
  return lines;
}

std::uint64_t other_differences(const Diff& diff) {
  std::uint64_t others = diff.header.size() + diff.metadata.size();
  for (const RegionDiff& region : diff.regions) {
    others += region.facts.size() + region.config.size() + region.metadata.size();
    others += region.change != Change::changed;
  }
  for (const ConnectionDiff& connection : diff.connections)
    others += connection.change != Change::changed;
  return others;
}

// At least one column for what is there.
std::size_t scaled(std::uint64_t numbers, std::uint64_t most, std::size_t room) {
  if (numbers == 0) return 0;
  if (most <= room) return numbers;
  const double share = static_cast<double>(numbers) / static_cast<double>(most);
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(std::floor(share * static_cast<double>(room))));
}

std::string bar(const StatLine& line, std::uint64_t most, std::size_t room) {
  return std::string(scaled(line.changed, most, room), '~') +
         std::string(scaled(line.added, most, room), '+') +
         std::string(scaled(line.removed, most, room), '-');
}

void print_sums(Output& out, const Diff& diff, const std::vector<StatLine>& lines) {
  std::uint64_t tensors[3] = {};
  StatLine sum;
  for (const StatLine& line : lines) {
    ++tensors[static_cast<std::size_t>(line.change)];
    sum.changed += line.changed;
    sum.added += line.added;
    sum.removed += line.removed;
  }
  const std::uint64_t changed = tensors[static_cast<std::size_t>(Change::changed)];
  out.print(" {} changed, {} added, {} removed; {} changed, {} added, {} removed\n",
            counted(changed, "tensor", "tensors"),
            grouped(tensors[static_cast<std::size_t>(Change::added)]),
            grouped(tensors[static_cast<std::size_t>(Change::removed)]),
            counted(sum.changed, "number", "numbers"), grouped(sum.added), grouped(sum.removed));
  const std::uint64_t others = other_differences(diff);
  if (others > 0)
    out.print(" and {} beside tensors, which diff without --stat shows\n",
              counted(others, "difference", "differences"));
}

}  // namespace

void print_diff_stat(Output& out, const Diff& diff, std::size_t columns) {
  const std::vector<StatLine> lines = lines_of(diff);
  std::size_t name_width = 0;
  std::size_t number_width = 0;
  std::uint64_t most = 0;
  for (const StatLine& line : lines) {
    name_width = std::max(name_width, display_width(line.name));
    number_width = std::max(number_width, grouped(line.numbers()).size());
    most = std::max(most, line.numbers());
  }
  const std::size_t taken = name_width + number_width + 5;  // " NAME | NUMBER BAR"
  const std::size_t room = std::max(kShortestStatBar, columns > taken ? columns - taken : 0);
  for (const StatLine& line : lines) {
    if (out.closed()) return;
    const std::string text = fmt::format(
        " {}{} | {:>{}} {}", line.name, std::string(name_width - display_width(line.name), ' '),
        grouped(line.numbers()), number_width, bar(line, most, room));
    out.print("{}{}{}\n", text, line.note.empty() || text.ends_with(' ') ? "" : "  ", line.note);
  }
  print_sums(out, diff, lines);
}

std::size_t output_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace thalia::cli
