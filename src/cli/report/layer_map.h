// What the layers of a model take: tensors gathered by the beginnings of their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thalia::cli {

struct Layer {
  std::string name;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

/// In the order in which they are first met.
class LayerMap {
 public:
  void add(std::string_view region, std::string_view name, std::uint64_t bytes);
  /// For a file with several regions, the regions; else the beginnings of names, up to the first
  /// part that is a number ("transformer.h.11"), or without the last part if none is.
  std::vector<Layer> layers() const;

 private:
  struct Named {
    std::string region;
    std::string beginning;
    std::uint64_t bytes;
  };
  std::vector<Named> tensors_;
};

}  // namespace thalia::cli
