// What a program did to a folder: the recorder's log, over the folder as it was before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "crash/folder.h"
#include "crash/recorder/record.h"

namespace thalia::crash {

inline constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
inline constexpr std::size_t kNone = kNever;

/// A call, with nodes of the tree in place of inodes.
struct Call {
  Kind kind{};  ///< those of rings are write and sync, too
  bool data_only = false;
  std::size_t node = kNone;
  std::size_t folder = kNone;
  std::size_t other_folder = kNone;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string name;
  std::string other_name;
  std::string bytes;
  /// Places in the log. From `begin` on the disk may have the change; at `end` the program knew
  /// that the call had ended, kNever where it never knew.
  std::size_t begin = 0;
  std::size_t end = kNever;
  std::size_t behind = kNone;  ///< of a sync: the write of a ring that it waits for
};

struct CallLog {
  Tree before;              ///< with a node for each file that was made later, too
  std::vector<Call> calls;  ///< of attempts and promises, too; by `begin`
  std::size_t places = 0;   ///< records
  std::string struck;       ///< the call that a fault befell, if one did
};

/// @throws std::runtime_error where something happened that the recorder could not follow.
CallLog read_log(const std::filesystem::path& log, Tree before);

/// The folder when all is done. If it differs from the folder that is there, calls were missed.
Tree played_back(const CallLog& log);

/// What a call does to a tree when all of it reaches the disk.
void apply(Tree& tree, const Call& call);

}  // namespace thalia::crash
