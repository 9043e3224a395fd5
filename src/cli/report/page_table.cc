#include "cli/report/page_table.h"

#include <fmt/format.h>

namespace thalia::cli {

namespace {

// It can be scrolled with keys, too.
void open_scrolled(Html& html, const std::string& kind, const std::string& name) {
  html.open("div", {{"class", kind}, {"tabindex", "0"}, {"role", "group"}, {"aria-label", name}});
}

}  // namespace

void begin_page_table(Html& html, const std::string& caption, const std::string& kind,
                      const std::vector<Heading>& headings) {
  open_scrolled(html, "scroll", caption);
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

void write_wide_picture(Html& html, const std::string& name, const std::string& svg) {
  open_scrolled(html, "scroll wide", name);
  html.raw(svg).close();
}

void write_bar(Html& html, double share) {
  html.open("td", {{"class", "bar"}, {"aria-hidden", "true"}});
  if (share > 0) {
    html.open("i", {{"style", fmt::format("width:{:.2f}%", share * 100)}}).close();
  }
  html.close();
}

}  // namespace thalia::cli
