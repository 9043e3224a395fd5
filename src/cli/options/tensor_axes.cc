#include "cli/options/tensor_axes.h"

#include <algorithm>

#include "cli/terminal/escape.h"
#include "cli/terminal/option.h"
#include "thalia/error.h"

namespace thalia::cli {

CLI::Option* add_axes(CLI::App& app, std::vector<std::string>& texts) {
  return add_option(
      app, "--axes TENSOR=AXIS,...", texts,
      "What a tensor's axes count, where the region does not say: neurons, neurons/K, "
      "neurons:POPULATION, source:NAME, or any other word; may be repeated");
}

// Reads "w=neurons,source:thalamus". The last '=' separates name and axes, since a name may
// have one itself and an axis may not.
TensorAxes tensor_axes(const std::vector<std::string>& texts) {
  TensorAxes axes;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      throw UsageError(ErrorCode::bad_argument, {},
                       {.field = "--axes", .value = escape(text), .bound = "TENSOR=AXIS,AXIS,..."});
    }
    std::vector<std::string>& names = axes[text.substr(0, equals)];
    names.clear();
    std::size_t at = equals + 1;
    while (at <= text.size()) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      names.push_back(text.substr(at, comma - at));
      at = comma + 1;
    }
  }
  return axes;
}

}  // namespace thalia::cli
