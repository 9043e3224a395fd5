// thalia-demo: what libthalia is for, in one run.
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "demo/commands.h"
#include "demo/options.h"
#include "demo/process.h"

namespace demo {
namespace {

constexpr const char* kHelp =
    R"(usage: thalia-demo tour [OPTION...]
       thalia-demo model MODEL.safetensors [OPTION...]

tour        A spiking network runs, saves its state, and runs on. A second process maps the file,
            loads one region, verifies, resumes, and comes to the same spikes. A flipped bit in a
            copy is found. model does as much with a trained model.

The steps of the tours, for a look at one of them:
  run            build a network, run it, save it, run on
  resume         go on from the saved network, and compare
  inspect FILE [REGION]
                 map a .thalia file, load one region, verify it all
  damage FILE    flip a bit in a copy of a .thalia file, and see it found

  --neurons N    neurons of the network, 200 to 40,000,000; 100,000 where not given
  --steps N      steps of 1 ms before the save; 200
  --more N       steps after it; 100
  --seed N       of the network and its noise; 1
  --threads N    one a core; the spikes do not depend on it
  --dir DIR      where the files go; thalia-demo
  --thalia FILE  the program thalia; the one built beside this, else the one in PATH
  --figures FILE where a step adds what it measured

Exit status: 0 done; 1 a check failed; 2 wrong usage; 3 a file could not be read, or is not valid.
)";

struct Command {
  std::string_view name;
  int (*call)(const Options&);
  bool takes_arguments;
};

constexpr std::array<Command, 6> kCommands{{
    {"tour", tour, false},
    {"model", model_tour, true},
    {"run", run, false},
    {"resume", resume, false},
    {"inspect", inspect, true},
    {"damage", damage, true},
}};

int dispatch(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageMistake("a command is missing; see thalia-demo --help");
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h" || word == "help") {
      std::fputs(kHelp, stdout);
      return kDone;
    }
  }
  for (const Command& command : kCommands) {
    if (command.name != words[0]) continue;
    const Options options = parse_options({words.begin() + 1, words.end()});
    if (!command.takes_arguments && !options.arguments.empty())
      throw UsageMistake(words[0] + " " + options.arguments[0] + ": takes no argument");
    return command.call(options);
  }
  throw UsageMistake(words[0] + ": no such command; see thalia-demo --help");
}

int guarded(const std::vector<std::string>& words) {
  try {
    return dispatch(words);
  } catch (const UsageMistake& mistake) {
    std::fprintf(stderr, "thalia-demo: %s\n", mistake.what());
    return kWrongUsage;
  } catch (const StepFailed& failure) {
    std::fprintf(stderr, "thalia-demo: %s\n", failure.what());
    return kCheckFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "thalia-demo: %s\n", error.what());
    return kUnreadable;
  }
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  const int status = demo::guarded({argv + 1, argv + argc});
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "thalia-demo: standard output cannot be written\n");
    return demo::kUnreadable;
  }
  return status;
}
