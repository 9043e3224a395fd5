#include "container/verify_structure.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/chunk_reader.h"
#include "container/directory_builder.h"
#include "container/draft.h"
#include "container/short_name.h"
#include "container/tensor_reading.h"
#include "format/fixed_name.h"
#include "format/validate_directory.h"
#include "json/reader.h"
#include "thalia/format/constants.h"
#include "thalia/format/state.h"

namespace thalia::container {
namespace {

class StructureCheck {
 public:
  StructureCheck(const detail::OpenFile& file, Findings& findings)
      : file_(file), findings_(findings) {}

  Structure run() {
    const format::Header& header = file_.header();
    cover(0, sizeof header, "header");
    cover(header.metadata_offset, header.metadata_length, "metadata");
    if (header.metadata_length != 0)
      check_json("metadata", "", {header.metadata_offset, header.metadata_length}, kNoRegion);
    check_runs();
    check_region_order();
    for (std::uint32_t r = 0; r < file_.region_count(); ++r) check_region(r);
    check_connectivity();
    cover(header.directory_offset, header.directory_length, "directory");
    check_directory_padding();
    cover(header.region_index_offset, header.region_index_length, "region_index");
    check_commit_record();
    std::sort(out_.covered.begin(), out_.covered.end(),
              [](const Covered& a, const Covered& b) { return a.extent.offset < b.extent.offset; });
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kNoRegion = kConnectivity;

  void cover(std::uint64_t offset, std::uint64_t length, const char* section,
             std::uint32_t region = kNoRegion) {
    if (length != 0) out_.covered.push_back({{offset, length}, section, region});
  }

  void check_json(const char* section, const char* field, format::Extent extent,
                  std::uint32_t region) {
    findings_.check(
        [&] {
          try {
            file_.json(extent, section);
          } catch (Error& error) {
            if (error.code() == ErrorCode::limit_exceeded) throw;
            throw FormatError(error.code(), error.message(),
                              {.section = section, .field = field, .offset = extent.offset});
          }
        },
        region == kNoRegion ? std::string_view() : region_name(region));
  }

  std::string_view region_name(std::uint32_t r) const {
    try {
      const format::DirectoryRegion& record = file_.directory_region(r);
      return file_.name(record.name_offset, record.name_length);
    } catch (const Error&) {
      return {};
    }
  }

  // Runs of tensors follow each other and are complete.
  void check_runs() {
    std::uint64_t expected = 0;
    for (std::uint32_t r = 0; r < file_.directory().region_count; ++r) {
      const bool sound = findings_.check([&] {
        const format::DirectoryRegion& record = file_.directory_region(r);
        const std::uint64_t at = file_.header().directory_offset +
                                 file_.directory().regions_offset +
                                 r * sizeof(format::DirectoryRegion);
        if (record.first_tensor != expected) {
          fail_field(ErrorCode::inconsistent, "directory", "first_tensor", at,
                     std::to_string(record.first_tensor), std::to_string(expected));
        }
        expected += record.tensor_count;
      });
      if (!sound) return;
    }
    if (expected != file_.directory().tensor_count) {
      findings_.add(
          {.section = "directory",
           .offset = file_.header().directory_offset,
           .message = fmt::format("tensor_count: got {}, bound {} as the regions have",
                                  std::uint32_t{file_.directory().tensor_count}, expected)});
    }
  }

  // Every region once, by ascending name.
  void check_region_order() {
    findings_.check([&] {
      const std::uint64_t at =
          file_.header().directory_offset + file_.directory().region_order_offset;
      const auto order =
          file_.structures<format::le32>(at, file_.directory().region_count, "directory");
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i] >= order.size() ||
            (i > 0 && !(region_name(order[i - 1]) < region_name(order[i])))) {
          fail_field(ErrorCode::inconsistent, "directory", "region_order", at + 4 * i,
                     std::to_string(order[i]), "regions by ascending name, each once");
        }
      }
    });
  }

  void check_region(std::uint32_t r) {
    const std::string_view name = region_name(r);
    const bool sound = findings_.check(
        [&] {
          const format::RegionIndexEntry& entry = file_.region_index_entry(r);
          const std::uint64_t at = file_.header().region_index_offset + r * sizeof entry;
          if (!is_valid_utf8(name) || name.find('\0') != std::string_view::npos) {
            fail_field(ErrorCode::bad_name, "directory", "name", at, "'" + printable(name) + "'",
                       "UTF-8 without NUL");
          }
          const ShortName expected = short_name(name);
          if (std::memcmp(entry.region_name, expected.data(), expected.size()) != 0) {
            fail_field(ErrorCode::inconsistent, "region_index", "region_name", at,
                       "'" + printable(format::fixed_name(entry.region_name)) + "'",
                       "'" + printable({reinterpret_cast<const char*>(expected.data()), 31}) + "'");
          }
        },
        name);
    if (!sound) return;
    findings_.check([&] { check_region_sections(r); }, name);
    check_tensors(r, name);
  }

  void check_region_sections(std::uint32_t r) {
    const auto [header, extension, start] = file_.region_headers(r);
    cover(start, sizeof header + sizeof extension, "region", r);
    if (header.config_length != 0) {
      cover(start + header.config_offset, header.config_length, "region", r);
      check_json("region", "config", {start + header.config_offset, header.config_length}, r);
    }
    if (header.homeostatic_length != 0) {
      cover(start + header.homeostatic_offset, sizeof(format::HomeostaticHeader), "region", r);
    }
    if (extension.dynamic_state_length != 0) {
      cover(start + extension.dynamic_state_offset, sizeof(format::DynamicStateHeader), "region",
            r);
    }
    if (extension.region_metadata_length != 0) {
      const format::Extent json{start + extension.region_metadata_offset,
                                extension.region_metadata_length};
      cover(json.offset, json.length, "region", r);
      check_json("region", "metadata", json, r);
    }
  }

  void check_tensors(std::uint32_t r, std::string_view region) {
    std::string_view before;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    if (!findings_.check([&] {
          first = file_.directory_region(r).first_tensor;
          count = file_.directory_region(r).tensor_count;
        }))
      return;
    for (std::uint32_t number = first; number < first + count; ++number) {
      // The name first, so that whatever else is wrong with the tensor is reported under it.
      std::string_view name;
      const auto read_name = [&] {
        const format::TensorEntry& entry = file_.tensor_entry(number);
        name = file_.name(entry.name_offset, entry.name_length);
      };
      const bool sound =
          findings_.check(read_name, region) &&
          findings_.check(
              [&] {
                check_tensor_name(number, name, before, number == first);
                before = name;
                check_tensor(r, file_.tensor_entry(number), file_.tensor_entry_offset(number));
                check_side_data(number);
              },
              region, name);
      if (sound) out_.tensors.push_back({r, number});
    }
  }

  void check_tensor_name(std::uint32_t number, std::string_view name, std::string_view before,
                         bool first) {
    const std::uint64_t at = file_.tensor_entry_offset(number);
    if (!is_valid_utf8(name)) {
      fail_field(ErrorCode::bad_name, "directory", "name", at, "'" + printable(name) + "'",
                 "valid UTF-8");
    }
    if (!first && !(before < name)) {
      fail_field(ErrorCode::inconsistent, "directory", "name", at, "'" + printable(name) + "'",
                 "behind '" + printable(before) + "' in byte order");
    }
  }

  void check_tensor(std::uint32_t r, const format::TensorEntry& entry, std::uint64_t at) {
    const format::Extent owner = file_.owner_extent(r);
    format::validate_tensor_entry(entry, at, file_.directory(), owner);
    const std::uint64_t header_at = entry.stored_offset - sizeof(format::TensorHeader);
    if (entry.stored_offset < owner.offset + sizeof(format::TensorHeader)) {
      fail_field(ErrorCode::out_of_bounds, "directory", "stored_offset", at,
                 std::to_string(entry.stored_offset), "room for a tensor header before it");
    }
    cover(header_at, sizeof(format::TensorHeader) + entry.stored_length, "payload", r);
    if (entry.chunk_count != 0) ChunkReader(file_, entry).check_entries();
    check_payload_header(entry, header_at);
  }

  // In a file that is no delta the encoding itself is a finding.
  void check_side_data(std::uint32_t number) {
    const auto encoding = static_cast<Encoding>(file_.tensor_entry(number).encoding);
    if (encoding == Encoding::quantized) file_.quantized_tensor(file_.tensor_entry(number));
    if ((file_.header().flags & format::kFlagDelta) != 0 && needs_base(encoding))
      file_.delta_tensor(number);
  }

  void check_payload_header(const format::TensorEntry& entry, std::uint64_t header_at) {
    const auto& header = file_.structure<format::TensorHeader>(header_at, "payload");
    DraftTensor expected;
    std::uint64_t extents[Shape::kMaxRank];
    for (unsigned d = 0; d < entry.ndim; ++d) extents[d] = entry.shape[d];
    expected.spec.shape = Shape(std::span<const std::uint64_t>(extents, entry.ndim));
    expected.spec.dtype = static_cast<DType>(entry.dtype);
    expected.spec.encoding = static_cast<Encoding>(entry.encoding);
    expected.spec.nnz = entry.nnz;
    expected.digest.crc32 = entry.crc32;
    const format::TensorHeader wanted = payload_header(expected);
    if (std::memcmp(&header, &wanted, sizeof wanted) != 0) {
      fail_field(ErrorCode::inconsistent, "payload", "tensor header", header_at,
                 "bytes that differ", "what the directory's entry says");
    }
  }

  void check_connectivity() {
    findings_.check([&] {
      const format::Header& header = file_.header();
      const std::uint32_t count = file_.connection_count();
      const bool has_matrices = file_.directory().region_count > file_.region_count();
      if ((count != 0) != has_matrices) {
        fail_field(ErrorCode::inconsistent, "connectivity", "num_connections",
                   header.connectivity_offset, std::to_string(count),
                   has_matrices ? "1 or more" : "0, without matrices in the directory");
      }
      if (count == 0) return;
      cover(header.connectivity_offset,
            sizeof(format::ConnectivityHeader) + count * sizeof(format::ConnectionEntry),
            "connectivity");
      const std::uint32_t matrices = file_.region_count();
      check_tensors(matrices, "");
      for (std::uint32_t i = 0; i < count; ++i) check_connection(i, matrices);
    });
  }

  void check_connection(std::uint32_t i, std::uint32_t matrices) {
    const format::ConnectionEntry& entry = file_.connection_entry(i);
    const std::uint64_t start = file_.header().connectivity_offset;
    const std::uint64_t at = start + sizeof(format::ConnectivityHeader) + i * sizeof entry;
    const auto matrix = [&](const char* field, std::uint64_t offset, std::uint64_t length,
                            const std::string& name) {
      const auto number = file_.find_tensor(matrices, name);
      if (!number && offset == 0 && length == 0 && std::strcmp(field, "delay_offset") == 0) return;
      if (!number) {
        fail_field(ErrorCode::inconsistent, "connectivity", field, at, std::to_string(offset),
                   "'" + name + "' in the directory");
      }
      const format::TensorEntry& tensor = file_.tensor_entry(*number);
      const std::uint64_t expected = tensor.stored_offset - sizeof(format::TensorHeader) - start;
      if (offset != expected || length != tensor.stored_length + sizeof(format::TensorHeader)) {
        fail_field(ErrorCode::inconsistent, "connectivity", field, at,
                   fmt::format("[{}, +{})", offset, length),
                   fmt::format("[{}, +{})", expected,
                               tensor.stored_length + sizeof(format::TensorHeader)));
      }
    };
    matrix("weight_offset", entry.weight_offset, entry.weight_length, fmt::format("{}.weights", i));
    matrix("delay_offset", entry.delay_offset, entry.delay_length, fmt::format("{}.delays", i));
  }

  // Between the directory's arrays, each of which starts on a multiple of 8.
  void check_directory_padding() {
    const format::DirectoryHeader& d = file_.directory();
    const std::uint64_t ends[] = {
        d.regions_offset + std::uint64_t{d.region_count} * sizeof(format::DirectoryRegion),
        d.region_order_offset + std::uint64_t{d.region_count} * sizeof(format::le32),
        d.names_offset + d.names_length};
    for (const std::uint64_t end : ends) {
      for (std::uint64_t at = end;
           at < format::align_up(end, 8) && at < file_.header().directory_length; ++at) {
        const std::uint64_t absolute = file_.header().directory_offset + at;
        if (file_.unverified(absolute, 1).front() != std::byte{0}) {
          findings_.add({.section = "padding",
                         .offset = absolute,
                         .length = 1,
                         .message = "padding is not zero"});
        }
      }
    }
  }

  void check_commit_record() {
    const format::Header& header = file_.header();
    const std::uint64_t at = header.integrity_offset - sizeof header;
    cover(at, sizeof header, "header");
    const auto& record = file_.structure<format::Header>(at, "header");
    if (std::memcmp(&record, &header, sizeof header) != 0) {
      findings_.add({.section = "header",
                     .offset = at,
                     .length = sizeof header,
                     .message = "the commit record differs from the header"});
    }
  }

  const detail::OpenFile& file_;
  Findings& findings_;
  Structure out_;
};

}  // namespace

Structure verify_structure(const detail::OpenFile& file, Findings& findings) {
  return StructureCheck(file, findings).run();
}

}  // namespace thalia::container
