// The entries of the connectivity section against the directory, which alone decides where a matrix
// lies. end_ grows with each matrix, and has to be the end of the section at last. Tensors of the
// section that belong to no connection are reported only where the matrices of every entry were
// found, as otherwise they may be those of a damaged one.
#include "container/verify/connections.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/verify/region_facts.h"
#include "format/connectivity.h"
#include "format/directory.h"
#include "format/fixed_name.h"
#include "format/tensor.h"

namespace thalia::container {
namespace {

// Field and offset of a struct's member, for messages.
#define AT(Type, field) #field, offsetof(format::Type, field)

class ConnectionCheck {
 public:
  ConnectionCheck(const detail::OpenFile& file, Findings& findings)
      : file_(file),
        findings_(findings),
        matrices_(file.region_count()),
        start_(file.header().connectivity_offset),
        count_(file.connection_count()),
        end_(start_ + sizeof(format::ConnectivityHeader) +
             count_ * sizeof(format::ConnectionEntry)) {}

  void run() {
    findings_.check([&] { check_header(); });
    if (file_.directory().region_count == matrices_) return;  // was reported
    for (std::uint32_t r = 0; r < file_.region_count(); ++r)
      names_.insert(format::fixed_name(file_.region_index_entry(r).region_name));
    bool sound = true;
    for (std::uint32_t i = 0; i < count_; ++i) {
      findings_.check([&] { check_regions(i); });
      for (const bool weights : {true, false})
        sound &= findings_.check([&] { check_matrix(i, weights); });
    }
    if (!sound) return;
    findings_.check([&] { check_rest(); });
    findings_.check([&] {
      Place("header", 0)
          .equal(AT(Header, connectivity_length), file_.header().connectivity_length,
                 end_ - start_);
    });
  }

 private:
  std::uint64_t entry_offset(std::uint32_t i) const {
    return start_ + sizeof(format::ConnectivityHeader) +
           i * std::uint64_t{sizeof(format::ConnectionEntry)};
  }
  Place entry_place(std::uint32_t i) const { return {"connectivity", entry_offset(i)}; }

  void check_header() const {
    const auto& header = file_.structure<format::ConnectivityHeader>(start_, "connectivity");
    const Place place("connectivity", start_);
    place.equal(AT(ConnectivityHeader, zero_04), header.zero_04, 0);
    place.zero(AT(ConnectivityHeader, zero_08), header.zero_08);
  }

  void check_regions(std::uint32_t i) {
    const format::ConnectionEntry& entry = file_.connection_entry(i);
    const Place at = entry_place(i);
    const std::string_view source = format::fixed_name(entry.source_region);
    const std::string_view target = format::fixed_name(entry.target_region);
    if (!names_.contains(source))
      at.fail(AT(ConnectionEntry, source_region), printable(source), "the name of a region");
    if (!names_.contains(target))
      at.fail(AT(ConnectionEntry, target_region), printable(target), "the name of a region");
    if (!pairs_.emplace(source, target).second) {
      at.fail(AT(ConnectionEntry, source_region),
              fmt::format("{} to {}", printable(source), printable(target)),
              "one connection a pair of regions");
    }
  }

  // The weights or delays of an entry are a tensor of their name and role, and lie where it says.
  void check_matrix(std::uint32_t i, bool weights) {
    // Read without a check of its names, whose faults were reported.
    const auto& entry = file_.structure<format::ConnectionEntry>(entry_offset(i), "connectivity");
    const std::uint64_t offset = weights ? entry.weight_offset : entry.delay_offset;
    const std::uint64_t length = weights ? entry.weight_length : entry.delay_length;
    const std::string name = fmt::format("{}.{}", i, weights ? "weights" : "delays");
    const auto number = file_.find_tensor(matrices_, name);
    if (!number && !weights && offset == 0 && length == 0) return;
    const Place at = entry_place(i);
    const auto fail_offset = [&](std::string value, std::string expected) {
      if (weights)
        at.fail(AT(ConnectionEntry, weight_offset), std::move(value), std::move(expected));
      at.fail(AT(ConnectionEntry, delay_offset), std::move(value), std::move(expected));
    };
    if (!number) fail_offset(std::to_string(offset), "'" + name + "' in the directory");
    const format::TensorEntry& tensor = file_.tensor_entry(*number);
    // Entries of the section point at payload headers, those of the directory at payloads.
    const std::uint64_t begin = tensor.stored_offset - sizeof(format::TensorHeader);
    const std::uint64_t bytes = tensor.stored_length + sizeof(format::TensorHeader);
    if (offset != begin - start_ || length != bytes) {
      fail_offset(fmt::format("[{}, +{})", offset, length),
                  fmt::format("[{}, +{})", begin - start_, bytes));
    }
    owned_.insert(*number);
    end_ = std::max(end_, begin + bytes);
    const Role role = weights ? Role::weights : Role::other;
    Place("directory", file_.tensor_entry_offset(*number))
        .equal(AT(TensorEntry, role), format::code_of(tensor.role), format::code_of(role));
  }

  // Tensors of the section that are no connection's matrix.
  void check_rest() const {
    const format::DirectoryRegion& record = file_.directory_region(matrices_);
    for (std::uint32_t i = 0; i < record.tensor_count; ++i) {
      const std::uint32_t number = record.first_tensor + i;
      if (owned_.contains(number)) continue;
      const format::TensorEntry& entry = file_.tensor_entry(number);
      Place("directory", file_.tensor_entry_offset(number))
          .fail(AT(TensorEntry, name_offset),
                "'" + printable(file_.name(entry.name_offset, entry.name_length)) + "'",
                "the name of a connection's matrix");
    }
  }

  const detail::OpenFile& file_;
  Findings& findings_;
  const std::uint32_t matrices_;  ///< the directory's region that holds them
  const std::uint64_t start_;
  const std::uint32_t count_;
  std::uint64_t end_;  ///< of what belongs to the section
  std::set<std::string_view> names_;
  std::set<std::pair<std::string_view, std::string_view>> pairs_;
  std::set<std::uint32_t> owned_;
};

#undef AT

}  // namespace

void verify_connections(const detail::OpenFile& file, Findings& findings) {
  if (file.header().connectivity_length == 0) return;
  try {
    file.connection_count();
  } catch (const Error&) {
    return;  // was reported
  }
  findings.check([&] { ConnectionCheck(file, findings).run(); });
}

}  // namespace thalia::container
