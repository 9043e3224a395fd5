// The parts of the recorder, a library that is loaded before all others (LD_PRELOAD) and takes the
// place of the C library's and liburing's calls. It knows a file by its inode, and that it is
// watched by the name that the kernel gives for a descriptor: so it follows duplicates, renames and
// files without a name and keeps no table of its own.
//
// What the C library writes by itself, as from stdio's buffers, and what a program asks of the
// kernel past the C library, passes it by, unless it is to be trapped (recorder_trap.cc). So
// anybody who reads the log plays it back over the folder as it was, and compares (call_log.h).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "crash/recorder/record.h"

namespace thalia::crash {

/// A system call that is not trapped: by what it has in place of a sixth argument.
inline constexpr long kUntrapped = 0x7468616c69614331;
template <typename... Arguments>
long ask_kernel(long number, Arguments... arguments) {
  static_assert(sizeof...(Arguments) <= 5);
  long all[6] = {(long)(arguments)...};  // pointers and numbers alike
  return ::syscall(number, all[0], all[1], all[2], all[3], all[4], kUntrapped);
}
bool traps();

/// One call at a time: a call and its record are one step.
class Turn {
 public:
  Turn();
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
};

bool is_watched(int fd);
bool is_folder(int fd);
std::uint64_t inode_of(int fd);
/// The file that a path names, without following a last symbolic link; 0: none.
std::uint64_t inode_at(int folder_fd, const char* path);

/// A name in a folder, whatever the path to it was.
struct Place {
  bool watched = false;
  std::uint64_t folder = 0;
  char name[256] = {};
};
Place place_of(int folder_fd, const char* path);
/// The place of a file that is open: where it was made, through symbolic links too.
Place place_of(int fd);

void put(Record record, std::string_view name = {}, std::string_view other_name = {},
         std::span<const iovec> bytes = {});
/// What cannot be followed is said at once, and makes the log worthless.
void put_unknown(std::string_view what);

/// Which faults a call can meet.
enum class CallType {
  name,       ///< no EINTR: the kernel's file systems do not end such a call half done
  bytes,      ///< EINTR, and an end after half of them
  sync,       ///< EINTR
  ring,       ///< all of these, and ECANCELED
  ring_sync,  ///< EINTR, ECANCELED
};
/// What befalls a call that changes the watched folder.
struct Strike {
  int error = 0;     ///< it fails with this errno and does nothing
  bool cut = false;  ///< it ends after half of its bytes
};
/// Counts the call, if it can meet the fault that is asked for.
Strike next_strike(CallType type, std::string_view name);

}  // namespace thalia::crash
