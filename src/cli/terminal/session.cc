#include "cli/terminal/session.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "thalia/memory_limit.h"

namespace thalia::cli {

void ReadArguments::declare(CLI::App& app, Reads reads) {
  app.add_flag("--safe", safe,
               "Copy what is read, and map nothing: for files that others change meanwhile, and\n"
               "disks that fail")
      ->group("Reading");
  // In force for each file that the library opens from now on.
  app.add_option_function<std::uint64_t>(
         "--max-memory",
         [](std::uint64_t bytes) {
           set_default_allocation_limit(std::max<std::uint64_t>(bytes, 1));
         },
         "What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than\n"
         "fits its own size and this machine")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("SIZE")
      ->group("Reading");
  if (reads != Reads::chains) return;
  app.add_option("--search", search,
                 "Look here for a base that is not where its delta says; may be repeated")
      ->option_text("FOLDER")
      ->allow_extra_args(false)
      ->group("Reading");
  app.add_flag("--absolute-bases", absolute_bases,
               "Open a base whose delta names it by an absolute path")
      ->group("Reading");
}

}  // namespace thalia::cli
