// One operation: run once to learn what it makes, once recorded, and then every state that a crash
// could leave is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "crash/call_log.h"
#include "crash/disk.h"
#include "crash/learned.h"
#include "crash/operation.h"

namespace thalia::crash {

struct ModeResult {
  std::size_t states = 0;
  /// How often what was found: names as they were told, kLost, and kAbsent.
  std::map<std::string, std::size_t> found;
  std::vector<std::string> violations;  ///< the first ones, each a sentence
  std::size_t violation_count = 0;
};

class Trial {
 public:
  /// Runs the operation in the current process and in a recorded one: `program --perform NAME
  /// FOLDER`. @throws std::runtime_error if that fails, and if the log, played back, does not
  /// give the folder that is there.
  Trial(const Operation& operation, const std::filesystem::path& recorder);

  /// Tries `wanted` states, each in a folder of its own below $TMPDIR.
  ModeResult run(Mode mode, std::size_t wanted, std::uint64_t seed) const;
  std::size_t calls() const { return log_.calls.size(); }
  std::string description() const;  ///< of the calls, a line each

 private:
  std::string check(const Tree& tree, std::size_t place, std::string& found) const;

  const Operation& operation_;
  Learned learned_;
  CallLog log_;
};

}  // namespace thalia::crash
