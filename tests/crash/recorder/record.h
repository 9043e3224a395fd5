// What the recorder (recorder_*.cc) writes into its log and the model reads: a record for each call
// that changed the watched folder or made a change of it last, in the one order in which they
// happened. A record is followed by its name, its other name and its bytes.
#pragma once

#include <cstdint>

namespace thalia::crash {

enum class Kind : std::uint32_t {
  make_file = 1,  ///< `inode` in `folder` as `name`; without a name for O_TMPFILE
  make_folder,
  make_symlink,  ///< `bytes` are its target
  link,          ///< `inode` gets `name` in `folder`
  rename,        ///< `inode` from `name` in `folder` to `other_name` in `other_folder`
  unlink,        ///< `name` in `folder`, a file's or a folder's
  truncate,      ///< `inode` to `length` bytes
  allocate,      ///< `inode` has at least `length` bytes from now on
  write,         ///< `bytes` at `offset`
  sync,          ///< of `inode`, with returned
  sync_all,
  submit_write,  ///< to a ring, as `operation`; linked after `other_operation` unless that is 0
  submit_sync,
  complete,  ///< `operation` of a ring ended with `result`
  attempt,   ///< from here on `name` may be found
  promise,   ///< from here on `name`, or what is attempted later, must be found
  struck,    ///< a fault was injected here, into the call `name`
  unknown,   ///< something that the recorder cannot follow: `name` says what
};

struct Record {
  Kind kind{};
  std::uint32_t data_only = 0;  ///< of a sync: fdatasync
  std::uint64_t inode = 0;
  std::uint64_t folder = 0;
  std::uint64_t other_folder = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t operation = 0;
  std::uint64_t other_operation = 0;
  std::int64_t result = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t other_name_bytes = 0;
  std::uint64_t bytes = 0;
};

// The recorder's environment.
inline constexpr const char* kFolderVariable = "THALIA_CRASH_FOLDER";  ///< what is watched
inline constexpr const char* kLogVariable = "THALIA_CRASH_LOG";
/// "K:ERRNO" or "K:short": what befalls the K-th call that can meet it, from 1 on; with "K+" all
/// that follow, too. Unset: nothing.
inline constexpr const char* kFaultVariable = "THALIA_CRASH_FAULT";

/// Set: system calls that do not come from the C library's functions are recorded too.
inline constexpr const char* kTrapVariable = "THALIA_CRASH_TRAP";

}  // namespace thalia::crash
