// thalia compress, thalia decompress: whole files in frames, byte for byte.
#include <array>
#include <memory>
#include <string>

#include "cli/command/choice.h"
#include "cli/command/command.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"
#include "thalia/wrap.h"

namespace thalia::cli {
namespace {

using format::Codec;

constexpr std::array kFrameCodecs{Choice<Codec>{"zstd", Codec::zstd},
                                  Choice<Codec>{"lz4", Codec::lz4}};

struct CompressArguments {
  std::string input;
  std::string output;
  std::string codec;  ///< empty: not given
  int level = 0;
  unsigned threads = 0;
  bool json = false;
};

void print_result(Output& out, const CompressArguments& arguments, const WrapResult& result) {
  const char* const codec = result.codec == Codec::zstd ? "zstd" : "lz4";
  if (!arguments.json) {
    out.print("{}: {} from {}, {} of {}, in {:.2f} s\n", escape(arguments.output),
              human_bytes(result.output_bytes), human_bytes(result.input_bytes),
              counted(result.frames, "frame", "frames"), codec, result.seconds);
    return;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("output", as_utf8(arguments.output)).member("codec", codec);
  json.member("frames", result.frames).member("input_bytes", result.input_bytes);
  json.member("output_bytes", result.output_bytes).member("seconds", result.seconds).end_object();
  out.write(text + "\n");
}

int run_compress(const CompressArguments& arguments, const Session& session) {
  ProgressBar bar("compressing " + arguments.input);
  auto options = session.options<CompressOptions>();
  if (!arguments.codec.empty())
    options.compression.codec = choose("--codec", arguments.codec, kFrameCodecs);
  options.compression.level = arguments.level;
  options.work.threads = arguments.threads;
  options.work.progress = bar.callback();
  const WrapResult result = compress_checkpoint(arguments.input, arguments.output, options);
  bar.finish();
  print_result(session.out, arguments, result);
  return kDone;
}

int run_decompress(const CompressArguments& arguments, const Session& session) {
  ProgressBar bar("decompressing " + arguments.input);
  auto options = session.options<DecompressOptions>();
  options.work.threads = arguments.threads;
  options.work.progress = bar.callback();
  const WrapResult result = decompress_checkpoint(arguments.input, arguments.output, options);
  bar.finish();
  print_result(session.out, arguments, result);
  return kDone;
}

void declare_shared(CLI::App& app, CompressArguments& arguments) {
  app.add_option("IN", arguments.input, "The file to read")->required();
  app.add_option("OUT", arguments.output, "The file to write")->required();
  app.add_option("--threads", arguments.threads, "Threads; 0, the default: one a core")
      ->option_text("N");
  app.add_flag("--json", arguments.json, "What was done as a JSON object");
}

}  // namespace

Run declare_compress(CLI::App& app) {
  app.description(
      "Writes a whole file as zstd or lz4 frames with a table of where each begins. Other "
      "commands\n"
      "read the result as it is, and only the frames they need; 'thalia decompress', 'zstd -d' or\n"
      "'lz4 -d' give back the exact file. An output that is there already is replaced in one "
      "step.");
  const auto arguments = std::make_shared<CompressArguments>();
  declare_shared(app, *arguments);
  app.add_option("--codec", arguments->codec,
                 "zstd or lz4; by default as OUT ends, in .zst or .lz4")
      ->option_text("CODEC");
  app.add_option("--level", arguments->level,
                 "1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)")
      ->option_text("N");
  return [arguments](const Session& session) { return run_compress(*arguments, session); };
}

Run declare_decompress(CLI::App& app) {
  app.description(
      "Writes what the frames of a zstd or lz4 file hold, whoever wrote them. The kind is found "
      "by\n"
      "content. An output that is there already is replaced in one step; on an error it stays.");
  const auto arguments = std::make_shared<CompressArguments>();
  declare_shared(app, *arguments);
  return [arguments](const Session& session) { return run_decompress(*arguments, session); };
}

}  // namespace thalia::cli
