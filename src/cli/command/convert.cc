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
#include "cli/command/save_arguments.h"
#include "cli/print/progress.h"
#include "inspect/file_format.h"
#include "thalia/convert.h"

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

int run_convert(const ConvertArguments& arguments, const Session& session) {
  ConvertOptions options = arguments.save.options(session);
  options.from = arguments.from;
  options.to = arguments.to;
  options.grouping = grouping_named(arguments.regions);
  options.precision = precision_named(arguments.precision);
  options.dense = arguments.dense;
  ProgressBar bar("converting " + arguments.input);
  options.save.work.progress = bar.callback();
  const ConvertResult result = convert(arguments.input, arguments.output, options);
  bar.finish();
  print_result(session, "thalia.convert.1", {&arguments.input, 1}, arguments.output, result);
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
  add_choice(app, "--from FORMAT", arguments->from, choices_of(inspect::all_file_formats()),
             "Format of IN: thalia, safetensors, thalia-0.1, mckp or mst");
  // The last one is read only.
  add_choice(app, "--to FORMAT", arguments->to, choices_of(inspect::all_file_formats().first<4>()),
             "Format of OUT: thalia, safetensors, thalia-0.1 or mckp");
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
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_convert(*arguments, session); };
}

}  // namespace thalia::cli
