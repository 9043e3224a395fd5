// Files of version 0.1 piece by piece. The header comes first and is known last, so the writer
// leaves 256 bytes for it and fills them in finalize(). The checksum covers the header too, and is
// therefore computed in a second pass over the file.
//
// Steps sees to it that a writer whose call failed never puts a file in place. A call that fails
// before it writes, such as one for a tensor that 0.1 cannot hold, does not end the writer.
#include "formats/v01/binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/steps.h"
#include "format/extent.h"
#include "formats/v01/header.h"
#include "formats/v01/tensor.h"
#include "formats/v01/tensor_reader.h"
#include "formats/v01/tree.h"
#include "formats/v01/wrapper.h"
#include "integrity/sha256.h"
#include "io/file/file_bytes.h"
#include "state/value/value_json.h"
#include "thalia/files.h"

namespace thalia {

namespace {

constexpr std::size_t kPiece = 1 << 20;

// SHA-256 of all that was written, read back from the file.
Digest256 checksum_of(OutputFile& out) {
  integrity::Sha256 sha;
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kPiece, out.size()));
  for (std::uint64_t at = 0; at < out.size();) {
    const auto piece =
        MutableByteSpan(buffer).first(std::min<std::uint64_t>(buffer.size(), out.size() - at));
    out.read(at, piece);
    sha.update(piece);
    at += piece.size();
  }
  return sha.finish();
}

}  // namespace

struct BinaryWriter::Impl {
  OutputFile out;
  std::optional<format::V01FileHeader> header{};
  Steps steps{"the file", out.path().string()};
};

BinaryWriter::BinaryWriter(const std::filesystem::path& path, const OutputOptions& output)
    : impl_(std::unique_ptr<Impl>(new Impl{OutputFile(path, output)})) {
  impl_->out.write(std::vector<std::byte>(sizeof(format::V01FileHeader)));
}

BinaryWriter::~BinaryWriter() = default;
BinaryWriter::BinaryWriter(BinaryWriter&&) noexcept = default;
BinaryWriter& BinaryWriter::operator=(BinaryWriter&&) noexcept = default;

BinaryWriter::Impl& BinaryWriter::open() {
  impl_->steps.require_open();
  return *impl_;
}

void BinaryWriter::write_header(const format::V01FileHeader& header) {
  open().header = header;
}

V01Extent BinaryWriter::write_tensor(const Tensor& tensor, bool sparse) {
  Impl& impl = open();
  const Tensor storable =
      formats::v01_storable(sparse ? formats::v01_sparse_by_rule(tensor) : tensor);
  // Everything that may refuse the tensor comes before steps.run().
  const std::vector<std::byte> header = formats::v01_tensor_header(storable);
  const V01Extent extent{impl.out.size(), formats::v01_tensor_bytes(storable)};
  impl.steps.run([&] {
    impl.out.write(header);
    impl.out.write(storable.bytes());
  });
  return extent;
}

// The offset of the text is known only once the tensors before it were planned.
V01Extent BinaryWriter::write_json(const Value& data) {
  Impl& impl = open();
  std::uint64_t offset = impl.out.size();
  const auto planned = formats::plan_v01_tree(data, /*aligned=*/false, offset);
  impl.steps.run(
      [&] { formats::write_v01_tree(planned, [&](ByteSpan piece) { impl.out.write(piece); }); });
  return {offset, planned.json.size()};
}

V01Extent BinaryWriter::write_index(std::span<const V01IndexEntry> entries) {
  Impl& impl = open();
  std::vector<format::V01RegionEntry> index;
  for (const auto& [name, json] : entries)
    index.push_back(formats::make_v01_index_entry(name, json));
  const V01Extent extent{impl.out.size(), index.size() * sizeof(format::V01RegionEntry)};
  impl.steps.run([&] { impl.out.write(as_byte_span(index)); });
  return extent;
}

Digest256 BinaryWriter::finalize() {
  Impl& impl = open();
  if (!impl.header) throw UsageError(ErrorCode::wrong_state, "no header was written");
  return impl.steps.finish([&] {
    impl.out.overwrite(0, std::as_bytes(std::span(&*impl.header, 1)));
    const Digest256 checksum = checksum_of(impl.out);
    impl.out.write(as_byte_span(checksum.bytes));
    impl.out.commit();
    return checksum;
  });
}

struct BinaryReader::Impl {
  std::string path;
  ReadLimits limits;
  formats::V01Contents contents;
  ByteSpan body;
  std::optional<formats::V01TensorReader> tensors;
};

BinaryReader::BinaryReader(const std::filesystem::path& path, const ReadOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path.string();
  impl_->limits = options.input.limits;
  with_path(impl_->path, [&] {
    const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
    impl_->contents = formats::open_v01_wrapper(file->bytes(), file, options.input.limits);
    impl_->body = formats::v01_body(impl_->contents).bytes;
    impl_->tensors.emplace(impl_->body, impl_->contents.owner, options.input.limits.max_tensors);
  });
}

BinaryReader::~BinaryReader() = default;
BinaryReader::BinaryReader(BinaryReader&&) noexcept = default;
BinaryReader& BinaryReader::operator=(BinaryReader&&) noexcept = default;

format::V01FileHeader BinaryReader::read_header() const {
  const Impl& impl = *impl_;
  return with_path(impl.path, [&] {
    // Warnings are for read_v01(); readers of pieces have no place to show them.
    formats::Sentences warnings;
    return formats::read_v01_header(impl.body, impl.limits, warnings);
  });
}

std::vector<V01IndexEntry> BinaryReader::read_index() const {
  const format::V01FileHeader header = read_header();
  const Impl& impl = *impl_;
  return with_path(impl.path, [&] {
    formats::Sentences warnings;
    return formats::read_v01_index(impl.body, header, warnings);
  });
}

Tensor BinaryReader::read_tensor(std::uint64_t offset) const {
  Impl& impl = *impl_;
  return with_path(impl.path, [&] { return impl.tensors->at(offset).tensor; });
}

Value BinaryReader::read_json(std::uint64_t offset, std::uint64_t length) const {
  const Impl& impl = *impl_;
  return with_path(impl.path, [&] {
    // Offset and length come from the caller, who has them from the file.
    if (!format::lies_within({offset, length}, 0, impl.body.size())) {
      fail_field(ErrorCode::out_of_bounds, "region", "data_offset", offset,
                 fmt::format("{} and a length of {}", offset, length),
                 fmt::format("{}, where the checksum begins", impl.body.size()));
    }
    const std::string_view text(reinterpret_cast<const char*>(impl.body.data()) + offset, length);
    return state::parse_json(text, impl.limits, json::Dialect::python);
  });
}

bool BinaryReader::validate_checksum() const {
  const Impl& impl = *impl_;
  try {
    formats::verified_v01_body(impl.contents);
    return true;
  } catch (const IntegrityError&) {
    return false;
  }
}

}  // namespace thalia
