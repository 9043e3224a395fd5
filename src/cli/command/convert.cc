// thalia convert: from one format to another. The library does the work and reports what the target
// cannot hold; this file only reads the words of its options.
#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/options/save_arguments.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "thalia/formats/convert.h"

namespace thalia::cli {
namespace {

struct ConvertArguments {
  std::string input;
  std::string output;
  std::optional<FileFormat> from;
  std::optional<FileFormat> to;
  std::string regions = "auto";
  std::string precision = "keep";
  bool dense = false;
  bool dequantize = false;
  bool all_types = false;
  bool lossless = false;
  std::optional<std::uint64_t> shard_size;
  SaveArguments save;
};

std::vector<Choice<FileFormat>> choices_of(std::span<const FileFormat> formats) {
  std::vector<Choice<FileFormat>> choices;
  for (const FileFormat format : formats) choices.push_back({file_format_name(format), format});
  return choices;
}

RegionGrouping grouping_named(const std::string& text) {
  if (text == "auto") return {RegionGrouping::Kind::automatic};
  if (text == "none") return {RegionGrouping::Kind::none};
  unsigned depth = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, depth);
  if (error != std::errc() || stop != end || depth == 0) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--regions",
                      .value = fmt::format("'{}'", text),
                      .bound = "auto, none, a number of name parts from 1"});
  }
  return {RegionGrouping::Kind::depth, depth};
}

// The library does not know the option's name; it is added to its error.
PrecisionPolicy precision_named(const std::string& text) {
  try {
    return parse_precision_policy(text);
  } catch (const UsageError& error) {
    ErrorContext context = error.context();
    context.field = "--precision";
    throw UsageError(error.code(), error.message(), std::move(context));
  }
}

[[noreturn]] void refuse_losses(const ConvertArguments& arguments,
                                const std::vector<std::string>& losses) {
  std::string all;
  for (const std::string& loss : losses) all += (all.empty() ? "" : "; ") + loss;
  throw UnsupportedError(
      ErrorCode::unsupported_feature,
      "the output cannot hold all of this, and --lossless asks for it",
      {.path = arguments.input, .field = "losses", .value = std::move(all), .bound = "none"});
}

int run_convert(const ConvertArguments& arguments, const Session& session) {
  ConvertOptions options = arguments.save.options(session);
  options.from = arguments.from;
  options.to = arguments.to;
  options.grouping = grouping_named(arguments.regions);
  options.precision = precision_named(arguments.precision);
  options.dense = arguments.dense;
  options.dequantize = arguments.dequantize;
  options.all_types = arguments.all_types;
  options.shard_bytes = arguments.shard_size;
  // Before anything is written: who sees what gets lost can still stop the work.
  options.on_losses = [&](const std::vector<std::string>& losses) {
    if (arguments.lossless) refuse_losses(arguments, losses);
    if (session.common.json) return;
    for (const std::string& loss : losses) session.out.print("lost: {}\n", escape(loss));
    session.out.flush();
  };
  ProgressBar bar("converting " + arguments.input);
  options.save.work.progress = bar.callback();
  ConvertResult result = convert(arguments.input, arguments.output, options);
  bar.finish();
  if (!session.common.json) result.losses.clear();  // they are printed
  print_result(session, "thalia.convert.1", {&arguments.input, 1}, result.output.string(), result);
  return kDone;
}

}  // namespace

Run declare_convert(CLI::App& app) {
  app.description(
      "Converts a checkpoint between formats, without loss unless --precision asks for it, and "
      "says what the target cannot hold. The input's format is found by content, the output's by "
      "its name's ending. OUT.meta is a side file of a .thalia file: all it says, without "
      "payloads. "
      "OUT.mckp is compressed with plane_entropy unless --codec says otherwise.");
  const auto arguments = std::make_shared<ConvertArguments>();
  add_file(app, "IN", arguments->input, "The file to read");
  add_file(app, "OUT", arguments->output, "The file to write");
  add_choice(app, "--from FORMAT", arguments->from, choices_of(file_formats()),
             "Format of IN, where neither content nor name tells it");
  std::vector<FileFormat> written(file_formats().begin(), file_formats().end());
  std::erase_if(written, [](FileFormat format) { return !file_format_is_written(format); });
  add_choice(app, "--to FORMAT", arguments->to, choices_of(written),
             "Format of OUT, where its name does not tell it");
  offer(
      add_option(app, "--regions HOW", arguments->regions,
                 "How tensors become regions: auto (the default: the name up to its first number), "
                 "none (one region) or DEPTH (that many parts of the name)"),
      "auto|none");
  offer(
      add_option(app, "--precision POLICY", arguments->precision,
                 "Types of floating point tensors: keep (the default), fp32, fp16, bf16, mixed, or "
                 "KEY=PRECISION,... with categories and patterns: weights=fp16,traces/*=bf16"),
      "keep|fp32|fp16|bf16|mixed");
  add_dense(app, arguments->dense);
  app.add_flag("--lossless", arguments->lossless,
               "Writes nothing where OUT cannot hold all that IN has");
  app.add_flag(
      "--dequantize", arguments->dequantize,
      "Elements in place of the codes of formats with types of their own, as GGUF's blocks");
  add_option(app, "--shard-size SIZE", arguments->shard_size,
             "For safetensors: bytes of tensors in a file, as 5GB; OUT is the folder, or its index")
      ->transform(size_value());
  app.add_flag(
      "--all-types", arguments->all_types,
      "Also types that OUT's format has and its program does not read, as f16 in GPTRSCHK");
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_convert(*arguments, session); };
}

}  // namespace thalia::cli
