#include "inspect/flat_file.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/suggestion.h"
#include "inspect/shown_name.h"
#include "io/allocation_limit.h"
#include "thalia/error.h"

namespace thalia::inspect {

namespace {

// A file as it is stored, and, once somebody reads a tensor of a type of its own, with elements in
// place of codes.
class FlatFile {
 public:
  FlatFile(std::filesystem::path path, FileFormat format, OpenOptions options)
      : path_(std::move(path)),
        format_(format),
        options_(std::move(options)),
        stored_(open_any(path_, options_, format_)) {}

  const AnyFile& stored() const noexcept { return stored_; }
  const AnyTensor& tensor(std::size_t number) const { return stored_.tensors()[number]; }

  Tensor read(std::size_t number) {
    if (tensor(number).type.empty()) return stored_.read(number);
    if (!tried_) restore();
    const auto found = restored_ ? restored_->find(tensor(number).name) : std::nullopt;
    return found ? restored_->read(*found) : stored_.read(number);
  }

 private:
  // Where one of its types has codes only, all are shown as they are stored.
  void restore() {
    tried_ = true;
    OpenOptions options = options_;
    options.dequantize = true;
    if (format_ == FileFormat::mithril_quantized)
      limit_beside_stored(options.chain.read.input.limits);
    try {
      restored_ = open_any(path_, options, format_);
    } catch (const UnsupportedError&) {
    }
  }

  // Such a file is one frame: all of it was decoded as it was opened, and counts beside what comes.
  void limit_beside_stored(ReadLimits& limits) const {
    const std::uint64_t most = io::allocation_limit(limits, stored_.file_bytes());
    std::uint64_t held = 0;
    for (std::size_t i = 0; i < stored_.tensors().size(); ++i) held += stored_.logical_bytes(i);
    limits.max_allocation_bytes = std::max<std::uint64_t>(most - std::min(most, held), 1);
  }

  std::filesystem::path path_;
  FileFormat format_;
  OpenOptions options_;
  AnyFile stored_;
  std::optional<AnyFile> restored_;
  bool tried_ = false;
};

class FlatFileTensor : public FileTensor {
 public:
  FlatFileTensor(std::shared_ptr<FlatFile> file, std::size_t number)
      : FileTensor(
            {.path = file->tensor(number).name, .region = {}, .name = file->tensor(number).name}),
        file_(std::move(file)),
        number_(number) {}

  ListedTensor list() const override {
    const AnyTensor& tensor = file_->tensor(number_);
    ListedTensor listed{.region = {},
                        .name = tensor.name,
                        .layout = tensor.layout,
                        .type = tensor.type,
                        .logical_bytes = file_->stored().logical_bytes(number_),
                        .stored_bytes = tensor.stored_bytes,
                        .offset = tensor.offset,
                        .codecs = tensor.codecs,
                        .byte_planes = tensor.byte_planes,
                        .bits = tensor.bits};
    if (tensor.in_place) listed.codecs = {Codec::none};
    if (tensor.stored_encoding) listed.layout.encoding = *tensor.stored_encoding;
    // Of codes, not of the numbers that they stand for.
    if (tensor.bits) {
      listed.logical_bytes = static_cast<std::uint64_t>(
          std::ceil(static_cast<double>(listed.elements()) * *tensor.bits / 8));
    }
    return listed;
  }
  OpenedTensor open() const override { return source_over(file_->read(number_)); }
  OpenedTensor open_codes() const override { return source_over(file_->stored().read(number_)); }
  std::shared_ptr<const FileTensor> keep() const override {
    return std::make_shared<FlatFileTensor>(*this);
  }

 private:
  OpenedTensor source_over(const Tensor& tensor) const {
    return source_of(
        tensor, {}, file_->tensor(number_).name,
        [file = file_](const Tensor& of, ByteSpan part) { file->stored().read_ahead(of, part); });
  }

  const std::shared_ptr<FlatFile> file_;  // never moved from
  std::size_t number_;
};

}  // namespace

OpenedTensor open_flat(const std::filesystem::path& path, FileFormat format,
                       const std::string& name, const ChainOptions& chain) {
  const auto file = std::make_shared<FlatFile>(path, format, OpenOptions{.chain = chain});
  const AnyFile& stored = file->stored();
  // As it is, or as ls escapes it.
  for (const std::string& wanted : {name, unescape_name(name)}) {
    if (const auto number = stored.find(wanted)) return FlatFileTensor(file, *number).open();
  }
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(name, stored.tensors(), &AnyTensor::name),
                   {.path = path.string(), .tensor = name});
}

void visit_flat(const std::filesystem::path& path, FileFormat format, const ChainOptions& chain,
                bool shared_memory, const VisitTensor& visit) {
  OpenOptions options{.chain = chain};
  options.shared_memory = shared_memory;
  const auto file = std::make_shared<FlatFile>(path, format, std::move(options));
  for (std::size_t i = 0; i < file->stored().tensors().size(); ++i) visit(FlatFileTensor(file, i));
}

}  // namespace thalia::inspect
