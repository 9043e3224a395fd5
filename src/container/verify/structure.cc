// Checks every table against every other, and makes the lists that the later checks work from. A
// tensor is listed as sound only if its name, entry, chunk entries, payload header and side data
// all hold: later checks follow these without asking again. What something owns goes to `covered`,
// also if its contents are damaged, so that one fault is not reported a second time as padding.
// Tables are read as they lie, not verified: payload_scan tells which blocks differ.
#include "container/verify/structure.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/file/short_name.h"
#include "container/plan/file_plan.h"
#include "container/read/chunk_reader.h"
#include "container/read/tensor_reading.h"
#include "container/verify/payload_header.h"
#include "format/connectivity.h"
#include "format/constants.h"
#include "format/directory.h"
#include "format/fixed_name.h"
#include "format/header.h"
#include "format/region.h"
#include "format/state.h"
#include "format/tensor.h"
#include "format/validate_directory.h"
#include "json/reader.h"

namespace thalia::container {
namespace {

class StructureCheck {
 public:
  StructureCheck(const detail::OpenFile& file, Findings& findings)
      : file_(file), findings_(findings) {}

  Structure run() {
    const format::Header& header = file_.header();
    cover(0, sizeof header, "header");
    add_section(header.metadata_offset, header.metadata_length, "metadata");
    add_section(header.connectivity_offset, header.connectivity_length, "connectivity");
    cover(header.metadata_offset, header.metadata_length, "metadata");
    if (header.metadata_length != 0)
      check_json("metadata", "", {header.metadata_offset, header.metadata_length}, kNoRegion);
    check_runs();
    check_region_order();
    for (std::uint32_t r = 0; r < file_.region_count(); ++r) check_region(r);
    check_connectivity();
    cover(header.directory_offset, header.directory_length, "directory");
    cover(header.region_index_offset, header.region_index_length, "region_index");
    check_commit_record();
    // From the directory to the end nothing is ever dead, so it counts as one section: all padding
    // in it is zero in every generation.
    add_section(header.directory_offset, header.file_length - header.directory_offset, "directory");
    for (std::vector<Covered>* list : {&out_.covered, &out_.sections}) {
      std::sort(list->begin(), list->end(), [](const Covered& a, const Covered& b) {
        return a.extent.offset < b.extent.offset;
      });
    }
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t kNoRegion = kConnectivity;

  void cover(std::uint64_t offset, std::uint64_t length, const char* section,
             std::uint32_t region = kNoRegion) {
    if (length != 0) out_.covered.push_back({{offset, length}, section, region});
  }

  void add_section(std::uint64_t offset, std::uint64_t length, const char* name,
                   std::uint32_t region = kNoRegion) {
    if (length != 0) out_.sections.push_back({{offset, length}, name, region});
  }

  void check_json(const char* section, const char* field, format::Extent extent,
                  std::uint32_t region) {
    findings_.check([&] { file_.json(extent, section, field); },
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

  // The runs of tensors follow each other and are all tensors together.
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
      if (!sound) return;  // where the next run should begin is not known any more
    }
    if (expected != file_.directory().tensor_count) {
      findings_.add(
          {.code = ErrorCode::inconsistent,
           .section = "directory",
           .field = "tensor_count",
           .offset = file_.header().directory_offset,
           .message = fmt::format("tensor_count: got {}, expected {} as the regions have",
                                  std::uint32_t{file_.directory().tensor_count}, expected)});
    }
  }

  // Names ascend strictly, so each region occurs once.
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
    const std::uint64_t at =
        file_.header().region_index_offset + r * sizeof(format::RegionIndexEntry);
    const bool has_entries = findings_.check(
        [&] {
          file_.region_index_entry(r);
          file_.directory_region(r);
        },
        name);
    if (!has_entries) return cover_region(at, r);
    findings_.check(
        [&] {
          const format::RegionIndexEntry& entry = file_.region_index_entry(r);
          if (!is_valid_utf8(name) || name.find('\0') != std::string_view::npos) {
            fail_field(ErrorCode::bad_name, "directory", "name_offset", at,
                       "'" + printable(name) + "'", "UTF-8 without NUL");
          }
          const ShortName expected = short_name(name);
          if (std::memcmp(entry.region_name, expected.data(), expected.size()) != 0) {
            fail_field(ErrorCode::inconsistent, "region_index", "region_name", at,
                       "'" + printable(format::fixed_name(entry.region_name)) + "'",
                       "'" + printable({reinterpret_cast<const char*>(expected.data()), 31}) + "'");
          }
        },
        name);
    // A wrong name is no reason to leave the region out: it would be reported as padding.
    findings_.check([&] { check_region_sections(r); }, name);
    check_tensors(r, name);
  }

  // A region whose entries do not hold: what lies in it is not known, but not padding either.
  void cover_region(std::uint64_t at, std::uint32_t r) {
    findings_.check([&] {
      const auto& entry = file_.structure<format::RegionIndexEntry>(at, "region_index");
      const format::Extent extent{entry.data_offset, entry.data_length};
      if (format::lies_within(extent, sizeof(format::Header), file_.header().directory_offset))
        cover(extent.offset, extent.length, "region", r);
    });
  }

  void check_region_sections(std::uint32_t r) {
    const auto [header, extension, start] = file_.region_headers(r);
    add_section(start, file_.region_index_entry(r).data_length, "region", r);
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
      cover_payload(r, number);
      // The name is read first, so that whatever else is wrong with the tensor is reported under
      // it.
      std::string_view name;
      const auto read_name = [&] {
        const format::TensorEntry& entry = file_.tensor_entry(number);
        name = file_.name(entry.name_offset, entry.name_length);
      };
      if (!findings_.check(read_name, region)) continue;
      const bool named = findings_.check(
          [&] { check_tensor_name(number, name, before, number == first); }, region, name);
      before = name;
      const bool sound = findings_.check(
          [&] {
            check_tensor(r, file_.tensor_entry(number), file_.tensor_entry_offset(number));
            check_side_data(number);
          },
          region, name);
      if (named && sound) out_.tensors.push_back({r, number});
    }
  }

  // Before anything else of the entry is looked at, so that whatever is wrong with it the payload
  // is not reported as padding too.
  void cover_payload(std::uint32_t r, std::uint32_t number) {
    findings_.check([&] {
      constexpr std::uint64_t kHeader = sizeof(format::TensorHeader);
      const auto& entry =
          file_.structure<format::TensorEntry>(file_.tensor_entry_offset(number), "directory");
      const format::Extent owner = file_.owner_extent(r);
      const format::Extent payload{entry.stored_offset, entry.stored_length};
      if (format::lies_within(payload, owner.offset + kHeader, owner.offset + owner.length))
        cover(payload.offset - kHeader, kHeader + payload.length, "payload", r);
    });
  }

  void check_tensor_name(std::uint32_t number, std::string_view name, std::string_view before,
                         bool first) {
    const std::uint64_t at = file_.tensor_entry_offset(number);
    if (!is_valid_utf8(name)) {
      fail_field(ErrorCode::bad_name, "directory", "name_offset", at, "'" + printable(name) + "'",
                 "valid UTF-8");
    }
    if (!first && !(before < name)) {
      fail_field(ErrorCode::inconsistent, "directory", "name_offset", at,
                 "'" + printable(name) + "'", "after '" + printable(before) + "' in byte order");
    }
  }

  void check_tensor(std::uint32_t r, const format::TensorEntry& entry, std::uint64_t at) {
    format::validate_tensor_entry(entry, at, file_.directory(), file_.owner_extent(r));
    const std::uint64_t header_at = entry.stored_offset - sizeof(format::TensorHeader);
    if (entry.chunk_count != 0) ChunkReader(file_, entry).check_entries();
    verify_payload_header(file_, entry, header_at);
  }

  // In a file that is no delta an encoding that needs a base is a finding itself, and its side data
  // means nothing.
  void check_side_data(std::uint32_t number) {
    const Encoding encoding = file_.tensor_entry(number).encoding;
    if (encoding == Encoding::quantized) file_.quantized_tensor(file_.tensor_entry(number));
    if ((file_.header().flags & format::kFlagDelta) != 0 && needs_base(encoding))
      file_.delta_tensor(number);
  }

  void check_connectivity() {
    findings_.check([&] {
      const format::Header& header = file_.header();
      const std::uint32_t count = file_.connection_count();
      // The section and the region for its matrices come together or not at all.
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
      check_tensors(file_.region_count(), "");
    });
  }

  void check_commit_record() {
    const format::Header& header = file_.header();
    const std::uint64_t at = header.integrity_offset - sizeof header;
    cover(at, sizeof header, "commit_record");
    const auto& record = file_.structure<format::Header>(at, "commit_record");
    if (std::memcmp(&record, &header, sizeof header) != 0) {
      findings_.add({.code = ErrorCode::checksum_mismatch,
                     .section = "commit_record",
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
