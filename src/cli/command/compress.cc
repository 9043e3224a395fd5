// thalia compress, thalia decompress: whole files in frames, byte for byte. Without --codec the
// library goes by the ending of OUT, so the codec is passed on only if it was named.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command/command.h"
#include "cli/options/compression_arguments.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "thalia/compress.h"
#include "thalia/tensor.h"

namespace thalia::cli {
namespace {

struct CompressArguments {
  std::string input;
  std::string output;
  CompressionArguments compression;
};

void print_result(const Session& session, std::string_view schema,
                  const CompressArguments& arguments, const WrapResult& result) {
  Output& out = session.out;
  const std::string_view codec = codec_name(result.codec);
  if (!session.common.json) {
    out.print("{}: {} from {}, {} of {}, in {:.2f} s\n", escape(arguments.output),
              human_bytes(result.output_bytes), human_bytes(result.input_bytes),
              counted(result.frames, "frame", "frames"), codec, result.seconds);
    return;
  }
  print_object(out, schema, [&](JsonWriter& json) {
    add_files(json, arguments.input, arguments.output);
    json.member("codec", codec).member("frames", result.frames);
    add_sizes_and_time(json, result);
  });
}

int run_compress(const CompressArguments& arguments, const Session& session) {
  ProgressBar bar("compressing " + arguments.input);
  auto options = session.options<CompressOptions>();
  options.compression = arguments.compression.compression(std::nullopt);
  options.work.progress = bar.callback();
  const WrapResult result = compress_checkpoint(arguments.input, arguments.output, options);
  bar.finish();
  print_result(session, "thalia.compress.1", arguments, result);
  return kDone;
}

int run_decompress(const CompressArguments& arguments, const Session& session) {
  ProgressBar bar("decompressing " + arguments.input);
  auto options = session.options<DecompressOptions>();
  options.work.progress = bar.callback();
  const WrapResult result = decompress_checkpoint(arguments.input, arguments.output, options);
  bar.finish();
  print_result(session, "thalia.decompress.1", arguments, result);
  return kDone;
}

void declare_shared(CLI::App& app, CompressArguments& arguments) {
  add_file(app, "IN", arguments.input, "The file to read");
  add_file(app, "OUT", arguments.output, "The file to write");
}

}  // namespace

Run declare_compress(CLI::App& app) {
  app.description(
      "Writes a whole file as zstd or lz4 frames with a table of where each begins. 'thalia "
      "decompress', 'zstd -d' or 'lz4 -d' give back the exact file. A compressed .thalia file is "
      "read by the other commands as it is, and only the frames that they need; a file of another "
      "format has to be decompressed first.");
  const auto arguments = std::make_shared<CompressArguments>();
  declare_shared(app, *arguments);
  constexpr std::array kFrameCodecs{Codec::zstd, Codec::lz4};
  arguments->compression.declare(app, kFrameCodecs, "as OUT ends, in .zst or .lz4");
  return [arguments](const Session& session) { return run_compress(*arguments, session); };
}

Run declare_decompress(CLI::App& app) {
  app.description(
      "Writes what the frames of a zstd or lz4 file hold, whichever program wrote them. The kind "
      "is found by content.");
  const auto arguments = std::make_shared<CompressArguments>();
  declare_shared(app, *arguments);
  return [arguments](const Session& session) { return run_decompress(*arguments, session); };
}

}  // namespace thalia::cli
