// Networks into files. All is checked, and the text made, before the output is created.
#include "base/fail.h"
#include "formats/loom/file_text.h"
#include "formats/loom/load.h"
#include "thalia/files.h"
#include "thalia/formats/loom.h"

namespace thalia {
namespace loom = formats::loom;

std::string loom_json(const LoomNetwork& network, const LoomSaveOptions& options) {
  const loom::OutputNetwork output = loom::checkpoint_output(network, options.scale_before_morph);
  std::string text;
  loom::write_checkpoint(
      output.network, output.blobs,
      [&](std::size_t i, const formats::PieceSink& sink) { sink(output.bytes[i].bytes); },
      [&](ByteSpan piece) {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      });
  return text;
}

std::uint64_t save_loom_json(const std::filesystem::path& path, const LoomNetwork& network,
                             const LoomSaveOptions& options) {
  const std::string text = with_path(path.native(), [&] { return loom_json(network, options); });
  OutputFile out(path, options.output, options.work.cancel);
  out.write(as_byte_span(text));
  if (options.work.progress) options.work.progress(text.size(), text.size());
  out.commit();
  return text.size();
}

std::vector<std::byte> entity_bytes(const LoomNetwork& network) {
  loom::OutputNetwork output = loom::entity_output(network);
  const std::string start = loom::entity_start(output.network, output.blobs, true);
  const ByteSpan head = as_byte_span(start);
  std::vector<std::byte> bytes(head.begin(), head.end());
  for (const StoredBytes& blob : output.bytes)
    bytes.insert(bytes.end(), blob.bytes.begin(), blob.bytes.end());
  return bytes;
}

std::uint64_t save_entity(const std::filesystem::path& path, const LoomNetwork& network,
                          const LoomSaveOptions& options) {
  std::string start;
  const loom::OutputNetwork output = with_path(path.native(), [&] {
    loom::OutputNetwork made = loom::entity_output(network);
    start = loom::entity_start(made.network, made.blobs, true);
    return made;
  });
  std::uint64_t total = 0, done = 0;
  for (const StoredBytes& blob : output.bytes) total += blob.bytes.size();
  OutputFile out(path, options.output, options.work.cancel);
  out.write(as_byte_span(start));
  for (const StoredBytes& blob : output.bytes) {
    out.write(blob.bytes);
    done += blob.bytes.size();
    if (options.work.progress) options.work.progress(done, total);
  }
  out.commit();
  return start.size() + total;
}

}  // namespace thalia
