// Which tensors are in memory, and which one goes next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

#include "thalia/state/tensor_value.h"

namespace thalia::formats::params {

/// Tensors under numbers. Externally synchronised.
class Residents {
 public:
  /// @param budget of all together; nullopt: any, and only pinned ones are kept.
  explicit Residents(std::optional<std::uint64_t> budget) : budget_(budget) {}

  /// Counts as a use. nullptr where it is not kept; valid until the next keep().
  const Tensor* use(std::size_t number);
  bool holds(std::size_t number) const { return kept_.contains(number); }
  /// Whether keep() would keep it, room or not being made.
  bool would_keep(std::uint64_t bytes, bool pinned) const noexcept;
  /// Keeps a tensor that is not kept yet, if there can be room.
  void keep(std::size_t number, const Tensor& tensor, bool pinned);

  std::size_t count() const noexcept { return kept_.size(); }
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t pinned_bytes() const noexcept { return pinned_bytes_; }
  std::uint64_t evictions() const noexcept { return evictions_; }

 private:
  struct Kept {
    Tensor tensor;
    std::optional<std::list<std::size_t>::iterator> use;  ///< in uses_, unless pinned
  };

  void evict_oldest();

  std::optional<std::uint64_t> budget_;
  std::unordered_map<std::size_t, Kept> kept_;
  std::list<std::size_t> uses_;  ///< of those that are not pinned, the latest last
  std::uint64_t bytes_ = 0;
  std::uint64_t pinned_bytes_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace thalia::formats::params
