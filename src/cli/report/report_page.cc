// The sections in the order in which people ask: what it is, whether it is whole, where its bytes
// are, what its weights are like, what changed; then every tensor, and the metadata. A policy in
// the page forbids it to ask for anything.
#include "cli/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/print/facts_text.h"
#include "cli/print/json_text.h"
#include "cli/print/print.h"
#include "cli/print/verify_text.h"
#include "cli/report/axis.h"
#include "cli/report/chain_svg.h"
#include "cli/report/change_section.h"
#include "cli/report/histogram_svg.h"
#include "cli/report/html.h"
#include "cli/report/layer_map.h"
#include "cli/report/page_style.h"
#include "cli/report/page_table.h"
#include "thalia/verify.h"
#include "thalia/version.h"

namespace thalia::cli {
namespace {

constexpr std::size_t kLayersShown = 100;

class Page {
 public:
  Page(Output& out, const PageReport& report, const std::string& growth)
      : html_(out), report_(report), growth_(growth) {
    name_ = std::filesystem::path(report.facts.path).filename().string();
  }

  void write() {
    html_.raw("<!DOCTYPE html>\n").open("html", {{"lang", "en"}});
    write_head();
    html_.open("body").open("main").open("header");
    html_.element("h1", name_);
    html_.element("p", what_it_is(report_.facts), {{"class", "lead"}});
    write_contents();
    html_.close();
    write_summary();
    write_verification();
    write_layers();
    write_histograms();
    if (report_.comparison) write_changes(html_, *report_.comparison);
    write_picture("growth", "Growth", growth_);
    if (!report_.links.empty())
      write_picture("chain", "Chain", chain_svg(report_.links, "Chain", SvgPlace::page));
    write_tensors();
    write_metadata();
    html_.element("footer", fmt::format("Written by thalia {}.", library_version()));
    html_.close();  // main
    html_.open("script").raw(page_script()).close();
    html_.close().close();
  }

 private:
  void write_head() {
    html_.open("head").lone("meta", {{"charset", "utf-8"}});
    html_.lone("meta", {{"http-equiv", "Content-Security-Policy"},
                        {"content",
                         "default-src 'none'; style-src 'unsafe-inline'; script-src "
                         "'unsafe-inline'; img-src data:"}});
    html_.lone("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
    html_.lone("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
    // Else a browser asks the server for one.
    html_.lone("link", {{"rel", "icon"}, {"href", "data:,"}});
    html_.element("title", "Report: " + name_);
    html_.open("style").raw(page_style()).close().close();
  }

  void write_contents() {
    html_.open("nav", {{"aria-label", "Contents"}}).open("ul");
    const auto entry = [&](bool is_there, const char* id, const char* title) {
      if (!is_there) return;
      html_.open("li").element("a", title, {{"href", fmt::format("#{}", id)}}).close();
    };
    entry(true, "summary", "Summary");
    entry(true, "verification", "Verification");
    entry(true, "layers", "Layers");
    entry(!report_.histograms.empty(), "weights", "Weights");
    entry(report_.comparison.has_value(), "changes", "Changes");
    entry(!growth_.empty(), "growth", "Growth");
    entry(!report_.links.empty(), "chain", "Chain");
    entry(true, "tensors", "Tensors");
    entry(!report_.facts.metadata.empty(), "metadata", "Metadata");
    html_.close().close();
  }

  void begin_section(const std::string& id, std::string_view title) {
    html_.open("section", {{"id", id}, {"aria-labelledby", id + "-heading"}});
    html_.element("h2", title, {{"id", id + "-heading"}});
  }

  void write_summary() {
    begin_section("summary", "Summary");
    html_.open("dl");
    for (const FactLine& line : fact_lines(report_.facts)) {
      if (!line.label.empty()) html_.element("dt", line.label);
      html_.element("dd", line.text);
    }
    html_.close().close();
  }

  void write_verification() {
    begin_section("verification", "Verification");
    const VerifyReport& of = report_.verified;
    // Green is for what a checksum vouches for.
    const bool is_plain = of.ok() && of.structure_only();
    html_.open("p").element("span",
                            !of.ok()   ? "Damaged."
                            : is_plain ? "Well formed."
                                       : "Whole.",
                            {{"class", !of.ok()   ? "bad"
                                       : is_plain ? "quiet"
                                                  : "good"}});
    html_.text(fmt::format(" {}: {}.", counted(of.tensors, "tensor", "tensors"),
                           what_was_checked(of, false, false)));
    html_.close();
    if (!of.findings.empty()) write_findings(of);
    html_.close();
  }

  void write_findings(const VerifyReport& of) {
    begin_page_table(html_, "What was found", "",
                     {{"", "severity"}, {"", "place"}, {"", "finding"}});
    for (const Finding& finding : of.findings) {
      html_.open("tr");
      html_.element(
          "th", severity_name(finding.severity),
          {{"scope", "row"}, {"class", finding.severity == Severity::error ? "bad" : "quiet"}});
      html_.element("td", finding_place(finding), {{"class", "wrap"}});
      html_.element("td", finding.message, {{"class", "wrap"}}).close();
    }
    end_page_table(html_);
    if (of.suppressed > 0) {
      html_.element("p", counted(of.suppressed, "more finding", "more findings"),
                    {{"class", "note"}});
    }
  }

  void write_layers() {
    LayerMap map;
    for (const ReportedTensor& tensor : report_.tensors)
      map.add(tensor.listed.region, tensor.listed.name, tensor.listed.size());
    std::vector<Layer> layers = map.layers();
    std::uint64_t most = 1;
    std::uint64_t all = 0;
    for (const Layer& layer : layers) {
      most = std::max(most, layer.bytes);
      all += layer.bytes;
    }
    begin_section("layers", "Layers");
    if (layers.size() > kLayersShown) {
      html_.element(
          "p",
          fmt::format("{} of {} are shown, the first; every tensor is in the table below.",
                      kLayersShown, counted(layers.size(), "layer", "layers")),
          {{"class", "note"}});
      layers.resize(kLayersShown);
    }
    begin_page_table(html_, "What each region, or beginning of names, takes", "layers",
                     {{"", "layer"},
                      {"number", "tensors"},
                      {"number", "size"},
                      {"number", "share"},
                      {"bar", ""}});
    for (const Layer& layer : layers) {
      const double share =
          all == 0 ? 0 : static_cast<double>(layer.bytes) / static_cast<double>(all);
      html_.open("tr").element("th", layer.name, {{"scope", "row"}, {"class", "name"}});
      html_.element("td", grouped(layer.tensors), {{"class", "number"}});
      html_.element("td", human_bytes(layer.bytes), {{"class", "number"}});
      html_.element("td", percent_text(share), {{"class", "number"}});
      write_bar(html_, static_cast<double>(layer.bytes) / static_cast<double>(most));
      html_.close();
    }
    end_page_table(html_);
    html_.close();
  }

  void write_histograms() {
    if (report_.histograms.empty()) return;
    begin_section("weights", "Weights");
    html_.element("p", fmt::format("{} {}", kHistogramScale, kHistogramBeyond));
    if (report_.histograms.size() < report_.tensors.size()) {
      html_.element(
          "p",
          fmt::format("{} of {} are shown, the largest. 'thalia plot weights FILE PATTERN' draws "
                      "any of them.",
                      report_.histograms.size(),
                      counted(report_.tensors.size(), "tensor", "tensors")),
          {{"class", "note"}});
    }
    html_.open("ul", {{"class", "panels"}});
    for (const Histogram& histogram : report_.histograms)
      html_.open("li").raw(histogram_panel(histogram)).close();
    html_.close().close();
  }

  void write_picture(const std::string& id, const char* title, const std::string& picture) {
    if (picture.empty()) return;
    begin_section(id, title);
    write_wide_picture(html_, title, picture);
    html_.close();
  }

  void write_tensors() {
    begin_section("tensors", "Tensors");
    begin_page_table(
        html_,
        fmt::format("{}. Least, greatest, mean and deviation are of finite elements; a "
                    "heading sorts.",
                    counted(report_.tensors.size(), "tensor", "tensors")),
        "sortable",
        {{"", "tensor"},
         {"", "dtype"},
         {"", "shape"},
         {"number", "size"},
         {"number", "min"},
         {"number", "max"},
         {"number", "mean"},
         {"number", "std"},
         {"number", "zeros"},
         {"number", "NaN"},
         {"number", "inf"}});
    for (const ReportedTensor& tensor : report_.tensors) write_tensor(tensor);
    end_page_table(html_);
    html_.close();
  }

  void write_tensor(const ReportedTensor& tensor) {
    const AnyTensor& listed = tensor.listed;
    const TensorLayout& layout = tensor.measured ? tensor.measured->layout : listed.layout;
    html_.open("tr").element("th", shown_name(listed.region, listed.name),
                             {{"scope", "row"}, {"class", "name"}});
    html_.element("td", dtype_name(layout.dtype)).element("td", layout.shape.to_string());
    write_number(human_bytes(listed.size()), static_cast<double>(listed.size()));
    if (!tensor.measured) {
      html_.element("td", tensor.damage, {{"class", "wrap bad"}, {"colspan", "7"}}).close();
      return;
    }
    const TensorStatistics& of = tensor.measured->statistics;
    for (const double number : {of.min, of.max, of.mean, of.deviation}) {
      of.finite() == 0 ? write_number("-", NAN) : write_number(short_number(number), number);
    }
    for (const std::uint64_t count : {of.zeros, of.nan, of.infinite})
      write_number(count_or_dash(count), static_cast<double>(count), count > 0);
    html_.close();
  }

  // One that is not finite is after all others, however the table is sorted.
  void write_number(const std::string& text, double number, bool is_loud = true) {
    Html::Attributes attributes{{"class", is_loud ? "number" : "number quiet"}};
    if (std::isfinite(number)) attributes.emplace_back("data-value", fmt::format("{}", number));
    html_.element("td", text, attributes);
  }

  void write_metadata() {
    const std::string& metadata = report_.facts.metadata;
    if (metadata.empty()) return;
    begin_section("metadata", "Metadata");
    html_.open("details").element("summary",
                                  fmt::format("{} of JSON", human_bytes(metadata.size())));
    html_.open("pre");
    const std::string pretty = pretty_json(metadata);
    // Line by line: as a part of a text, the end of a line would be escaped.
    for (std::size_t begin = 0; begin < pretty.size();) {
      const std::size_t end = std::min(pretty.find('\n', begin), pretty.size());
      html_.text(std::string_view(pretty).substr(begin, end - begin)).raw("\n");
      begin = end + 1;
    }
    html_.close().close().close();
  }

  Html html_;
  const PageReport& report_;
  const std::string& growth_;
  std::string name_;
};

}  // namespace

void write_page(Output& out, const PageReport& report, const std::string& growth) {
  Page(out, report, growth).write();
}

}  // namespace thalia::cli
