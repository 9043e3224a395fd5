#include "store/run/small_file.h"

#include <cerrno>
#include <span>

#include "base/fail.h"
#include "io/posix_file.h"
#include "thalia/output_file.h"

namespace thalia::store {

std::optional<std::string> read_text(const std::filesystem::path& path, std::uint64_t limit) {
  io::UniqueFd fd;
  try {
    fd = io::open_for_reading(path);
  } catch (const IoError& error) {
    if (error.errno_value() == ENOENT) return std::nullopt;
    throw;
  }
  const std::uint64_t size = io::file_size(fd.get(), path);
  if (size > limit) {
    throw FormatError(ErrorCode::limit_exceeded, {},
                      {.path = path.string(),
                       .value = fmt::format("{} bytes", size),
                       .bound = fmt::format("{} bytes at most", limit)});
  }
  std::string text(size, '\0');
  io::pread_all(fd.get(), 0, std::as_writable_bytes(std::span(text)), path);
  return text;
}

void write_text(const std::filesystem::path& path, std::string_view text, Durability durability) {
  OutputFile out(path, {.durability = durability});
  out.write(as_byte_span(text));
  out.commit();
}

}  // namespace thalia::store
