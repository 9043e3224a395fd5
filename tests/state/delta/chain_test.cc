// Chains of ten, over states that walk at random: every state comes back, exactly or within the
// threshold, from the chain, from parts of it, and from the file that it is squashed to.
#include <cmath>
#include <limits>

#include "state/delta/check.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_chain)

namespace {

namespace fs = std::filesystem;

constexpr int kLinks = 10;
constexpr double kThreshold = 1e-3;

// The state of a network that learns, grows, prunes and rewires itself.
class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {
    for (const char* region : {"cortex", "hippocampus"}) {
      auto& tensors = state_.regions[region];
      tensors["f32"] = {normal_tensor({30, 40}, random_)};
      tensors["bf16"] = {random_tensor(DType::bf16, {500}, random_), Role::homeostatic};
      tensors["csr"] = {sparse(0.1).to_csr()};
      tensors["coo"] = {sparse(0.02).to_coo()};
      tensors["spikes"] = {random_tensor(DType::binary, {99}, random_), Role::region_state};
      tensors["moment"] = {normal_tensor({30, 40}, random_), Role::optimizer};
    }
    state_.connections[{"cortex", "hippocampus"}] = normal_tensor({30, 20}, random_);
  }

  const SampleState& state() const { return state_; }

  void step() {
    ++state_.steps;
    state_.metadata = "{\"step\":" + std::to_string(state_.steps) + "}";
    for (auto& [region, tensors] : state_.regions) {
      for (auto& [name, sample] : tensors) {
        if (roll() < 0.3) continue;  // as it was
        if (sample.tensor.encoding() == Encoding::csr) {
          sample.tensor = sparse(0.1).to_csr();
        } else if (sample.tensor.encoding() == Encoding::coo) {
          sample.tensor = sparse(0.02).to_coo();
        } else if (sample.tensor.dtype() == DType::f32) {
          move(sample.tensor, roll() < 0.5 ? 1 : 0.05);
          if (roll() < 0.3) sample.tensor = reshaped(sample.tensor);
        } else {
          sample.tensor = random_tensor(sample.tensor.dtype(), sample.tensor.shape(), random_);
        }
      }
    }
    move(state_.connections[{"cortex", "hippocampus"}], 0.2);
    if (roll() < 0.3)
      state_.regions["cortex"]["added " + std::to_string(state_.steps)] = {
          normal_tensor({25}, random_), Role::other};
    if (roll() < 0.3) state_.regions["cortex"].erase("bf16");
    if (roll() < 0.3)
      state_.regions["region " + std::to_string(state_.steps)]["f32"] = {
          normal_tensor({9}, random_)};
    if (roll() < 0.2 && state_.regions.size() > 2) state_.regions.erase(--state_.regions.end());
    if (state_.steps == 7)
      state_.connections[{"hippocampus", "hippocampus"}] = sparse(0.2).to_csr();
  }

 private:
  double roll() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  // As many values as `share` of them move, by about half the threshold.
  void move(Tensor& tensor, double share) {
    std::normal_distribution<float> moves(0, static_cast<float>(kThreshold / 2));
    for (float& value : tensor.mutable_as<float>()) {
      if (roll() < share) value += moves(random_);
    }
  }

  Tensor sparse(double share) {
    Tensor dense = Tensor::zeros(DType::f32, {30, 40});
    for (float& value : dense.mutable_as<float>()) {
      if (roll() < share) value = static_cast<float>(roll());
    }
    return dense;
  }

  // Grown or shrunk in both directions: the corner that is kept keeps its values.
  Tensor reshaped(const Tensor& old) {
    if (old.shape().rank() != 2) return old;
    const std::uint64_t rows = old.shape()[0] + random_() % 9 - 3;
    const std::uint64_t columns = old.shape()[1] + random_() % 9 - 3;
    Tensor out = normal_tensor({rows, columns}, random_);
    for (std::uint64_t r = 0; r < std::min(rows, old.shape()[0]); ++r) {
      for (std::uint64_t c = 0; c < std::min(columns, old.shape()[1]); ++c)
        out.mutable_as<float>()[r * columns + c] = old.as<float>()[r * old.shape()[1] + c];
    }
    return out;
  }

  std::mt19937_64 random_;
  SampleState state_;
};

struct Links {
  explicit Links(std::uint64_t seed, const DeltaOptions& options) {
    Walk walk(seed);
    fs::path last = folder / "base.thalia";
    save_full(walk.state(), last,
              {.compression = {.codec = Codec::zstd, .chunk_bytes = 4096},
               .output = {.durability = Durability::none}});
    for (int i = 1; i <= kLinks; ++i) {
      walk.step();
      const fs::path path = folder / (std::to_string(i) + ".delta.thalia");
      save_delta(walk.state(), last, path, options);
      files.emplace_back(path, walk.state());
      last = path;
    }
  }
  TemporaryFolder folder;
  std::vector<std::pair<fs::path, SampleState>> files;
};

// The largest distance of an element of what came out; infinite where what must be equal is not.
double worst_of(const Tensor& found, const Tensor& truth, bool lossy) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(found.layout() == truth.layout())) return kInfinity;
  if (!lossy) return found == truth ? 0 : kInfinity;
  double worst = 0;
  for (std::size_t i = 0; i < truth.element_count(); ++i) {
    worst = std::max(worst, std::abs(double{found.as<float>()[i]} - double{truth.as<float>()[i]}));
  }
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_state_of_a_chain_of_ten_comes_back_to_the_bit) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const Codec codecs[] = {Codec::zstd, Codec::lz4, Codec::none};
      const Links links(
          seed, {.save = {.compression = {.codec = codecs[seed % 3], .chunk_bytes = 4096}}});
      for (const auto& [path, state] : links.files) check_chain(ChainReader::open(path), state);
      const fs::path full = links.folder / "full.thalia";
      const ResolveResult result =
          resolve(links.files.back().first, full, {}, {.output = {.durability = Durability::none}});
      BOOST_TEST(result.depth == unsigned{kLinks});
      BOOST_TEST(Reader::open(full).delta_base().has_value() == false);
      check_chain(ChainReader::open(full), links.files.back().second);
      BOOST_TEST(verify(full).ok());
    }
  }
}

BOOST_AUTO_TEST_CASE(any_part_of_a_tensor_is_what_the_whole_has_there) {
  const Links links(11, {.save = {.compression = {.chunk_bytes = 4096}}});
  const ChainReader chain = ChainReader::open(links.files.back().first);
  std::mt19937_64 random(1);
  for (const auto& [region, tensors] : links.files.back().second.regions) {
    for (const auto& [name, sample] : tensors) {
      const TensorView view = chain.reader().region(region).at(name);
      const ByteSpan whole = sample.tensor.bytes();
      for (int i = 0; i < 20; ++i) {
        const std::uint64_t begin = random() % (whole.size() + 1);
        std::vector<std::byte> part(random() % (whole.size() - begin + 1));
        chain.read_part(view, begin, part);
        BOOST_TEST((std::equal(part.begin(), part.end(),
                               whole.begin() + static_cast<std::ptrdiff_t>(begin))));
      }
      std::byte one[1];
      BOOST_CHECK_THROW(chain.read_part(view, whole.size(), one), UsageError);
    }
  }
}

BOOST_AUTO_TEST_CASE(with_a_threshold_no_error_of_a_chain_reaches_it) {
  double worst_of_all = 0;
  for (std::uint64_t seed = 21; seed <= 26; ++seed) {
    const Links links(
        seed, {.loss = {.threshold = kThreshold}, .save = {.compression = {.chunk_bytes = 4096}}});
    for (const auto& [path, state] : links.files) {
      const ChainReader chain = ChainReader::open(path);
      for (const auto& [region, tensors] : state.regions) {
        for (const auto& [name, sample] : tensors) {
          BOOST_TEST_CONTEXT(path.filename() << ": " << region << "/" << name) {
            const Tensor found = chain.read(chain.reader().region(region).at(name));
            // Nothing but dense weights may differ at all.
            const double worst = worst_of(found, sample.tensor, name == "f32");
            BOOST_TEST(worst < kThreshold);
            worst_of_all = std::max(worst_of_all, worst);
          }
        }
      }
    }
  }
  BOOST_TEST(worst_of_all > kThreshold / 2);  // or nothing was left out
}

BOOST_AUTO_TEST_SUITE_END()
