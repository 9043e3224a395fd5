// What thalia-demo can do. Each returns an exit status as `thalia` does: 0 done, 1 a check failed;
// mistakes and unreadable files are thrown.
#pragma once

#include <filesystem>
#include <string>

#include "demo/figures.h"
#include "demo/options.h"

namespace demo {

inline constexpr int kDone = 0;
inline constexpr int kCheckFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kUnreadable = 3;

/// The files of a tour, in its folder.
struct TourFiles {
  explicit TourFiles(const std::filesystem::path& folder)
      : network(folder / "network.thalia"),
        spikes(folder / "spikes.txt"),
        figures(folder / "figures.txt") {}

  std::filesystem::path network;
  std::filesystem::path spikes;
  std::filesystem::path figures;
};

/// Both tours from beginning to end, each step a process of its own.
int tour(const Options& options);
int model_tour(const Options& options);

/// Builds a network, runs it, saves it, runs on, and writes down the spikes after the save.
int run(const Options& options);
/// Maps the saved network, checks it, goes on from it, and compares the spikes.
int resume(const Options& options);
/// Maps any .thalia file, loads one region of it, and verifies it all.
int inspect(const Options& options);
/// Flips one bit of a copy, and looks whether that is found.
int damage(const Options& options);

/// The body of inspect, which resume begins with. An empty region: one in the middle by size.
int inspect_file(const std::filesystem::path& file, std::string region, unsigned threads,
                 const Figures& figures);

}  // namespace demo
