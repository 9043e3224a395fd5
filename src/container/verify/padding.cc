// Walks the extents that structure listed, in the order of the file, and looks at what lies between
// them. What nothing owns has to be zero, so that no byte of a valid file goes unchecked and two
// writers make equal files. In later generations only gaps within sections are looked at: between
// sections are dead bytes of earlier ones, which may be anything. docs/format/format.md, "Padding".
#include <fmt/format.h>

#include <algorithm>

#include "container/verify/structure.h"
#include "format/chunk.h"
#include "format/directory.h"
#include "format/tensor.h"

namespace thalia::container {
namespace {

using format::Extent;

std::uint64_t end_of(const Extent& extent) {
  return extent.offset + extent.length;
}

class PaddingCheck {
 public:
  PaddingCheck(const detail::OpenFile& file, const Structure& structure, Findings& findings)
      : file_(file), structure_(structure), findings_(findings) {}

  void run(bool read_padding) {
    std::uint64_t at = 0;
    for (const Covered& covered : structure_.covered) {
      if (covered.extent.offset < at) {
        report_overlap(covered, at);
      } else if (read_padding) {
        check_gap(at, covered.extent.offset);
      }
      at = std::max(at, end_of(covered.extent));
    }
    check_sections();
    check_directory();
  }

 private:
  void report_overlap(const Covered& covered, std::uint64_t end) {
    findings_.add({.code = ErrorCode::inconsistent,
                   .section = covered.section,
                   .field = {},
                   .region = {},
                   .tensor = {},
                   .offset = covered.extent.offset,
                   .length = end - covered.extent.offset,
                   .message = fmt::format("[{}, +{}) overlaps what ends at {}",
                                          covered.extent.offset, covered.extent.length, end)});
  }

  // Sections may overlap where the extents that they own do not.
  void check_sections() {
    std::uint64_t at = 0;
    for (const Covered& section : structure_.sections) {
      if (section.extent.offset < at) report_overlap(section, at);
      at = std::max(at, end_of(section.extent));
    }
  }

  // In the first generation padding is zero everywhere, in later ones only inside sections.
  void check_gap(std::uint64_t begin, std::uint64_t end) {
    if (file_.header().generation <= 1) return require_zero(begin, end);
    for (const Covered& section : structure_.sections) {
      require_zero(std::max(begin, section.extent.offset), std::min(end, end_of(section.extent)));
    }
  }

  void require_zero(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    bool found = false;
    findings_.check([&] {
      file_.pass_over(begin, end - begin, [&](std::uint64_t offset, ByteSpan gap) {
        const auto bad =
            std::find_if(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; });
        // One finding a gap, for its first byte: a damaged gap may be long.
        if (found || bad == gap.end()) return;
        found = true;
        findings_.add({.code = ErrorCode::bad_value,
                       .section = "padding",
                       .field = {},
                       .region = {},
                       .tensor = {},
                       .offset = offset + static_cast<std::uint64_t>(bad - gap.begin()),
                       .length = 1,
                       .message = fmt::format("padding in [{}, {}) is not zero", begin, end)});
      });
    });
  }

  // The directory is one covered extent, so its inside is checked here: the padding after its
  // arrays, and what no entry owns of chunks, names and side data.
  void check_directory() {
    const format::DirectoryHeader& directory = file_.directory();
    std::vector<Extent> owned{{0, sizeof directory},
                              {directory.regions_offset, std::uint64_t{directory.region_count} *
                                                             sizeof(format::DirectoryRegion)},
                              {directory.region_order_offset,
                               std::uint64_t{directory.region_count} * sizeof(format::le32)},
                              {directory.tensors_offset, std::uint64_t{directory.tensor_count} *
                                                             sizeof(format::TensorEntry)}};
    const auto own = [&](std::uint64_t array, std::uint64_t offset, std::uint64_t length) {
      if (length != 0) owned.push_back({array + offset, length});
    };
    try {
      for (std::uint32_t r = 0; r < directory.region_count; ++r) {
        const format::DirectoryRegion& record = file_.directory_region(r);
        own(directory.names_offset, record.name_offset, record.name_length);
      }
      for (std::uint32_t i = 0; i < directory.tensor_count; ++i) {
        const format::TensorEntry& entry = file_.tensor_entry(i);
        own(directory.names_offset, entry.name_offset, entry.name_length);
        if (entry.side_data_offset > directory.side_data_length) return;
        own(directory.side_data_offset, entry.side_data_offset, entry.side_data_length);
        own(directory.chunks_offset, entry.first_chunk * std::uint64_t{sizeof(format::ChunkEntry)},
            entry.chunk_count * std::uint64_t{sizeof(format::ChunkEntry)});
      }
    } catch (const Error&) {
      return;  // was reported
    }
    std::sort(owned.begin(), owned.end(),
              [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    const std::uint64_t start = file_.header().directory_offset;
    const std::uint64_t length = file_.header().directory_length;
    std::uint64_t at = 0;
    for (const Extent& extent : owned) {
      require_zero(start + at, start + std::min(extent.offset, length));
      at = std::max(at, end_of(extent));
    }
    require_zero(start + at, start + length);
  }

  const detail::OpenFile& file_;
  const Structure& structure_;
  Findings& findings_;
};

}  // namespace

void verify_padding(const detail::OpenFile& file, const Structure& structure, bool read_padding,
                    Findings& findings) {
  PaddingCheck(file, structure, findings).run(read_padding);
}

}  // namespace thalia::container
