#include "formats/source/check_tensors.h"

#include "format/payload.h"

namespace thalia::formats {

void check_tensors(const OpenedFile& source, const VerifyOptions& options,
                   container::Findings& findings) {
  const std::vector<AnyTensor>& tensors = source.facts().tensors;
  VerifyReport& counts = findings.counts();
  counts.tensors = static_cast<std::uint32_t>(tensors.size());
  if (options.quick) return;
  std::uint64_t total = 0;
  for (const AnyTensor& tensor : tensors) total += tensor.stored_bytes.value_or(0);
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const AnyTensor& tensor = tensors[i];
    findings.find([&] { source.check(i); });
    if (!tensor.checksum.empty()) {
      ++counts.tensors_compared;
      counts.bytes_checked +=
          tensor.stored_bytes.value_or(format::payload_length(tensor.layout).value_or(0));
    }
    done += tensor.stored_bytes.value_or(0);
    if (options.work.progress) options.work.progress(done, total);
  }
}

}  // namespace thalia::formats
