// Tables and wide pictures of a page: narrow windows scroll them sideways, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "cli/report/html.h"

namespace thalia::cli {

struct Heading {
  std::string kind;  ///< the class: "number", "bar", or none
  std::string text;
};

/// Opens a table up to its rows. `kind` is its class: "sortable", or none.
void begin_page_table(Html& html, const std::string& caption, const std::string& kind,
                      const std::vector<Heading>& headings);
void end_page_table(Html& html);

/// A picture of its own, under a name for those who hear it.
void write_wide_picture(Html& html, const std::string& name, const std::string& svg);

/// A cell with a bar of a share of its width; nothing of 0.
void write_bar(Html& html, double share);

}  // namespace thalia::cli
