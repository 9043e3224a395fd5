#include "store/run/pointer.h"

namespace thalia::store {
namespace {

constexpr std::uint64_t kLongestTarget = 4096;

std::string text_name(const std::string& pointer) {
  return pointer + ".txt";
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

std::optional<std::string> read_pointer(const io::Folder& folder, const std::string& pointer,
                                        const std::string& extension) {
  std::optional<std::string> name = folder.link_target(pointer + "." + extension);
  if (!name) {
    name = read_text(folder, text_name(pointer), kLongestTarget);
    if (name && name->ends_with('\n')) name->pop_back();
  }
  if (!name || !is_plain_name(*name)) return std::nullopt;
  return name;
}

bool write_pointer(const RunFiles& files, const io::Folder& folder, const std::string& pointer,
                   const std::string& extension, const std::string& file, Durability durability) {
  const bool linked = folder.replace_link(pointer + "." + extension, file);
  if (linked) {
    // A text is from a time when the run was elsewhere.
    folder.remove(text_name(pointer));
  } else {
    files.write_text(folder.path() / text_name(pointer), file + "\n", durability);
  }
  return linked;
}

void remove_pointer(const io::Folder& folder, const std::string& pointer,
                    const std::string& extension) {
  folder.remove(pointer + "." + extension);
  folder.remove(text_name(pointer));
}

}  // namespace thalia::store
