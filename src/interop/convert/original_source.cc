#include "interop/convert/original_source.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "thalia/brain_region.h"
#include "thalia/v01.h"

namespace thalia::interop {
namespace {

class OriginalSource final : public OpenedFile {
 public:
  explicit OriginalSource(const V01File& file) {
    facts_.version = file.document.header.version.to_string();
    facts_.training_steps = file.document.header.training_steps;
    facts_.file_bytes = file.file_bytes;
    std::unordered_map<std::string, unsigned> seen;  // a region's name may occur twice
    for (const V01Entry& entry : file.document.entries) {
      for_each_tensor(entry.state, [&](const std::string& path, const Tensor& tensor) {
        std::string name = fmt::format("{}.{}", entry.name, path);
        const unsigned before = seen[name]++;
        if (before > 0) name += fmt::format("#{}", before + 1);
        facts_.tensors.push_back({.name = std::move(name),
                                  .layout = tensor.layout(),
                                  .in_place = true,
                                  .checksum = "sha256"});
        tensors_.push_back(tensor);
      });
    }
  }

  Tensor read(std::size_t i) const override { return tensors_[i]; }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace

std::shared_ptr<const OpenedFile> open_original_source(const std::filesystem::path& path,
                                                       const OpenOptions& options) {
  return std::make_shared<OriginalSource>(read_v01(path, options.chain.read));
}

}  // namespace thalia::interop
