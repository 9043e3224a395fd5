#include "store/run/run_files.h"

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/fail.h"
#include "container/read/reader_of.h"
#include "io/file/posix_file.h"
#include "io/folder/inner_file.h"
#include "io/folder/line_log.h"
#include "io/path/beneath.h"
#include "thalia/files.h"

namespace thalia::store {

std::optional<std::string> read_text(const io::Folder& folder, const std::string& name,
                                     std::uint64_t limit) {
  const std::filesystem::path path = folder.path() / name;
  io::UniqueFd fd;
  try {
    fd = io::open_inner_descriptor(folder, std::array{name});
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

Reader read_over(std::shared_ptr<const io::FileBytes> file, const ReadOptions& read) {
  const std::string path = file->path().string();
  return with_path(path, [&] { return container::reader_of(std::move(file), read); });
}

void RunFiles::make_folders(const std::filesystem::path& path, Durability durability) const {
  io::make_folders_beneath(folder_, path, durability);
}

void RunFiles::sync_name(const std::filesystem::path& path) const {
  try {
    folder(folder_of(path)).sync();
  } catch (const IoError& error) {
    if (error.errno_value() != EACCES) throw;
  }
}

std::optional<io::EntryFacts> RunFiles::facts(const std::filesystem::path& path) const {
  const std::optional<io::Folder> above = find_folder(folder_of(path));
  return above ? above->facts(path.filename().string()) : std::nullopt;
}

bool RunFiles::has_file(const std::filesystem::path& path) const {
  const std::optional<io::EntryFacts> found = facts(path);
  return found && found->kind == io::EntryKind::file;
}

bool RunFiles::remove(const std::filesystem::path& path) const {
  const std::optional<io::Folder> above = find_folder(folder_of(path));
  return above && above->remove(path.filename().string());
}

std::shared_ptr<const io::FileBytes> RunFiles::open(const std::filesystem::path& path,
                                                    Access access) const {
  return io::open_inner_file(folder(folder_of(path)), std::array{path.filename().string()}, access);
}

ChainReader RunFiles::open_chain(const std::filesystem::path& path,
                                 const std::stop_token& cancel) const {
  return open_chain(open(path), reading(cancel));
}

ChainReader RunFiles::open_chain(std::shared_ptr<const io::FileBytes> file,
                                 const ReadOptions& read) const {
  return ChainReader::open(read_over(std::move(file), read),
                           {.read = read, .bases = {.folder = folder_}});
}

std::optional<std::string> RunFiles::read_text(const std::filesystem::path& path,
                                               std::uint64_t limit) const {
  const std::optional<io::Folder> above = find_folder(folder_of(path));
  return above ? store::read_text(*above, path.filename().string(), limit) : std::nullopt;
}

void RunFiles::write_text(const std::filesystem::path& path, std::string_view text,
                          Durability durability) const {
  OutputFile out(path, output(durability));
  out.write(as_byte_span(text));
  out.commit();
}

void RunFiles::append_lines(const std::filesystem::path& path, std::string_view lines,
                            Durability durability) const {
  io::append_lines(folder(folder_of(path)), path.filename().string(), lines, durability);
}

}  // namespace thalia::store
