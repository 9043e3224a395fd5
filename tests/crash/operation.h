// The operations whose crashes are tried. To add one: write four small functions beside the others
// of its kind (operations_save.cc, operations_in_place.cc, ...) and a row of their table; a new
// table goes into operations.cc. Nothing else has to know of it.
//
//   {"raw save", prepare_old_file, run_raw_save, observe_file, save_again}
//
// An operation tells what it is about to do and what it has promised. From attempt("b") on a crash
// may leave b; from promise("b") on it must leave b, or what was attempted later. What was there
// when it began counts as promised. What a name stands for is what observe() finds in the folder at
// promise("b") in a run without a crash: so observe() tells whole states apart, as by a hash of
// all content, and run() does the same each time. A name stands for the state of the whole folder,
// as in a history without branches. Where several things are kept, as in a store, fault() tells
// what of them may be mixed. A name is one of a file in the harness, so it has no '/'.
//
// Broken savers, which have to be found out, are operations too (operations_broken.cc).
#pragma once

#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thalia::crash {

class Teller {
 public:
  virtual ~Teller() = default;
  virtual void attempt(std::string_view name) = 0;
  virtual void promise(std::string_view name) = 0;
  /// Done, with a crash still allowed to undo it: Durability::data, none.
  virtual void finish(std::string_view name) = 0;
};

struct Operation {
  const char* name;
  /// Fills the empty folder. All of it is on the disk when the operation begins.
  void (*prepare)(const std::filesystem::path& folder);
  /// In a process of its own, which is recorded.
  void (*run)(const std::filesystem::path& folder, Teller& teller);
  /// What a user finds after a crash, and how: recover() may be called. Everything is read.
  /// @throws thalia::Error if there is nothing valid.
  std::string (*observe)(const std::filesystem::path& folder);
  /// The next piece of work, in the state that was observed. @throws if it fails.
  void (*go_on)(const std::filesystem::path& folder);
  /// A crash may leave nothing valid, but nothing invalid may pass as valid: Durability::none.
  bool may_be_lost = false;
  /// Where what observe() says need not be one of the allowed states as a whole: what is wrong with
  /// it, empty if nothing is. @param allowed what was promised, then what was attempted since.
  std::string (*fault)(const std::string& observed, std::span<const std::string> allowed) = nullptr;
};

/// What observe() returns if there is no file.
inline constexpr const char* kAbsent = "absent";

enum class Group { files, store, broken };
std::vector<const Operation*> operations(Group group);
/// @throws std::runtime_error if there is none of that name.
const Operation& operation_named(std::string_view name);

std::span<const Operation> save_operations();
std::span<const Operation> in_place_operations();
std::span<const Operation> safetensors_operations();
std::span<const Operation> follow_operations();
std::span<const Operation> rebase_operations();
std::span<const Operation> store_save_operations();
std::span<const Operation> store_keeping_operations();
std::span<const Operation> broken_operations();

/// Folders of another process, in this order, which was killed before it had synced any of them.
void make_unsynced_folders(const std::filesystem::path& folder,
                           std::initializer_list<const char*> names);

/// From now on this process makes no files without a name, as on a file system that has none: what
/// is written is seen from the start.
void name_all_files();
template <void (*kRun)(const std::filesystem::path&, Teller&)>
void run_named(const std::filesystem::path& folder, Teller& teller) {
  name_all_files();
  kRun(folder, teller);
}

}  // namespace thalia::crash
