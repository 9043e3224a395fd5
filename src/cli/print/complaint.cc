#include "cli/print/complaint.h"

#include <unistd.h>

#include <string>

#include "cli/terminal/escape.h"
#include "cli/terminal/style.h"
#include "inspect/describe_file.h"
#include "thalia/formats/model_index.h"

namespace thalia::cli {

int complain(std::string_view what, int status) {
  const bool colored = has_color(STDERR_FILENO);
  return complain_line(
      (colored ? in_color(Style::error, "thalia:") : "thalia:") + " " + escape(what), status);
}

int complain_line(std::string line, int status) {
  line += "\n";
  // Where this fails there is nobody left to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return status;
}

void complain_of_lack(const std::filesystem::path& file, FileFormat format,
                      const ChainOptions& options) {
  if (const auto lack = inspect::lack_of_file(find_model(file), format, options))
    complain(file.string() + ": " + *lack, 0);
}

}  // namespace thalia::cli
