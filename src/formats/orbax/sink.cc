#include "formats/orbax/sink.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/orbax/metadata.h"
#include "formats/orbax/source_metadata.h"
#include "formats/source/lost_metadata.h"
#include "formats/source/refuse_tensor.h"
#include "io/folder/atomic_folder.h"
#include "thalia/tensor.h"

namespace thalia::formats {
namespace orbax {
namespace {

void check_tensor(const SinkTensor& tensor) {
  if (!is_valid_utf8(tensor.name) || !array_path(tensor.name)) {
    refuse_tensor(tensor.name, "a name that is no path in a folder", "name", printable(tensor.name),
                  "UTF-8, and names of files between slashes");
  }
  if (tensor.layout.encoding != Encoding::dense) {
    refuse_tensor(tensor.name, "such folders hold dense arrays alone", "encoding",
                  std::string(encoding_name(tensor.layout.encoding)), "dense");
  }
  if (orbax_dtype_name(tensor.layout.dtype).empty()) {
    const std::string dtype(dtype_name(tensor.layout.dtype));
    throw UnsupportedDtypeError(dtype, "such folders have no such dtype",
                                {.field = "dtype",
                                 .tensor = printable(tensor.name),
                                 .value = dtype,
                                 .bound = "f32, f16, bf16, f64, i32, i64, i8, u8 or bool"});
  }
}

// The file of one array may have the path of a folder of another.
void check_places(const SinkInput& input) {
  std::set<std::string> folders;
  for (const SinkTensor& tensor : input.tensors) {
    std::string path;
    const auto names = *array_path(tensor.name);
    for (std::size_t i = 0; i + 1 < names.size(); ++i) folders.insert(path += '/' + names[i]);
  }
  for (const SinkTensor& tensor : input.tensors) {
    std::string path;
    const auto names = *array_path(tensor.name);
    for (const std::string& name : names) path += '/' + name;
    if (folders.contains(path))
      refuse_tensor(tensor.name, "its file would be a folder of another array", "name",
                    printable(path), "another name");
  }
}

void write_marks(io::AtomicFolder& folder, const std::string& metadata) {
  folder.write_file(std::array{std::string(kMetadataFile)},
                    [&](const ByteSink& sink) { sink(as_byte_span(metadata)); });
  folder.write_file(std::array{std::string(kMarkerFile)}, [](const ByteSink&) {});
}

}  // namespace
}  // namespace orbax

std::uint64_t write_orbax(const std::filesystem::path& output, const SinkInput& input,
                          const SinkOptions& options, const EmitPayload& emit) {
  orbax::OrbaxSourceMetadata source =
      orbax::source_metadata_from_json(input.metadata, options.limits.max_json_depth);
  orbax::Metadata metadata{.arrays = {}, .others = std::move(source.others)};
  std::uint64_t total = 0;
  with_path(output.native(), [&] {
    for (const SinkTensor& tensor : input.tensors) {
      orbax::check_tensor(tensor);
      metadata.arrays.push_back(
          {.name = tensor.name, .dtype = tensor.layout.dtype, .shape = tensor.layout.shape});
      total += tensor.layout.shape.byte_length(tensor.layout.dtype).value_or(0);
    }
    orbax::check_places(input);
  });
  // A member is one level deeper than it was.
  const std::string text = orbax::make_metadata(metadata, options.limits.max_json_depth + 8);
  std::vector<std::string> losses;
  add_lost_metadata(losses, input, source.lost_members);
  if (options.announce) options.announce(losses);

  const Work& work = options.save.work;
  io::AtomicFolder folder(output, options.save.output, work.cancel);
  orbax::write_marks(folder, text);
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < input.tensors.size(); ++i) {
    const TensorLayout& layout = input.tensors[i].layout;
    folder.write_file(*orbax::array_path(input.tensors[i].name), [&](const ByteSink& sink) {
      sink(as_byte_span(orbax::array_header(layout.dtype, layout.shape)));
      const std::uint64_t end = done + *layout.shape.byte_length(layout.dtype);
      emit(i, [&](ByteSpan piece) {
        sink(piece);
        done += piece.size();
        if (work.progress && done <= end) work.progress(done, total);
      });
      if (done != end) {
        fail_argument(ErrorCode::size_mismatch, "payload", fmt::format("{} bytes", done),
                      std::to_string(end));
      }
    });
  }
  folder.commit();
  return folder.bytes();
}

bool is_orbax_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth) {
  const auto others = orbax::source_metadata_from_json(input.metadata, max_json_depth).others;
  return orbax::source_metadata_to_json(others) == metadata;
}

}  // namespace thalia::formats
