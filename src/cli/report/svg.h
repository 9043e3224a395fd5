// Writing one SVG picture, element by element.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalia::cli {

/// What XML may not hold unchanged is escaped: & < > " by entities, control characters and bytes
/// that are not UTF-8 as cli/terminal/escape.h does. Also right in HTML.
std::string xml_text(std::string_view text);

/// A coordinate with two decimals at most: "12.5".
std::string svg_number(double value);

/// Where a picture is: in a file of its own, which has its colours with it, or in a page that
/// has picture_style().
enum class SvgPlace { document, page };

/// Self-contained: it names no file, font or address. Colours are classes of cli/report/theme.h.
/// Externally synchronised.
class Svg {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  /// `heading` is for those who hear the picture. In a page it has no place of its own: what lies
  /// above `top` is cut off.
  Svg(double width, double height, std::string_view heading, SvgPlace place = SvgPlace::document,
      double top = 0);

  /// Elements up to the matching close() lie in this one.
  Svg& open(std::string_view tag, const Attributes& attributes = {});
  Svg& close();
  Svg& element(std::string_view tag, const Attributes& attributes);
  Svg& line(double x1, double y1, double x2, double y2, Attributes attributes);
  Svg& rect(double x, double y, double width, double height, Attributes attributes);
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
