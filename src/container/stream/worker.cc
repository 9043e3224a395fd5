// One worker thread. It keeps as many reads in flight as its reader has slots, and processes them
// in the order in which it started them, each while its bytes are in the core's cache: blocks are
// verified first, then tensors take their bytes, one after the other, and each is completed before
// the next one's memory is waited for: that may come from it. A unit belongs to one worker from
// take() to complete_unit(), with all its parts, so a block's hash needs no lock. What is wrong
// with a tensor stays with that tensor where the caller wants to pass over damage; everything else
// ends the stream.
#include "container/stream/worker.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "base/fail.h"
#include "format/header.h"
#include "integrity/block_tree.h"
#include "io/direct/direct_reader.h"

namespace thalia::container {
namespace {

using Location = io::DirectReader::Location;

class Worker {
 public:
  explicit Worker(StreamWork& work)
      : work_(work),
        plan_(work.plan),
        header_(work.file.header()),
        block_log2_(header_.integrity_block_log2),
        leaf_algorithm_(header_.leaf_algorithm),
        reader_(make_reader(work.strategy.waits())) {
    // The strategy saw that a ring can be made. By now the limit on locked memory or on files may
    // be reached: then threads wait.
    if (!reader_) reader_ = make_reader(io::ReadMethod::threads);
  }

  void run() {
    while (true) {
      while (!reader_->full() && start_next()) {
      }
      // Reads that are in flight when the stream ends are waited for by the reader's destructor.
      if (in_flight_.empty() || work_.scheduler.has_ended()) return;
      process(in_flight_.front());
      in_flight_.pop_front();
      reader_->release();
    }
  }

 private:
  // A unit, or a part of one whose block is larger than an extent. A worker reads all parts of a
  // unit, one after the other, since they go into one hash.
  struct Part {
    std::size_t unit;
    std::uint64_t begin;
    std::uint64_t end;
  };
  struct DamagedBlock {
    std::uint64_t number;
    format::Extent extent;
  };

  std::unique_ptr<io::DirectReader> make_reader(io::ReadMethod waits) const {
    return io::DirectReader::create(work_.strategy.source(), waits, work_.strategy.depth(),
                                    kStreamExtent);
  }

  bool start_next() {
    if (!part_) {
      // Waits only if there is nothing else to do.
      const auto unit = work_.scheduler.take(in_flight_.empty());
      if (!unit) return false;
      part_ = Part{*unit, plan_.units[*unit].begin, 0};
    }
    const StreamUnit& unit = plan_.units[part_->unit];
    part_->end = std::min(part_->begin + kStreamExtent, unit.end);
    work_.named(unit.first_tensor, [&] { start(*part_); });
    in_flight_.push_back(*part_);
    if (part_->end == unit.end) {
      part_.reset();
    } else {
      part_->begin = part_->end;
    }
    return true;
  }

  void start(const Part& part) {
    const std::uint64_t length = part.end - part.begin;
    const bool cached = work_.strategy.is_cached(part.begin, length);
    const Location location = cached ? Location::page_cache : Location::disk;
    const bool direct = !cached && work_.strategy.is_direct();
    if (direct) work_.read_directly.store(true, std::memory_order_relaxed);
    // Direct I/O needs aligned memory; the page cache can be copied anywhere. Other parts go
    // through a buffer of the reader.
    const MutableByteSpan place = place_of(part);
    if (!place.empty() && (!direct || is_aligned(place))) {
      reader_->start_into(part.begin, place, location);
    } else {
      reader_->start(part.begin, length, location);
    }
  }

  // Memory that takes all of the part as it is.
  MutableByteSpan place_of(const Part& part) const {
    const StreamUnit& unit = plan_.units[part.unit];
    for (std::size_t i = unit.first_tensor; i < unit.last_tensor; ++i) {
      const StreamTensor& tensor = plan_.tensors[i];
      if (tensor.offset <= part.begin && part.end <= tensor.end())
        return work_.payloads[i]->place_of(part.begin, part.end);
    }
    return {};
  }

  bool is_aligned(MutableByteSpan place) const {
    return place.size() % io::kDirectAlignment == 0 &&
           reinterpret_cast<std::uintptr_t>(place.data()) % work_.strategy.memory_alignment() == 0;
  }

  void process(const Part& part) {
    const StreamUnit& unit = plan_.units[part.unit];
    const ByteSpan bytes =
        work_.named(unit.first_tensor, [&]() -> ByteSpan { return reader_->oldest(); });
    work_.bytes_read.fetch_add(bytes.size(), std::memory_order_relaxed);
    damaged_.clear();
    if (plan_.verifies_blocks) verify(part, unit, bytes);
    for (std::size_t i = unit.first_tensor; i < unit.last_tensor; ++i) {
      if (!wait_begun(i)) return;
      // Blocks first: a wrong leaf of SHA-256 says more than the decoder that then fails on the
      // bytes, and the first error stays.
      for (const DamagedBlock& block : damaged_) doubt(i, block);
      work_.attempt(i, [&] { work_.payloads[i]->accept(part.begin, bytes); });
      if (part.end == unit.end) finish(i);
    }
    if (part.end == unit.end) work_.scheduler.complete_unit();
    work_.report(bytes.size());
  }

  // False once the stream has ended. What is known is not asked for again.
  bool wait_begun(std::size_t tensor) {
    if (tensor >= begun_) begun_ = work_.scheduler.wait_begun(tensor).value_or(0);
    return tensor < begun_;
  }

  // The worker that brings a tensor's last unit checks it as a whole.
  void finish(std::size_t tensor) {
    if (!work_.payloads[tensor]->finish_unit()) return;
    work_.attempt(tensor, [&] { check(*work_.payloads[tensor]); });
    work_.scheduler.complete_tensor(tensor);
  }

  // A damaged block may hold the damage outside this tensor: in padding or in a neighbour. The
  // tensor's own digests decide.
  void check(StreamPayload& payload) const {
    payload.check_crc();
    if (const auto block = payload.doubted_block(); block && !payload.has_digests())
      fail_block(header_, *block);
    payload.finish_quantized(work_.strategy.workers());
  }

  void verify(const Part& part, const StreamUnit& unit, ByteSpan bytes) {
    if (unit.end - unit.begin > kStreamExtent) return verify_large(part, unit, bytes);
    std::size_t tensor = unit.first_tensor;
    for (std::uint64_t begin = part.begin, next; begin < part.end; begin = next) {
      const std::uint64_t block = begin >> block_log2_;
      next = std::min((block + 1) << block_log2_, part.end);
      // Damage in a gap that was read through is not the caller's concern.
      while (tensor < unit.last_tensor && plan_.tensors[tensor].end() <= begin) ++tensor;
      if (tensor == unit.last_tensor || plan_.tensors[tensor].offset >= next) continue;
      const bool sound = integrity::bytes_match(bytes.subspan(begin - part.begin, next - begin),
                                                block, header_, leaf_of(unit, block));
      conclude(sound, block, {begin, next - begin});
    }
  }

  // A block larger than an extent is never whole in memory. Its parts come in order, from one
  // worker, and are hashed as they pass. The leaf of block 0 is that of a header of zeros.
  void verify_large(const Part& part, const StreamUnit& unit, ByteSpan bytes) {
    if (part.begin == unit.begin) hasher_.emplace(leaf_algorithm_);
    if (part.begin == 0) {
      hasher_->update(kNoHeader);
      bytes = bytes.subspan(kNoHeader.size());
    }
    hasher_->update(bytes);
    if (part.end != unit.end) return;
    const std::uint64_t block = unit.begin >> block_log2_;
    const ByteSpan expected = leaf_of(unit, block);
    std::array<std::byte, sizeof(Digest256)> leaf;
    hasher_->finish(MutableByteSpan(leaf).first(expected.size()));
    conclude(std::equal(expected.begin(), expected.end(), leaf.begin()), block,
             {unit.begin, unit.end - unit.begin});
  }

  ByteSpan leaf_of(const StreamUnit& unit, std::uint64_t block) const {
    const std::uint64_t length = integrity::leaf_length(leaf_algorithm_);
    const std::uint64_t number = block - (unit.begin >> block_log2_);
    return ByteSpan(plan_.leaves).subspan(unit.first_leaf + number * length, length);
  }

  void conclude(bool sound, std::uint64_t block, format::Extent extent) {
    if (!sound) damaged_.push_back({block, extent});
    // In a mapping, this block need not be verified again. A copied file would read the bytes once
    // more before it hands them out, and nobody has checked those.
    if (sound && work_.file.mapping().access() != Access::copied) work_.file.blocks()->note(block);
  }

  // XXH3 leaves catch damage; so do the tensor's digests, and the tensor may be sound. SHA-256
  // leaves are there against tampering, and who can forge a content hash must not get past them.
  void doubt(std::size_t tensor, const DamagedBlock& block) const {
    const StreamTensor& facts = plan_.tensors[tensor];
    const format::Extent extent = block.extent;
    if (facts.offset >= extent.offset + extent.length || facts.end() <= extent.offset) return;
    if (leaf_algorithm_ == LeafAlgorithm::xxh3_128)
      return work_.payloads[tensor]->doubt(block.number);
    work_.attempt(tensor, [&] { fail_block(header_, block.number); });
  }

  static constexpr std::array<std::byte, sizeof(format::Header)> kNoHeader{};

  StreamWork& work_;
  const StreamPlan& plan_;
  const format::Header& header_;
  const unsigned block_log2_;
  const LeafAlgorithm leaf_algorithm_;
  std::optional<Part> part_;  ///< to be started next
  std::deque<Part> in_flight_;
  std::vector<DamagedBlock> damaged_;  ///< of the part in process
  std::size_t begun_ = 0;              ///< tensors before this one have their memory
  std::optional<integrity::LeafHasher> hasher_;
  std::unique_ptr<io::DirectReader> reader_;
};

}  // namespace

void run_stream_worker(StreamWork& work) {
  Worker(work).run();
}

}  // namespace thalia::container
