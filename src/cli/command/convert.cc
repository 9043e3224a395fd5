// thalia convert
#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "cli/command/choice.h"
#include "cli/command/command.h"
#include "cli/command/save_arguments.h"
#include "cli/print/progress.h"
#include "thalia/convert.h"

namespace thalia::cli {
namespace {

struct ConvertArguments {
  std::string input;
  std::string output;
  std::string from;
  std::string to;
  std::string regions = "auto";
  std::string precision = "keep";
  SaveArguments save;
};

std::optional<FileFormat> format_named(std::string_view option, const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (const auto format = file_format_from_name(name)) return format;
  throw UsageError(ErrorCode::bad_argument, {},
                   {.field = std::string(option),
                    .value = fmt::format("'{}'", name),
                    .bound = "thalia, safetensors, thalia-0.1, mckp, mst"});
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
  options.from = format_named("--from", arguments.from);
  options.to = format_named("--to", arguments.to);
  options.grouping = grouping_named(arguments.regions);
  options.precision = precision_named(arguments.precision);
  ProgressBar bar("converting " + arguments.input);
  options.save.work.progress = bar.callback();
  const ConvertResult result = convert(arguments.input, arguments.output, options);
  bar.finish();
  print_result(session.out, result, arguments.output, arguments.save.json);
  return kDone;
}

}  // namespace

Run declare_convert(CLI::App& app) {
  app.description(
      "Converts a checkpoint between formats, without loss unless --precision asks for it, and "
      "says\n"
      "what the target cannot hold.\n"
      "The input's format is found by content, the output's by its name's ending. An output that "
      "is\n"
      "there already is replaced in one step; on an error it stays as it was.\n"
      "OUT.meta is a side file of a .thalia file: all it says, without payloads. OUT.mckp is "
      "compressed\n"
      "with plane_entropy unless --codec says otherwise.");
  const auto arguments = std::make_shared<ConvertArguments>();
  app.add_option("IN", arguments->input, "The file to read")->required();
  app.add_option("OUT", arguments->output, "The file to write")->required();
  app.add_option("--from", arguments->from,
                 "Format of IN: thalia, safetensors, thalia-0.1, mckp or mst")
      ->option_text("FORMAT");
  app.add_option("--to", arguments->to, "Format of OUT: thalia, safetensors, thalia-0.1 or mckp")
      ->option_text("FORMAT");
  app.add_option(
         "--regions", arguments->regions,
         "How tensors become regions: auto (the default: the name up to its first number),\n"
         "none (one region) or DEPTH (that many parts of the name)")
      ->option_text("HOW");
  app.add_option(
         "--precision", arguments->precision,
         "Types of floating point tensors: keep (the default), fp32, fp16, bf16, mixed, or\n"
         "KEY=PRECISION,... with categories and patterns: weights=fp16,traces/*=bf16")
      ->option_text("POLICY");
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_convert(*arguments, session); };
}

}  // namespace thalia::cli
