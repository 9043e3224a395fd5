// Which options a command takes is a sum of Takes in the table of commands; they are declared here,
// so that they have the same words everywhere.
#include "cli/terminal/session.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "cli/terminal/option.h"
#include "cli/terminal/style.h"
#include "thalia/options.h"

namespace thalia::cli {

namespace {

constexpr std::array kColors{Choice<ColorMode>{"auto", ColorMode::automatic},
                             Choice<ColorMode>{"always", ColorMode::always},
                             Choice<ColorMode>{"never", ColorMode::never}};

}  // namespace

void CommonArguments::declare(CLI::App& app, unsigned takes) {
  app.option_defaults()->group("Common");
  if ((takes & kThreads) != 0)
    add_option(app, "--threads N", threads, "Threads that do the work; 0, the default: one a core");
  if ((takes & kWait) != 0)
    app.add_flag("--wait", wait, "Wait for the process that changes the file, or the run, now");
  if ((takes & kOutput) != 0) {
    replace = false;
    app.add_flag("--force", replace, "Replace a file that is there already, in one step");
  }
  if ((takes & kStamp) != 0) {
    reproducible = std::getenv("SOURCE_DATE_EPOCH") != nullptr;
    app.add_flag("--reproducible", reproducible,
                 "Equal input gives equal bytes: the file says that it was saved at "
                 "SOURCE_DATE_EPOCH, else at 0; implied where the environment has that");
  }
  if ((takes & kJson) != 0) {
    app.add_flag(
        "--json", json,
        "Print a JSON value, always complete: sizes in bytes, times in seconds, names as they are");
  }
  app.option_defaults()->group("Terminal");
  // A setting of the whole process, too.
  add_choice(app, "--color WHEN", color_mode(), kColors,
             "auto, always or never; auto: on a terminal, unless TERM is dumb or NO_COLOR is set");
  app.add_flag("--no-pager", no_pager,
               "Print what is longer than the screen without $THALIA_PAGER, $PAGER or less");
  app.option_defaults()->group("Reading");
  if ((takes & kFiles) != 0) {
    app.add_flag("--safe", safe,
                 "Copy what is read, and map nothing: for files that others change meanwhile, and "
                 "disks that fail");
    // A setting of the whole process: it holds for each file that the library opens from now on.
    const auto limit = [](std::uint64_t bytes) {
      set_default_allocation_limit(std::max<std::uint64_t>(bytes, 1));
    };
    app.add_option_function<std::uint64_t>(
           "--max-memory", limit,
           "What a file may take at most, as 512MiB or 4GiB, where it says that it holds more than "
           "fits its own size and this machine")
        ->transform(size_value())
        ->option_text("SIZE");
  }
  if ((takes & kAnyFormat) == kAnyFormat)
    app.add_flag("--old", old,
                 "Take files that the programs of their formats no longer do, as GPTRSCHK 1");
  if ((takes & kChains) != kChains) return;
  offer(add_option(app, "--search FOLDER", search,
                   "Look here for a base that is not where its delta says; may be repeated"),
        kFolder);
  app.add_flag("--absolute-bases", absolute_bases,
               "Open a base whose delta names it by an absolute path");
}

}  // namespace thalia::cli
