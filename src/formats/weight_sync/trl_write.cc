#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/weight_sync/trl_metadata.h"
#include "formats/weight_sync/weight_writers.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats {

WeightDeltaResult write_trl_delta(const OpenedFile& base, const OpenedFile& next,
                                  const std::filesystem::path& file,
                                  const WeightDeltaOptions& options) {
  using namespace weight_sync;
  const std::string file_name = file.filename().string();
  const auto number = trl_step(file_name);
  if (!number) {
    fail_argument(ErrorCode::bad_argument, "output", printable(file_name),
                  "step_NNNNNN.safetensors: the version");
  }
  if (!options.checksum.empty())
    fail_argument(ErrorCode::bad_argument, "checksum", printable(options.checksum), "none");
  WeightDeltaResult result;
  result.version = *number;
  const TrlMetadata metadata{.version = *number, .encoding = position_encoding(options.encoding)};
  std::vector<ElementList> lists(next.tensor_count());
  const ModelPair models(base, next);
  models.compare(options.work, [&](std::size_t i, ByteSpan before, ByteSpan after) {
    lists[i] = list_elements(metadata.encoding, next.stored(i).layout.dtype, before, after);
  });
  result.tensors = lists.size();
  std::vector<NamedArray> arrays;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const AnyTensor tensor = next.stored(i);
    result.elements += tensor.elements();
    const ElementList& list = lists[i];
    if (list.count == 0) continue;
    ++result.changed_tensors;
    result.changed_elements += list.count;
    arrays.push_back({.name = tensor.name + std::string(metadata.positions),
                      .dtype = list.position_type,
                      .shape = Shape{list.count},
                      .bytes = list.positions});
    arrays.push_back({.name = tensor.name + std::string(metadata.values),
                      .dtype = tensor.layout.dtype,
                      .shape = Shape{list.count},
                      .bytes = list.values});
  }
  const TrlCounts counts{.changed_tensors = result.changed_tensors,
                         .changed_elements = result.changed_elements,
                         .elements = result.elements};
  result.file_bytes = save_safetensors(file, std::move(arrays),
                                       write_trl_metadata(metadata, counts), options.output);
  return result;
}

}  // namespace thalia::formats
