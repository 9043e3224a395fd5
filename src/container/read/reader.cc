// Reader is a handle: all state is in the OpenFile that readers, regions and views of one file
// share, and which lives as long as any of them. What is noexcept here reads the checked header
// alone; all else goes through checks that may throw, and runs in named(), so that every error has
// the path of the file.
#include "thalia/reader.h"

#include <utility>
#include <vector>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/inside.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "container/file/dead_bytes.h"
#include "container/file/delta_prefix.h"
#include "container/file/open_bytes.h"
#include "container/file/open_file.h"
#include "container/file/short_name.h"
#include "container/read/reader_of.h"
#include "container/read/stored_connection.h"
#include "format/constants.h"
#include "format/header.h"

namespace thalia {
namespace {

std::string region_suggestion(const Reader& reader, std::string_view name) {
  return suggestion_text(name, [&](Suggestion& suggestion) {
    for (std::uint32_t r = 0; r < reader.region_count() && suggestion.is_open(); ++r)
      suggestion.offer(reader.region(r).name());
  });
}

std::string tensor_suggestion(const Reader& reader, std::string_view name) {
  const bool is_qualified = name.find('/') != std::string_view::npos;
  return suggestion_text(name, [&](Suggestion& suggestion) {
    for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
      const RegionView region = reader.region(r);
      for (std::uint32_t t = 0; t < region.tensor_count() && suggestion.is_open(); ++t) {
        const std::string tensor(region.tensor(t).name());
        suggestion.offer(is_qualified ? fmt::format("{}/{}", region.name(), tensor) : tensor);
      }
    }
  });
}

}  // namespace

Reader Reader::open(const std::filesystem::path& path, const ReadOptions& options) {
  return Reader(detail::OpenFile::open(path, options));
}

Reader container::open_reader(const io::InputFile& input, const ReadOptions& options) {
  return reader_over(detail::OpenFile::open(input, options));
}
Reader container::reader_over(std::shared_ptr<const detail::OpenFile> file) {
  return detail::Inside::make<Reader>(std::move(file));
}
Reader container::reader_of(std::shared_ptr<const io::FileBytes> bytes,
                            const ReadOptions& options) {
  return detail::Inside::make<Reader>(
      detail::OpenFile::over(contents_of(std::move(bytes), options.input.limits), options));
}

const std::filesystem::path& Reader::path() const noexcept {
  return file_->mapping().path();
}
FileHeader Reader::header() const noexcept {
  const format::Header& header = file_->header();
  const bool tree = header.checksum_type == ChecksumType::block_tree;
  const auto has = [&](std::uint16_t flag) { return (header.flags & flag) != 0; };
  FileHeader out;
  static_cast<FileTotals&>(out) = {.timestamp = header.timestamp,
                                   .total_neurons = header.total_neurons,
                                   .total_synapses = header.total_synapses,
                                   .training_steps = header.training_steps};
  out.version = {header.major_version, header.minor_version, header.patch_version};
  out.flags = {.compressed = has(format::kFlagCompressed),
               .lz4 = has(format::kFlagLz4),
               .homeostatic = has(format::kFlagHomeostatic),
               .neuromodulators = has(format::kFlagNeuromodulators),
               .sparse = has(format::kFlagSparse),
               .mixed_precision = has(format::kFlagMixedPrecision),
               .delta = has(format::kFlagDelta)};
  out.checksum = header.checksum_type;
  if (tree) {  // else the file has 0 there, which is no enumerator
    out.leaves = header.leaf_algorithm;
    out.block_log2 = header.integrity_block_log2;
  }
  out.generation = header.generation;
  out.file_uuid = header.file_uuid;
  out.base_checksum = header.base_checksum;
  out.base_step = header.base_step;
  return out;
}
std::uint64_t Reader::file_bytes() const noexcept {
  return file_->header().file_length;
}

std::string_view Reader::metadata_json() const {
  return file_->named([&]() -> std::string_view {
    const format::Header& header = file_->header();
    if (header.metadata_length == 0) return {};
    return file_->json({header.metadata_offset, header.metadata_length}, "metadata");
  });
}

Digest256 Reader::closing_checksum() const noexcept {
  return file_->closing_checksum();
}

std::optional<DeltaBase> Reader::delta_base() const {
  return file_->named([&]() -> std::optional<DeltaBase> {
    const ByteSpan prefix = file_->mapping().before();
    if (prefix.empty()) return std::nullopt;
    // Checked to its last byte when the file was opened.
    const auto [header, reference, path] = container::checked_delta_prefix(prefix);
    return DeltaBase{.path = std::string(path),
                     .checksum = header.base_checkpoint_hash,
                     .uuid = reference.base_uuid,
                     .generation = reference.base_generation,
                     .file_bytes = reference.base_length,
                     .step = header.base_step,
                     .depth = reference.depth};
  });
}

std::uint32_t Reader::region_count() const noexcept {
  return file_->region_count();
}
std::uint32_t Reader::tensor_count() const noexcept {
  return file_->directory().tensor_count;
}

std::uint64_t Reader::logical_bytes() const {
  return file_->named([&] {
    CheckedSum sum;
    for (std::uint32_t r = 0; r < file_->directory().region_count; ++r)
      sum += std::uint64_t{file_->directory_region(r).logical_bytes};
    if (const auto bytes = sum.value()) return *bytes;
    const format::Header& header = file_->header();
    fail_field(ErrorCode::out_of_bounds, "directory", "logical_bytes",
               header.directory_offset + file_->directory().regions_offset, sum.to_string(),
               "a sum of at most 2^64 - 1");
  });
}

std::uint64_t Reader::debris_bytes() const noexcept {
  // Debris stayed with the source of a side file.
  if (file_->mapping().backing() == io::Backing::partial) return 0;
  return file_->mapping().bytes().size() - file_bytes();
}

std::uint64_t Reader::dead_bytes() const {
  return file_->named([&] {
    std::vector<format::Extent> regions;
    // Region extents alone: one entry a region, no look at headers or tensors.
    for (std::uint32_t r = 0; r < region_count(); ++r) regions.push_back(file_->owner_extent(r));
    return container::dead_bytes(file_->header(), std::move(regions));
  });
}

RegionView Reader::region(std::uint32_t i) const {
  return file_->named([&] {
    if (i >= region_count()) {
      fail_argument(ErrorCode::not_found, "region", std::to_string(i),
                    fmt::format("below {}", region_count()));
    }
    return file_->region_view(i);
  });
}

std::optional<RegionView> Reader::find_region(std::string_view name) const {
  return file_->named([&]() -> std::optional<RegionView> {
    const auto region = file_->find_region(name);
    if (!region) return std::nullopt;
    return file_->region_view(*region);
  });
}

RegionView Reader::region(std::string_view name) const {
  return file_->named([&]() -> RegionView {
    if (auto found = find_region(name)) return *std::move(found);
    throw UsageError(ErrorCode::not_found, "no such region" + region_suggestion(*this, name),
                     {.region = printable(name)});
  });
}

TensorView Reader::tensor(std::string_view name) const {
  return file_->named([&]() -> TensorView {
    // A look-up in each region, the matrices of connections included. A bare name comes first, so
    // that a name with a slash in it is found as it is.
    std::optional<TensorView> found;
    for (std::uint32_t r = 0; r < file_->directory().region_count; ++r) {
      const auto number = file_->find_tensor(r, name);
      if (!number) continue;
      if (found) {
        fail_argument(ErrorCode::bad_argument, "tensor",
                      fmt::format("'{}', which several regions have", printable(name)),
                      fmt::format("'{}/{}' or another region", printable(region_name(*found)),
                                  printable(name)));
      }
      found = file_->tensor_view(r, *number);
    }
    if (found) return *std::move(found);
    // Either name may contain slashes, so every split is tried.
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos;
         slash = name.find('/', slash + 1)) {
      const auto region = file_->find_region(name.substr(0, slash));
      if (!region) continue;
      // The first split that leads to a tensor wins: the shortest region name.
      if (const auto number = file_->find_tensor(*region, name.substr(slash + 1))) {
        return file_->tensor_view(*region, *number);
      }
    }
    throw UsageError(ErrorCode::not_found, "no such tensor" + tensor_suggestion(*this, name),
                     {.tensor = printable(name)});
  });
}

std::string_view Reader::region_name(const TensorView& tensor) noexcept {
  return detail::Inside::region(tensor);
}

std::uint32_t Reader::connection_count() const {
  return file_->named([&] { return file_->connection_count(); });
}

ConnectionView Reader::connection(std::uint32_t i) const {
  return file_->named([&] {
    if (i >= connection_count()) {
      fail_argument(ErrorCode::not_found, "connection", std::to_string(i),
                    fmt::format("below {}", connection_count()));
    }
    container::StoredConnection stored = container::stored_connection(*file_, i);
    const std::uint32_t matrices = region_count();  // the directory's last region holds them
    ConnectionView view{.source = std::move(stored.source),
                        .target = std::move(stored.target),
                        .weights = file_->tensor_view(matrices, stored.weights),
                        .delays = std::nullopt};
    if (stored.delays) view.delays = file_->tensor_view(matrices, *stored.delays);
    return view;
  });
}

std::optional<ConnectionView> Reader::find_connection(std::string_view source,
                                                      std::string_view target) const {
  return file_->named([&]() -> std::optional<ConnectionView> {
    const auto found =
        file_->find_connection(container::short_name(source), container::short_name(target));
    return found ? std::optional(connection(*found)) : std::nullopt;
  });
}

void Reader::verify_all(const std::stop_token& cancel) const {
  file_->named([&] { file_->verify_all(cancel); });
}

std::uint64_t Reader::resident_bytes() const {
  return file_->named([&] { return file_->mapping().resident_bytes(); });
}

}  // namespace thalia
