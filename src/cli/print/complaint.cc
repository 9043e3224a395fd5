#include "cli/print/complaint.h"

#include <unistd.h>

#include <string>

#include "cli/terminal/escape.h"
#include "cli/terminal/style.h"

namespace thalia::cli {

int complain(std::string_view what, int status) {
  const bool colored = has_color(STDERR_FILENO);
  return complain_line(
      (colored ? in_color(Style::error, "thalia:") : "thalia:") + " " + escape(what), status);
}

int complain_line(std::string line, int status) {
  line += "\n";
  // If this fails there is nobody left to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return status;
}

void complain_of_lack(const std::filesystem::path& path, const std::optional<std::string>& lacks) {
  if (lacks) complain(path.string() + ": it lacks " + *lacks, 0);
}

}  // namespace thalia::cli
