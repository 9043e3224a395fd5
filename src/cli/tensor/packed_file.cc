// What info, ls, verify and cat show of .mckp and .mst files. Both are brought into one description
// first, so that there is one way to print them. Such files have no regions.
#include "cli/tensor/packed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/suggestion.h"
#include "cli/print/dtype_totals.h"
#include "cli/print/error_finding.h"
#include "cli/print/json_result.h"
#include "cli/print/json_text.h"
#include "cli/print/print.h"
#include "cli/tensor/copy_slice.h"
#include "cli/terminal/escape.h"
#include "thalia/error.h"
#include "thalia/mckp.h"
#include "thalia/mst.h"
#include "thalia/text.h"

namespace thalia::cli {
namespace {

struct PackedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::string method;  ///< "zstd, grouped, delta"
};

struct PackedFile {
  std::vector<PackedTensor> tensors;
  std::uint64_t file_bytes = 0;
  std::string metadata;
  std::optional<std::uint64_t> training_step;
  std::optional<MckpPrevious> previous;
  std::optional<Digest256> content_hash;
};

std::string_view codec_text(Codec codec) {
  switch (codec) {
    case Codec::store:
      return "store";
    case Codec::zstd:
      return "zstd";
    case Codec::lz4:
      return "lz4";
    case Codec::plane_entropy:
      return "plane_entropy";
    case Codec::packed_exponents:
      return "packed_exponents";
  }
  return "unknown";
}

std::string method_text(const MckpTensor& tensor) {
  std::string text(codec_text(tensor.method.codec));
  if (tensor.method.plane_width != 0) text += ", grouped";
  if (tensor.method.delta) text += ", delta";
  if (tensor.quantization)
    text += fmt::format(", quantized to {}", counted(tensor.quantization->bits, "bit", "bits"));
  return text;
}

MckpReadOptions mckp_options(const ReadOptions& read) {
  return {.input = read.input, .work = read.work};
}

PackedFile describe_mckp(const std::filesystem::path& path, const ReadOptions& read) {
  const MckpFile file = MckpFile::open(path, mckp_options(read));
  PackedFile packed{.tensors = {},
                    .file_bytes = file.file_bytes(),
                    .metadata = file.header().metadata,
                    .training_step = file.header().training_step,
                    .previous = file.header().previous,
                    .content_hash = file.header().content_hash};
  for (const MckpTensor& tensor : file.tensors()) {
    packed.tensors.push_back({.name = tensor.name,
                              .dtype = tensor.dtype,
                              .shape = tensor.shape,
                              .bytes = tensor.original_size,
                              .stored_bytes = tensor.compressed_size,
                              .method = method_text(tensor)});
  }
  return packed;
}

PackedFile describe_mst(const std::filesystem::path& path, const ReadOptions& read) {
  const MstFile file = MstFile::open(path, read);
  PackedFile packed{.tensors = {},
                    .file_bytes = file.file_bytes(),
                    .metadata = {},
                    .training_step = std::nullopt,
                    .previous = std::nullopt,
                    .content_hash = std::nullopt};
  JsonWriter json(packed.metadata);
  json.begin_object();
  for (const auto& [key, value] : file.metadata()) json.member(key, value);
  json.end_object();
  for (const MstTensor& tensor : file.tensors()) {
    // The program that writes .mst groups the bytes of these types only.
    const bool floats =
        tensor.dtype == DType::f32 || tensor.dtype == DType::f16 || tensor.dtype == DType::bf16;
    packed.tensors.push_back({.name = tensor.name,
                              .dtype = tensor.dtype,
                              .shape = tensor.shape,
                              .bytes = tensor.uncompressed_size,
                              .stored_bytes = tensor.compressed_size,
                              .method = file.byte_grouping() && floats ? "zstd, grouped" : "zstd"});
  }
  return packed;
}

PackedFile describe(const std::filesystem::path& path, FileFormat format, const ReadOptions& read) {
  return format == FileFormat::mst ? describe_mst(path, read) : describe_mckp(path, read);
}

}  // namespace

MckpReadOptions mckp_options(const ChainOptions& chain) {
  MckpReadOptions made = mckp_options(chain.read);
  made.search = chain.search;
  made.bases = chain.bases;
  return made;
}

bool is_packed(FileFormat format) noexcept {
  return format == FileFormat::mckp || format == FileFormat::mst;
}

void print_packed(Output& out, const std::filesystem::path& path, FileFormat format,
                  const ReadOptions& read, bool as_json) {
  const PackedFile file = describe(path, format, read);
  DTypeTotals dtypes;
  std::uint64_t bytes = 0, stored = 0;
  std::vector<std::string> methods;
  for (const PackedTensor& tensor : file.tensors) {
    dtypes.add(tensor.dtype, tensor.bytes);
    bytes += tensor.bytes;
    stored += tensor.stored_bytes;
    if (std::ranges::find(methods, tensor.method) == methods.end())
      methods.push_back(tensor.method);
  }
  if (!as_json) {
    out.line("file", escape(path.string()));
    out.line("format", format == FileFormat::mst ? "mst 1, the mithril program's" : "mckp 1");
    out.line("on disk", exact_bytes(file.file_bytes));
    out.line("in memory", exact_bytes(bytes));
    out.line("tensors", grouped(file.tensors.size()));
    out.line("dtypes", dtypes.to_string());
    out.line("methods", methods.empty() ? "none" : fmt::format("{}", fmt::join(methods, "; ")));
    out.line("stored", exact_bytes(stored));
    out.line("checksum", format == FileFormat::mst ? "none" : "xxh64, of the file and of tensors");
    if (file.training_step) out.line("training step", grouped(*file.training_step));
    if (file.content_hash) out.line("content hash", hex(file.content_hash->bytes));
    if (file.previous) {
      out.line("delta of", escape(file.previous->key));
      out.line("", hex(file.previous->content_hash.bytes));
    }
    print_metadata(out, file.metadata == "{}" ? "" : file.metadata);
    return;
  }
  print_object(out, [&](JsonWriter& json) {
    json.member("path", as_utf8(path.string()));
    json.member("format", file_format_name(format)).member("disk_bytes", file.file_bytes);
    json.member("memory_bytes", bytes).member("stored_bytes", stored);
    json.member("tensors", file.tensors.size()).key("dtypes");
    dtypes.add_json(json);
    add_list(json, "methods", methods);
    json.key("training_step");
    file.training_step ? json.value(*file.training_step) : json.null();
    json.key("content_hash");
    file.content_hash ? json.value(hex(file.content_hash->bytes)) : json.null();
    json.key("previous");
    if (file.previous) {
      json.begin_object().member("key", as_utf8(file.previous->key));
      json.member("content_hash", hex(file.previous->content_hash.bytes)).end_object();
    } else {
      json.null();
    }
    json.key("metadata").raw(file.metadata);
  });
}

void list_packed(Output& out, const std::filesystem::path& path, FileFormat format,
                 const std::string& region, const ReadOptions& read, bool as_json) {
  if (!region.empty()) {
    throw UsageError(
        ErrorCode::bad_argument,
        fmt::format("files of {} have no regions, only tensors", file_format_name(format)),
        {.path = path.string(), .region = region});
  }
  using enum Table::Align;
  Table table(
      {{"tensor"}, {"dtype"}, {"shape"}, {"method"}, {"in memory", right}, {"stored", right}});
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("tensors").begin_array();
  const PackedFile file = describe(path, format, read);
  for (const PackedTensor& tensor : file.tensors) {
    table.add_row({escape_name(tensor.name), std::string(dtype_name(tensor.dtype)),
                   tensor.shape.to_string(), tensor.method, human_bytes(tensor.bytes),
                   human_bytes(tensor.stored_bytes)});
    json.begin_object().member("name", as_utf8(tensor.name));
    json.member("dtype", dtype_name(tensor.dtype)).key("shape").begin_array();
    for (const std::uint64_t extent : tensor.shape.extents()) json.value(extent);
    json.end_array().member("method", tensor.method).member("bytes", tensor.bytes);
    json.member("stored_bytes", tensor.stored_bytes).end_object();
  }
  json.end_array().end_object();
  if (as_json) {
    out.write(text + "\n");
  } else {
    table.print(out);
  }
}

VerifyReport verify_packed(const std::filesystem::path& path, FileFormat format,
                           const ChainOptions& chain, bool quick) {
  const auto start = std::chrono::steady_clock::now();
  VerifyReport report;
  const auto found = [&](const Error& error) { report.findings.push_back(finding_of(error)); };
  try {
    if (format == FileFormat::mst) {
      const MstFile file = MstFile::open(path, chain.read);
      report.tensors = static_cast<std::uint32_t>(file.tensors().size());
      if (quick) return report;
      for (const MstTensor& tensor : file.tensors()) static_cast<void>(file.read(tensor.name));
      report.bytes_checked = file.file_bytes();
    } else {
      const MckpFile file = MckpFile::open(path, mckp_options(chain));
      report.tensors = static_cast<std::uint32_t>(file.tensors().size());
      if (quick) return report;
      file.verify();
      // The content hash is that of the restored tensors, so a delta needs the files before it.
      MckpChain::open(path, mckp_options(chain)).verify_content();
      report.bytes_checked = file.file_bytes();
    }
  } catch (const FormatError& error) {
    // A limit says nothing about the file.
    if (error.code() == ErrorCode::limit_exceeded) throw;
    found(error);
  } catch (const IntegrityError& error) {
    found(error);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

TensorSource open_packed(const std::filesystem::path& path, FileFormat format,
                         const std::string& name, const ChainOptions& chain) {
  const std::vector<PackedTensor> tensors = describe(path, format, chain.read).tensors;
  const auto find = [&](std::string_view wanted) {
    return std::ranges::find(tensors, wanted, &PackedTensor::name);
  };
  auto found = find(name);
  if (found == tensors.end()) found = find(unescape_name(name));
  if (found == tensors.end()) {
    throw UsageError(ErrorCode::not_found,
                     "no such tensor" + suggestion_among(name, tensors, &PackedTensor::name),
                     {.path = path.string(), .tensor = name});
  }
  const Tensor tensor = format == FileFormat::mst
                            ? MstFile::open(path, chain.read).read(found->name)
                            : MckpChain::open(path, mckp_options(chain)).read(found->name);
  return source_of(tensor, {}, found->name);
}

void visit_packed(const std::filesystem::path& path, FileFormat format, const ChainOptions& chain,
                  const VisitTensor& visit) {
  const auto visit_all = [&](const auto& file, const auto& tensors) {
    for (const auto& tensor : tensors)
      visit({.path = tensor.name, .region = {}, .name = tensor.name},
            [&] { return source_of(file.read(tensor.name), {}, tensor.name); });
  };
  if (format == FileFormat::mst) {
    const MstFile file = MstFile::open(path, chain.read);
    visit_all(file, file.tensors());
  } else {
    const MckpChain files = MckpChain::open(path, mckp_options(chain));
    visit_all(files, files.newest().tensors());
  }
}

}  // namespace thalia::cli
