#include "formats/weight_sync/output_folder.h"

#include <string>

#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "thalia/files.h"

namespace thalia::formats::weight_sync {

void remove_older(const std::filesystem::path& path, std::initializer_list<std::string_view> names,
                  bool replace) {
  const auto folder = io::Folder::find(path);
  if (!folder) return;
  if (!replace) {
    for (const std::string_view name : names)
      if (folder->facts(std::string(name))) io::fail_exists(path / name);
  }
  for (const std::string_view name : names)
    if (folder->facts(std::string(name))) folder->remove(std::string(name));
}

std::uint64_t write_text(const std::filesystem::path& path, std::string_view text,
                         const OutputOptions& output, const Work& work) {
  OutputFile file(path, output, work.cancel);
  file.write(as_byte_span(text));
  file.commit();
  return text.size();
}

}  // namespace thalia::formats::weight_sync
