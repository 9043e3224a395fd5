// The header of a safetensors file precedes all payloads and names their sizes, so everything is
// planned first and payloads are streamed afterwards, one at a time. What the metadata held beyond
// safetensors' texts is listed as a loss.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/fail.h"
#include "interop/convert/conversions.h"
#include "interop/convert/flat_export.h"
#include "interop/convert/payload_pieces.h"
#include "interop/convert/precision_run.h"
#include "interop/safetensors/origin.h"
#include "interop/safetensors/writer.h"
#include "interop/shared/list_names.h"
#include "thalia/error.h"

namespace thalia::interop {

void thalia_to_safetensors(const Reader& reader, const path& output, const ConvertOptions& options,
                           ConvertResult& result) {
  with_path(reader.path().native(), [&] {
    PrecisionRun precision(options.precision, result);
    FlatExport out =
        plan_flat_export(reader, FileFormat::safetensors, options, precision, result.losses);

    SafetensorsOrigin origin =
        origin_from_json(reader.metadata_json(), options.read.input.limits.max_json_depth);
    precision.note_in(origin.metadata);
    // note_in() writes this member anew, so it is not lost.
    if (!options.precision.keeps_all()) std::erase(origin.other_keys, kPrecisionPolicyKey);
    if (!origin.other_keys.empty()) {
      result.losses.push_back(fmt::format("metadata: {}", list_names(origin.other_keys)));
    }
    if (reader.header().training_steps != 0) result.losses.push_back("the count of training steps");

    std::vector<std::byte> scratch;
    result.input_bytes = reader.file_bytes();
    result.tensors = static_cast<std::uint32_t>(out.tensors.size());
    result.output_bytes =
        write_safetensors(output, out.tensors, origin.metadata,
                          {.max_header_bytes = options.max_safetensors_header_bytes,
                           .output = options.save.output,
                           .work = options.save.work},
                          [&](std::size_t i, const PieceSink& sink) {
                            const TensorView& view = out.views[i];
                            visit_elements(view, scratch, options.read, [&](ByteSpan piece) {
                              if (out.tensors[i].dtype == view.dtype()) {
                                sink(piece);
                              } else {
                                precision.convert(out.tensors[i].name, dense_spec_of(view), piece,
                                                  out.tensors[i].dtype, sink);
                              }
                            });
                          });
  });
}

}  // namespace thalia::interop
