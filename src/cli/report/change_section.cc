// Tensors that are the same are counted and not listed.
#include "cli/report/change_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/print/print.h"
#include "cli/print/tensor_table.h"
#include "cli/report/change_svg.h"
#include "cli/report/page_table.h"

namespace thalia::cli {
namespace {

bool is_same(const TensorChange& change) {
  return change.relative && *change.relative == 0;
}

// As `thalia plot diff` does.
void draw_changes(Html& html, std::vector<TensorChange> changes, std::size_t differ) {
  constexpr std::size_t kBars = 40;  // more are no picture to look at, in a page
  std::erase_if(changes, is_same);
  changes = most_changed(std::move(changes), kBars);
  if (changes.size() < differ) {
    html.element("p",
                 fmt::format("{} of {} are drawn, the most changed. 'thalia plot diff A B PATTERN' "
                             "draws any of them.",
                             changes.size(), counted(differ, "tensor", "tensors")),
                 {{"class", "note"}});
  }
  write_wide_picture(html, "Relative change of each tensor",
                     changes_svg(changes, "Relative change of each tensor", {}, SvgPlace::page));
}

void write_tensor_changes(Html& html, const Comparison& comparison) {
  const auto same = static_cast<std::uint64_t>(
      std::count_if(comparison.changes.begin(), comparison.changes.end(), is_same));
  if (same == comparison.changes.size()) {
    html.element("p", fmt::format("All {} are the same.", counted(same, "tensor", "tensors")));
    return;
  }
  std::string caption = "Change of each tensor relative to its norm before, norm(B − A) / norm(A).";
  if (same > 0) {
    caption += fmt::format(" {} the same and not listed.",
                           same == 1 ? "1 tensor is" : counted(same, "tensor", "tensors") + " are");
  }
  draw_changes(html, comparison.changes, comparison.changes.size() - same);
  begin_page_table(html, caption, "sortable", {{"", "tensor"}, {"number", "change"}});
  for (const TensorChange& change : comparison.changes) {
    if (is_same(change)) continue;
    html.open("tr").element("th", shown_name(change.region, change.name),
                            {{"scope", "row"}, {"class", "name"}});
    Html::Attributes attributes{{"class", "number"}};
    if (change.relative && std::isfinite(*change.relative))
      attributes.emplace_back("data-value", fmt::format("{}", *change.relative));
    html.element("td", change_text(change), attributes).close();
  }
  end_page_table(html);
}

struct NamedField {
  std::string where;
  const FieldDiff* field;
};

std::vector<NamedField> fields_of(const Diff& diff) {
  std::vector<NamedField> fields;
  const auto add = [&](const std::string& where, const std::vector<FieldDiff>& list) {
    for (const FieldDiff& field : list) fields.push_back({where, &field});
  };
  add("header", diff.header);
  add("metadata", diff.metadata);
  for (const RegionDiff& region : diff.regions) {
    add("region " + region.name, region.facts);
    add("config of " + region.name, region.config);
    add("metadata of " + region.name, region.metadata);
  }
  return fields;
}

void write_field_changes(Html& html, const Diff& diff) {
  const std::vector<NamedField> fields = fields_of(diff);
  html.element("h3", "Header and metadata");
  if (fields.empty()) {
    html.element("p", "Nothing differs.");
    return;
  }
  begin_page_table(html, "What header, metadata and regions say", "",
                   {{"", "where"}, {"", "member"}, {"", "change"}, {"", "before"}, {"", "now"}});
  for (const NamedField& field : fields) {
    html.open("tr").element("td", field.where, {{"class", "wrap"}});
    html.element("th", field.field->field, {{"scope", "row"}, {"class", "wrap"}});
    html.element("td", change_name(field.field->change()));
    html.element("td", cut_in_middle(field.field->before), {{"class", "wrap"}});
    html.element("td", cut_in_middle(field.field->after), {{"class", "wrap"}}).close();
  }
  end_page_table(html);
}

}  // namespace

void write_changes(Html& html, const Comparison& comparison) {
  html.open("section", {{"id", "changes"}, {"aria-labelledby", "changes-heading"}});
  html.element("h2", "Changes", {{"id", "changes-heading"}});
  html.element("p", "Since " + comparison.base + ".");
  write_tensor_changes(html, comparison);
  if (comparison.diff) {
    write_field_changes(html, *comparison.diff);
  } else {
    html.element("p", "Headers and metadata are compared between .thalia files only.",
                 {{"class", "note"}});
  }
  html.close();
}

}  // namespace thalia::cli
