// Writing one HTML page, element by element, as it is made.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal/output.h"

namespace thalia::cli {

/// All text goes through xml_text() of cli/report/svg.h, so that no name from a file can become an
/// element. Externally synchronised.
class Html {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  explicit Html(Output& out) : out_(out) {}

  /// Elements up to the matching close() lie in this one.
  Html& open(std::string_view tag, const Attributes& attributes = {});
  Html& close();
  Html& element(std::string_view tag, std::string_view content, const Attributes& attributes = {});
  /// One that has no end: meta, link.
  Html& lone(std::string_view tag, const Attributes& attributes);
  Html& text(std::string_view content);
  /// Markup as it is: pictures, styles.
  Html& raw(std::string_view markup);

 private:
  void begin(std::string_view tag, const Attributes& attributes);

  Output& out_;
  std::vector<std::string> open_;
};

}  // namespace thalia::cli
