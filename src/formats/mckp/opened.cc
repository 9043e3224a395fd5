#include "formats/mckp/opened.h"

#include <optional>
#include <utility>

#include "io/system/process.h"
#include "thalia/formats/mckp.h"
#include "thalia/text.h"

namespace thalia::formats {
namespace mckp {
namespace {

MckpReadOptions read_options(const OpenOptions& options, bool verify) {
  return {.verify = verify, .chain = options.chain};
}

MckpFile open_file(const io::InputFile& input, const OpenOptions& options) {
  const ReadOptions& read = options.chain.read;
  const auto& file = input.whole(read.input.access, read.work.cancel);
  return MckpFile::from_bytes({.bytes = file->bytes(), .owner = file}, input.path().string(),
                              read_options(options, false));
}

class OpenedMckp final : public OpenedFile {
 public:
  OpenedMckp(const io::InputFile& input, const OpenOptions& options)
      : path_(input.path()), options_(options), file_(open_file(input, options)) {
    facts_.version = "1";
    for (const MckpTensor& tensor : file_.tensors()) {
      AnyTensor& reported = facts_.tensors.emplace_back();
      reported = {.name = tensor.name,
                  .layout = tensor.layout(),
                  .offset = tensor.offset,
                  .stored_bytes = tensor.compressed_size,
                  .codecs = {tensor.method.codec},
                  .byte_planes = tensor.method.plane_width != 0,
                  .checksum = "xxh64"};
      // A sparse one stays what it is: only so its count is that of what is stored.
      if (tensor.method.delta && !tensor.method.sparse)
        reported.stored_encoding = tensor.method.low_rank ? Encoding::low_rank_delta
                                   : tensor.method.steps  ? Encoding::step_delta
                                                          : Encoding::xor_base;
      if (!tensor.quantization) continue;
      reported.stored_encoding = Encoding::quantized;
      reported.bits = tensor.quantization->bits;
    }
    facts_.metadata = file_.header().metadata;
    facts_.checksum = ChecksumFacts{.type = "xxh64"};
    if (const auto& hash = file_.header().content_hash) facts_.content_hash = hex(hash->bytes);
    if (const auto& previous = file_.header().previous) {
      facts_.is_delta = true;
      facts_.base = BaseFacts{.path = previous->key, .checksum = hex(previous->content_hash.bytes)};
    }
    facts_.training_steps = file_.header().training_step;
    facts_.file_bytes = file_.file_bytes();
    if (options.chain.read.verification == Verification::at_open) chain();
  }

  std::vector<std::filesystem::path> files() const override {
    std::vector<std::filesystem::path> files;
    if (file_.header().previous)
      for (const MckpFile& file : chain().files()) files.emplace_back(file.name());
    return files;
  }

  std::vector<LinkFacts> links(const std::string& path) const override {
    std::vector<LinkFacts> links;
    std::string name = path;
    for (const MckpFile& file : chain().files()) {
      const MckpHeader& header = file.header();
      links.push_back({{.is_delta = header.previous.has_value(),
                        .training_steps = header.training_step,
                        .disk_bytes = file.file_bytes()},
                       name});
      if (header.previous) name = header.previous->key;
    }
    return links;
  }

  Tensor read(std::size_t i) const override {
    const MckpTensor& tensor = file_.tensors()[i];
    const MckpChain& files = chain();
    return tensor.method.delta ? files.read(tensor.name) : file_.view(tensor.name);
  }

 private:
  // The chain of the file that is open: the path may be another's by now.
  const MckpChain& chain() const {
    once_.run([&] {
      const Verification wanted = options_.chain.read.verification;
      const bool verify = wanted == Verification::on_first_touch || wanted == Verification::at_open;
      chain_.emplace(MckpChain::open(path_, file_, read_options(options_, verify)));
    });
    return *chain_;
  }

  std::filesystem::path path_;
  OpenOptions options_;
  MckpFile file_;
  mutable io::Once once_;
  mutable std::optional<MckpChain> chain_;
};

}  // namespace
}  // namespace mckp

std::shared_ptr<const OpenedFile> open_mckp_file(const io::InputFile& input,
                                                 const OpenOptions& options) {
  return std::make_shared<mckp::OpenedMckp>(input, options);
}

VerifyReport verify_mckp(const io::InputFile& input, const OpenOptions& options,
                         const VerifyOptions& verify, bool /*resolve*/) {
  container::Findings findings(verify.max_findings);
  findings.find([&] {
    const MckpFile file = mckp::open_file(input, options);
    VerifyReport& counts = findings.counts();
    counts.tensors = static_cast<std::uint32_t>(file.tensors().size());
    if (verify.quick) return;
    file.verify();
    MckpChain::open(input.path(), file, mckp::read_options(options, false)).verify_content();
    counts.bytes_checked = file.file_bytes();
    counts.tensors_compared = counts.tensors;
  });
  return std::move(findings).finish();
}

}  // namespace thalia::formats
