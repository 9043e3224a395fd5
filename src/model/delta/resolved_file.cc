// A delta as a full file that nobody sees: for programs that need one file where a delta was given.
// The file has no name and is gone when it is closed, so that it needs no syncing.

#include "container/file/open_file.h"
#include "io/open_descriptor.h"
#include "io/unnamed_file.h"
#include "model/delta/save_state.h"
#include "thalia/delta.h"

namespace thalia {
namespace {

std::shared_ptr<const detail::OpenFile> resolved(const ChainReader& chain,
                                                 const std::filesystem::path& folder,
                                                 const ReadOptions& read) {
  // Known by the delta's name in every message.
  const std::filesystem::path& name = chain.reader().path();
  io::UniqueFd fd = io::create_unnamed_file(folder);
  model::save_state(state_source(chain), fd.get(), name,
                    {.output = {.durability = Durability::none},
                     .work = {.threads = read.work.threads, .cancel = read.work.cancel}});
  // As the files that it was made of: a disk may fail under this one too.
  return detail::OpenFile::over(io::open_descriptor(std::move(fd), name, read.input.access), read);
}

}  // namespace

ResolvedFile::ResolvedFile(const std::filesystem::path& file, const std::filesystem::path& folder,
                           const ChainOptions& options)
    : reader_(Reader::open(file, options.read)) {
  if (!reader_.delta_base()) return;
  const ChainReader chain = ChainReader::open(reader_, options);
  input_bytes_ = chain.disk_bytes();
  reader_ = ChainReader::reader_over(resolved(chain, folder, options.read));
}

}  // namespace thalia
