// thalia quantize: weights as codes of a few bits. The loss is measured and printed for each
// tensor, so that nobody loses precision unseen.
#include "thalia/state/quantization.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/options/save_arguments.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/progress.h"
#include "cli/terminal/escape.h"
#include "inspect/sensitivity.h"

namespace thalia::cli {
namespace {

struct QuantizeArguments {
  std::string input;
  std::string output;
  QuantizationOptions options;
  std::optional<std::uint16_t> max_generations;
  std::string sensitivity;
  SaveArguments save;
};

void print_text(Output& out, const QuantizeArguments& arguments, const QuantizeFileResult& result) {
  using enum Table::Align;
  Table table({{"region"},
               {"tensor"},
               {"dtype"},
               {"bits", right},
               {"was", right},
               {"is", right},
               {"largest error", right},
               {"rms error", right},
               {"relative", right}});
  for (const QuantizedTensorReport& one : result.quantized) {
    table.add_row({escape_name(one.region), escape_name(one.name),
                   std::string(dtype_name(one.dtype)), fmt::format("{:.3g}", one.bits),
                   human_bytes(one.dense_bytes), human_bytes(one.quantized_bytes),
                   fmt::format("{:.3g}", one.max_error), fmt::format("{:.3g}", one.rms_error),
                   fmt::format("{:.3g}", one.relative_error)});
  }
  if (!result.quantized.empty()) table.print(out);
  for (const std::string& path : result.not_finite)
    out.print("left as it is, with numbers that are not finite or too far apart: {}\n",
              escape(path));
  out.print("{}: {} of {} quantized, {} from {} in {:.2f} s\n", escape(arguments.output),
            grouped(result.quantized.size()), counted(result.tensors, "tensor", "tensors"),
            human_bytes(result.output_bytes), human_bytes(result.input_bytes), result.seconds);
  if (!result.quantized.empty()) {
    out.print("lossy: generation {} of at most {}\n", result.lossy_generation,
              result.max_lossy_generations);
  }
}

void print_json(Output& out, const QuantizeArguments& arguments, const QuantizeFileResult& result) {
  print_object(out, "thalia.quantize.1", [&](JsonWriter& json) {
    add_files(json, arguments.input, arguments.output);
    json.member("tensor_count", result.tensors);
    json.key("quantized").begin_array();
    for (const QuantizedTensorReport& one : result.quantized) {
      json.begin_object();
      add_region(json, one.region);
      json.member("name", as_utf8(one.name));
      json.member("dtype", dtype_name(one.dtype)).member("elements", one.elements);
      json.member("bits", one.bits).member("dense_bytes", one.dense_bytes);
      json.member("quantized_bytes", one.quantized_bytes).member("max_error", one.max_error);
      json.member("rms_error", one.rms_error).member("relative_error", one.relative_error);
      json.end_object();
    }
    json.end_array();
    add_list(json, "not_finite", result.not_finite);
    json.member("lossy_generation", result.lossy_generation);
    json.member("max_lossy_generations", result.max_lossy_generations);
    add_sizes_and_time(json, result);
  });
}

int run_quantize(const QuantizeArguments& arguments, const Session& session) {
  const ConvertOptions save = arguments.save.options(session);
  QuantizationOptions options = arguments.options;
  options.max_generations = arguments.max_generations;
  if (!arguments.sensitivity.empty())
    options.sensitivity = inspect::sensitivities_of(arguments.sensitivity, save.chain.read);
  ProgressBar bar("quantizing " + arguments.input);
  auto file = session.options<QuantizeFileOptions>();
  file.save = save.save;
  file.save.work.progress = bar.callback();
  const QuantizeFileResult result = quantize_file(arguments.input, arguments.output, options, file);
  bar.finish();
  if (session.common.json) {
    print_json(session.out, arguments, result);
  } else {
    print_text(session.out, arguments, result);
  }
  return kDone;
}

}  // namespace

Run declare_quantize(CLI::App& app) {
  app.description(
      "Stores floating point weights as codes of a few bits: lossy, and marked so in the file. "
      "Readers give them back in the type that they had. What an optimizer keeps, small tensors, "
      "matrices of connections, and what has NaN or infinities stay as they are.");
  const auto arguments = std::make_shared<QuantizeArguments>();
  add_model(app, "IN", arguments->input, "The .thalia file to read");
  add_file(app, "OUT", arguments->output, "The file to write");
  add_option(app, "--bits B", arguments->options.bits,
             "Bits of a code, 1 to 8, default 8; with --adaptive or --sensitivity the mean");
  add_option(app, "--group-size N", arguments->options.group_size,
             "Weights that share a minimum and a scale: a multiple of 8, default 128; 0: all");
  app.add_flag("--adaptive", arguments->options.adaptive,
               "Give each group the bits that take most error away");
  offer(add_option(app, "--sensitivity FILE", arguments->sensitivity,
                   "Weigh errors: a file with a tensor of the same name and size for each"),
        kFile);
  add_option(app, "--include PATTERN", arguments->options.include,
             "Only tensors that fit, whatever their role; may be repeated");
  add_option(app, "--exclude PATTERN", arguments->options.exclude,
             "Leave tensors that fit: '*' any characters, '?' one; may be repeated");
  add_option(app, "--min-elements N", arguments->options.min_elements,
             "Leave smaller tensors, default 1024");
  add_option(app, "--max-generations N", arguments->max_generations,
             "How often weights may be rounded so, restored and rounded again; default 10");
  arguments->save.declare(app);
  return [arguments](const Session& session) { return run_quantize(*arguments, session); };
}

}  // namespace thalia::cli
