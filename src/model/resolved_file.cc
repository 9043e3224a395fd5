#include <fmt/format.h>

#include <array>
#include <system_error>

#include "io/random.h"
#include "thalia/delta.h"

namespace thalia {

ResolvedFile::ResolvedFile(const std::filesystem::path& file, const std::filesystem::path& folder,
                           const ChainOptions& options)
    : path_(file) {
  if (!Reader::open(file, options.read).delta_base()) return;
  std::array<std::byte, 8> random;
  io::fill_random(random);
  std::string name = "." + file.filename().string() + ".";
  for (const std::byte byte : random) name += fmt::format("{:02x}", std::to_integer<int>(byte));
  path_ = folder / (name + ".tmp");
  SaveOptions save;
  save.durability = Durability::none;
  save.threads = options.read.threads;
  input_bytes_ = resolve(file, path_, options, save).input_bytes;
}

ResolvedFile::~ResolvedFile() {
  std::error_code ignored;
  if (is_copy()) std::filesystem::remove(path_, ignored);
}

}  // namespace thalia
