#include "cli/tensor/measured_tensor.h"

namespace thalia::cli {

MeasuredTensor measured(const TensorSource& source, const Work& work) {
  const TensorLayout& layout = source.layout;
  return {.region = source.region,
          .name = source.name,
          .layout = layout,
          .statistics = source.entries
                            ? statistics_of(source.entries->tensor())
                            : statistics_of(layout.dtype, layout.shape, source.read, work)};
}

}  // namespace thalia::cli
