// Sparse matrices, laid out in memory as a .thalia file has them: row pointers, column indices,
// values, one after the other. Saving one is a single borrowed span, and loading a single copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace spiking {

/// A compressed sparse row matrix. Columns ascend within a row. Value: float or std::uint8_t.
template <typename Value>
class CsrMatrix {
 public:
  CsrMatrix() = default;
  /// Contents are not initialised. @throws std::length_error from 2^32 stored values on.
  CsrMatrix(std::uint32_t rows, std::uint32_t columns, std::uint64_t nnz)
      : rows_(rows), columns_(columns), nnz_(nnz) {
    if (nnz >> 32 != 0) {
      throw std::length_error("a matrix of " + std::to_string(nnz) +
                              " synapses: 32-bit indices hold fewer than 4294967296");
    }
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_bytes());
  }

  std::uint32_t rows() const noexcept { return rows_; }
  std::uint32_t columns() const noexcept { return columns_; }
  std::uint64_t nnz() const noexcept { return nnz_; }

  std::span<std::uint32_t> row_pointers() noexcept { return {words(), rows_ + std::size_t{1}}; }
  std::span<const std::uint32_t> row_pointers() const noexcept {
    return {words(), rows_ + std::size_t{1}};
  }
  std::span<std::uint32_t> column_indices() noexcept {
    return {words() + rows_ + 1, static_cast<std::size_t>(nnz_)};
  }
  std::span<const std::uint32_t> column_indices() const noexcept {
    return {words() + rows_ + 1, static_cast<std::size_t>(nnz_)};
  }
  std::span<Value> values() noexcept {
    return {reinterpret_cast<Value*>(bytes_.get() + index_bytes()), static_cast<std::size_t>(nnz_)};
  }
  std::span<const Value> values() const noexcept {
    return {reinterpret_cast<const Value*>(bytes_.get() + index_bytes()),
            static_cast<std::size_t>(nnz_)};
  }

  std::span<std::byte> bytes() noexcept { return {bytes_.get(), size_bytes()}; }
  std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_bytes()}; }

 private:
  std::size_t index_bytes() const noexcept {
    return (rows_ + std::size_t{1} + static_cast<std::size_t>(nnz_)) * sizeof(std::uint32_t);
  }
  std::size_t size_bytes() const noexcept {
    return bytes_ || rows_ > 0 ? index_bytes() + static_cast<std::size_t>(nnz_) * sizeof(Value) : 0;
  }
  std::uint32_t* words() noexcept { return reinterpret_cast<std::uint32_t*>(bytes_.get()); }
  const std::uint32_t* words() const noexcept {
    return reinterpret_cast<const std::uint32_t*>(bytes_.get());
  }

  std::uint32_t rows_ = 0;
  std::uint32_t columns_ = 0;
  std::uint64_t nnz_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

/// Positions [begin, end) of a row's entries.
struct RowRange {
  std::size_t begin;
  std::size_t end;
};

/// The entries of `row` whose columns lie in [first_column, last_column).
RowRange row_range(std::span<const std::uint32_t> row_pointers,
                   std::span<const std::uint32_t> column_indices, std::uint32_t row,
                   std::size_t first_column, std::size_t last_column);

/// True where the index arrays are those of a matrix with so many columns: what a simulator relies
/// on when it follows them.
bool is_well_formed(std::span<const std::uint32_t> row_pointers,
                    std::span<const std::uint32_t> column_indices, std::uint32_t columns);

}  // namespace spiking
