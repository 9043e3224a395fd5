// The MCKP file that a new one is taken against.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "formats/source/tensor_sink.h"
#include "thalia/formats/mckp.h"

namespace thalia::formats::mckp {

class DeltaBase {
 public:
  /// @throws as write_mckp().
  DeltaBase(const std::filesystem::path& output, const SinkBase& base, const SinkOptions& options);

  const MckpPrevious& previous() const noexcept { return previous_; }
  /// Whether a reader of the output finds the base without being told where to look.
  bool is_found_from_output() const noexcept { return found_; }
  /// A tensor of that name and layout; nullopt where there is none.
  std::optional<Tensor> find(const std::string& name, const TensorLayout& layout) const;

 private:
  void check_chain(const std::filesystem::path& output) const;

  MckpChain chain_;
  MckpPrevious previous_;
  bool found_ = false;
};

}  // namespace thalia::formats::mckp
