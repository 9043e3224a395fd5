#include "formats/mst/sink.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/mst/frame_file.h"
#include "formats/mst/source_metadata.h"
#include "formats/source/lost_metadata.h"

namespace thalia::formats {
namespace mst {
namespace {

void check_tensors(const SinkInput& input) {
  for (const SinkTensor& tensor : input.tensors) {
    if (!is_valid_utf8(tensor.name)) {
      throw UnsupportedError(ErrorCode::unsupported_feature, "a name that .mst files have not",
                             {.field = "name", .tensor = printable(tensor.name), .bound = "UTF-8"});
    }
    check_layout(tensor.name, tensor.layout);
  }
}

MstWriteOptions write_options(const SinkOptions& options, const MstSourceMetadata& source) {
  const Compression& compression = options.save.compression;
  if (compression.codec && *compression.codec != Codec::zstd)
    fail_argument(ErrorCode::bad_argument, "codec", "another", "zstd", "of a .mst file");
  check_option("level", compression.level, 0, 22);
  return {.level = compression.level == 0 ? source.level : compression.level,
          .byte_grouping = source.byte_grouping,
          .metadata = source.metadata,
          .output = options.save.output,
          .work = options.save.work};
}

std::vector<std::string> losses_of(const SinkInput& input, const MstSourceMetadata& source) {
  std::vector<std::string> losses;
  add_lost_metadata(losses, input, source.other_members);
  return losses;
}

// The order that the file had; what it had not comes last, as it was given.
std::vector<std::size_t> order_of(const SinkInput& input, const MstSourceMetadata& source) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < source.order.size(); ++i) places.emplace(source.order[i], i);
  std::vector<std::size_t> order(input.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const auto found = places.find(input.tensors[i].name);
    return found == places.end() ? source.order.size() : found->second;
  });
  return order;
}

bool has_all_names(const SinkInput& input, const std::vector<std::size_t>& order,
                   const MstSourceMetadata& source) {
  return std::ranges::equal(order, source.order, [&](std::size_t i, const std::string& name) {
    return input.tensors[i].name == name;
  });
}

}  // namespace
}  // namespace mst

std::uint64_t write_mst(const std::filesystem::path& output, const SinkInput& input,
                        const SinkOptions& options, const EmitPayload& emit) {
  const mst::MstSourceMetadata source =
      mst::source_metadata_from_json(input.metadata, options.limits.max_json_depth);
  const MstWriteOptions write = mst::write_options(options, source);
  std::uint64_t total = 0;
  with_path(output.native(), [&] { mst::check_tensors(input); });
  for (const SinkTensor& tensor : input.tensors)
    total += tensor.layout.shape.byte_length(tensor.layout.dtype).value_or(0);
  if (options.announce) options.announce(mst::losses_of(input, source));

  mst::FrameFile file(output, write);
  const std::vector<std::size_t> order = mst::order_of(input, source);
  std::uint64_t done = 0;
  for (const std::size_t i : order) {
    file.begin(input.tensors[i].name, input.tensors[i].layout);
    emit(i, [&](ByteSpan piece) {
      file.write(piece);
      done += piece.size();
      if (write.work.progress) write.work.progress(done, total);
    });
    file.end();
  }
  // A tensor was added, removed or renamed: the names have no order of their own then.
  const bool same = mst::has_all_names(input, order, source);
  return file.commit(source.version, same ? source.header_order : std::vector<std::size_t>());
}

bool is_mst_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth) {
  const mst::MstSourceMetadata written =
      mst::source_metadata_from_json(input.metadata, max_json_depth);
  const mst::MstSourceMetadata found = mst::source_metadata_from_json(metadata, max_json_depth);
  return found.version == written.version && found.byte_grouping == written.byte_grouping &&
         found.metadata == written.metadata && found.header_order.empty();
}

}  // namespace thalia::formats
