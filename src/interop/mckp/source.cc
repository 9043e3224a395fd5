#include "interop/mckp/source.h"

#include <optional>
#include <utility>

#include "io/process.h"
#include "thalia/mckp.h"

namespace thalia::interop {
namespace mckp {
namespace {

class Source final : public SourceFile {
 public:
  Source(const std::filesystem::path& path, const SourceOptions& options)
      : path_(path), options_(options), file_(MckpFile::open(path, read_options(false))) {
    facts_.version = "1";
    for (const MckpTensor& tensor : file_.tensors()) {
      facts_.tensors.push_back({.name = tensor.name,
                                .layout = tensor.layout(),
                                .offset = tensor.offset,
                                .stored_bytes = tensor.compressed_size,
                                .checksum = "xxh64"});
    }
    facts_.metadata = file_.header().metadata;
    facts_.training_steps = file_.header().training_step;
    facts_.file_bytes = file_.file_bytes();
    if (options.read.verification == Verification::at_open) chain();
  }

  std::vector<std::filesystem::path> files() const override {
    std::vector<std::filesystem::path> files;
    if (file_.header().previous)
      for (const MckpFile& file : chain().files()) files.emplace_back(file.name());
    return files;
  }

  Tensor read(std::size_t i) const override {
    const MckpTensor& tensor = file_.tensors()[i];
    const MckpChain& files = chain();
    return tensor.method.delta ? files.read(tensor.name) : file_.view(tensor.name);
  }

 private:
  MckpReadOptions read_options(bool verify) const {
    return {.input = options_.read.input,
            .verify = verify,
            .search = options_.search,
            .bases = options_.bases,
            .work = options_.read.work};
  }

  // Of the file that is open: the path may be another's by now.
  const MckpChain& chain() const {
    once_.run([&] {
      const Verification wanted = options_.read.verification;
      const bool verify = wanted == Verification::on_first_touch || wanted == Verification::at_open;
      chain_.emplace(MckpChain::open(path_, file_, read_options(verify)));
    });
    return *chain_;
  }

  std::filesystem::path path_;
  SourceOptions options_;
  MckpFile file_;
  mutable io::Once once_;
  mutable std::optional<MckpChain> chain_;
};

}  // namespace
}  // namespace mckp

std::shared_ptr<const SourceFile> open_mckp_source(const std::filesystem::path& path,
                                                   const SourceOptions& options) {
  return std::make_shared<mckp::Source>(path, options);
}

}  // namespace thalia::interop
