#include "cli/report/page_table.h"

#include <fmt/format.h>

namespace thalia::cli {

void begin_page_table(Html& html, const std::string& caption, const std::string& kind,
                      const std::vector<Heading>& headings) {
  // It can be scrolled with keys, too.
  html.open("div",
            {{"class", "scroll"}, {"tabindex", "0"}, {"role", "group"}, {"aria-label", caption}});
  html.open("table", {{"class", kind}}).element("caption", caption).open("thead").open("tr");
  for (const Heading& heading : headings) {
    if (heading.text.empty()) {
      html.element("td", "", {{"class", heading.kind}});
    } else {
      html.element("th", heading.text, {{"scope", "col"}, {"class", heading.kind}});
    }
  }
  html.close().close().open("tbody");
}

void end_page_table(Html& html) {
  html.close().close().close();
}

void write_bar(Html& html, double share, bool is_second) {
  html.open("td", {{"class", "bar"}, {"aria-hidden", "true"}});
  if (share > 0) {
    html.open("i", {{"class", is_second ? "second" : ""},
                    {"style", fmt::format("width:{:.2f}%", share * 100)}});
    html.close();
  }
  html.close();
}

}  // namespace thalia::cli
