#include "thalia/formats/compressor.h"

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/mckp/samples.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(checkpoint_compressor)

namespace {

Checkpoint sample(std::uint64_t step) {
  Checkpoint checkpoint;
  checkpoint.tensors["model.w"] = test::normal_f32({40, 30}, 1);
  checkpoint.tensors["model.h"] = test::normal_bf16({500}, 2);
  checkpoint.tensors["optimizer.m"] = test::normal_f32({40, 30}, 3);
  checkpoint.tensors["ids"] = test::random_tensor(DType::i64, {5}, 4);
  checkpoint.tensors["empty"] = Tensor::zeros(DType::f32, {0});
  checkpoint.tensors["scalar"] = test::normal_f32({}, 5);
  for (auto& [name, tensor] : checkpoint.tensors)
    if (tensor.bytes().size() > step) tensor.mutable_bytes()[step] ^= std::byte{1};
  checkpoint.metadata["lr"] = 0.1;
  checkpoint.metadata["note"] = "as it is";
  checkpoint.training_step = step;
  return checkpoint;
}

void check_same(const Checkpoint& a, const Checkpoint& b) {
  BOOST_TEST((a.tensors == b.tensors));
  BOOST_TEST((a.metadata == b.metadata));
  BOOST_TEST((a.training_step == b.training_step));
}

std::string key_of(unsigned i) {
  return "step_" + std::to_string(i);
}

}  // namespace

BOOST_AUTO_TEST_CASE(checkpoints_come_back_by_key) {
  const test::TemporaryFolder folder;
  const auto storage = open_storage("local://" + folder.path().string());
  for (const Codec codec : {Codec::none, Codec::zstd, Codec::lz4, Codec::plane_entropy}) {
    const CheckpointCompressor compressor({.compression = {.codec = codec}}, storage);
    const std::string key = "run/codec_" + std::to_string(static_cast<int>(codec));
    const CheckpointMeta meta = compressor.save(sample(3), key);
    check_same(compressor.load(key), sample(3));
    BOOST_TEST(meta.key == key);
    BOOST_TEST(meta.original_size == 10'644u);
    BOOST_TEST(meta.compressed_size == storage->size(key));
    BOOST_TEST(meta.ratio() == 10'644.0 / static_cast<double>(meta.compressed_size));
    BOOST_TEST(meta.tensors == 6u);
    BOOST_TEST(!meta.previous_key);
    BOOST_TEST((meta.signature == compressor.signature(key)));
    // What another compressor sees.
    const CheckpointCompressor other({}, storage);
    BOOST_TEST((other.signature(key) == meta.signature));
    check_same(other.load(key), sample(3));
  }
  BOOST_TEST(CheckpointMeta().ratio() == 0.0);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_compressed_and_restored_in_memory) {
  const CheckpointCompressor compressor;
  const CompressedCheckpoint compressed = compressor.compress(sample(1));
  BOOST_TEST(compressed.bytes.size() == compressed.meta.compressed_size);
  check_same(compressor.decompress(compressed), sample(1));
  CompressedCheckpoint damaged = compressed;
  damaged.bytes[damaged.bytes.size() - 40] ^= std::byte{1};
  BOOST_CHECK_THROW(compressor.decompress(damaged), Error);

  compressor.save(sample(1), "one");
  const CompressedCheckpoint delta = compressor.compress(sample(2), "one");
  BOOST_TEST(delta.meta.previous_key.value() == "one");
  check_same(compressor.decompress(delta), sample(2));
  compressor.storage().erase("one");
  BOOST_CHECK_THROW(compressor.decompress(delta), MissingBaseError);
}

// No flip is taken for what was saved: not in the tensors, the metadata or the step.
BOOST_AUTO_TEST_CASE(every_flipped_bit_of_a_stored_checkpoint_is_found_or_changes_nothing) {
  for (const bool verify_content : {true, false}) {
    const CheckpointCompressor compressor({.verify_content = verify_content});
    Checkpoint saved;
    saved.tensors["w"] = test::normal_f32({10}, 1);
    saved.metadata["lr"] = 0.1;
    saved.metadata["note"] = "the quick brown fox jumps over the lazy dog";
    saved.training_step = 1000;
    compressor.save(saved, "key");
    const std::vector<std::byte> whole = compressor.storage().get("key");
    unsigned found = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (const int bit : {0, 3, 7}) {
        std::vector<std::byte> damaged = whole;
        damaged[i] ^= std::byte{1} << bit;
        compressor.storage().put("key", damaged);
        try {
          BOOST_TEST_CONTEXT("byte " << i << ", bit " << bit)
          check_same(compressor.load("key"), saved);
        } catch (const Error&) {
          ++found;
        }
      }
    // All but the footer's checksum, which nothing needs once all else is checked.
    BOOST_TEST(found >= 3 * (whole.size() - 8 - 2));
  }
}

BOOST_AUTO_TEST_CASE(ten_deltas_in_a_row_come_back) {
  for (const std::uint64_t cached : {0ull, 1ull << 20}) {
    const CheckpointCompressor compressor({.cached_bytes = cached});
    CheckpointMeta meta;
    for (unsigned i = 0; i <= 10; ++i) {
      meta = compressor.save(sample(i), key_of(i), i == 0 ? "" : key_of(i - 1));
      BOOST_TEST((meta.delta_tensors > 0) == (i > 0));
    }
    BOOST_TEST(meta.ratio() > 5.0);
    for (unsigned i = 0; i <= 10; ++i) check_same(compressor.load(key_of(i)), sample(i));
  }
}

BOOST_AUTO_TEST_CASE(a_chain_that_is_long_enough_begins_anew) {
  const CheckpointCompressor compressor({.max_chain = 3});
  std::vector<bool> deltas;
  for (unsigned i = 0; i < 9; ++i) {
    const auto meta = compressor.save(sample(i), key_of(i), i == 0 ? "" : key_of(i - 1));
    deltas.push_back(meta.previous_key.has_value());
  }
  const std::vector<bool> expected{false, true, true, true, false, true, true, true, false};
  BOOST_TEST(deltas == expected, boost::test_tools::per_element());
  const CheckpointCompressor none({.delta_enabled = false});
  none.save(sample(0), "a");
  BOOST_TEST(!none.save(sample(1), "b", "a").previous_key);
}

BOOST_AUTO_TEST_CASE(changed_shapes_dtypes_and_names_are_stored_by_themselves) {
  const CheckpointCompressor compressor;
  compressor.save(sample(0), "a");
  Checkpoint next = sample(1);
  next.tensors["model.w"] = test::normal_f32({30, 40}, 1);
  next.tensors["model.h"] = test::normal_f32({500}, 2);
  next.tensors["new"] = test::normal_f32({9}, 9);
  next.tensors.erase("ids");
  const CheckpointMeta meta = compressor.save(next, "b", "a");
  // optimizer.m alone is as it was and large enough to shrink.
  BOOST_TEST(meta.delta_tensors == 1u);
  check_same(compressor.load("b"), next);
}

BOOST_AUTO_TEST_CASE(what_is_lent_may_change_after_the_save) {
  const CheckpointCompressor compressor({.cached_bytes = 1 << 20});
  std::vector<float> weights(1000, 1.5f);
  Checkpoint checkpoint;
  checkpoint.tensors["w"] = Tensor::borrow(DType::f32, {1000}, as_byte_span(weights));
  compressor.save(checkpoint, "a");
  weights[3] = 7;
  compressor.save(checkpoint, "b", "a");
  BOOST_TEST(compressor.load("a").tensors.at("w").as<float>()[3] == 1.5f);
  BOOST_TEST(compressor.load("b").tensors.at("w").as<float>()[3] == 7.0f);
}

BOOST_AUTO_TEST_CASE(a_cached_base_that_was_replaced_is_not_used) {
  const CheckpointCompressor compressor({.cached_bytes = 1 << 20});
  compressor.save(sample(0), "a");
  CheckpointCompressor(
      {}, std::shared_ptr<StorageBackend>(std::shared_ptr<void>(), &compressor.storage()))
      .save(sample(5), "a");
  compressor.save(sample(6), "b", "a");
  check_same(compressor.load("b"), sample(6));
}

BOOST_AUTO_TEST_CASE(wrong_previous_keys_are_errors) {
  const CheckpointCompressor compressor;
  try {
    compressor.save(sample(1), "b", "absent");
    BOOST_ERROR("saved as a delta of nothing");
  } catch (const MissingBaseError& error) {
    BOOST_TEST(error.base() == "absent");
  }
  BOOST_TEST(!compressor.storage().exists("b"));
  compressor.save(sample(0), "a");
  compressor.save(sample(1), "b", "a");
  for (const char* const key : {"a", "b"})
    BOOST_CHECK_EXCEPTION(compressor.save(sample(2), key, "b"), UsageError,
                          test::has_code(ErrorCode::bad_argument));
  check_same(compressor.load("b"), sample(1));
  // Another checkpoint in the place of the base.
  compressor.save(sample(9), "a");
  BOOST_CHECK_THROW(compressor.load("b"), IntegrityError);
  compressor.storage().erase("a");
  BOOST_CHECK_THROW(compressor.load("b"), MissingBaseError);
  BOOST_CHECK_THROW(compressor.load("a"), StorageError);
  BOOST_CHECK_THROW(compressor.load("../a"), UsageError);
}

BOOST_AUTO_TEST_CASE(checkpoints_that_cannot_be_held_are_refused) {
  const CheckpointCompressor compressor;
  const auto bad = test::has_code(ErrorCode::bad_argument);
  Checkpoint checkpoint = sample(0);
  checkpoint.metadata = Value::array();
  BOOST_CHECK_EXCEPTION(compressor.save(checkpoint, "a"), UsageError, bad);
  checkpoint.metadata = Value::object();
  checkpoint.metadata["t"] = Tensor();
  BOOST_CHECK_EXCEPTION(compressor.save(checkpoint, "a"), UsageError, bad);
  BOOST_TEST(compressor.storage().list().empty());
  BOOST_CHECK_EXCEPTION(CheckpointCompressor({.compression = {.level = 99}}), UsageError, bad);
  BOOST_CHECK_EXCEPTION(CheckpointCompressor({.quantization = QuantizationConfig{.bits = 12}}),
                        UsageError, bad);
}

BOOST_AUTO_TEST_CASE(quantized_checkpoints_count_their_generations) {
  const CheckpointCompressor lossy(
      {.quantization =
           QuantizationConfig{.bits = 8, .exclude = {"optimizer.*"}, .max_generations = 3}});
  Checkpoint checkpoint = sample(0);
  for (std::uint64_t generation = 1; generation <= 3; ++generation) {
    const CheckpointMeta meta = lossy.save(checkpoint, key_of(0));
    BOOST_TEST(meta.lossy_generation == generation);
    BOOST_TEST(meta.quantized_tensors == 4u);  // with the empty tensor and the scalar
    BOOST_TEST(meta.largest_error > 0.0);
    checkpoint = lossy.load(key_of(0));
    BOOST_TEST(checkpoint.metadata.at("lossy_generation").as_uint64() == generation);
    BOOST_TEST((checkpoint.tensors.at("optimizer.m") == sample(0).tensors.at("optimizer.m")));
  }
  BOOST_CHECK_EXCEPTION(lossy.save(checkpoint, "again"), UsageError,
                        test::says(ErrorCode::wrong_state, "lossy_generation"));
  // Stored exactly it neither counts nor is refused.
  const CheckpointCompressor exact;
  BOOST_TEST(exact.save(checkpoint, "exact").lossy_generation == 3u);
  check_same(exact.load("exact"), checkpoint);
}

// Three layers of equal numbers whose errors do not count alike.
BOOST_AUTO_TEST_CASE(bits_go_where_the_loss_is_sensitive) {
  Checkpoint checkpoint;
  for (const char* name : {"a.weight", "b.weight", "c.weight"})
    checkpoint.tensors[name] = test::normal_f32({100, 70}, 1);
  checkpoint.tensors["optimizer.m"] = test::normal_f32({100, 70}, 1);
  const auto error_of = [&](const Checkpoint& loaded, const char* name) {
    const std::span<const float> before = checkpoint.tensors.at(name).as<float>();
    const std::span<const float> after = loaded.tensors.at(name).as<float>();
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto error = static_cast<double>(before[i] - after[i]);
      sum += error * error;
    }
    return sum;
  };
  const auto sensitivity = [](std::string_view name,
                              const Tensor& tensor) -> std::optional<Tensor> {
    if (name == "b.weight") return std::nullopt;
    Tensor out = Tensor::zeros(DType::f32, tensor.shape());
    std::ranges::fill(out.mutable_as<float>(), name == "a.weight" ? -100.0f : 0.01f);
    return out;
  };
  const CheckpointCompressor uniform({.quantization = QuantizationConfig{.bits = 4}});
  const CheckpointCompressor sensitive(
      {.quantization = QuantizationConfig{.bits = 4, .sensitivity = sensitivity}});
  const CompressedCheckpoint equal = uniform.compress(checkpoint);
  const CompressedCheckpoint shared = sensitive.compress(checkpoint);
  const MckpFile file = MckpFile::from_bytes({.bytes = shared.bytes, .owner = nullptr});
  unsigned sum = 0;
  for (const char* name : {"a.weight", "b.weight", "c.weight"})
    sum += file.find(name)->quantization->bits;
  BOOST_TEST(sum <= 12u);
  BOOST_TEST(file.find("a.weight")->quantization->bits > file.find("b.weight")->quantization->bits);
  BOOST_TEST(file.find("b.weight")->quantization->bits > file.find("c.weight")->quantization->bits);
  const Checkpoint before = uniform.decompress(equal), after = sensitive.decompress(shared);
  BOOST_TEST(error_of(after, "a.weight") < error_of(before, "a.weight") / 10);
  BOOST_TEST(error_of(after, "c.weight") > error_of(before, "c.weight"));
  BOOST_TEST(error_of(after, "optimizer.m") == 0.0);

  const auto wrong = [](std::string_view, const Tensor&) {
    return std::optional(Tensor::zeros(DType::f32, {3}));
  };
  const CheckpointCompressor refused({.quantization = QuantizationConfig{.sensitivity = wrong}});
  BOOST_CHECK_EXCEPTION(refused.compress(checkpoint), UsageError,
                        test::says(ErrorCode::size_mismatch, "sensitivity", "'a.weight'", "7000"));
  std::string bytes;
  const auto named = [&](const char* name, unsigned bits) {
    return test::mckp_bytes({{"a.weight", checkpoint.tensors.at("a.weight")}},
                            {.quantization = MckpQuantizationOptions{.bits_of = {{name, bits}}}});
  };
  BOOST_TEST(test::open_bytes(bytes = named("a.weight", 3)).find("a.weight")->quantization->bits ==
             3u);
  BOOST_CHECK_EXCEPTION(named("weight", 3), UsageError,
                        test::says(ErrorCode::not_found, "bits_of", "weight"));
  BOOST_CHECK_EXCEPTION(named("a.weight", 9), UsageError, test::has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(deltas_of_quantized_checkpoints_are_exact) {
  const CheckpointCompressor lossy({.quantization = QuantizationConfig{}});
  lossy.save(sample(0), "lossy");
  const CheckpointCompressor exact(
      {}, std::shared_ptr<StorageBackend>(std::shared_ptr<void>(), &lossy.storage()));
  const CheckpointMeta meta = exact.save(sample(1), "exact", "lossy");
  BOOST_TEST(meta.delta_tensors > 0u);
  check_same(exact.load("exact"), sample(1));
}

BOOST_AUTO_TEST_CASE(futures_do_the_same) {
  const CheckpointCompressor compressor;
  std::vector<std::future<CheckpointMeta>> saves;
  for (unsigned i = 0; i < 4; ++i) saves.push_back(compressor.save_async(sample(i), key_of(i)));
  for (unsigned i = 0; i < 4; ++i) BOOST_TEST(saves[i].get().key == key_of(i));
  std::future<Checkpoint> loaded = compressor.load_async(key_of(2));
  check_same(loaded.get(), sample(2));
  std::future<CompressedCheckpoint> compressed = compressor.compress_async(sample(7), key_of(1));
  check_same(compressor.decompress_async(compressed.get()).get(), sample(7));
  std::future<Checkpoint> missing = compressor.load_async("none");
  BOOST_CHECK_THROW(missing.get(), StorageError);
}

BOOST_AUTO_TEST_CASE(what_is_borrowed_may_change_once_a_save_has_begun) {
  const CheckpointCompressor compressor;
  std::vector<float> weights(1'000'000, 1.0f);
  const Tensor now = Tensor::copy_of({1'000'000}, weights);
  Checkpoint checkpoint;
  checkpoint.tensors["w"] = Tensor::borrow(DType::f32, {1'000'000}, as_byte_span(weights));
  std::future<CheckpointMeta> saved = compressor.save_async(checkpoint, "saved");
  std::future<CompressedCheckpoint> compressed = compressor.compress_async(checkpoint);
  std::ranges::fill(weights, 2.0f);
  saved.get();
  BOOST_TEST((compressor.load("saved").tensors.at("w") == now));
  BOOST_TEST((compressor.decompress(compressed.get()).tensors.at("w") == now));
  compressor.save_async(checkpoint, "as it is", {}, Snapshot::borrowed).get();
  BOOST_TEST((compressor.load("as it is").tensors.at("w") == checkpoint.tensors["w"]));
}

BOOST_AUTO_TEST_SUITE_END()
