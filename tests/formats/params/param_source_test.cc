// A ParamSource over tensors in memory that counts its reads, and over a file.
#include "thalia/formats/param_source.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "boost_test.h"
#include "formats/params/layer.h"
#include "formats/params/make_param_source.h"
#include "support/errors.h"
#include "support/fault.h"
#include "thalia/error.h"

using namespace thalia;
using formats::make_param_source;
using formats::params::layer_of;

BOOST_AUTO_TEST_SUITE(param_source)

namespace {

struct Param {
  std::string name;
  std::uint64_t elements;  ///< of f32, each the tensor's number
};

class CountingFile final : public formats::OpenedFile {
 public:
  explicit CountingFile(const std::vector<Param>& params) {
    for (const Param& param : params)
      facts_.tensors.push_back({.name = param.name, .layout = {.shape = Shape({param.elements})}});
    reads = std::vector<std::atomic<unsigned>>(params.size());
  }

  Tensor read(std::size_t i) const override {
    ++reads[i];
    if (before_read) before_read(i);
    const std::vector<float> numbers(facts_.tensors[i].layout.shape[0], static_cast<float>(i));
    return Tensor::copy_of(facts_.tensors[i].layout.shape, numbers);
  }

  mutable std::vector<std::atomic<unsigned>> reads;
  std::function<void(std::size_t)> before_read;
};

// Bytes are four times the elements: 40, 40, 40, 400, 4.
std::shared_ptr<CountingFile> five() {
  return std::make_shared<CountingFile>(std::vector<Param>{
      {"blocks.0.w", 10}, {"blocks.1.w", 10}, {"blocks.2.w", 10}, {"lm_head", 100}, {"scale", 1}});
}

bool has_value(const Tensor& tensor, float value) {
  const auto numbers = tensor.as<float>();
  return std::all_of(numbers.begin(), numbers.end(), [&](float n) { return n == value; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(by_itself_nothing_is_kept) {
  const auto source = five();
  const ParamSource params = make_param_source(source);
  BOOST_TEST(source->reads[1] == 0u);
  BOOST_TEST(params.total_bytes() == 524u);
  BOOST_TEST(!params.budget_bytes());
  BOOST_TEST(has_value(params.load("blocks.1.w"), 1));
  BOOST_TEST(has_value(params.load(base_param_id("blocks.1.w")), 1));
  BOOST_TEST(source->reads[1] == 2u);
  const ParamStatistics now = params.statistics();
  BOOST_TEST(now.hits == 0u);
  BOOST_TEST(now.misses == 2u);
  BOOST_TEST(now.loaded_bytes == 80u);
  BOOST_TEST(now.resident_bytes == 0u);
  params.prefetch();
  BOOST_TEST(params.statistics().misses == 2u);
}

BOOST_AUTO_TEST_CASE(params_have_ids_keys_and_layers) {
  const auto source = std::make_shared<CountingFile>(
      std::vector<Param>{{"blocks.0.ln_1.gamma", 1}, {"h\xc3\xa9", 1}});
  const ParamSource params = make_param_source(source, {.model = ModelNamespaceId{0, 1}});
  const ParamInfo& first = params.params()[0];
  BOOST_TEST(first.id.value().to_string() == "cdd70aa52b70c653c42052aa0617003b");
  BOOST_TEST(first.key.value().to_string() == "b42a4944fa38560452f5a9679249ca41");
  BOOST_TEST((first.layer == 0u));
  BOOST_TEST(params.find(*first.id) == &first);
  BOOST_TEST(params.find(*first.key) == &first);
  BOOST_TEST(has_value(params.load(*first.key), 0));
  BOOST_CHECK_EXCEPTION(params.load(ParamKey{first.id->high, first.id->low}), UsageError,
                        test::says(ErrorCode::not_found, "key"));
  BOOST_TEST(!params.params()[1].id);
  BOOST_TEST(has_value(params.load("h\xc3\xa9"), 1));
  BOOST_CHECK_EXCEPTION(params.load("blocks.0.ln_1.gama"), UsageError,
                        test::says(ErrorCode::not_found, "did you mean"));
  BOOST_CHECK_EXCEPTION(params.load(BaseParamId{1, 2}), UsageError,
                        test::has_code(ErrorCode::not_found));
  BOOST_TEST((make_param_source(source).model() != make_param_source(source).model()));
}

BOOST_AUTO_TEST_CASE(a_layer_is_the_first_number_of_a_name) {
  BOOST_TEST((layer_of("blocks.0.w") == 0u));
  BOOST_TEST((layer_of("model.layers.31.mlp.2.w") == 31u));
  BOOST_TEST((layer_of("layer1.0.conv1.weight") == 0u));
  BOOST_TEST((layer_of("007.x") == 7u));
  for (const char* const name : {"", "lm_head", "bias.3", "layer1.w", "a.-1.b", "a.1e1.b", "..",
                                 "a..b", "blocks.18446744073709551616.w"})
    BOOST_TEST(!layer_of(name), name);
}

BOOST_AUTO_TEST_CASE(what_was_used_longest_ago_goes_first) {
  const auto source = five();
  const ParamSource params = make_param_source(source, {.budget_bytes = 100});
  params.load("blocks.0.w");
  params.load("blocks.1.w");
  params.load("blocks.0.w");  // now 1 is the oldest
  params.load("blocks.2.w");
  BOOST_TEST(params.statistics().evictions == 1u);
  BOOST_TEST(params.statistics().resident_bytes == 80u);
  params.load("blocks.0.w");
  params.load("blocks.2.w");
  BOOST_TEST(source->reads[0] == 1u);
  BOOST_TEST(source->reads[2] == 1u);
  params.load("blocks.1.w");
  BOOST_TEST(source->reads[1] == 2u);
  // What is larger than the budget evicts nothing.
  params.load("lm_head");
  BOOST_TEST(params.statistics().resident_tensors == 2u);
  const ParamStatistics now = params.statistics();
  BOOST_TEST(now.hits == 3u);
  BOOST_TEST(now.misses == 5u);
  BOOST_TEST(now.loaded_bytes == 4 * 40u + 400u);
}

BOOST_AUTO_TEST_CASE(pinned_tensors_stay) {
  const auto source = five();
  const ParamSource params =
      make_param_source(source, {.budget_bytes = 90, .prefetch_layers = 1, .small_bytes = 4});
  BOOST_TEST(params.find("blocks.0.w")->pinned);
  BOOST_TEST(!params.find("blocks.1.w")->pinned);
  BOOST_TEST(params.find("scale")->pinned);
  params.prefetch();
  BOOST_TEST(source->reads[0] == 1u);
  BOOST_TEST(source->reads[1] == 0u);
  params.load("scale");
  BOOST_TEST(params.statistics().pinned_bytes == 44u);
  for (int round = 0; round < 3; ++round) {
    params.load("blocks.1.w");  // each takes the place of the other
    params.load("blocks.2.w");
    params.load("blocks.0.w");
    params.load("scale");
  }
  BOOST_TEST(source->reads[0] == 1u);
  BOOST_TEST(source->reads[4] == 1u);
  BOOST_TEST(source->reads[1] == 3u);
  BOOST_TEST(params.statistics().resident_bytes == 84u);
}

BOOST_AUTO_TEST_CASE(without_a_budget_only_pinned_tensors_stay) {
  const auto source = five();
  const ParamSource params = make_param_source(source, {.prefetch_layers = 2});
  std::vector<std::uint64_t> told;
  params.prefetch({.threads = 2, .progress = [&](std::uint64_t done, std::uint64_t total) {
                     BOOST_TEST(total == 80u);
                     told.push_back(done);
                   }});
  BOOST_TEST((told == std::vector<std::uint64_t>{40, 80}));
  params.load("blocks.2.w");
  params.load("blocks.2.w");
  params.load("blocks.1.w");
  params.prefetch();
  BOOST_TEST(source->reads[2] == 2u);
  BOOST_TEST(source->reads[1] == 1u);
  BOOST_TEST(params.statistics().resident_tensors == 2u);
}

BOOST_AUTO_TEST_CASE(prefetching_reads_only_what_fits) {
  const auto source = five();
  const ParamSource params = make_param_source(source, {.budget_bytes = 90, .prefetch_layers = 3});
  params.prefetch();
  BOOST_TEST(source->reads[0] == 1u);
  BOOST_TEST(source->reads[1] == 1u);
  BOOST_TEST(source->reads[2] == 0u);
  // No room is left beside what is pinned.
  params.load("blocks.2.w");
  BOOST_TEST(params.statistics().resident_bytes == 80u);
  std::stop_source stop;
  stop.request_stop();
  const ParamSource other = make_param_source(source, {.prefetch_layers = 3});
  BOOST_CHECK_THROW(other.prefetch({.cancel = stop.get_token()}), CancelledError);
}

BOOST_AUTO_TEST_CASE(the_smallest_limit_is_the_budget) {
  const auto budget = [](const ParamSourceOptions& options) {
    return make_param_source(five(), options).budget_bytes();
  };
  BOOST_TEST((budget({.budget_share = 0.5}) == 262u));
  BOOST_TEST((budget({.budget_share = 0.001}) == 0u));
  BOOST_TEST((budget({.budget_share = 1.0}) == 524u));
  BOOST_TEST((budget({.budget_bytes = 300, .budget_share = 0.5}) == 262u));
  BOOST_TEST((budget({.budget_bytes = 300, .budget_cap_bytes = 100}) == 100u));
  BOOST_TEST((budget({.budget_bytes = 100, .budget_cap_bytes = 300}) == 100u));
  for (const double share : {-0.1, 1.1, std::nan("")})
    BOOST_CHECK_EXCEPTION(budget({.budget_share = share}), UsageError,
                          test::says(ErrorCode::bad_argument, "budget_share"));
  // A budget of nothing keeps nothing but what has no bytes.
  const auto source = std::make_shared<CountingFile>(std::vector<Param>{{"w", 1}, {"empty", 0}});
  const ParamSource params = make_param_source(source, {.budget_bytes = 0});
  for (int round = 0; round < 2; ++round) {
    params.load("w");
    params.load("empty");
  }
  BOOST_TEST(source->reads[0] == 2u);
  BOOST_TEST(source->reads[1] == 1u);
}

BOOST_AUTO_TEST_CASE(what_was_handed_out_outlives_the_source_and_is_the_callers) {
  Tensor tensor;
  {
    const ParamSource params = make_param_source(five(), {.budget_bytes = 1000});
    tensor = params.load("blocks.1.w");
    tensor.mutable_as<float>()[0] = 7;
    BOOST_TEST(has_value(params.load("blocks.1.w"), 1));
  }
  BOOST_TEST(tensor.as<float>()[0] == 7.0f);
  BOOST_TEST(tensor.as<float>()[1] == 1.0f);
}

// Both reads are under way before either ends.
BOOST_AUTO_TEST_CASE(two_tensors_are_read_at_once) {
  const auto source = five();
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::size_t> reading;
  bool met = true;
  source->before_read = [&](std::size_t i) {
    std::unique_lock lock(mutex);
    reading.insert(i);
    changed.notify_all();
    met = changed.wait_for(lock, std::chrono::seconds(60), [&] { return reading.size() == 2; }) &&
          met;
  };
  const ParamSource params = make_param_source(source, {.budget_bytes = 1000});
  std::thread other([&] { params.load("blocks.0.w"); });
  params.load("blocks.1.w");
  other.join();
  BOOST_TEST(met);
}

// The read ends when all threads are known to wait for it or to be on their way.
BOOST_AUTO_TEST_CASE(a_tensor_that_several_ask_for_is_read_once) {
  constexpr unsigned kThreads = 8;
  // With no budget too, where nothing is kept: those who wait take it from the read.
  for (const bool keeps : {true, false}) {
    const auto source = five();
    std::atomic<unsigned> started{0};
    source->before_read = [&](std::size_t) {
      while (started < kThreads) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(keeps ? 0 : 100));
    };
    ParamSourceOptions options;
    if (keeps) options.budget_bytes = 1000;
    const ParamSource params = make_param_source(source, options);
    std::vector<std::thread> threads;
    std::atomic<unsigned> right{0};
    for (unsigned i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        ++started;
        right += has_value(params.load("lm_head"), 3) ? 1u : 0u;
      });
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(right == kThreads);
    const ParamStatistics now = params.statistics();
    BOOST_TEST(now.hits + now.misses == kThreads);
    BOOST_TEST(now.misses == source->reads[3]);
    if (keeps) BOOST_TEST(source->reads[3] == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_read_that_fails_is_tried_again) {
  const auto source = five();
  std::atomic<bool> fails{true};
  source->before_read = [&](std::size_t) {
    if (fails) throw FormatError(ErrorCode::truncated, "gone");
  };
  const ParamSource params = make_param_source(source, {.budget_bytes = 1000});
  BOOST_CHECK_EXCEPTION(params.load("scale"), FormatError, test::has_code(ErrorCode::truncated));
  // All of those who ask at once hear of it.
  std::atomic<unsigned> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      try {
        params.load("scale");
      } catch (const FormatError&) {
        ++failed;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(failed == 4u);
  fails = false;
  BOOST_TEST(has_value(params.load("scale"), 4));
  BOOST_TEST(params.statistics().loaded_bytes == 4u);
}

BOOST_AUTO_TEST_CASE(many_threads_never_pass_the_budget) {
  const auto source = five();
  const ParamSource params =
      make_param_source(source, {.budget_bytes = 90, .prefetch_layers = 1, .small_bytes = 4});
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 500; ++i) {
        const std::size_t number = (i * (t + 1) + t) % 5;
        const Tensor tensor = params.load(params.params()[number].name);
        if (!has_value(tensor, static_cast<float>(number))) ++wrong;
        if (params.statistics().resident_bytes > 90) ++wrong;
        if (i % 100 == 0) params.prefetch();
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0u);
  const ParamStatistics now = params.statistics();
  BOOST_TEST(now.pinned_bytes == 44u);
  BOOST_TEST(source->reads[0] == 1u);
  BOOST_TEST(now.hits + now.misses >= 2000u);
}

BOOST_AUTO_TEST_CASE(a_forked_child_reads_what_its_parent_was_reading) {
  const auto source = five();
  const ParamSource params = make_param_source(source, {.budget_bytes = 1000});
  test::Outcome during;
  bool has_forked = false;
  source->before_read = [&](std::size_t) {
    if (std::exchange(has_forked, true)) return;
    during = test::run_with_faults({}, [&] {
      for (int i = 0; i < 2; ++i)
        if (!has_value(params.load("scale"), 4)) throw std::runtime_error("another");
      if (params.statistics().hits != 1) throw std::runtime_error("not kept");
    });
  };
  BOOST_TEST(has_value(params.load("scale"), 4));
  BOOST_TEST((during.kind == test::Outcome::Kind::returned), during.message);
  BOOST_TEST(source->reads[4] == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
