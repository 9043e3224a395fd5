#include "cli/report/html.h"

#include <cassert>

#include "cli/report/svg.h"

namespace thalia::cli {

void Html::begin(std::string_view tag, const Attributes& attributes) {
  out_.print("<{}", tag);
  for (const auto& [name, value] : attributes) out_.print(" {}=\"{}\"", name, xml_text(value));
  out_.write(">");
}

Html& Html::open(std::string_view tag, const Attributes& attributes) {
  begin(tag, attributes);
  open_.emplace_back(tag);
  return *this;
}

Html& Html::close() {
  assert(!open_.empty());
  out_.print("</{}>\n", open_.back());
  open_.pop_back();
  return *this;
}

Html& Html::element(std::string_view tag, std::string_view content, const Attributes& attributes) {
  return open(tag, attributes).text(content).close();
}

Html& Html::lone(std::string_view tag, const Attributes& attributes) {
  begin(tag, attributes);
  out_.write("\n");
  return *this;
}

Html& Html::text(std::string_view content) {
  out_.write(xml_text(content));
  return *this;
}

Html& Html::raw(std::string_view markup) {
  out_.write(markup);
  return *this;
}

}  // namespace thalia::cli
