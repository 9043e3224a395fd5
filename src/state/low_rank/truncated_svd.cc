#include "state/low_rank/truncated_svd.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/philox.h"

namespace thalia::state {
namespace {

using Matrix = Eigen::MatrixXf;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Given = Eigen::Map<const RowMajor>;

// More columns than asked for: without them the last pairs would be poor.
constexpr std::uint64_t kOversampling = 8;
// Each sharpens the gap between singular values; the paper finds one or two enough as a rule.
constexpr int kPowerIterations = 2;

Matrix random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  const PhiloxKey key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  Matrix out(rows, columns);
  for (Eigen::Index j = 0; j < columns; ++j) {
    for (Eigen::Index i = 0; i < rows; ++i) {
      const auto words = philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                                 static_cast<std::uint32_t>(j), 0},
                                key);
      // Box and Muller's way to a normal number.
      const double radius = std::sqrt(-2 * std::log(1 - unit_interval(words[0], words[1])));
      const double angle = 2 * std::numbers::pi * unit_interval(words[2], words[3]);
      out(i, j) = static_cast<float>(radius * std::cos(angle));
    }
  }
  return out;
}

// The thin Q of a QR decomposition, which keeps the power iterations from losing digits.
Matrix orthonormal(const Matrix& columns) {
  const Eigen::HouseholderQR<Matrix> decomposition(columns);
  return decomposition.householderQ() * Matrix::Identity(columns.rows(), columns.cols());
}

}  // namespace

TruncatedSvd truncated_svd(std::span<const float> matrix, std::uint64_t rows, std::uint64_t columns,
                           std::uint64_t most, std::uint64_t seed) {
  TruncatedSvd out;
  const std::uint64_t width = std::min({most + kOversampling, rows, columns});
  if (width == 0 || most == 0) return out;
  const auto m = static_cast<Eigen::Index>(rows), n = static_cast<Eigen::Index>(columns);
  const Given given(matrix.data(), m, n);
  Matrix range = orthonormal(given * random_matrix(n, static_cast<Eigen::Index>(width), seed));
  for (int i = 0; i < kPowerIterations; ++i) {
    const Matrix across = orthonormal(given.transpose() * range);
    range = orthonormal(given * across);
  }
  // range × (its transpose × given), of which the second factor is small in one direction.
  const Matrix transposed = given.transpose() * range;
  const Matrix across = orthonormal(transposed);
  const Matrix core = across.transpose() * transposed;
  // Square, so that nothing has to be made square first.
  const Eigen::JacobiSVD<Matrix, Eigen::NoQRPreconditioner> svd(
      core, Eigen::ComputeFullU | Eigen::ComputeFullV);
  const Matrix left = range * svd.matrixV();
  const Matrix right = across * svd.matrixU();
  const auto& values = svd.singularValues();
  for (Eigen::Index k = 0; k < values.size() && out.rank < most; ++k) {
    if (!(values[k] > 0) || !std::isfinite(values[k])) break;
    const double root = std::sqrt(static_cast<double>(values[k]));
    for (Eigen::Index i = 0; i < m; ++i) out.left.push_back(root * left(i, k));
    for (Eigen::Index j = 0; j < n; ++j) out.right.push_back(root * right(j, k));
    ++out.rank;
  }
  return out;
}

}  // namespace thalia::state
