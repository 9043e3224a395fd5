#include "thalia/compact.h"

#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "container/append/copied_tensor.h"
#include "container/file/block_choice.h"
#include "container/file/open_bytes.h"
#include "container/file/open_file.h"
#include "container/read/stored_connection.h"
#include "container/write/check_options.h"
#include "container/write/draft.h"
#include "container/write/finalize.h"
#include "container/write/payload_store.h"
#include "io/atomic_file.h"
#include "io/locked_file.h"
#include "thalia/paths.h"

namespace thalia {
namespace {

using format::ChecksumType;

// Everything that is alive in the file; payloads are borrowed from its mapping.
container::Draft draft_of(const detail::OpenFile& file) {
  container::Draft draft;
  const format::Header& header = file.header();
  if (header.metadata_length != 0)
    draft.metadata = file.json({header.metadata_offset, header.metadata_length}, "metadata");
  draft.training_steps = header.training_steps;
  for (std::uint32_t r = 0; r < file.region_count(); ++r) {
    const RegionView region = file.region_view(r);
    const std::uint32_t id = draft.add_region(container::region_spec(region));
    container::add_copied(draft, id, container::region_to_copy(file, region));
  }
  const std::uint32_t matrices = file.region_count();
  for (std::uint32_t i = 0; i < file.connection_count(); ++i) {
    const container::StoredConnection stored = container::stored_connection(file, i);
    draft.connections.push_back({.source = stored.source, .target = stored.target});
    container::set_matrices(
        draft, container::tensor_to_copy(file, matrices, stored.weights),
        stored.delays ? std::optional(container::tensor_to_copy(file, matrices, *stored.delays))
                      : std::nullopt);
  }
  return draft;
}

SaveOptions save_options(const format::Header& header, const CompactOptions& options) {
  SaveOptions save;
  save.checksum = header.checksum_type;
  if (save.checksum == ChecksumType::block_tree) {
    save.leaves = header.leaf_algorithm;
    save.block_log2 = container::chosen_block_log2(header);
  }
  save.timestamp = header.timestamp;
  save.durability = options.durability;
  save.compression.codec = format::Codec::store;  // tensors are copied as they are stored
  save.work = options.work;
  save.work.progress = {};
  container::check_options(save);
  return save;
}

CompactResult compact_file(const detail::OpenFile& file, const std::filesystem::path& output,
                           const CompactOptions& options) {
  const Stopwatch watch;
  container::check_can_be_rewritten(file.header());
  container::Draft draft = draft_of(file);
  const SaveOptions save = save_options(file.header(), options);
  io::AtomicFile target(output, {.durability = save.durability, .cancel = save.work.cancel});
  container::PayloadStore store(draft, target.fd(), target.path(), save);
  store.finish();
  const SaveResult saved = container::finalize_file(target, draft, store, save);
  return {.input_bytes = file.mapping().bytes().size(),
          .output_bytes = saved.file_bytes,
          .regions = saved.regions,
          .tensors = saved.tensors,
          .closing_checksum = saved.closing_checksum,
          .seconds = watch.seconds()};
}

}  // namespace

CompactResult compact(const std::filesystem::path& path, const CompactOptions& options) {
  return compact(path, path, options);
}

CompactResult compact(const std::filesystem::path& input, const std::filesystem::path& output,
                      const CompactOptions& options) {
  const bool in_place = is_same_file(input, output);
  const ReadOptions read{.access = options.access, .limits = options.limits, .work = options.work};
  std::optional<io::LockedFile> lock;
  std::shared_ptr<const detail::OpenFile> file;
  do {
    if (in_place)
      lock.emplace(input, io::LockedFile::Access::read, options.wait, options.work.cancel);
    file = detail::OpenFile::open(input, read);
  } while (lock && !lock->is_at_path());
  if (in_place) container::require_plain(file->mapping());
  return file->named([&] { return compact_file(*file, output, options); });
}

}  // namespace thalia
