#include <memory>

#include "io/temporary_file.h"
#include "thalia/delta.h"

namespace thalia {

ResolvedFile::ResolvedFile(const std::filesystem::path& file, const std::filesystem::path& folder,
                           const ChainOptions& options)
    : path_(file) {
  if (!Reader::open(file, options.read).delta_base()) return;
  const auto copy = std::make_shared<const io::TemporaryFile>(folder / file.filename());
  path_ = copy->path();
  SaveOptions save;
  save.durability = Durability::none;
  save.threads = options.read.threads;
  copy_ = copy;
  input_bytes_ = resolve(file, path_, options, save).input_bytes;
}

ResolvedFile::~ResolvedFile() = default;

}  // namespace thalia
