// What opening a file finds is one finding, and so is what each of its tensors has.
#include "inspect/flat_file.h"

#include <memory>
#include <utility>

#include "base/stopwatch.h"
#include "base/suggestion.h"
#include "inspect/finding.h"
#include "inspect/shown_name.h"
#include "thalia/error.h"

namespace thalia::inspect {
namespace {

class FlatFileTensor : public FileTensor {
 public:
  FlatFileTensor(const AnyFile& file, std::size_t number)
      : FileTensor({.path = file.tensors()[number].name,
                    .region = {},
                    .name = file.tensors()[number].name}),
        file_(file),
        number_(number) {}

  ListedTensor list() const override {
    const AnyTensor& tensor = file_.tensors()[number_];
    ListedTensor listed{.region = {},
                        .name = tensor.name,
                        .layout = tensor.layout,
                        .type = tensor.type,
                        .logical_bytes = file_.logical_bytes(number_),
                        .stored_bytes = tensor.stored_bytes,
                        .offset = tensor.offset};
    if (tensor.in_place) listed.codecs = {Codec::store};
    return listed;
  }
  TensorSource open() const override {
    return source_of(file_.read(number_), {}, file_.tensors()[number_].name);
  }
  std::shared_ptr<const FileTensor> keep() const override {
    return std::make_shared<FlatFileTensor>(*this);
  }

 private:
  AnyFile file_;
  std::size_t number_;
};

}  // namespace

OpenOptions open_options(const ChainOptions& chain) {
  return {.read = chain.read, .search = chain.search, .bases = chain.bases};
}

VerifyReport verify_flat(const std::filesystem::path& path, FileFormat format,
                         const ChainOptions& chain, const VerifyOptions& options) {
  const Stopwatch watch;
  VerifyReport report;
  const auto add = [&](const Error& error) {
    if (report.findings.size() < options.max_findings) {
      report.findings.push_back(finding_of(error));
    } else {
      ++report.suppressed;
      ++report.suppressed_errors;
    }
  };
  const auto find = [&](const auto& work) {
    try {
      work();
    } catch (const FormatError& error) {
      // A limit says nothing about the file.
      if (error.code() == ErrorCode::limit_exceeded) throw;
      add(error);
    } catch (const IntegrityError& error) {
      add(error);
    }
  };
  find([&] {
    const AnyFile file = open_any(path, open_options(chain), format);
    report.tensors = static_cast<std::uint32_t>(file.tensors().size());
    if (options.quick) return;
    std::uint64_t total = 0;
    for (const AnyTensor& tensor : file.tensors()) total += tensor.stored_bytes.value_or(0);
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      find([&] { file.check(i); });
      done += file.tensors()[i].stored_bytes.value_or(0);
      if (options.work.progress) options.work.progress(done, total);
    }
    report.bytes_checked = file.file_bytes();
  });
  report.seconds = watch.seconds();
  return report;
}

TensorSource open_flat(const std::filesystem::path& path, FileFormat format,
                       const std::string& name, const ChainOptions& chain) {
  const AnyFile file = open_any(path, open_options(chain), format);
  // As it is, or as ls escapes it.
  for (const std::string& wanted : {name, unescape_name(name)}) {
    if (const auto number = file.find(wanted)) return FlatFileTensor(file, *number).open();
  }
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(name, file.tensors(), &AnyTensor::name),
                   {.path = path.string(), .tensor = name});
}

void visit_flat(const std::filesystem::path& path, FileFormat format, const ChainOptions& chain,
                const VisitTensor& visit) {
  const AnyFile file = open_any(path, open_options(chain), format);
  for (std::size_t i = 0; i < file.tensors().size(); ++i) visit(FlatFileTensor(file, i));
}

}  // namespace thalia::inspect
