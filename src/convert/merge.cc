// Everything is planned before anything is written: regions, connections and metadata are compared,
// all conflicts are collected, and one error names them together. Only then is the output created.
// Inputs stay open until the copy has finished, as it borrows their bytes.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "convert/conversions.h"
#include "convert/merge_plan.h"
#include "convert/tensor_flow.h"
#include "convert/thalia_copy.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"

namespace thalia {

ConvertResult merge(const std::vector<std::filesystem::path>& inputs,
                    const std::filesystem::path& output, const MergeOptions& merging,
                    const ConvertOptions& options) {
  const Stopwatch watch;
  const MergePreference& preference = merging.preference;
  if (inputs.empty()) fail_argument(ErrorCode::bad_argument, "inputs", "none", "one at least");
  if (preference.kind == MergePreference::Kind::input && preference.number >= inputs.size()) {
    fail_argument(ErrorCode::bad_argument, "preference", std::to_string(preference.number),
                  fmt::format("below {}", inputs.size()));
  }
  ConvertResult result{.output = output};
  std::vector<Reader> readers;
  for (const auto& named : inputs) {
    const io::InputFile input(find_model(named));
    formats::check_not_read(input, output, options.save.output, formats::source_options(options),
                            formats::thalia_format(input, options.chain.read.input.access));
    const formats::ResolvedInput resolved = formats::resolved_for(input, output, options);
    readers.push_back(resolved.reader);
    result.input_bytes +=
        resolved.copied_bytes != 0 ? resolved.copied_bytes : resolved.reader.file_bytes();
  }

  ConvertOptions unconverted = options;
  // A merge copies; another precision would make it differ from every input.
  unconverted.precision = {};
  if (!merging.prefixes.empty()) {
    formats::merge_brains(readers, output, merging, unconverted, result);
    result.seconds = watch.seconds();
    return result;
  }
  if (!merging.metadata_json.empty())
    fail_argument(ErrorCode::bad_argument, "metadata_json", "some", "none without prefixes");
  formats::MergeConflicts conflicts(readers, preference);
  const auto regions = formats::plan_regions(readers, options.chain.read.input.limits, conflicts);
  const auto connections = formats::plan_connections(readers, conflicts);
  std::string metadata =
      formats::merge_metadata(readers, options.chain.read.input.limits, conflicts);
  conflicts.throw_if_open();

  result.losses = conflicts.losses();
  formats::ThaliaCopy copy(output, unconverted, result);
  copy.set_metadata(std::move(metadata));
  std::uint64_t steps = 0;
  for (const Reader& reader : readers)
    steps = std::max<std::uint64_t>(steps, reader.header().training_steps);
  copy.set_training_steps(steps);
  for (const formats::Taken& region : regions)
    copy.copy_region(readers[region.input], region.number);
  for (const formats::Taken& connection : connections)
    copy.copy_connection(readers[connection.input].connection(connection.number));
  copy.finish();
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
