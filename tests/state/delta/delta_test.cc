// Deltas saved and resolved: every type, every way to store a change, chains that grow and shrink.
#include <algorithm>
#include <array>
#include <cstring>

#include "state/delta/check.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/options.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta)

namespace {

constexpr std::uint8_t kTypes = 29;

struct Folder : TemporaryFolder {
  std::filesystem::path base = *this / "base.thalia";
  std::filesystem::path delta = *this / "one.delta.thalia";
};

SampleState one(Tensor tensor, Role role = Role::weights) {
  return {.regions = {{"cortex", {{"w", {std::move(tensor), role}}}}}};
}

Encoding stored_as(const std::filesystem::path& path, std::string_view tensor = "w") {
  return Reader::open(path).region("cortex").at(tensor).encoding();
}

// Changes `count` bytes, each of another element if there are as many.
Tensor with_changes(Tensor tensor, std::size_t count) {
  const MutableByteSpan bytes = tensor.mutable_bytes();
  for (std::size_t i = 0; i < count; ++i) bytes[i * (bytes.size() / count)] ^= std::byte{1};
  return tensor;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_of_every_type_come_back_to_the_bit) {
  std::mt19937_64 random(1);
  SampleState before;
  SampleState after;
  for (std::uint8_t i = 0; i < kTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string name(dtype_name(dtype));
    const Tensor tensor = random_tensor(dtype, {70, 1001}, random);
    before.regions["same"][name].tensor = after.regions["same"][name].tensor = tensor;
    before.regions["few"][name].tensor = before.regions["all"][name].tensor = tensor;
    after.regions["few"][name].tensor = with_changes(tensor, 30);
    after.regions["all"][name].tensor = random_tensor(dtype, {70, 1001}, random);
  }
  const Folder folder;
  save_full(before, folder.base);
  const DeltaResult result = save_delta(after, folder.base, folder.delta);
  BOOST_TEST(result.same == kTypes);
  BOOST_TEST(result.steps + result.lists + result.differences + result.whole == 2 * kTypes);
  BOOST_TEST(result.depth == 1);
  BOOST_TEST((result.changed_regions == std::vector<std::string>{"all", "few"}));
  BOOST_TEST(verify(folder.delta).ok());
  check_chain(ChainReader::open(folder.delta), after);
}

BOOST_AUTO_TEST_CASE(few_elements_are_listed_and_take_few_bytes) {
  std::mt19937_64 random(2);
  const Tensor tensor = random_tensor(DType::f32, {300, 1000}, random);
  const Folder folder;
  save_full(one(tensor), folder.base);
  Tensor changed = tensor;
  for (std::size_t i = 0; i < 100; ++i)
    changed.mutable_as<float>()[3000 * i + random() % 3000] = static_cast<float>(i) + 0.1f;
  const SampleState after = one(changed);
  const DeltaResult result = save_delta(after, folder.base, folder.delta);
  BOOST_TEST((stored_as(folder.delta) == Encoding::sparse_delta));
  BOOST_TEST(result.listed_elements == 100);
  BOOST_TEST(result.file_bytes < 8192 + 1024);
  BOOST_TEST(result.ratio() > 100);
  check_chain(ChainReader::open(folder.delta), after);
}

BOOST_AUTO_TEST_CASE(small_moves_of_all_elements_are_stored_as_a_difference) {
  std::mt19937_64 random(3);
  const Tensor tensor = normal_tensor({300, 1000}, random);
  Tensor moved = tensor;
  for (float& value : moved.mutable_as<float>()) value *= 1.0001f;
  const Folder folder;
  save_full(one(tensor), folder.base);
  const DeltaResult result = save_delta(one(moved), folder.base, folder.delta);
  BOOST_TEST((stored_as(folder.delta) == Encoding::xor_base));
  BOOST_TEST(result.differences == 1);
  BOOST_TEST(result.file_bytes < 300 * 1000 * 4 * 6 / 10);
  check_chain(ChainReader::open(folder.delta), one(moved));
}

BOOST_AUTO_TEST_CASE(what_has_nothing_of_the_base_is_stored_whole) {
  std::mt19937_64 random(4);
  const Folder folder;
  save_full(one(random_tensor(DType::f32, {300, 1000}, random)), folder.base);
  const SampleState other = one(Tensor::zeros(DType::f32, {300, 1000}));
  BOOST_TEST(save_delta(other, folder.base, folder.delta).whole == 1);
  check_chain(ChainReader::open(folder.delta), other);
  // Another type, and another rank.
  for (const SampleState& state : {one(random_tensor(DType::f64, {300, 1000}, random)),
                                   one(random_tensor(DType::f32, {300000}, random))}) {
    BOOST_TEST(save_delta(state, folder.base, folder.delta).whole == 1);
    check_chain(ChainReader::open(folder.delta), state);
  }
}

BOOST_AUTO_TEST_CASE(unchanged_tensors_are_views_of_the_base) {
  std::mt19937_64 random(5);
  SampleState state = one(random_tensor(DType::f32, {300, 1000}, random));
  const Folder folder;
  save_full(state, folder.base);
  state.steps = 12;
  save_delta(state, folder.base, folder.delta);
  state.steps = 13;
  const auto second = folder / "two.delta.thalia";
  save_delta(state, folder.delta, second);
  const ChainReader chain = ChainReader::open(second);
  const TensorView view = chain.reader().region("cortex").at("w");
  const Tensor first = chain.read(view);
  BOOST_TEST((first.bytes().data() == chain.read(view).bytes().data()));
  check_chain(chain, state);
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_known_to_be_unchanged_is_not_asked_for) {
  std::mt19937_64 random(6);
  const Folder folder;
  const SampleState state = one(random_tensor(DType::f32, {64}, random));
  save_full(state, folder.base);
  const ChainReader base = ChainReader::open(folder.base);
  StateSource source = thalia::state_source(base);
  source.regions[0].tensors[0].load = []() -> Tensor { throw std::runtime_error("asked for"); };
  const DeltaResult result = write_delta(source, base, folder.delta,
                                         {.save = {.output = {.durability = Durability::none}}});
  BOOST_TEST(result.same == 1);
  BOOST_TEST(result.changed_regions.empty());
  check_chain(ChainReader::open(folder.delta), state);
}

BOOST_AUTO_TEST_CASE(a_grown_or_shrunk_tensor_keeps_its_old_corner_as_a_difference) {
  std::mt19937_64 random(7);
  const Tensor old = random_tensor(DType::f32, {40, 30, 50}, random);
  const Folder folder;
  save_full(one(old), folder.base);
  for (const Shape& shape : {Shape{60, 30, 50}, Shape{40, 45, 50}, Shape{40, 30, 90},
                             Shape{50, 20, 60}, Shape{10, 10, 10}, Shape{0, 30, 50}}) {
    BOOST_TEST_CONTEXT(shape.to_string()) {
      Tensor grown = Tensor::zeros(DType::f32, shape);
      const auto from = old.as<float>();
      const auto to = grown.mutable_as<float>();
      for (std::uint64_t a = 0; a < std::min<std::uint64_t>(shape[0], 40); ++a) {
        for (std::uint64_t b = 0; b < std::min<std::uint64_t>(shape[1], 30); ++b) {
          for (std::uint64_t c = 0; c < std::min<std::uint64_t>(shape[2], 50); ++c)
            to[(a * shape[1] + b) * shape[2] + c] = from[(a * 30 + b) * 50 + c];
        }
      }
      if (!to.empty()) to.back() = 1.5f;
      const DeltaResult result = save_delta(one(grown), folder.base, folder.delta);
      BOOST_TEST(result.whole == (to.empty() ? 1 : 0));
      BOOST_TEST(result.file_bytes < 8192 + 1024);
      BOOST_TEST(verify(folder.delta).ok());
      check_chain(ChainReader::open(folder.delta), one(grown));
    }
  }
}

BOOST_AUTO_TEST_CASE(sparse_tensors_and_scalars_come_back) {
  const auto sparse = [](float value, std::size_t places) {
    Tensor dense = Tensor::zeros(DType::f32, {200, 300});
    for (std::size_t i = 0; i < places; ++i)
      dense.mutable_as<float>()[i * 97] = value + static_cast<float>(i);
    return dense;
  };
  Tensor scalar = Tensor::zeros(DType::f64, {});
  const auto state = [&](float value, std::size_t places) {
    scalar.mutable_as<double>()[0] = value;
    return SampleState{.regions = {{"cortex",
                                    {{"csr", {sparse(value, places).to_csr()}},
                                     {"coo", {sparse(value, places).to_coo()}},
                                     {"kept", {sparse(1, 9).to_csr()}},
                                     {"scalar", {scalar}},
                                     {"nothing", {Tensor::zeros(DType::f32, {0, 4})}}}}}};
  };
  const Folder folder;
  save_full(state(1, 500), folder.base);
  for (const auto& [value, places] : {std::pair(1.001f, 500), std::pair(1.0f, 400)}) {
    const SampleState after = state(value, static_cast<std::size_t>(places));
    const DeltaResult result = save_delta(after, folder.base, folder.delta);
    BOOST_TEST(result.same >= 2);
    BOOST_TEST(verify(folder.delta).ok());
    check_chain(ChainReader::open(folder.delta), after);
    const ChainReader chain = ChainReader::open(folder.delta);
    const FileHeader header = chain.reader().header();
    const auto full = folder / "full.thalia";
    save_full(after, full);
    BOOST_TEST(header.total_synapses == Reader::open(full).header().total_synapses);
  }
}

BOOST_AUTO_TEST_CASE(connections_find_their_base_by_their_regions) {
  std::mt19937_64 random(8);
  const std::string longer(60, 'x');  // known by a short name
  SampleState state{.regions = {{"a", {}}, {"b", {}}, {longer, {}}}};
  state.connections[{"a", "b"}] = normal_tensor({100, 100}, random);
  state.connections[{"b", longer}] = normal_tensor({100, 100}, random);
  const Folder folder;
  save_full(state, folder.base);
  // The first is gone, so that the other has another number.
  state.connections.erase({"a", "b"});
  state.connections[{longer, "a"}] = normal_tensor({10, 10}, random);
  const DeltaResult result = save_delta(state, folder.base, folder.delta);
  BOOST_TEST(result.same == 1);
  BOOST_TEST(result.whole == 1);
  BOOST_TEST(verify(folder.delta).ok());
  check_chain(ChainReader::open(folder.delta), state);
  resolve(folder.delta, folder / "full.thalia");
  check_chain(ChainReader::open(folder / "full.thalia"), state);
}

BOOST_AUTO_TEST_CASE(chains_of_twenty_with_growth_come_back_at_every_link) {
  std::mt19937_64 random(9);
  const Folder folder;
  SampleState state{.regions = {{"cortex", {{"w", {normal_tensor({50, 40}, random)}}}},
                                {"rest", {{"w", {normal_tensor({200, 100}, random)}}}}}};
  save_full(state, folder.base);
  std::vector<std::pair<std::filesystem::path, SampleState>> links{{folder.base, state}};
  constexpr std::array kCodecs{Codec::zstd, Codec::lz4, Codec::none};
  for (std::uint64_t step = 1; step <= 20; ++step) {
    state.steps = step;
    state.metadata = "{\"step\":" + std::to_string(step) + "}";
    auto& cortex = state.regions["cortex"];
    // Every third time it grows; between, elements move.
    Tensor& w = cortex["w"].tensor;
    if (step % 3 == 0) {
      w = normal_tensor({50 + step, 40 + 2 * step}, random);
    } else {
      for (std::size_t i = 0; i < 5 * step; ++i)
        w.mutable_as<float>()[random() % w.element_count()] += 0.1f;
    }
    cortex["n" + std::to_string(step)].tensor = random_tensor(DType::i16, {300}, random);
    cortex.erase("n" + std::to_string(step - 3));
    if (step % 4 == 1) state.regions["new" + std::to_string(step)]["b"].tensor = w;
    if (step == 12) state.regions.erase("new1");
    const auto path = folder / (std::to_string(step) + ".delta.thalia");
    DeltaOptions options{
        .save = {.compression = {.codec = kCodecs[step % 3], .chunk_bytes = 4096}}};
    const DeltaResult result = save_delta(state, links.back().first, path, options);
    BOOST_TEST(result.depth == step);
    if (step == 12) BOOST_TEST((result.removed_regions == std::vector<std::string>{"new1"}));
    links.emplace_back(path, state);
  }
  for (const auto& [path, saved] : links) {
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(verify(path).ok());
      const ChainReader chain = ChainReader::open(path);
      BOOST_TEST(chain.paths().size() == chain.depth() + 1);
      check_chain(chain, saved);
      check_chain(ChainReader::open(path, {.read = {.input = {.access = Access::copied}}}), saved);
    }
  }
  const ResolveResult full = resolve(links.back().first, folder / "full.thalia", {},
                                     {.compression = {.codec = Codec::zstd}});
  BOOST_TEST(full.depth == 20);
  check_chain(ChainReader::open(folder / "full.thalia"), state);
  BOOST_TEST(verify(folder / "full.thalia").ok());
}

BOOST_AUTO_TEST_CASE(a_delta_between_two_files_is_that_of_their_states) {
  std::mt19937_64 random(10);
  const Folder folder;
  const Tensor tensor = random_tensor(DType::bf16, {100, 100}, random);
  const SampleState after = one(with_changes(tensor, 3));
  save_full(one(tensor), folder.base);
  save_full(after, folder / "new.thalia");
  const ChainReader base = ChainReader::open(folder.base);
  const ChainReader now = ChainReader::open(folder / "new.thalia");
  const DeltaOptions options{.save = {.timestamp = 1,
                                      .file_uuid = std::array<std::uint8_t, 16>{},
                                      .output = {.durability = Durability::none}}};
  write_delta(thalia::state_source(now), base, folder.delta, options);
  check_chain(ChainReader::open(folder.delta), after);
  // Equal input gives equal bytes.
  const std::string bytes = read_file(folder.delta);
  write_delta(state_source(after), base, folder.delta, options);
  BOOST_TEST(read_file(folder.delta) == bytes);
}

BOOST_AUTO_TEST_CASE(a_tensor_without_elements_is_taken_from_a_file_as_any_other) {
  std::mt19937_64 random(12);
  const Folder folder;
  const SampleState before = one(random_tensor(DType::f32, {10, 10}, random));
  SampleState after = before;
  after.regions["cortex"]["empty"] = {Tensor::zeros(DType::f32, {0, 3})};
  after.regions["cortex"]["w"].tensor = Tensor::zeros(DType::f32, {0, 10});
  save_full(before, folder.base);
  save_full(after, folder / "new.thalia");
  write_delta(thalia::state_source(ChainReader::open(folder / "new.thalia")),
              ChainReader::open(folder.base), folder.delta,
              {.save = {.output = {.durability = Durability::none}}});
  check_chain(ChainReader::open(folder.delta), after);
}

BOOST_AUTO_TEST_CASE(without_compression_nothing_is_compressed) {
  std::mt19937_64 random(17);
  const Folder folder;
  const Tensor before = normal_tensor({100, 300}, random);
  Tensor all = before;
  for (float& value : all.mutable_as<float>()) value *= 1.0001f;
  Tensor few = before;
  few.mutable_as<float>()[5] = 1;
  save_full({.regions = {{"r", {{"all", {before}}, {"few", {before}}}}}}, folder.base);
  const SampleState after{.regions = {{"r", {{"all", {all}}, {"few", {few}}}}}};
  const DeltaResult result = save_delta(after, folder.base, folder.delta,
                                        {.save = {.compression = {.codec = Codec::none}}});
  BOOST_TEST(result.whole == 1u);
  BOOST_TEST(result.lists == 1u);
  const Reader reader = Reader::open(folder.delta);
  BOOST_TEST(!reader.header().flags.compressed);
  check_chain(ChainReader::open(folder.delta), after);
}

BOOST_AUTO_TEST_CASE(a_level_alone_is_one_of_zstd) {
  const Folder folder;
  save_full({.regions = {{"r", {{"few", {Tensor::zeros(DType::f32, {4})}}}}}}, folder.base);
  const SampleState after{.regions = {{"r", {{"all", {Tensor::zeros(DType::f32, {100, 300})}}}}}};
  save_delta(after, folder.base, folder.delta, {.save = {.compression = {.level = 9}}});
  const auto codecs = Reader::open(folder.delta).region("r").at("all").codecs();
  BOOST_TEST((codecs == std::vector{Codec::zstd}));
  check_chain(ChainReader::open(folder.delta), after);
}

BOOST_AUTO_TEST_CASE(every_checksum_can_tell_a_base) {
  std::mt19937_64 random(11);
  const Folder folder;
  const Tensor tensor = random_tensor(DType::f32, {100, 100}, random);
  const SampleState after = one(with_changes(tensor, 3));
  for (unsigned type = 1; type < 4; ++type) {  // with none there is nothing to know it by
    const auto checksum = static_cast<ChecksumType>(type);
    save_full(one(tensor), folder.base,
              {.checksum = checksum, .output = {.durability = Durability::none}});
    save_delta(after, folder.base, folder.delta, {.save = {.checksum = checksum}});
    BOOST_TEST(verify(folder.delta).ok());
    check_chain(ChainReader::open(folder.delta), after);
    save_full(one(tensor), folder.base,
              {.checksum = checksum, .output = {.durability = Durability::none}});
    BOOST_CHECK_THROW(ChainReader::open(folder.delta), IntegrityError);
  }
}

BOOST_AUTO_TEST_SUITE_END()
