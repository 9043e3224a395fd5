// Appends to files of samples, and what a file must be afterwards.
#pragma once

#include <filesystem>
#include <string>

#include "support/files.h"
#include "support/sample.h"
#include "thalia/append.h"

namespace thalia::test {

/// A file in a folder of its own.
struct SavedFile {
  explicit SavedFile(const Sample& sample, const SaveOptions& options = steady_options())
      : path(folder / "f.thalia") {
    save(path, sample, options);
  }
  TemporaryFolder folder;
  std::filesystem::path path;
};

/// Nothing waits for the disk, one thread, a fixed time.
AppendOptions steady_append();

/// The tensors of a region that was added, replaced or copied.
void declare_tensors(Appender& appender, RegionId id, const SampleRegion& region);
void declare_connection(Appender& appender, const SampleConnection& connection);

/// BOOST_TESTs that verify has nothing to say, that every reader finds `sample`, and the
/// generation.
void check_state(const std::filesystem::path& path, const Sample& sample, std::uint64_t generation);

/// A file of small_sample() and the change that tests make of it: "a" replaced by a larger region,
/// "b" removed and with it the connection, "c" added, new metadata.
void append_change(const std::filesystem::path& path, const AppendOptions& options);
Sample changed_sample();

}  // namespace thalia::test
