// Tensors of the earlier file are found by name and opened one at a time, while the later file is
// visited in its order. Two whose content hashes and layouts are equal are not read.
#include "cli/tensor/tensor_changes.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <stop_token>
#include <utility>

#include "cli/tensor/element_stream.h"
#include "cli/tensor/file_tensors.h"
#include "cli/tensor/number.h"
#include "cli/tensor/slice.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

// Sums in long double: squares of f64 may be too large or too small for an f64.
class RelativeChange {
 public:
  void add(std::complex<double> before, std::complex<double> after) {
    const std::complex<double> difference = after - before;
    if (!std::isfinite(std::abs(before)) || !std::isfinite(std::abs(difference))) return;
    before_ += square(before);
    difference_ += square(difference);
  }
  double result() const {
    if (difference_ == 0) return 0;
    if (before_ == 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(std::sqrt(difference_) / std::sqrt(before_));
  }

 private:
  static long double square(std::complex<double> number) {
    const long double real = number.real();
    const long double imaginary = number.imag();
    return real * real + imaginary * imaginary;
  }

  long double before_ = 0;
  long double difference_ = 0;
};

struct Entry {
  std::uint64_t place;  ///< row-major
  std::complex<double> value;
};

std::vector<Entry> entries_of(const TensorSource& source) {
  std::vector<Entry> entries;
  const Shape& shape = source.layout.shape;
  const ByteSpan values = source.entries->values();
  source.entries->visit(
      whole(shape).ranges, [&](std::span<const std::uint64_t> at, std::uint64_t position) {
        std::uint64_t place = 0;
        for (unsigned d = 0; d < shape.rank(); ++d) place = place * shape[d] + at[d];
        entries.push_back(
            {place, complex_number(decode_element(source.layout.dtype, values, position))});
        return true;
      });
  return entries;
}

void add_entries(RelativeChange& sums, const TensorSource& before, const TensorSource& after) {
  const std::vector<Entry> earlier = entries_of(before);
  const std::vector<Entry> later = entries_of(after);
  for (auto a = earlier.begin(), b = later.begin(); a != earlier.end() || b != later.end();) {
    if (b == later.end() || (a != earlier.end() && a->place < b->place)) {
      sums.add((a++)->value, 0);
    } else if (a == earlier.end() || b->place < a->place) {
      sums.add(0, (b++)->value);
    } else {
      sums.add((a++)->value, (b++)->value);
    }
  }
}

double relative_change(const TensorSource& before, const TensorSource& after,
                       const std::stop_token& stop) {
  RelativeChange sums;
  if (before.entries && after.entries) {
    add_entries(sums, before, after);
    return sums.result();
  }
  ElementStream earlier(before, whole(before.layout.shape).ranges);
  ElementStream later(after, whole(after.layout.shape).ranges);
  constexpr std::uint64_t kBetweenLooks = 1 << 16;
  for (std::uint64_t i = 0;; ++i) {
    if (i % kBetweenLooks == 0 && stop.stop_requested())
      throw CancelledError(ErrorCode::cancelled, "ended by a signal");
    const auto a = earlier.next();
    const auto b = later.next();
    if (!a || !b) return sums.result();
    sums.add(complex_number(*a), complex_number(*b));
  }
}

struct Earlier {
  ListedTensor listed;
  std::function<TensorSource()> open;
  bool is_met = false;
};

// What only says what changed since some base has hashes of its own.
bool is_complete(const ListedTensor& tensor) {
  const Encoding encoding = tensor.layout.encoding;
  return encoding == Encoding::dense || is_sparse(encoding);
}

bool is_known_to_be_same(const ListedTensor& before, const ListedTensor& after) {
  return before.content_hash && after.content_hash && before.content_hash == after.content_hash &&
         is_complete(before) && before.layout == after.layout;
}

void compare(TensorChange& change, const Earlier& before, const FileTensor& after,
             const std::stop_token& stop) {
  const ListedTensor later = after.list();
  const Shape& shape = before.listed.layout.shape;
  if (shape != later.layout.shape) {
    change.not_compared =
        fmt::format("{} before, {} now", shape.to_string(), later.layout.shape.to_string());
  } else {
    change.relative = is_known_to_be_same(before.listed, later)
                          ? 0
                          : relative_change(before.open(), after.open(), stop);
  }
}

}  // namespace

std::vector<TensorChange> tensor_changes(const std::filesystem::path& before,
                                         const std::filesystem::path& after,
                                         std::vector<std::string> patterns,
                                         const ChainOptions& options) {
  const bool is_whole = patterns.empty();
  std::vector<Earlier> earlier;
  Selection everything("PATTERN", {});
  visit_tensors(before, everything, options, [&](const FileTensor& tensor) {
    earlier.push_back(
        {.listed = tensor.list(), .open = [kept = tensor.keep()] { return kept->open(); }});
  });
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::size_t> places;
  std::map<std::string, std::size_t> places_by_name;
  bool has_regions = false;
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    const ListedTensor& tensor = earlier[i].listed;
    has_regions |= !tensor.region.empty();
    places.emplace(Key(tensor.region, tensor.name), i);
    places_by_name.emplace(tensor.name, i);
  }
  const auto find = [&](const ListedTensor& tensor) -> Earlier* {
    const auto found = places.find({tensor.region, tensor.name});
    if (found != places.end()) return &earlier[found->second];
    if (has_regions != tensor.region.empty()) return nullptr;
    const auto named = places_by_name.find(tensor.name);
    return named == places_by_name.end() ? nullptr : &earlier[named->second];
  };
  std::vector<TensorChange> changes;
  Selection selection("PATTERN", std::move(patterns));
  visit_tensors(after, selection, options, [&](const FileTensor& tensor) {
    const ListedTensor listed = tensor.list();
    TensorChange change{.region = listed.region,
                        .name = listed.name,
                        .change = Change::added,
                        .layout = listed.layout};
    if (Earlier* const known = find(listed)) {
      known->is_met = true;
      change.change = Change::changed;
      compare(change, *known, tensor, options.read.work.cancel);
    }
    changes.push_back(std::move(change));
  });
  if (!is_whole) return changes;
  for (const Earlier& tensor : earlier) {
    if (tensor.is_met) continue;
    changes.push_back({.region = tensor.listed.region,
                       .name = tensor.listed.name,
                       .change = Change::removed,
                       .layout = tensor.listed.layout});
  }
  return changes;
}

}  // namespace thalia::cli
