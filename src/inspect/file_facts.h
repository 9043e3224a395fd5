// What a file says of itself, whichever format it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/tensor_totals.h"
#include "inspect/training_progress.h"
#include "thalia/formats/file_facts.h"
#include "thalia/formats/file_format.h"
#include "thalia/state/metadata.h"
#include "thalia/types.h"

namespace thalia::inspect {

struct DescribedFile : FileFacts {
  std::string path;
  FileFormat format = FileFormat::thalia;
  std::optional<TensorTotals> totals{};
  TrainingProgress progress{};  ///< steps of the header are without a member's name
};

/// 8-4-4-4-12 hexadecimal digits.
std::string uuid_text(const Uuid& uuid);

/// nullopt where the metadata have another kind of growth_history: it is then shown as it stands.
std::optional<std::vector<GrowthEvent>> growth_events(std::string_view metadata);

}  // namespace thalia::inspect
