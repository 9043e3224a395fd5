// All text goes through xml_text(), and every number through svg_number(), so that no name from a
// file can break the document.
#include "cli/print/svg.h"

#include <fmt/format.h>

#include <cassert>

#include "cli/terminal/escape.h"

namespace thalia::cli {

std::string xml_text(std::string_view text) {
  std::string safe;
  const std::string printable = escape(text);
  for (std::size_t i = 0; i < printable.size(); ++i) {
    const char c = printable[i];
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '"') {
      safe += "&quot;";
    } else if (printable.compare(i, 3, "\xef\xbf\xbe") == 0 ||
               printable.compare(i, 3, "\xef\xbf\xbf") == 0) {
      safe += "\xef\xbf\xbd";  // U+FFFE and U+FFFF are UTF-8 and no XML
      i += 2;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  // Rounding a small negative number leaves its sign.
  return text == "-0" ? "0" : text;
}

Svg::Svg(double width, double height) {
  out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  const std::string w = svg_number(width);
  const std::string h = svg_number(height);
  open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
               {"width", w},
               {"height", h},
               {"viewBox", fmt::format("0 0 {} {}", w, h)},
               {"font-family", "sans-serif"},
               {"font-size", "12"}});
  element("rect", {{"width", w}, {"height", h}, {"fill", "#ffffff"}});
}

void Svg::begin(std::string_view tag, const Attributes& attributes) {
  out_.append(2 * open_.size(), ' ');
  out_ += fmt::format("<{}", tag);
  for (const auto& [name, value] : attributes)
    out_ += fmt::format(" {}=\"{}\"", name, xml_text(value));
}

Svg& Svg::open(std::string_view tag, const Attributes& attributes) {
  begin(tag, attributes);
  out_ += ">\n";
  open_.emplace_back(tag);
  return *this;
}

Svg& Svg::close() {
  assert(!open_.empty());
  const std::string tag = std::move(open_.back());
  open_.pop_back();
  out_.append(2 * open_.size(), ' ');
  out_ += fmt::format("</{}>\n", tag);
  return *this;
}

Svg& Svg::element(std::string_view tag, const Attributes& attributes) {
  begin(tag, attributes);
  out_ += "/>\n";
  return *this;
}

Svg& Svg::text(double x, double y, std::string_view content, Attributes attributes) {
  attributes.emplace_back("x", svg_number(x));
  attributes.emplace_back("y", svg_number(y));
  begin("text", attributes);
  out_ += fmt::format(">{}</text>\n", xml_text(content));
  return *this;
}

Svg& Svg::title(std::string_view content) {
  begin("title", {});
  out_ += fmt::format(">{}</title>\n", xml_text(content));
  return *this;
}

std::string Svg::finish() {
  close();
  assert(open_.empty());
  return std::move(out_);
}

}  // namespace thalia::cli
