// Bases in memory: training's previous snapshot, whose file is not there while the delta is saved.
#include "state/delta/check.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_memory)

namespace {

namespace fs = std::filesystem;

const DeltaOptions kSteady{.save = {.timestamp = 1,
                                    .file_uuid = std::array<std::uint8_t, 16>{},
                                    .output = {.durability = Durability::none}}};

// A state with each kind of change: none, a few elements, small moves, another shape, sparse;
// connections.
SampleState state(std::uint64_t step) {
  std::mt19937_64 random(1);
  SampleState out{.regions = {{"a", {}}, {"b", {}}}, .steps = step};
  Tensor few = random_tensor(DType::f32, {50, 100}, random);
  few.mutable_as<float>()[step] = 3;
  Tensor moved = normal_tensor({50, 100}, random);
  for (float& value : moved.mutable_as<float>()) value *= 1 + 1e-4f * static_cast<float>(step);
  Tensor sparse = Tensor::zeros(DType::f32, {30, 30});
  for (std::size_t i = 0; i < 90; ++i)
    sparse.mutable_as<float>()[i * 10] = static_cast<float>(step);
  auto& tensors = out.regions["a"];
  tensors["same"] = {random_tensor(DType::f64, {100}, random)};
  tensors["few"] = {few};
  tensors["moved"] = {moved};
  tensors["sparse"] = {sparse.to_csr()};
  tensors["grown"] = {Tensor::zeros(DType::i16, {10 + step, 20})};
  if (step % 2 == 0) tensors["now and then"] = {Tensor::zeros(DType::u8, {10})};
  out.regions["b"]["counts"] = {random_tensor(DType::u32, {step + 1}, random), Role::other};
  out.connections[{"a", "b"}] = moved;
  if (step % 3 == 0) out.connections[{"b", "b"}] = few;
  return out;
}

SavedState saved(const SampleState& state, const fs::path& path, const SaveResult& result) {
  return {.path = path,
          .identity = result.identity,
          .state = state_source(state),
          .digests = result.digests};
}

struct Folder : TemporaryFolder {
  fs::path base = *this / "base.thalia";
  fs::path delta = *this / "1.delta.thalia";
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_chain_is_written_while_its_files_are_elsewhere) {
  const Folder folder;
  const fs::path away = folder / "away";
  fs::create_directory(away);
  SavedState last = saved(state(0), folder.base, save_full(state(0), folder.base));
  fs::rename(folder.base, away / "base.thalia");
  for (std::uint64_t step = 1; step <= 6; ++step) {
    const fs::path path = folder / (std::to_string(step) + ".delta.thalia");
    const DeltaResult result = write_delta(state_source(state(step)), last, path, kSteady);
    BOOST_TEST(result.depth == step);
    BOOST_TEST(result.same >= 1u);
    last = saved(state(step), path, result);
    fs::rename(path, away / path.filename());
  }
  BOOST_TEST(list_folder(folder.path()).size() == 1u);
  for (std::uint64_t step = 1; step <= 6; ++step) {
    const fs::path path = away / (std::to_string(step) + ".delta.thalia");
    BOOST_TEST(verify(path).ok());
    check_chain(ChainReader::open(path), state(step));
  }
}

BOOST_AUTO_TEST_CASE(a_base_in_memory_and_its_file_give_equal_deltas) {
  const Folder folder;
  SavedState base = saved(state(0), folder.base, save_full(state(0), folder.base));
  const DeltaResult from_file =
      write_delta(state_source(state(1)), ChainReader::open(folder.base), folder.delta, kSteady);
  const std::string bytes = read_file(folder.delta);
  const DeltaResult from_memory = write_delta(state_source(state(1)), base, folder.delta, kSteady);
  BOOST_TEST((read_file(folder.delta) == bytes));
  BOOST_TEST((from_memory.changed_regions == from_file.changed_regions));
  BOOST_TEST(from_memory.base_bytes == from_file.base_bytes);
}

BOOST_AUTO_TEST_CASE(memory_that_was_changed_in_place_is_never_saved_as_unchanged) {
  const Folder folder;
  std::vector<float> weights(5000, 0.5F);
  const auto borrowed = [&] {
    return SampleState{
        .regions = {{"a", {{"w", {Tensor::borrow(DType::f32, {5000}, as_byte_span(weights))}}}}}};
  };
  SavedState base = saved(borrowed(), folder.base, save_full(borrowed(), folder.base));
  weights[7] = 9;  // training goes on in the memory that the base borrows
  const auto write = [&] { write_delta(state_source(borrowed()), base, folder.delta, kSteady); };
  BOOST_CHECK_EXCEPTION(write(), UsageError, says(ErrorCode::bad_argument, "base", "w"));
  base.digests.clear();
  BOOST_CHECK_EXCEPTION(write(), UsageError, says(ErrorCode::bad_argument, "digests"));
  BOOST_TEST(list_folder(folder.path()).size() == 1u);
}

// The pass that lists or takes the difference is the one that finds it, wherever the change is.
BOOST_AUTO_TEST_CASE(memory_that_was_changed_in_place_is_no_base_of_a_list_or_a_difference) {
  const Folder folder;
  std::mt19937_64 random(2);
  const Shape shape{(5u << 17) + 77};  // two pieces, half of one and a bit
  const Tensor saved_as = normal_tensor(shape, random);
  Tensor few = saved_as, all = saved_as;
  few.mutable_as<float>()[3] = 3;
  for (float& value : all.mutable_as<float>()) value *= 1.0001F;
  const auto state_of = [](const Tensor& tensor) {
    return SampleState{.regions = {{"a", {{"w", {tensor}}}}}};
  };
  const SaveResult result = save_full(state_of(saved_as), folder.base);
  for (const Tensor& now : {few, all}) {
    const auto write = [&](const Tensor& base) {
      return write_delta(state_source(state_of(now)), saved(state_of(base), folder.base, result),
                         folder.delta, kSteady);
    };
    for (const std::size_t place :
         {std::size_t{9}, std::size_t{1} << 18, *shape.element_count() - 1}) {
      Tensor changed = saved_as;
      changed.mutable_as<float>()[place] += 1;
      BOOST_CHECK_EXCEPTION(write(changed), UsageError, says(ErrorCode::bad_argument, "base", "w"));
    }
    BOOST_TEST(list_folder(folder.path()).size() == 1u);
    write(saved_as);
    check_chain(ChainReader::open(folder.delta), state_of(now));
    fs::remove(folder.delta);
  }
}

// Sizes around those of pieces and blocks, at addresses of no alignment; a NaN's payload and the
// sign of zero are bits as others.
BOOST_AUTO_TEST_CASE(each_kind_of_base_gives_the_same_delta_of_any_size_at_any_address) {
  const Folder folder;
  std::mt19937_64 random(3);
  const auto compressed = folder / "compressed.thalia";
  for (const std::uint64_t count : {1u, 31u, 65'537u, (1u << 19) - 1, (1u << 19) + 1, 3u << 18}) {
    for (const std::uint64_t every : {0u, 1u, 20u, 70'001u}) {
      std::vector<std::byte> before(count * 2 + 1);
      for (std::byte& byte : before) byte = static_cast<std::byte>(random());
      for (std::size_t i = 2; i < before.size(); i += 2) before[i] = std::byte{0x3C};
      std::vector<std::byte> now = before;
      for (std::uint64_t i = 0; every != 0 && i < count; i += every) now[1 + 2 * i] ^= std::byte{1};
      // From 0 to -0 and from one NaN to another, at the end.
      const auto put = [&](std::vector<std::byte>& bytes, std::uint64_t element, int low,
                           int high) {
        bytes[1 + 2 * element] = static_cast<std::byte>(low);
        bytes[2 + 2 * element] = static_cast<std::byte>(high);
      };
      if (every > 1 && count > 2) {
        put(before, count - 1, 0, 0), put(now, count - 1, 0, 0x80);
        put(before, count - 2, 0xC1, 0x7F), put(now, count - 2, 0xC2, 0x7F);
      }
      const auto state_of = [&](const std::vector<std::byte>& bytes) {
        return SampleState{
            .regions = {
                {"a",
                 {{"w", {Tensor::borrow(DType::bf16, {count}, ByteSpan(bytes).subspan(1))}}}}}};
      };
      BOOST_TEST_CONTEXT(count << " elements, every " << every << "th changed") {
        const SavedState base =
            saved(state_of(before), folder.base, save_full(state_of(before), folder.base));
        const DeltaResult from_memory =
            write_delta(state_source(state_of(now)), base, folder.delta, kSteady);
        const std::string bytes = read_file(folder.delta);
        check_chain(ChainReader::open(folder.delta), state_of(now));
        write_delta(state_source(state_of(now)), ChainReader::open(folder.base), folder.delta,
                    kSteady);
        BOOST_TEST((read_file(folder.delta) == bytes));
        save_full(
            state_of(before), compressed,
            {.compression = {.codec = Codec::zstd}, .output = {.durability = Durability::none}});
        const DeltaResult from_chunks = write_delta(
            state_source(state_of(now)), ChainReader::open(compressed), folder.delta, kSteady);
        BOOST_TEST(from_chunks.same == from_memory.same);
        BOOST_TEST(from_chunks.same == (every == 0 ? 1u : 0u));
        BOOST_TEST(from_chunks.listed_elements == from_memory.listed_elements);
        check_chain(ChainReader::open(folder.delta), state_of(now));
      }
    }
  }
}

// A base of 16 pieces, of which the stop that comes with the first is the last.
BOOST_AUTO_TEST_CASE(a_stop_ends_the_look_at_a_base_in_memory) {
  const Folder folder;
  SampleState before{.regions = {{"a", {{"w", {Tensor::zeros(DType::f32, {1 << 22})}}}}}};
  SampleState now = before;
  now.regions["a"]["w"].tensor.mutable_as<float>()[0] = 1;
  SavedState base = saved(before, folder.base, save_full(before, folder.base));
  std::stop_source stop;
  unsigned reads = 0;
  TensorSource& source = base.state.regions[0].tensors[0];
  source.open = [&]() -> PartReader {
    return [&](std::uint64_t, MutableByteSpan out) {
      ++reads;
      stop.request_stop();
      std::ranges::fill(out, std::byte{0});
    };
  };
  DeltaOptions options = kSteady;
  options.save.work = {.threads = 1, .cancel = stop.get_token()};
  BOOST_CHECK_THROW(write_delta(state_source(now), base, folder.delta, options), CancelledError);
  BOOST_TEST(reads == 1u);
}

BOOST_AUTO_TEST_CASE(results_tell_what_the_file_s_header_and_directory_do) {
  const Folder folder;
  const SaveResult full = save_full(state(0), folder.base);
  const DeltaResult delta = save_delta(state(1), folder.base, folder.delta);
  const auto check = [](const fs::path& path, const FileIdentity& identity,
                        const std::vector<TensorDigest>& digests) {
    const ChainReader chain = ChainReader::open(path);
    const FileHeader header = chain.reader().header();
    BOOST_TEST((identity.closing_checksum == chain.reader().closing_checksum()));
    BOOST_TEST((identity.file_uuid == header.file_uuid));
    BOOST_TEST(identity.generation == header.generation);
    BOOST_TEST(identity.file_length == chain.reader().file_bytes());
    BOOST_TEST(identity.training_steps == header.training_steps);
    BOOST_TEST(identity.depth == chain.depth());
    const StateSource stored = thalia::state_source(chain);
    std::size_t i = 0;
    for (const RegionSource& region : stored.regions) {
      for (const TensorSource& tensor : region.tensors)
        BOOST_TEST((digests.at(i++).content_hash == tensor.content_hash));
    }
    for (const ConnectionSource& connection : stored.connections)
      BOOST_TEST((digests.at(i++).content_hash == connection.weights.content_hash));
    BOOST_TEST(i == digests.size());
  };
  check(folder.base, full.identity, full.digests);
  check(folder.delta, delta.identity, delta.digests);
}

BOOST_AUTO_TEST_CASE(a_snapshot_that_is_not_what_was_saved_is_refused) {
  const Folder folder;
  SavedState base = saved(state(0), folder.base, save_full(state(0), folder.base));
  SampleState other = state(0);
  other.regions["a"]["moved"].tensor.mutable_as<float>()[7] = 9;
  base.state = state_source(other);
  BOOST_CHECK_EXCEPTION(write_delta(state_source(state(1)), base, folder.delta, kSteady),
                        UsageError, says(ErrorCode::bad_argument, "base", "moved"));
  BOOST_TEST(list_folder(folder.path()).size() == 1u);
  base.digests.pop_back();
  BOOST_CHECK_EXCEPTION(write_delta(state_source(state(1)), base, folder.delta, kSteady),
                        UsageError, says(ErrorCode::bad_argument, "digests"));
  BOOST_CHECK_EXCEPTION(
      write_delta(state_source(state(1)),
                  SavedState{.path = folder.base, .identity = {}, .state = state_source(state(0))},
                  folder.delta, kSteady),
      UsageError, says(ErrorCode::bad_argument, "identity"));
  BOOST_CHECK_EXCEPTION(
      write_delta(state_source(state(1)), saved(state(0), folder.base, SaveResult{}), folder.base,
                  kSteady),
      UsageError, says(ErrorCode::bad_argument, "identity"));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_those_of_a_given_hash_are_found) {
  const Folder folder;
  save_full(state(0), folder.base);
  StateSource now = state_source(state(1));
  for (TensorSource& tensor : now.regions[0].tensors) {
    if (tensor.spec.name == "moved") tensor.content_hash = Digest128{};
  }
  BOOST_CHECK_EXCEPTION(write_delta(now, ChainReader::open(folder.base), folder.delta, kSteady),
                        IntegrityError, says(ErrorCode::checksum_mismatch, "moved"));
  BOOST_TEST(list_folder(folder.path()).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_tensor_may_be_given_in_parts) {
  const Folder folder;
  save_full(state(0), folder.base);
  StateSource now = state_source(state(1));
  for (RegionSource& region : now.regions) {
    for (TensorSource& source : region.tensors) {
      source.open = [tensor = source.load()]() -> PartReader {
        return [tensor](std::uint64_t begin, MutableByteSpan out) {
          std::copy_n(tensor.bytes().begin() + static_cast<std::ptrdiff_t>(begin), out.size(),
                      out.begin());
        };
      };
      source.load = nullptr;
    }
  }
  write_delta(now, ChainReader::open(folder.base), folder.delta, kSteady);
  check_chain(ChainReader::open(folder.delta), state(1));
}

BOOST_AUTO_TEST_CASE(changed_connections_change_the_regions_at_their_ends) {
  SampleState before{.regions = {{"a", {}}, {"b", {}}, {"c", {}}, {"d", {}}}};
  before.connections[{"a", "b"}] = Tensor::zeros(DType::f32, {4, 4});
  before.connections[{"c", "c"}] = Tensor::zeros(DType::f32, {4, 4});
  const Folder folder;
  save_full(before, folder.base);
  SampleState after = before;
  after.connections[{"a", "b"}].mutable_as<float>()[1] = 1;
  using Names = std::vector<std::string>;
  BOOST_TEST((save_delta(after, folder.base, folder.delta).changed_regions == Names{"a", "b"}));
  after = before;
  after.connections.erase({"c", "c"});
  BOOST_TEST((save_delta(after, folder.base, folder.delta).changed_regions == Names{"c"}));
  after = before;
  after.connections[{"d", "a"}] = Tensor::zeros(DType::f32, {4, 4});
  BOOST_TEST((save_delta(after, folder.base, folder.delta).changed_regions == Names{"a", "d"}));
  BOOST_TEST(save_delta(before, folder.base, folder.delta).changed_regions.empty());
}

BOOST_AUTO_TEST_SUITE_END()
