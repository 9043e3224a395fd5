// Lists are cut unless --all is given, and every cut says how much is left out. A reader sees first
// what matters most: the header, then regions with their counts, then single tensors.
#include "cli/print/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "thalia/error.h"
#include "thalia/state/metadata.h"

namespace thalia::cli {
namespace {

constexpr std::size_t kFieldsShown = 20;   // of one list
constexpr std::size_t kTensorsShown = 10;  // of one region
constexpr std::size_t kOwnersShown = 40;   // regions, and connections
constexpr std::size_t kDetailed = 10;      // regions with their tensors
constexpr std::size_t kValueLength = 60;   // of a JSON text

// What differs, with its mark, in its colour.
void write_marked(Output& out, Change change, const std::string& name) {
  if (change == Change::added) return out.write(Style::added, "+ " + name);
  if (change == Change::removed) return out.write(Style::removed, "- " + name);
  out.write(Style::changed, "~ " + name);
}

std::string counts(std::string_view what, std::size_t added, std::size_t removed,
                   std::size_t changed, std::uint64_t same) {
  return fmt::format("{}: {} added, {} removed, {} changed, {} the same", what, grouped(added),
                     grouped(removed), grouped(changed), grouped(same));
}

template <typename T>
std::size_t count(const std::vector<T>& diffs, Change change) {
  return static_cast<std::size_t>(std::count_if(
      diffs.begin(), diffs.end(), [&](const T& diff) { return diff.change == change; }));
}

// Cut to whole characters, as the text is UTF-8.
std::string shortened(std::string_view json) {
  if (json.size() <= kValueLength) return escape(json);
  std::size_t length = kValueLength;
  while (length > 0 && (static_cast<unsigned char>(json[length]) & 0xC0) == 0x80) --length;
  return escape(json.substr(0, length)) + fmt::format("... ({})", human_bytes(json.size()));
}

// A growth history is long and differs only at its end, so its events are counted.
std::string value_text(std::string_view field, const std::string& json) {
  if (field != "growth_history") return shortened(json);
  try {
    const auto events = parse_growth_history("{\"growth_history\":" + json + "}");
    return counted(events.size(), "event", "events");
  } catch (const FormatError&) {
    return shortened(json);
  }
}

std::string encoding_text(const TensorLayout& layout) {
  return std::string(encoding_name(layout.encoding)) + (layout.wide_indices ? " wide" : "");
}

std::string role_text(const TensorFacts& facts) {
  return facts.role ? std::string(role_name(*facts.role)) : "none";
}

class DiffPrinter {
 public:
  DiffPrinter(Output& out, bool all) : out_(out), all_(all) {}

  void print(const Diff& diff) {
    if (diff.same()) {
      if (diff.same_tensors > 0) {
        out_.print("the same: {}\n", counted(diff.same_tensors, "tensor", "tensors"));
        return;
      }
      out_.print("the same: {}, {}\n", counted(diff.same_regions, "region", "regions"),
                 counted(diff.same_connections, "connection", "connections"));
      return;
    }
    if (!diff.header.empty()) out_.write("header\n");
    print_fields(diff.header, "", "  ");
    if (!diff.metadata.empty()) out_.write("metadata\n");
    print_fields(diff.metadata, "", "  ");
    print_regions(diff);
    print_connections(diff);
    if (diff.tensors.empty()) return;
    out_.write(counts("tensors", count(diff.tensors, Change::added),
                      count(diff.tensors, Change::removed), count(diff.tensors, Change::changed),
                      diff.same_tensors) +
               "\n");
    print_tensors(diff.tensors, kOwnersShown, "  ");
  }

 private:
  std::size_t limit(std::size_t shown) const {
    return all_ ? std::numeric_limits<std::size_t>::max() : shown;
  }

  // Calls print_one for the first `shown` items, and says how many are left.
  template <typename T, typename PrintOne>
  void print_some(const std::vector<T>& items, std::size_t shown, std::string_view margin,
                  const PrintOne& print_one) {
    const std::size_t end = std::min(items.size(), limit(shown));
    for (std::size_t i = 0; i < end && !out_.closed(); ++i) print_one(items[i]);
    if (end < items.size())
      out_.print("{}and {} more, which --all shows\n", margin, grouped(items.size() - end));
  }

  void print_fields(const std::vector<FieldDiff>& fields, const std::string& prefix,
                    std::string_view margin) {
    print_some(fields, kFieldsShown, margin, [&](const FieldDiff& field) {
      const std::string before = value_text(field.field, field.before);
      const std::string after = value_text(field.field, field.after);
      out_.write(margin);
      write_marked(out_, field.change(), prefix + escape(field.field));
      out_.print("  {}{}{}\n", field.before.empty() ? "" : before,
                 field.change() == Change::changed ? " -> " : "", field.after.empty() ? "" : after);
    });
  }

  void print_regions(const Diff& diff) {
    if (diff.regions.empty()) return;
    out_.write(counts("regions", count(diff.regions, Change::added),
                      count(diff.regions, Change::removed), count(diff.regions, Change::changed),
                      diff.same_regions) +
               "\n");
    std::size_t changed = 0;
    print_some(diff.regions, kOwnersShown, "  ", [&](const RegionDiff& region) {
      out_.write("  ");
      write_marked(out_, region.change, escape_name(region.name));
      out_.print("  {}\n", summary(region));
      if (region.change != Change::changed) return;
      if (++changed > limit(kDetailed)) {
        out_.print("      {} in it, which --all shows\n",
                   counted(differences(region), "difference", "differences"));
        return;
      }
      print_fields(region.facts, "", "      ");
      print_fields(region.config, "config ", "      ");
      print_fields(region.metadata, "metadata ", "      ");
      print_tensors(region.tensors, kTensorsShown, "      ");
    });
  }

  static std::size_t differences(const RegionDiff& region) {
    return region.facts.size() + region.config.size() + region.metadata.size() +
           region.tensors.size();
  }

  static std::string summary(const RegionDiff& region) {
    if (region.change == Change::changed) {
      return counts("tensors", count(region.tensors, Change::added),
                    count(region.tensors, Change::removed), count(region.tensors, Change::changed),
                    region.tensor_count - region.tensors.size());
    }
    return fmt::format("{}, {}", counted(region.tensor_count, "tensor", "tensors"),
                       human_bytes(region.logical_bytes));
  }

  void print_connections(const Diff& diff) {
    if (diff.connections.empty()) return;
    out_.write(counts("connections", count(diff.connections, Change::added),
                      count(diff.connections, Change::removed),
                      count(diff.connections, Change::changed), diff.same_connections) +
               "\n");
    print_some(diff.connections, kOwnersShown, "  ", [&](const ConnectionDiff& connection) {
      out_.write("  ");
      write_marked(out_, connection.change,
                   escape_name(connection.source) + " -> " + escape_name(connection.target));
      out_.write("\n");
      if (connection.change == Change::changed)
        print_tensors(connection.matrices, kTensorsShown, "      ");
    });
  }

  void print_tensors(const std::vector<TensorDiff>& tensors, std::size_t shown,
                     std::string_view margin) {
    print_some(tensors, shown, margin, [&](const TensorDiff& tensor) {
      out_.write(margin);
      write_marked(out_, tensor.change, escape_name(tensor.name));
      out_.print("  {}{}\n", tensor_change_text(tensor),
                 tensor.values ? values_text(tensor, *tensor.values) : "");
    });
  }

  static std::string values_text(const TensorDiff& tensor, const ValueDiff& values) {
    if (!values.skipped.empty()) return fmt::format("; not compared: {}", values.skipped);
    const bool restored = tensor.before->restored || tensor.after->restored;
    std::string text =
        fmt::format("; {}{} of {} differ", restored ? "restored, " : "", grouped(values.differing),
                    counted(values.elements, "value", "values"));
    if (tensor.shape_changed()) text += " in " + values.compared.to_string();
    if (values.differing > 0) {
      text += fmt::format(", max {:.6g}, rms {:.6g}", values.max_difference, values.rms_difference);
      if (values.relative_difference)
        text += fmt::format(", relative {:.6g}", *values.relative_difference);
      if (values.cosine) text += fmt::format(", cosine {:.6g}", *values.cosine);
    }
    if (values.not_finite > 0) text += fmt::format(", {} not finite", grouped(values.not_finite));
    return text;
  }

  Output& out_;
  bool all_;
};

}  // namespace

std::string tensor_change_text(const TensorDiff& tensor) {
  if (tensor.change != Change::changed) {
    const TensorFacts& facts = tensor.before ? *tensor.before : *tensor.after;
    return fmt::format("{} {} {}{}", dtype_name(facts.layout.dtype), facts.layout.shape.to_string(),
                       facts.role ? role_text(facts) + " " : "", encoding_text(facts.layout));
  }
  const TensorFacts& before = *tensor.before;
  const TensorFacts& after = *tensor.after;
  std::vector<std::string> parts;
  if (tensor.dtype_changed())
    parts.push_back(
        fmt::format("{} -> {}", dtype_name(before.layout.dtype), dtype_name(after.layout.dtype)));
  if (tensor.shape_changed())
    parts.push_back(
        fmt::format("{} -> {}", before.layout.shape.to_string(), after.layout.shape.to_string()));
  if (tensor.role_changed())
    parts.push_back(fmt::format("{} -> {}", role_text(before), role_text(after)));
  if (tensor.encoding_changed())
    parts.push_back(
        fmt::format("{} -> {}", encoding_text(before.layout), encoding_text(after.layout)));
  if (tensor.content_changed()) parts.push_back("content");
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_diff(Output& out, const Diff& diff, bool all) {
  DiffPrinter(out, all).print(diff);
}

}  // namespace thalia::cli
