// thalia delta, thalia resolve: what changed between two checkpoints, and the full file again.
// Either may be a delta itself.
#include "thalia/state/delta.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/published_delta.h"
#include "cli/options/compression_arguments.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/print/rebased.h"
#include "cli/terminal/escape.h"
#include "thalia/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/mckp.h"

namespace thalia::cli {
namespace {

struct DeltaArguments {
  std::string base;
  std::string input;
  std::string output;
  double threshold = 0;
  bool plain = false;
  bool low_rank = false;
  std::vector<std::string> exclude;
  LowRankOptions low_rank_options;
  CompressionArguments compression;
  PublishedArguments published;
};

void print_delta(const Session& session, const DeltaArguments& arguments,
                 const DeltaResult& result) {
  Output& out = session.out;
  if (!session.common.json) {
    out.print("{}: {}, {} beside a base of {} (1 to {:.1f}), in {:.2f} s\n",
              escape(arguments.output), counted(result.tensors, "tensor", "tensors"),
              human_bytes(result.file_bytes), human_bytes(result.base_bytes), result.ratio(),
              result.seconds);
    out.print(
        "{} unchanged, {} as steps, {} as differences, {} as lists of {}, {} whole; depth {}\n",
        grouped(result.same), grouped(result.steps), grouped(result.differences),
        grouped(result.lists), counted(result.listed_elements, "element", "elements"),
        grouped(result.whole), result.depth);
    if (result.converted != 0) {
      out.print("{} compared after conversion from another type\n",
                counted(result.converted, "tensor", "tensors"));
    }
    if (result.unlike != 0) {
      out.print("{} stored whole: the base has {} in a form that cannot be compared\n",
                counted(result.unlike, "tensor", "tensors"), result.unlike == 1 ? "it" : "them");
    }
    if (arguments.low_rank) {
      print_low_rank(out, result.low_rank);
      out.print("lossy: {} as products of low rank\n",
                counted(result.low_rank.size(), "matrix", "matrices"));
    }
    return;
  }
  print_object(out, "thalia.delta.1", [&](JsonWriter& json) {
    json.member("base", as_utf8(arguments.base));
    add_files(json, arguments.input, arguments.output);
    json.member("depth", result.depth).member("region_count", result.regions);
    json.member("tensor_count", result.tensors);
    json.member("unchanged", result.same).member("steps", result.steps);
    json.member("differences", result.differences);
    json.member("lists", result.lists).member("listed_elements", result.listed_elements);
    json.member("whole", result.whole).member("unlike", result.unlike);
    json.member("converted", result.converted);
    add_low_rank(json, result.low_rank);
    add_list(json, "changed_regions", result.changed_regions);
    add_list(json, "removed_regions", result.removed_regions);
    json.member("packed", result.packed);
    json.member("base_bytes", result.base_bytes).member("output_bytes", result.file_bytes);
    json.member("ratio", result.ratio()).member("seconds", result.seconds);
  });
}

// A delta of MCKP files: the file itself tells what is stored of each tensor.
DeltaResult write_mckp_delta(const DeltaArguments& arguments, const Session& session) {
  if (arguments.threshold != 0 || arguments.low_rank || !arguments.exclude.empty()) {
    throw UsageError(ErrorCode::bad_argument, "nothing is lost in a delta of MCKP files",
                     {.field = "--threshold, --low-rank, --exclude", .bound = "none of them"});
  }
  ProgressBar bar("comparing " + arguments.input);
  auto options = session.options<ConvertOptions>();
  options.to = FileFormat::mckp;
  options.base = arguments.base;
  options.save.compression = arguments.compression.compression(std::nullopt);
  options.save.work.progress = bar.callback();
  const ConvertResult written = convert(arguments.input, arguments.output, options);
  bar.finish();
  const auto chain = MckpChain::open(arguments.output, session.options<MckpReadOptions>());
  DeltaResult result;
  result.file_bytes = written.output_bytes;
  result.base_bytes = file_bytes(arguments.base);
  result.depth = static_cast<unsigned>(chain.files().size() - 1);
  result.tensors = written.tensors;
  result.seconds = written.seconds;
  for (const MckpTensor& tensor : chain.newest().tensors())
    ++(tensor.method.steps   ? result.steps
       : tensor.method.delta ? result.differences
                             : result.whole);
  return result;
}

int run_delta(const DeltaArguments& arguments, const Session& session) {
  if (arguments.published.kind) {
    return run_published(
        arguments.published, arguments.base, arguments.input, arguments.output,
        arguments.low_rank ? std::optional(arguments.low_rank_options) : std::nullopt, session);
  }
  if (detect_format(arguments.base, session.access()) == FileFormat::mckp) {
    print_delta(session, arguments, write_mckp_delta(arguments, session));
    return kDone;
  }
  if (!arguments.exclude.empty() && arguments.threshold == 0 && !arguments.low_rank) {
    throw UsageError(ErrorCode::bad_argument, "without --threshold and --low-rank nothing is lost",
                     {.field = "--exclude", .value = fmt::format("'{}'", arguments.exclude[0])});
  }
  ProgressBar bar("comparing " + arguments.input);
  const ChainOptions chain = session.options<ChainOptions>();
  auto options = session.options<DeltaOptions>();
  options.loss.threshold = arguments.threshold;
  options.pack = !arguments.plain;
  options.loss.exclude = arguments.exclude;
  if (arguments.low_rank) options.loss.low_rank = arguments.low_rank_options;
  options.save.compression = arguments.compression.compression(std::nullopt);
  options.save.work.progress = bar.callback();
  const DeltaResult result =
      write_delta(arguments.base, arguments.input, arguments.output, chain, options);
  // The bar goes before anything is printed in its line.
  bar.finish();
  print_delta(session, arguments, result);
  return kDone;
}

int run_resolve(const DeltaArguments& arguments, const Session& session) {
  ProgressBar bar("resolving " + arguments.input);
  const ChainOptions chain = session.options<ChainOptions>();
  auto save = session.options<SaveOptions>();
  save.compression = arguments.compression.compression(Codec::none);
  save.work.progress = bar.callback();
  const ResolveResult result = resolve(arguments.input, arguments.output, chain, save);
  bar.finish();
  if (!session.common.json) {
    session.out.print("{}: {}, {} from {} of {} in {:.2f} s\n", escape(arguments.output),
                      counted(result.tensors, "tensor", "tensors"),
                      human_bytes(result.output_bytes), human_bytes(result.input_bytes),
                      counted(result.depth + 1, "file", "files"), result.seconds);
    return kDone;
  }
  print_object(session.out, "thalia.resolve.1", [&](JsonWriter& json) {
    add_files(json, arguments.input, arguments.output);
    json.member("depth", result.depth).member("region_count", result.regions);
    json.member("tensor_count", result.tensors);
    add_sizes_and_time(json, result);
  });
  return kDone;
}

}  // namespace

Run declare_delta(CLI::App& app) {
  app.description(
      "Writes what NEW has that BASE has not. The delta finds BASE by its path from the delta's "
      "folder, and needs exactly this file; BASE may be a delta itself. Without --threshold and "
      "--low-rank nothing is lost. Where BASE is an MCKP file the delta is one, too, and NEW a "
      "file of any format. With --as it is what another program takes, and BASE and NEW are models "
      "of any format.");
  const auto arguments = std::make_shared<DeltaArguments>();
  add_model(app, "BASE", arguments->base, "The checkpoint before");
  add_model(app, "NEW", arguments->input, "The checkpoint to store");
  add_file(app, "OUT", arguments->output, "The delta to write, NAME.delta.thalia");
  CLI::Option* const threshold = add_option(
      app, "--threshold X", arguments->threshold,
      "Weights that moved by less than this keep the base's value; 0, the default: none");
  LowRankOptions& low_rank = arguments->low_rank_options;
  CLI::Option* const wanted =
      app.add_flag("--low-rank", arguments->low_rank,
                   "Store changes of weight matrices as a few products of vectors, where that is "
                   "smaller: lossy");
  CLI::Option* const bits =
      add_option(app, "--bits-per-element B", low_rank.bits_per_element,
                 "With --low-rank: bits that a matrix may take, an element; default 0.5")
          ->needs(wanted);
  add_option(app, "--max-rank K", low_rank.max_rank,
             "With --low-rank: products at most, default 64")
      ->needs(wanted);
  add_option(app, "--max-loss X", low_rank.max_relative_error,
             "With --low-rank: store a matrix exactly where more than this part of its change is "
             "lost; 0 to 1, the default: any")
      ->needs(wanted);
  CLI::Option* const exclude = add_option(
      app, "--exclude PATTERN", arguments->exclude,
      "With --threshold and --low-rank: store tensors that fit exactly; may be repeated");
  CLI::Option* const plain = add_plain(app, arguments->plain);
  arguments->compression.declare(app, all_codecs(),
                                 "plane_entropy, or zstd where a level is given");
  arguments->published.declare(app, wanted,
                               {threshold, bits, exclude, plain, app.get_option("--codec"),
                                app.get_option("--compression-level")});
  return [arguments](const Session& session) { return run_delta(*arguments, session); };
}

Run declare_resolve(CLI::App& app) {
  app.description(
      "Writes the state of a delta, and of all that it is based on, as a full file: equal texts, "
      "and tensors that are equal byte for byte.");
  const auto arguments = std::make_shared<DeltaArguments>();
  add_model(app, "DELTA", arguments->input, "The delta");
  add_file(app, "OUT", arguments->output, "The file to write");
  arguments->compression.declare(app, all_codecs(), "none");
  return [arguments](const Session& session) { return run_resolve(*arguments, session); };
}

}  // namespace thalia::cli
