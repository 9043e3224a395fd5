#include "cli/print/wrap.h"

#include <algorithm>

namespace thalia::cli {

std::string wrapped(std::string_view text, std::size_t width) {
  std::string out(text);
  for (std::size_t begin = 0; begin < out.size();) {
    const std::size_t end = std::min(out.find('\n', begin), out.size());
    std::size_t next = end;
    // Lines that begin with a space are examples, and stay as they are. A word longer than the
    // width is not cut.
    if (end - begin > width && out[begin] != ' ') {
      next = out.rfind(' ', begin + width);
      if (next == std::string::npos || next <= begin) next = std::min(out.find(' ', begin), end);
      if (next < out.size()) out[next] = '\n';
    }
    begin = next + 1;
  }
  return out;
}

}  // namespace thalia::cli
