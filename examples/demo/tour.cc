// The tour: one process saves a running network, another resumes it, a third damages a copy.
#include <cstdio>

#include "demo/commands.h"
#include "demo/print.h"
#include "demo/process.h"
#include "demo/table.h"

namespace demo {
namespace {

/// Measured at 2,000, 100,000 and 1,000,000 neurons: what a checkpoint of this network takes on
/// disk, and the network in memory.
std::uint64_t estimated_bytes(std::uint32_t neurons) {
  return std::uint64_t{neurons} * 1950 + 10'000'000;
}

void show_figures(const Figures& figures) {
  auto f = figures.read();
  std::printf("\nFigures of this run, on this machine\n");
  print_table({
      {"save, synced to the disk", f["file_bytes"], f["save_seconds"]},
      {"  waiting for the disk, of that", 0, f["sync_seconds"]},
      {"open", 0, f["open_seconds"]},
      {"load one region, checked", f["region_bytes"], f["region_seconds"]},
      {"  of the file touched for it", f["touched_bytes"], 0},
      {"verify the whole file", f["file_bytes"], f["verify_seconds"]},
      {"load all into a network, checked", f["file_bytes"], f["load_seconds"]},
      {"most memory, process that saved", f["run_memory"], 0},
      {"most memory, process that resumed", f["resume_memory"], 0},
  });
  std::printf(
      "\n  Nothing dropped the file from the page cache between the steps, so reading is mostly "
      "from\n"
      "  memory. The process that resumed counts the pages of the file that it had mapped.\n");
}

}  // namespace

int tour(const Options& options) {
  const std::filesystem::path folder = shorter_path(options.folder);
  const TourFiles files(folder);
  const std::uint64_t estimate = estimated_bytes(options.neurons);
  std::printf(
      "A spiking network of %s neurons saves its whole state, and a second process goes on from\n"
      "the file. About %s on disk (twice, while a damaged copy is looked at) and %s of memory.\n",
      with_commas(options.neurons).c_str(), bytes_text(static_cast<double>(estimate)).c_str(),
      bytes_text(static_cast<double>(estimate)).c_str());
  prepare_folder(folder, 2 * estimate);
  std::filesystem::remove(files.figures);

  const std::string self = this_program();
  std::vector<std::string> rest{"--dir", folder, "--figures", files.figures};
  if (options.threads != 0) rest.insert(rest.end(), {"--threads", std::to_string(options.threads)});
  const auto command = [&](std::vector<std::string> words) {
    words.insert(words.begin(), self);
    words.insert(words.end(), rest.begin(), rest.end());
    run_command(words);
  };

  std::printf("\n1  One process builds a network, runs it, saves it, and lets it run on.\n");
  command({"run", "--neurons", std::to_string(options.neurons), "--steps",
           std::to_string(options.steps), "--more", std::to_string(options.more), "--seed",
           std::to_string(options.seed)});
  std::printf(
      "\n2  Another process, which has only the file, loads one region of it, verifies it, and\n"
      "   takes the network on from where it was saved.\n");
  command({"resume"});
  std::printf("\n3  A copy of the file with a single flipped bit.\n");
  command({"damage", files.network});

  show_figures(Figures(files.figures));
  const std::string thalia = thalia_program(options.thalia);
  print_next_steps({
      {{thalia, "info", files.network}, "header, totals, checksum"},
      {{thalia, "ls", files.network}, "the regions"},
      {{thalia, "ls", files.network, "striatum"}, "one region's tensors"},
      {{thalia, "cat", files.network, "striatum/membrane", "--slice", "0:8"},
       "eight membranes, mV"},
      {{thalia, "cat", files.network, "hippocampus/phase"}, "theta and gamma, in cycles"},
      {{thalia, "verify", files.network}, "everything that could be wrong"},
  });
  return kDone;
}

}  // namespace demo
