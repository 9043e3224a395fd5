#include <atomic>
#include <thread>

#include "store/pool/runs.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_pool_cache)

namespace {

namespace fs = std::filesystem;

class Versions {
 public:
  explicit Versions(unsigned count) : writer_(run_.writer()) {
    Pool pool(writer_);
    for (unsigned i = 1; i <= count; ++i) {
      HydraRun::save(writer_, i, i);
      members_.push_back(pool.add("phase3", i, {}).member);
    }
  }
  const PoolMember& operator[](std::size_t i) const { return members_.at(i); }
  RunWriter& writer() { return writer_; }
  const HydraRun& run() const { return run_; }

 private:
  HydraRun run_;
  RunWriter writer_;
  std::vector<PoolMember> members_;
};

Tensor stem_of(const ChainReader& chain) {
  return chain.read(chain.reader().tensor("model_record/stem"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_models_that_were_used_last_are_held) {
  const Versions versions(3);
  PoolCache cache(2);
  cache.get(versions[0]);
  cache.get(versions[1]);
  cache.get(versions[0]);  // the other one is the older one now
  BOOST_TEST(cache.hits() == 1u);
  cache.get(versions[2]);  // and goes
  BOOST_TEST(cache.size() == 2u);
  BOOST_TEST(cache.misses() == 3u);
  cache.get(versions[0]);
  cache.get(versions[2]);
  BOOST_TEST(cache.hits() == 3u);
  cache.get(versions[1]);
  BOOST_TEST(cache.misses() == 4u);
  cache.get(versions[0]);  // went for it, since version 3 was used after it
  BOOST_TEST(cache.misses() == 5u);
}

BOOST_AUTO_TEST_CASE(who_holds_a_model_keeps_it) {
  const Versions versions(2);
  PoolCache cache(1);
  const ChainReader first = cache.get(versions[0]);
  cache.get(versions[1]);
  fs::remove(versions[0].path);
  BOOST_TEST((stem_of(first) == numbered_tensor(DType::bf16, {4, 3}, 1)));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_the_digest_s_are_refused) {
  const Versions versions(2);
  std::string bytes = read_file(versions[0].path);
  bytes[bytes.size() / 2] ^= 1;
  write_file(versions[0].path, bytes);
  PoolCache cache;
  expect<IntegrityError>([&] { cache.get(versions[0]); }, ErrorCode::checksum_mismatch);
  BOOST_TEST(cache.size() == 0u);
  fs::remove(versions[1].path.string() + ".sha256");
  BOOST_TEST((stem_of(cache.get(versions[1])) == numbered_tensor(DType::bf16, {4, 3}, 2)));
}

BOOST_AUTO_TEST_CASE(a_version_that_was_evicted_is_not_handed_out_any_more) {
  const Versions versions(2);
  PoolCache cache;
  cache.get(versions[0]);
  fs::remove(versions[0].path);
  const auto error = expect<IoError>([&] { cache.get(versions[0]); }, ErrorCode::io);
  BOOST_TEST(error.errno_value() == ENOENT);
  BOOST_TEST(cache.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_file_that_was_replaced_is_read_again) {
  Versions versions(2);
  HydraRun::play_phase1(versions.writer());
  PoolCache cache;
  const PoolMember gate = read_pool(versions.run().run()).anchors.at(0);
  BOOST_TEST((stem_of(cache.get(gate)) == numbered_tensor(DType::bf16, {4, 3}, 2)));
  versions.writer().promote("phase1", {.step = 100, .force = true});
  BOOST_TEST((stem_of(cache.get(gate)) == numbered_tensor(DType::bf16, {4, 3}, 1)));
  BOOST_TEST(cache.misses() == 2u);
  BOOST_TEST(cache.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_anchor_has_to_have_a_digest) {
  Versions versions(1);
  HydraRun::play_phase1(versions.writer());
  const PoolMember gate = read_pool(versions.run().run()).anchors.at(0);
  fs::remove(gate.path.string() + ".sha256");
  PoolCache cache;
  expect<IntegrityError>([&] { cache.get(gate); }, ErrorCode::checksum_mismatch);
}

BOOST_AUTO_TEST_CASE(threads_share_a_cache) {
  const Versions versions(4);
  PoolCache cache(2);
  std::atomic<unsigned> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < 20; ++i) {
          const unsigned n = (t + i * 3) % 4;
          if (!(stem_of(cache.get(versions[n])) == numbered_tensor(DType::bf16, {4, 3}, n + 1)))
            ++wrong;
        }
      });
  }
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(cache.hits() + cache.misses() == 80u);
  BOOST_TEST(cache.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_cache_holds_one_model_at_least) {
  expect<UsageError>([] { PoolCache cache(0); }, ErrorCode::bad_argument);
}

BOOST_AUTO_TEST_SUITE_END()
