#include "inspect/file_tensors.h"

#include <string>

#include "base/fail.h"
#include "inspect/shown_name.h"

namespace thalia::inspect {

AnyFile open_stored(const std::filesystem::path& path, const ChainOptions& chain,
                    bool shared_memory) {
  return open_any(path, {.chain = chain, .shared_memory = shared_memory, .as_stored = true});
}

void visit_tensors(const AnyFile& file, Selection& selection, const VisitTensor& visit) {
  selection.know_regions(file);
  const std::size_t count = file.tensor_count();
  for (std::size_t i = 0; i < count; ++i) {
    const FileTensor tensor(file, i);
    if (selection.takes(tensor.names())) visit(tensor);
  }
  with_path(file.path(), [&] { selection.check(); });
}

// The name as it was typed comes first, as it may look like an escape, or a path.
FileTensor find_tensor(const AnyFile& file, std::string_view name) {
  if (const auto found = file.find(name)) return {file, *found};
  return {file, file.at(unescape_name(name))};
}

}  // namespace thalia::inspect
