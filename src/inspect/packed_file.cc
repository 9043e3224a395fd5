// What the commands do with .mckp and .mst files, which have no regions. Tables are read without
// the files that a delta was taken against; its tensors are not.
#include "inspect/packed_file.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "base/suggestion.h"
#include "inspect/finding.h"
#include "inspect/shown_name.h"
#include "thalia/error.h"
#include "thalia/mst.h"

namespace thalia::inspect {
namespace {

// Groups the bytes of these types only, where it groups any.
bool has_byte_planes(const MstFile& file, DType dtype) {
  return file.byte_grouping() &&
         (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16);
}

// A file and, where somebody reads a tensor, those that it was taken against.
struct OpenMckp {
  MckpFile file;
  std::function<MckpChain()> open_chain;
  std::optional<MckpChain> chain{};

  Tensor read(const std::string& name) {
    if (!chain) chain = open_chain();
    return chain->read(name);
  }
};

class MckpFileTensor : public FileTensor {
 public:
  /// `tensor` is one of the file's.
  MckpFileTensor(std::shared_ptr<OpenMckp> file, const MckpTensor& tensor)
      : FileTensor({.path = tensor.name, .region = {}, .name = tensor.name}),
        file_(std::move(file)),
        tensor_(tensor) {}

  ListedTensor list() const override {
    const MckpMethod& method = tensor_.method;
    ListedTensor listed{.region = {},
                        .name = tensor_.name,
                        .layout = tensor_.layout(),
                        .logical_bytes = tensor_.original_size,
                        .stored_bytes = tensor_.compressed_size,
                        .offset = tensor_.offset,
                        .codecs = {method.codec},
                        .byte_planes = method.plane_width != 0};
    // A sparse one stays what it is: only so its count is that of what is stored.
    if (method.delta && !method.sparse) listed.layout.encoding = Encoding::xor_base;
    if (tensor_.quantization) {
      listed.layout.encoding = Encoding::quantized;
      listed.bits = tensor_.quantization->bits;
      // original_size is that of the numbers; these are their codes.
      listed.logical_bytes = (listed.elements() * tensor_.quantization->bits + 7) / 8;
    }
    return listed;
  }
  OpenedTensor open() const override {
    return source_of(file_->read(tensor_.name), {}, tensor_.name);
  }
  std::shared_ptr<const FileTensor> keep() const override {
    return std::make_shared<MckpFileTensor>(*this);
  }

 private:
  std::shared_ptr<OpenMckp> file_;
  const MckpTensor& tensor_;
};

class MstFileTensor : public FileTensor {
 public:
  MstFileTensor(const MstFile& file, const MstTensor& tensor)
      : FileTensor({.path = tensor.name, .region = {}, .name = tensor.name}),
        file_(file),
        tensor_(tensor) {}

  ListedTensor list() const override {
    return {.region = {},
            .name = tensor_.name,
            .layout = {.dtype = tensor_.dtype, .shape = tensor_.shape},
            .logical_bytes = tensor_.uncompressed_size,
            .stored_bytes = tensor_.compressed_size,
            .offset = tensor_.offset,
            .codecs = {Codec::zstd},
            .byte_planes = has_byte_planes(file_, tensor_.dtype)};
  }
  OpenedTensor open() const override {
    return source_of(file_.read(tensor_.name), {}, tensor_.name);
  }
  std::shared_ptr<const FileTensor> keep() const override {
    return std::make_shared<MstFileTensor>(*this);
  }

 private:
  MstFile file_;
  const MstTensor& tensor_;  ///< of the file
};

// The one of that name, as it is or as ls escapes it.
template <typename Named>
const Named& find_named(const std::vector<Named>& tensors, const std::filesystem::path& path,
                        const std::string& name) {
  for (const std::string& wanted : {name, unescape_name(name)}) {
    const auto found = std::ranges::find(tensors, wanted, &Named::name);
    if (found != tensors.end()) return *found;
  }
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(name, tensors, &Named::name),
                   {.path = path.string(), .tensor = name});
}

}  // namespace

MckpReadOptions mckp_options(const ChainOptions& chain) {
  return {.input = chain.read.input,
          .search = chain.search,
          .bases = chain.bases,
          .work = chain.read.work};
}

bool is_packed(FileFormat format) noexcept {
  return format == FileFormat::mckp || format == FileFormat::mst;
}

VerifyReport verify_packed(const std::filesystem::path& path, FileFormat format,
                           const ChainOptions& chain, bool quick) {
  const Stopwatch watch;
  VerifyReport report;
  const auto found = [&](const Error& error) { report.findings.push_back(finding_of(error)); };
  try {
    if (format == FileFormat::mst) {
      const MstFile file = MstFile::open(path, chain.read);
      report.tensors = static_cast<std::uint32_t>(file.tensors().size());
      if (quick) return report;
      for (const MstTensor& tensor : file.tensors()) static_cast<void>(file.read(tensor.name));
    } else {
      const MckpFile file = MckpFile::open(path, mckp_options(chain));
      report.tensors = static_cast<std::uint32_t>(file.tensors().size());
      if (quick) return report;
      file.verify();
      // The content hash is that of the restored tensors, so a delta needs the files before it.
      MckpChain::open(path, mckp_options(chain)).verify_content();
      report.bytes_checked = file.file_bytes();
      report.tensors_compared = report.tensors;
    }
  } catch (const FormatError& error) {
    // A limit says nothing about the file.
    if (error.code() == ErrorCode::limit_exceeded) throw;
    found(error);
  } catch (const IntegrityError& error) {
    found(error);
  }
  report.seconds = watch.seconds();
  return report;
}

OpenedTensor open_packed(const std::filesystem::path& path, FileFormat format,
                         const std::string& name, const ChainOptions& chain) {
  if (format == FileFormat::mst) {
    const MstFile file = MstFile::open(path, chain.read);
    return MstFileTensor(file, find_named(file.tensors(), path, name)).open();
  }
  const MckpFile file = MckpFile::open(path, mckp_options(chain));
  const std::string& known = find_named(file.tensors(), path, name).name;
  return source_of(MckpChain::open(path, mckp_options(chain)).read(known), {}, known);
}

void visit_packed(const std::filesystem::path& path, FileFormat format, const ChainOptions& chain,
                  const VisitTensor& visit) {
  if (format == FileFormat::mst) {
    const MstFile file = MstFile::open(path, chain.read);
    for (const MstTensor& tensor : file.tensors()) visit(MstFileTensor(file, tensor));
    return;
  }
  const MckpReadOptions options = mckp_options(chain);
  const auto file = std::make_shared<OpenMckp>(
      OpenMckp{.file = MckpFile::open(path, options),
               .open_chain = [path, options] { return MckpChain::open(path, options); }});
  for (const MckpTensor& tensor : file->file.tensors()) visit(MckpFileTensor(file, tensor));
}

}  // namespace thalia::inspect
