#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <stdexcept>

#include "crash/operation.h"
#include "support/fault.h"
#include "thalia/error.h"

namespace thalia::crash {

std::vector<const Operation*> operations(Group group) {
  std::vector<const Operation*> all;
  const auto add = [&](std::span<const Operation> some) {
    for (const Operation& operation : some) all.push_back(&operation);
  };
  switch (group) {
    case Group::files:
      add(save_operations());
      add(in_place_operations());
      add(safetensors_operations());
      add(follow_operations());
      add(rebase_operations());
      break;
    case Group::store:
      add(store_save_operations());
      add(store_keeping_operations());
      break;
    case Group::broken:
      add(broken_operations());
  }
  return all;
}

const Operation& operation_named(std::string_view name) {
  for (const Group group : {Group::files, Group::store, Group::broken})
    for (const Operation* operation : operations(group))
      if (operation->name == name) return *operation;
  throw std::runtime_error("no such operation: " + std::string(name));
}

void make_unsynced_folders(const std::filesystem::path& folder,
                           std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (::mkdir((folder / name).c_str(), 0777) != 0)
      throw IoError("mkdir", errno, {.path = (folder / name).string()});
}

void name_all_files() {
  if (!test::install_faults(
          {{SYS_openat, EOPNOTSUPP, test::ArgumentCondition::has_bits(2, O_TMPFILE)}}))
    throw std::runtime_error("no seccomp filter");
}

}  // namespace thalia::crash
