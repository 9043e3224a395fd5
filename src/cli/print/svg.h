// Writing one SVG picture, element by element.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalia::cli {

/// What XML may not hold as it stands is escaped: & < > " by entities, control characters and bytes
/// that are not UTF-8 as cli/terminal/escape.h does.
std::string xml_text(std::string_view text);

/// A coordinate with two decimals at most: "12.5".
std::string svg_number(double value);

/// Self-contained: it names no file, font or address. Externally synchronised.
class Svg {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  Svg(double width, double height);

  /// Elements up to the matching close() lie in this one.
  Svg& open(std::string_view tag, const Attributes& attributes = {});
  Svg& close();
  Svg& element(std::string_view tag, const Attributes& attributes);
  Svg& text(double x, double y, std::string_view content, Attributes attributes = {});
  /// What a browser shows when the pointer rests on the element that is open.
  Svg& title(std::string_view content);

  /// The document; to be called once, when all that was opened is closed.
  std::string finish();

 private:
  void begin(std::string_view tag, const Attributes& attributes);

  std::string out_;
  std::vector<std::string> open_;
};

}  // namespace thalia::cli
