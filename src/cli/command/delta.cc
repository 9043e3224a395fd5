// thalia delta, thalia resolve: what changed between two checkpoints, and the full file again.
#include "thalia/delta.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cli/command/choice.h"
#include "cli/command/command.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"

namespace thalia::cli {
namespace {

using format::Codec;

constexpr std::array kDeltaCodecs{
    Choice<Codec>{"store", Codec::store}, Choice<Codec>{"zstd", Codec::zstd},
    Choice<Codec>{"lz4", Codec::lz4}, Choice<Codec>{"plane_entropy", Codec::plane_entropy},
    Choice<Codec>{"packed_exponents", Codec::packed_exponents}};

struct DeltaArguments {
  std::string base;
  std::string input;
  std::string output;
  double threshold = 0;
  bool low_rank = false;
  LowRankOptions low_rank_options;
  std::string codec;  ///< empty: not given
  int level = 0;
  unsigned threads = 0;
  bool json = false;
};

void add_names(JsonWriter& json, const char* key, const std::vector<std::string>& names) {
  json.key(key).begin_array();
  for (const std::string& name : names) json.value(as_utf8(name));
  json.end_array();
}

void print_low_rank(Output& out, const std::vector<LowRankReport>& reports) {
  using enum Table::Align;
  Table table({{"region"},
               {"tensor"},
               {"rank", right},
               {"bits", right},
               {"stored", right},
               {"largest error", right},
               {"rms error", right},
               {"of the change", right}});
  for (const LowRankReport& one : reports) {
    table.add_row({escape_name(one.region), escape_name(one.name), std::to_string(one.rank),
                   fmt::format("{:.3g}", one.bits), human_bytes(one.stored_bytes),
                   fmt::format("{:.3g}", one.max_error), fmt::format("{:.3g}", one.rms_error),
                   fmt::format("{:.3g}", one.relative_error)});
  }
  if (!reports.empty()) table.print(out);
}

void add_low_rank(JsonWriter& json, const std::vector<LowRankReport>& reports) {
  json.key("low_rank").begin_array();
  for (const LowRankReport& one : reports) {
    json.begin_object().member("region", as_utf8(one.region)).member("name", as_utf8(one.name));
    json.member("dtype", dtype_name(one.dtype)).member("rows", one.rows);
    json.member("columns", one.columns).member("rank", one.rank).member("bits", one.bits);
    json.member("stored_bytes", one.stored_bytes).member("max_error", one.max_error);
    json.member("rms_error", one.rms_error).member("relative_error", one.relative_error);
    json.end_object();
  }
  json.end_array();
}

void print_delta(Output& out, const DeltaArguments& arguments, const DeltaResult& result) {
  if (!arguments.json) {
    out.print("{}: {}, {} beside a base of {} (1 to {:.1f}), in {:.2f} s\n",
              escape(arguments.output), counted(result.tensors, "tensor", "tensors"),
              human_bytes(result.file_bytes), human_bytes(result.base_bytes), result.ratio(),
              result.seconds);
    out.print("{} unchanged, {} as differences, {} as lists of {}, {} whole; depth {}\n",
              grouped(result.same), grouped(result.differences), grouped(result.lists),
              counted(result.listed_elements, "element", "elements"), grouped(result.whole),
              result.depth);
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
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("output", as_utf8(arguments.output)).member("depth", result.depth);
  json.member("regions", result.regions).member("tensors", result.tensors);
  json.member("unchanged", result.same).member("differences", result.differences);
  json.member("lists", result.lists).member("listed_elements", result.listed_elements);
  json.member("whole", result.whole).member("unlike", result.unlike);
  json.member("converted", result.converted);
  if (arguments.low_rank) add_low_rank(json, result.low_rank);
  add_names(json, "changed_regions", result.changed_regions);
  add_names(json, "removed_regions", result.removed_regions);
  json.member("base_bytes", result.base_bytes).member("output_bytes", result.file_bytes);
  json.member("ratio", result.ratio()).member("seconds", result.seconds).end_object();
  out.write(text + "\n");
}

ChainOptions chain_options(const DeltaArguments& arguments, const Session& session) {
  auto options = session.options<ChainOptions>();
  options.read.work.threads = arguments.threads;
  return options;
}

Compression compression_of(const DeltaArguments& arguments) {
  Compression made{.level = arguments.level};
  if (!arguments.codec.empty()) made.codec = choose("--codec", arguments.codec, kDeltaCodecs);
  return made;
}

int run_delta(const DeltaArguments& arguments, const Session& session) {
  ProgressBar bar("comparing " + arguments.input);
  const ChainOptions chain = chain_options(arguments, session);
  const ChainReader base = ChainReader::open(arguments.base, chain);
  const ChainReader input = ChainReader::open(arguments.input, chain);
  auto options = session.options<DeltaOptions>();
  options.threshold = arguments.threshold;
  if (arguments.low_rank) options.low_rank = arguments.low_rank_options;
  options.compression = compression_of(arguments);
  options.work.threads = arguments.threads;
  options.work.progress = bar.callback();
  const DeltaResult result = write_delta(delta_state(input), base, arguments.output, options);
  bar.finish();
  print_delta(session.out, arguments, result);
  return kDone;
}

int run_resolve(const DeltaArguments& arguments, const Session& session) {
  ProgressBar bar("resolving " + arguments.input);
  const ChainOptions chain = chain_options(arguments, session);
  auto save = session.options<SaveOptions>();
  save.compression = compression_of(arguments);
  save.work.threads = arguments.threads;
  save.work.progress = bar.callback();
  const ResolveResult result = resolve(arguments.input, arguments.output, chain, save);
  bar.finish();
  if (!arguments.json) {
    session.out.print("{}: {}, {} from {} of {} in {:.2f} s\n", escape(arguments.output),
                      counted(result.tensors, "tensor", "tensors"),
                      human_bytes(result.output_bytes), human_bytes(result.input_bytes),
                      counted(result.depth + 1, "file", "files"), result.seconds);
    return kDone;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("output", as_utf8(arguments.output)).member("depth", result.depth);
  json.member("regions", result.regions).member("tensors", result.tensors);
  json.member("input_bytes", result.input_bytes).member("output_bytes", result.output_bytes);
  json.member("seconds", result.seconds).end_object();
  session.out.write(text + "\n");
  return kDone;
}

void declare_shared(CLI::App& app, DeltaArguments& arguments, const char* codec_help) {
  app.add_option("--codec", arguments.codec, codec_help)->option_text("CODEC");
  app.add_option("--level", arguments.level,
                 "1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)")
      ->option_text("N");
  app.add_option("--threads", arguments.threads, "Threads; 0, the default: one a core")
      ->option_text("N");
  app.add_flag("--json", arguments.json, "What was done as a JSON object");
}

}  // namespace

Run declare_delta(CLI::App& app) {
  app.description(
      "Writes what NEW has that BASE has not. The delta finds BASE by its path from the delta's "
      "folder,\n"
      "and needs exactly this file; BASE may be a delta itself. Without --threshold and --low-rank "
      "nothing\n"
      "is lost.");
  const auto arguments = std::make_shared<DeltaArguments>();
  app.add_option("BASE", arguments->base, "The checkpoint before")->required();
  app.add_option("NEW", arguments->input, "The checkpoint to store")->required();
  app.add_option("OUT", arguments->output, "The delta to write, NAME.delta.thalia")->required();
  app.add_option("--threshold", arguments->threshold,
                 "Weights that moved by less than this keep the base's value; 0, the default: none")
      ->option_text("X");
  LowRankOptions& low_rank = arguments->low_rank_options;
  app.add_flag("--low-rank", arguments->low_rank,
               "Store changes of weight matrices as a few products of vectors, where that is "
               "smaller: lossy");
  app.add_option("--bits-per-element", low_rank.bits_per_element,
                 "With --low-rank: bits that a matrix may take, an element; default 0.5")
      ->option_text("B");
  app.add_option("--max-rank", low_rank.max_rank, "With --low-rank: products at most, default 64")
      ->option_text("K");
  app.add_option("--max-loss", low_rank.max_relative_error,
                 "With --low-rank: store a matrix exactly where more than this part of its change "
                 "is\nlost; 0 to 1, the default: any")
      ->option_text("X");
  app.add_option("--exclude", low_rank.exclude,
                 "With --low-rank: store tensors that fit exactly; may be repeated")
      ->option_text("PATTERN")
      ->allow_extra_args(false);
  declare_shared(app, *arguments,
                 "plane_entropy (the default, but zstd where a level is given), packed_exponents, "
                 "zstd,\nlz4, or store");
  return [arguments](const Session& session) { return run_delta(*arguments, session); };
}

Run declare_resolve(CLI::App& app) {
  app.description(
      "Writes the state of a delta, and of all that it is based on, as a full file: equal texts, "
      "and\n"
      "tensors that are equal byte for byte.");
  const auto arguments = std::make_shared<DeltaArguments>();
  app.add_option("DELTA", arguments->input, "The delta")->required();
  app.add_option("OUT", arguments->output, "The file to write")->required();
  declare_shared(app, *arguments,
                 "store (the default), zstd, lz4, plane_entropy or packed_exponents");
  return [arguments](const Session& session) { return run_resolve(*arguments, session); };
}

}  // namespace thalia::cli
