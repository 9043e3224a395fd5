// All text goes through xml_text(), and every number through svg_number(), so that no name from a
// file can break the document.
#include "cli/report/svg.h"

#include <fmt/format.h>

#include <cassert>

#include "cli/report/theme.h"
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

Svg::Svg(double width, double height, std::string_view heading, SvgPlace place, double top) {
  const bool is_document = place == SvgPlace::document;
  if (is_document) out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (is_document) top = 0;
  const std::string w = svg_number(width);
  const std::string h = svg_number(height - top);
  Attributes attributes{{"width", w},
                        {"height", h},
                        {"viewBox", fmt::format("0 {} {} {}", svg_number(top), w, h)},
                        {"class", "picture"},
                        {"role", "img"},
                        {"aria-label", std::string(heading)}};
  if (is_document) attributes.insert(attributes.begin(), {"xmlns", "http://www.w3.org/2000/svg"});
  open("svg", attributes);
  if (!is_document) return;
  title(heading);
  out_ += fmt::format("  <style>\n{}  </style>\n", picture_style());
  rect(0, 0, width, height, {{"class", "surface"}});
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

Svg& Svg::line(double x1, double y1, double x2, double y2, Attributes attributes) {
  attributes.emplace_back("x1", svg_number(x1));
  attributes.emplace_back("x2", svg_number(x2));
  attributes.emplace_back("y1", svg_number(y1));
  attributes.emplace_back("y2", svg_number(y2));
  return element("line", attributes);
}

Svg& Svg::rect(double x, double y, double width, double height, Attributes attributes) {
  attributes.emplace_back("x", svg_number(x));
  attributes.emplace_back("y", svg_number(y));
  attributes.emplace_back("width", svg_number(width));
  attributes.emplace_back("height", svg_number(height));
  return element("rect", attributes);
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
