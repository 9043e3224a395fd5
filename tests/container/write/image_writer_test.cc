// The two ways of a save to the disk write the same bytes, and the direct one gives way if it is
// denied.
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(image_writer)

namespace {

// 9 MiB and some: several extents for each thread, the last one short.
Sample large_sample() {
  Sample sample = varied_sample();
  for (const std::uint64_t bytes : {3'000'000u, 5'000'001u, 1'500'000u}) {
    const std::string name = "large" + std::to_string(bytes);
    sample.regions[0].tensors.push_back(dense_tensor(name, DType::u8, {bytes}));
  }
  return sample;
}

SaveOptions options_with(IoMode io) {
  SaveOptions options = steady_options();
  options.io = io;
  options.output.durability = Durability::data;
  options.work.threads = 3;
  options.work.memory_bytes = 8 << 20;
  return options;
}

SaveResult save_large(const std::filesystem::path& path, IoMode io) {
  return save(path, large_sample(), options_with(io));
}

// Whether direct writes are to be had here at all, as the library finds out.
bool has_direct_io(const TemporaryFolder& folder) {
  const bool has = save_large(folder / "direct.thalia", IoMode::direct).io == IoMode::direct;
  if (!has) BOOST_TEST_MESSAGE("no direct I/O here: nothing to deny");
  return has;
}

// A direct save under `fault` that must fall back, say so, and write the same bytes.
void check_fallback(const TemporaryFolder& folder, const Fault& fault) {
  const Outcome outcome = run_with_faults({fault}, [&] {
    const SaveResult result = save_large(folder / "denied.thalia", IoMode::direct);
    if (result.io != IoMode::buffered) throw std::runtime_error("did not fall back");
    if (result.io_fallback.empty()) throw std::runtime_error("does not say why");
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  BOOST_TEST((read_file(folder / "denied.thalia") == read_file(folder / "direct.thalia")));
}

}  // namespace

BOOST_AUTO_TEST_CASE(direct_and_buffered_saves_write_the_same_bytes) {
  const TemporaryFolder folder;
  const Sample sample = large_sample();
  for (const unsigned block_log2 : {12u, 16u, 20u, 22u}) {
    for (const auto checksum : {ChecksumType::block_tree, ChecksumType::sha256}) {
      SaveOptions buffered = options_with(IoMode::buffered);
      SaveOptions direct = options_with(IoMode::direct);
      buffered.block_log2 = direct.block_log2 = block_log2;
      buffered.checksum = direct.checksum = checksum;
      const SaveResult result = save(folder / "a.thalia", sample, direct);
      BOOST_TEST((result.io == IoMode::direct || !result.io_fallback.empty()));
      BOOST_TEST((save(folder / "b.thalia", sample, buffered).io == IoMode::buffered));
      BOOST_TEST((read_file(folder / "a.thalia") == read_file(folder / "b.thalia")));
      BOOST_TEST(verify(folder / "a.thalia").ok());
    }
  }
}

BOOST_AUTO_TEST_CASE(aligned_memory_is_written_in_place) {
  const TemporaryFolder folder;
  constexpr std::size_t kBytes = 12 << 20;
  const std::unique_ptr<std::byte, void (*)(void*)> memory(
      static_cast<std::byte*>(std::aligned_alloc(4096, kBytes)), std::free);
  const std::vector<std::byte> noise = random_bytes(kBytes);
  std::copy(noise.begin(), noise.end(), memory.get());
  std::string written[2];
  for (const IoMode io : {IoMode::direct, IoMode::buffered}) {
    Writer writer(folder / "a.thalia", options_with(io));
    const RegionId region = writer.add_region({.name = "r"});
    writer.add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {kBytes}},
                      ByteSpan(memory.get(), kBytes));
    writer.commit();
    written[io == IoMode::direct] = read_file(folder / "a.thalia");
  }
  BOOST_TEST((written[0] == written[1]));
}

// Headers whose payload ends extents later, pieces across extents, tables after all of them: what
// waits for what differs from tensor to tensor.
BOOST_AUTO_TEST_CASE(tensors_about_as_long_as_extents_are_digested_in_one_pass) {
  const TemporaryFolder folder;
  constexpr std::uint64_t kMiB = 1 << 20;
  Sample sample = small_sample();
  for (const std::uint64_t bytes : {kMiB - 4128, kMiB, kMiB + 1, 2 * kMiB + 77, kMiB / 2, kMiB - 32,
                                    std::uint64_t{0}, 3 * kMiB - 1, std::uint64_t{5}, kMiB}) {
    const std::string name = "t" + std::to_string(sample.regions[0].tensors.size());
    sample.regions[0].tensors.push_back(dense_tensor(name, DType::u8, {bytes}));
  }
  SaveOptions options = options_with(IoMode::buffered);
  options.work.threads = 1;
  save(folder / "a.thalia", sample, options);
  BOOST_TEST(verify(folder / "a.thalia").ok());
  const std::string expected = read_file(folder / "a.thalia");
  for (const unsigned threads : {1u, 2u, 5u}) {
    for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
      options.work.threads = threads;
      options.io = io;
      save(folder / "b.thalia", sample, options);
      BOOST_TEST((read_file(folder / "b.thalia") == expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(streamed_and_compressed_payloads_mix_with_direct_writes) {
  const TemporaryFolder folder;
  const std::vector<std::byte> noise = random_bytes(9'000'000);
  const Shape shape{noise.size()};
  for (const auto codec : {Codec::none, Codec::zstd}) {
    std::string written[2];
    for (const IoMode io : {IoMode::direct, IoMode::buffered}) {
      SaveOptions options = options_with(io);
      options.compression.codec = codec;
      Writer writer(folder / "a.thalia", options);
      const RegionId region = writer.add_region({.name = "r"});
      writer.add_tensor(region, {.name = "borrowed", .dtype = DType::u8, .shape = shape}, noise);
      const TensorId streamed =
          writer.add_tensor(region, {.name = "streamed", .dtype = DType::u8, .shape = shape});
      for (std::size_t at = 0; at < noise.size(); at += 1'000'000) {
        writer.write(streamed, ByteSpan(noise).subspan(at, 1'000'000));
      }
      writer.commit();
      written[io == IoMode::direct] = read_file(folder / "a.thalia");
    }
    BOOST_TEST((written[0] == written[1]));
    BOOST_TEST(verify(folder / "a.thalia").ok());
  }
}

// Ends of payloads are kept in memory up to a bound and go through the page cache beyond it;
// whichever way a byte took, the file is the same.
BOOST_AUTO_TEST_CASE(memory_and_threads_do_not_change_what_compressed_and_streamed_saves_write) {
  const TemporaryFolder folder;
  std::vector<std::vector<std::byte>> payloads;
  for (int i = 0; i < 60; ++i) payloads.push_back(random_bytes(7'000 + 655 * i));
  for (const std::size_t bytes : {2'500'000u, 1u, 1'048'576u, 2'200'000u})
    payloads.push_back(random_bytes(bytes));
  for (std::vector<std::byte>& payload : payloads)  // every other one shrinks
    for (std::size_t i = 0; i < payload.size(); i += 2) payload[i] = std::byte(0);
  const auto save_with = [&](const SaveOptions& options, bool streamed) {
    Writer writer(folder / "a.thalia", options);
    const RegionId region = writer.add_region({.name = "r"});
    std::vector<TensorId> ids;
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      TensorSpec spec{.name = std::to_string(i), .dtype = DType::u8, .shape = {payloads[i].size()}};
      if (streamed) {
        ids.push_back(writer.add_tensor(region, std::move(spec)));
      } else {
        writer.add_tensor(region, std::move(spec), payloads[i]);
      }
    }
    // Raw: all tensors by turns; compressed: in file order.
    const bool by_turns = options.compression.codec == Codec::none;
    const std::size_t step = by_turns ? 300'000 : SIZE_MAX;
    for (std::size_t at = 0; streamed && at < 2'500'000;
         at += std::min(step, std::size_t{1} << 40)) {
      for (std::size_t i = 0; i < payloads.size(); ++i) {
        if (at >= payloads[i].size()) continue;
        const ByteSpan rest = ByteSpan(payloads[i]).subspan(at);
        writer.write(ids[i], rest.first(std::min(rest.size(), step)));
      }
    }
    writer.commit();
    return read_file(folder / "a.thalia");
  };
  for (const auto codec : {Codec::none, Codec::zstd}) {
    SaveOptions options = options_with(IoMode::buffered);
    options.compression.codec = codec;
    options.compression.chunk_bytes = 68 << 10;  // content pieces and chunks do not end together
    options.work.memory_bytes = 128 << 20;
    const std::string expected = save_with(options, false);
    BOOST_TEST(verify(folder / "a.thalia").ok());
    for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
      for (const unsigned threads : {1u, 3u}) {
        for (const std::uint64_t memory : {4u << 20, 128u << 20}) {
          for (const bool streamed : {false, true}) {
            options.io = io;
            options.work.threads = threads;
            options.work.memory_bytes = memory;
            BOOST_TEST((save_with(options, streamed) == expected));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(automatic_is_buffered_for_small_files_and_for_saves_without_durability) {
  const TemporaryFolder folder;
  SaveOptions options = options_with(IoMode::automatic);
  BOOST_TEST((save(folder / "a.thalia", small_sample(), options).io == IoMode::buffered));
  options.output.durability = Durability::none;
  BOOST_TEST((save(folder / "a.thalia", large_sample(), options).io == IoMode::buffered));
}

BOOST_AUTO_TEST_CASE(denied_io_uring_falls_back_and_says_so) {
  const TemporaryFolder folder;
  if (!has_direct_io(folder)) return;
  for (const int denial : {ENOSYS, EPERM, EACCES, ENOMEM}) {
    check_fallback(folder, {.call = SYS_io_uring_setup, .errno_value = denial});
  }
}

BOOST_AUTO_TEST_CASE(a_file_system_without_direct_io_falls_back_and_says_so) {
  const TemporaryFolder folder;
  if (!has_direct_io(folder)) return;
  check_fallback(folder, {.call = SYS_openat,
                          .errno_value = EINVAL,
                          .when = ArgumentCondition::has_bits(2, O_DIRECT)});
}

// Locked memory is limited for ordinary users: registration may fail, the writes may not.
BOOST_AUTO_TEST_CASE(buffers_that_cannot_be_registered_are_used_unregistered) {
  const TemporaryFolder folder;
  const Outcome outcome = run_with_faults({{.call = SYS_io_uring_register, .errno_value = ENOMEM}},
                                          [&] { save_large(folder / "a.thalia", IoMode::direct); });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  BOOST_TEST(verify(folder / "a.thalia").ok());
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_leaves_the_old_file) {
  const TemporaryFolder folder;
  if (!has_direct_io(folder)) return;
  const std::string old = read_file(folder / "direct.thalia");
  const Outcome outcome = run_with_faults({{.call = SYS_fallocate, .errno_value = ENOSPC}}, [&] {
    save_large(folder / "direct.thalia", IoMode::direct);
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.errno_value == ENOSPC);
  BOOST_TEST((read_file(folder / "direct.thalia") == old));
  BOOST_TEST((list_folder(folder.path()) == std::vector<std::string>{"direct.thalia"}));
}

BOOST_AUTO_TEST_SUITE_END()
