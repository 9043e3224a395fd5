// What a reader promises of its views, and what it says when it is asked for the wrong thing.
#include <atomic>
#include <memory>
#include <thread>

#include "boost_test.h"
#include "container/write/same_as_sample.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(reader)

namespace {

struct SavedFile {
  explicit SavedFile(const Sample& sample, const SaveOptions& options = steady_options())
      : path(folder / "f") {
    save(path, sample, options);
  }
  TemporaryFolder folder;
  std::filesystem::path path;
};

FileFlags flags_of(std::vector<SampleTensor> tensors) {
  const SavedFile file({.regions = {{{.name = "r"}, std::move(tensors)}}, .connections = {}});
  return Reader::open(file.path).header().flags;
}

void check_limit(const SavedFile& file, const ReadLimits& limits, const char* name) {
  const ReadOptions options{.input = {.limits = limits}};
  BOOST_CHECK_EXCEPTION(
      [&] {
        const Reader reader = Reader::open(file.path, options);
        reader.metadata_json();
        for (std::uint32_t r = 0; r < reader.region_count(); ++r) reader.region(r).config_json();
      }(),
      FormatError, says(ErrorCode::limit_exceeded, name, file.path.string()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(view_outlives_reader) {
  auto file = std::make_unique<SavedFile>(varied_sample());
  auto reader = std::make_unique<Reader>(Reader::open(file->path));
  auto region = std::make_unique<RegionView>(reader->region("cortex"));
  const TensorView tensor = region->at("w_in");
  const std::span<const float> values = tensor.as<float>();
  const float last = values.back();
  reader.reset();
  region.reset();
  file.reset();  // the file too: the mapping holds its bytes
  BOOST_TEST(values.back() == last);
  BOOST_TEST(tensor.name() == "w_in");
  BOOST_TEST(Reader::region_name(tensor) == "cortex");
  check_same(tensor, varied_sample().regions[0].tensors[0]);
}

BOOST_AUTO_TEST_CASE(a_replaced_file_leaves_open_readers_on_the_old_bytes) {
  const SavedFile file(varied_sample());
  const Reader old = Reader::open(file.path);
  save(file.path, small_sample());
  check_same(old, varied_sample());
  check_same(Reader::open(file.path), small_sample());
}

BOOST_AUTO_TEST_CASE(large_payloads_start_on_a_page) {
  SampleRegion region{.spec = {.name = "r"}, .tensors = {}};
  for (const std::uint64_t bytes : {65535u, 65536u, 65537u, 64u, 200'000u}) {
    region.tensors.push_back(dense_tensor(std::to_string(bytes), DType::u8, {bytes}));
    region.tensors.push_back(
        dense_tensor("s" + std::to_string(bytes), DType::u8, {bytes}, Role::region_state));
  }
  const Sample sample = {.regions = {std::move(region)}, .connections = {}};
  check_round_trip(sample);
  const SavedFile file(sample);
  const Reader reader = Reader::open(file.path);
  for (const SampleTensor& tensor : sample.regions[0].tensors) {
    const bool large = tensor.payload.size() >= 65536;
    const ByteSpan bytes = reader.tensor(tensor.spec.name).bytes();
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(bytes.data()) % (large ? 4096 : 64) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(typed_access_asks_for_the_dtype) {
  const SavedFile file(varied_sample());
  const Reader reader = Reader::open(file.path);
  const RegionView cortex = reader.region("cortex");
  BOOST_TEST(cortex.at("w_in").as<float>().size() == 480u);
  BOOST_TEST(cortex.at("mask").as<bool>().size() == 13u);
  BOOST_TEST(cortex.at("trace").as<BFloat16>().size() == 120u);
  BOOST_TEST(cortex.at("phase").as<std::complex<float>>().size() == 4u);
  const auto mismatch = says(ErrorCode::dtype_mismatch, "cortex", "w_in", "f64", "f32");
  BOOST_CHECK_EXCEPTION(cortex.at("w_in").as<double>(), UsageError, mismatch);
  BOOST_CHECK_EXCEPTION(cortex.at("w_in").as<std::int32_t>(), UsageError,
                        has_code(ErrorCode::dtype_mismatch));
  BOOST_CHECK_EXCEPTION(cortex.at("trace").as<Float16>(), UsageError,
                        has_code(ErrorCode::dtype_mismatch));
  BOOST_CHECK_EXCEPTION(cortex.at("w_rec").as<float>(), UsageError,
                        has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_named) {
  const SavedFile file(varied_sample());
  const Reader reader = Reader::open(file.path);
  BOOST_TEST(!reader.find_region("Cortex").has_value());
  BOOST_TEST(!reader.find_region("").has_value());
  BOOST_TEST(!reader.region("cortex").find("w").has_value());
  BOOST_TEST(!reader.region("empty").find("w_in").has_value());
  BOOST_TEST(!reader.find_connection("cortex", "cortex").has_value());
  const std::string path = file.path.string();
  BOOST_CHECK_EXCEPTION(reader.region("Cortex"), UsageError,
                        says(ErrorCode::not_found, "Cortex", path));
  BOOST_CHECK_EXCEPTION(reader.region("cortex").at("w"), UsageError,
                        says(ErrorCode::not_found, "cortex", "w", path));
  BOOST_CHECK_EXCEPTION(reader.tensor("w"), UsageError, says(ErrorCode::not_found, path));
  BOOST_CHECK_EXCEPTION(reader.region(3), UsageError, has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(reader.region("empty").tensor(0), UsageError,
                        has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(reader.connection(2), UsageError, has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_CASE(views_of_the_wrong_kind_are_refused) {
  const SavedFile file(varied_sample());
  const RegionView cortex = Reader::open(file.path).region("cortex");
  const auto wrong_state = says(ErrorCode::wrong_state, "cortex");
  const auto bad_argument = says(ErrorCode::bad_argument, "cortex");
  const auto size_mismatch = says(ErrorCode::size_mismatch, "cortex");
  BOOST_CHECK_EXCEPTION(cortex.at("w_in").csr(), UsageError, wrong_state);
  BOOST_CHECK_EXCEPTION(cortex.at("w_rec").coo(), UsageError, wrong_state);
  BOOST_CHECK_EXCEPTION(cortex.at("w_rec").rows(0, 1), UsageError, wrong_state);
  BOOST_CHECK_EXCEPTION(cortex.at("w_in").rows(1, 0), UsageError, bad_argument);
  BOOST_CHECK_EXCEPTION(cortex.at("w_in").rows(0, 41), UsageError, bad_argument);
  BOOST_CHECK_EXCEPTION(cortex.at("dopamine").rows(0, 1), UsageError, bad_argument);
  BOOST_CHECK_EXCEPTION(cortex.at("codes").rows(0, 1), UsageError, bad_argument);
  BOOST_TEST(cortex.at("w_in").rows(40, 40).empty());
  std::vector<std::byte> out(7);
  BOOST_CHECK_EXCEPTION(cortex.at("w_in").read(out), UsageError, size_mismatch);
  BOOST_CHECK_EXCEPTION(cortex.at("w_rec").read_dense(out), UsageError, size_mismatch);
  const SliceRange whole[] = {{0, 40}, {0, 12}};
  BOOST_CHECK_EXCEPTION(cortex.at("w_in").read_slice(whole, out), UsageError, size_mismatch);
  BOOST_CHECK_EXCEPTION(cortex.at("w_rec").read_slice(whole, out), UsageError, wrong_state);
  for (const std::vector<SliceRange>& bad : {std::vector<SliceRange>{},
                                             {{0, 40}},
                                             {{0, 41}, {0, 12}},
                                             {{2, 1}, {0, 12}},
                                             {{0, 1}, {0, 1}, {0, 1}},
                                             {{0, 1}, {~0ull, ~0ull}}}) {
    BOOST_CHECK_EXCEPTION(cortex.at("w_in").slice_bytes(bad), UsageError, bad_argument);
  }

  SaveOptions compressed = steady_options();
  compressed.compression.codec = Codec::lz4;
  const SavedFile chunked(varied_sample(), compressed);
  const TensorView ramp = Reader::open(chunked.path).tensor("ramp");
  BOOST_TEST(!ramp.is_raw());
  BOOST_CHECK_EXCEPTION(ramp.bytes(), UsageError, has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(ramp.as<std::uint8_t>(), UsageError, has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(ramp.rows(0, 1), UsageError, has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_CASE(every_limit_is_kept_and_named) {
  const SavedFile file(varied_sample());
  check_limit(file, {.max_file_bytes = 1000}, "max_file_bytes");
  check_limit(file, {.max_regions = 2}, "max_regions");
  check_limit(file, {.max_tensors = 3}, "max_tensors");
  check_limit(file, {.max_json_bytes = 10}, "max_json_bytes");
  check_limit(file, {.max_json_depth = 2}, "max_json_depth");
  const ReadLimits enough{.max_file_bytes = std::filesystem::file_size(file.path),
                          .max_regions = 3,
                          .max_tensors = 21,
                          .max_json_bytes = 48,
                          .max_json_depth = 3,
                          .max_allocation_bytes = 4096};
  check_same(Reader::open(file.path, {.input = {.limits = enough}}), varied_sample());

  SaveOptions compressed = steady_options();
  compressed.compression.codec = Codec::zstd;
  const SavedFile chunked(varied_sample(), compressed);
  const Reader reader =
      Reader::open(chunked.path, {.input = {.limits = {.max_allocation_bytes = 4096}}});
  std::vector<std::byte> out(10);
  const SliceRange range[] = {{100, 110}};
  BOOST_CHECK_EXCEPTION(reader.tensor("ramp").read_slice(range, out), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes", "ramp"));
}

BOOST_AUTO_TEST_CASE(header_flags_tell_what_is_inside) {
  const SampleTensor f32 = dense_tensor("a", DType::f32, {3});
  const auto check = [](std::vector<SampleTensor> tensors, const FileFlags& expected) {
    BOOST_TEST((flags_of(std::move(tensors)) == expected));
  };
  check({}, {});
  check({f32}, {});
  check({f32, dense_tensor("b", DType::f16, {3})}, {.mixed_precision = true});
  check({f32, dense_tensor("b", DType::bf16, {3})}, {.mixed_precision = true});
  check({f32, dense_tensor("b", DType::f64, {3})}, {});
  check({csr_tensor("b", DType::f32, {3, 3})}, {.sparse = true});
  check({coo_tensor("b", DType::f32, {3})}, {.sparse = true});
  check({dense_tensor("b", DType::f32, {3}, Role::homeostatic)}, {.homeostatic = true});
  check({dense_tensor("b", DType::f32, {3}, Role::neuromodulator)}, {.neuromodulators = true});
}

BOOST_AUTO_TEST_CASE(header_totals_are_sums) {
  const Sample sample = varied_sample();
  const SavedFile file(sample);
  std::uint64_t synapses = 0;
  const auto add = [&](const SampleTensor& tensor) {
    if (tensor.spec.role != Role::weights) return;
    synapses += tensor.spec.encoding == Encoding::dense ? *tensor.spec.shape.element_count()
                                                        : tensor.spec.nnz;
  };
  for (const SampleRegion& region : sample.regions) {
    for (const SampleTensor& tensor : region.tensors) add(tensor);
  }
  for (const SampleConnection& connection : sample.connections) add(connection.weights);
  const Reader reader = Reader::open(file.path);
  BOOST_TEST(reader.header().total_neurons == 40u);
  BOOST_TEST(reader.header().total_synapses == synapses);
  BOOST_TEST(reader.region_count() == 3u);
  BOOST_TEST(reader.header().timestamp == *steady_options().timestamp);
}

BOOST_AUTO_TEST_CASE(threads_share_a_reader) {
  Sample sample = varied_sample();
  sample.regions[2].tensors.push_back(dense_tensor("large", DType::u8, {300'000}));
  for (const auto checksum : {ChecksumType::block_tree, ChecksumType::crc32}) {
    SaveOptions options = steady_options();
    options.checksum = checksum;
    const SavedFile file(sample, options);
    // Two rounds would do for the first touches: one more for what was touched.
    for (const Access access : {Access::mapped, Access::copied}) {
      const Reader reader =
          Reader::open(file.path, {.input = {.access = access}, .work = {.threads = 2}});
      std::atomic<int> failures = 0;
      std::vector<std::jthread> threads;
      for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&] {
          for (int round = 0; round < 3; ++round) {
            for (const SampleRegion& region : sample.regions) {
              for (const SampleTensor& tensor : region.tensors) {
                std::vector<std::byte> out(tensor.payload.size());
                reader.region(region.spec.name).at(tensor.spec.name).read(out);
                if (out != tensor.payload) ++failures;
              }
            }
          }
        });
      }
      threads.clear();
      BOOST_TEST(failures == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(released_regions_can_be_read_again) {
  const SavedFile file(varied_sample());
  for (const Access access : {Access::mapped, Access::copied}) {
    const Reader reader = Reader::open(file.path, {.input = {.access = access}});
    for (int round = 0; round < 2; ++round) {
      check_same(reader, varied_sample());
      for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
        reader.region(r).release();
        reader.region(r).prefetch();
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
