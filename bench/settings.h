// What a benchmark program is told on its command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace thalia::bench {

struct Settings {
  bool smoke = false;       ///< tiny sizes and one pair: does it still run?
  unsigned pairs = 7;       ///< alternated pairs a comparison
  std::uint64_t mib = 512;  ///< size of what is saved, loaded and verified
  /// Folder without a disk, for saves. Its pages come one by one; those of a disk's file system
  /// come in large folios, which is what loads from the page cache are about.
  std::filesystem::path memory = "/dev/shm";
  std::filesystem::path disk = "/var/tmp";  ///< folder for all else; $THALIA_BENCH_DIR replaces it
  std::string json;                         ///< write the results there too
  std::string only;                         ///< comparisons whose name holds this
  std::filesystem::path data;  ///< where codec_benchmark and step_benchmark take their weights from

  /// The size that the large benchmarks work on.
  std::uint64_t bytes() const { return smoke ? 256 * 1024 : mib << 20; }
  /// `count`, or what a smoke run can afford of it.
  std::uint64_t at_most(std::uint64_t count, std::uint64_t in_smoke) const {
    return smoke && count > in_smoke ? in_smoke : count;
  }
};

/// "64 KiB", "512 MiB".
std::string size_name(std::uint64_t bytes);

/// Takes its own arguments out of `arguments` (without the program's name), and leaves those of
/// Google Benchmark. @throws std::invalid_argument naming the argument.
Settings take_settings(std::vector<std::string>& arguments);

/// What --help prints.
extern const char* const kSettingsHelp;

}  // namespace thalia::bench
