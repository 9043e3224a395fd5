#include "cli/session.h"

#include <CLI/CLI.hpp>

namespace thalia::cli {

void ReadArguments::declare(CLI::App& app, Reads reads) {
  app.add_flag("--safe", safe,
               "Copy what is read, and map nothing: for files that others change meanwhile, and\n"
               "disks that fail")
      ->group("Reading");
  if (reads != Reads::chains) return;
  app.add_option("--search", search,
                 "Look here for a base that is not where its delta says; may be repeated")
      ->option_text("FOLDER")
      ->allow_extra_args(false)
      ->group("Reading");
}

}  // namespace thalia::cli
