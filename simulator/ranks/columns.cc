#include "simulator/ranks/columns.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/check.h"
#include "simulator/program.h"

namespace daydream {
namespace {

constexpr size_t kBlock = 32;  // ranks that are played together
constexpr int64_t kNoInstant = Instant::Min().ns;
constexpr uint32_t kNoSlot = 0xffffffff;
// Speeds are whole numbers of 2^-20: the product of a duration and a speed fits into 64 bits.
constexpr int kSpeedBits = 20;
constexpr double kFastest = 0, kSlowest = 4;
constexpr int64_t kLongest = int64_t{1} << 40;

#if defined(__GNUC__)
#define DD_INLINE __attribute__((always_inline)) inline
#else
#define DD_INLINE inline
#endif

enum class Work : uint8_t { kFixed, kHost, kGpu };

struct Input {
  uint32_t slot;
  int64_t lag;
};

// A task in evaluation order: which instants it reads, and where its own are kept.
struct Vertex {
  uint32_t lane = 0;
  uint32_t starts = 0, ends = 0, inputs_end = 0;  // inputs of its start, then of its end
  uint32_t start_slot = kNoSlot, end_slot = kNoSlot, watched = kNoSlot;
  Work work = Work::kFixed;
  bool overlaps = false, meets = false;
  int64_t duration = 0, gap = 0, earliest = 0;
};

struct Column {
  int64_t v[kBlock];
};
using Speeds = std::array<uint32_t, kBlock>;

// What one block of ranks remembers.
struct Block {
  std::vector<Column> slots;
  std::vector<std::array<Column, 2>> lanes;  // clock, start of the last task
  Speeds host, gpu;
  Column arrival;  // at the collective where it stands
};

DD_INLINE void RaiseTo(Column& a, const Column& b, int64_t plus) {
  for (size_t i = 0; i < kBlock; ++i) a.v[i] = std::max(a.v[i], b.v[i] + plus);
}

// `time` at each rank's speed, to the nearest nanosecond.
DD_INLINE void Add(Column& a, int64_t time, const Speeds& speed) {
  constexpr uint64_t kHalf = uint64_t{1} << (kSpeedBits - 1);
  if (time <= 0xffffffff) {
    const auto low = static_cast<uint32_t>(time);
    for (size_t i = 0; i < kBlock; ++i) {
      a.v[i] += static_cast<int64_t>((uint64_t{low} * speed[i] + kHalf) >> kSpeedBits);
    }
  } else {
    for (size_t i = 0; i < kBlock; ++i) {
      a.v[i] +=
          static_cast<int64_t>((static_cast<uint64_t>(time) * speed[i] + kHalf) >> kSpeedBits);
    }
  }
}

DD_INLINE void AddWork(Column& a, int64_t time, Work work, const Block& block) {
  if (work == Work::kFixed || time < 0) {
    for (int64_t& v : a.v) v += time;
  } else {
    Add(a, time, work == Work::kHost ? block.host : block.gpu);
  }
}

struct Span {
  size_t begin, end;  // vertices; the one at `end` meets, unless it is behind the last
};

struct Tape {
  std::vector<Vertex> vertices;
  std::vector<Input> inputs;
  std::vector<Span> spans;  // from one collective to the next
  size_t slots = 0, lanes = 0, watched = 0;
};

DD_INLINE Column BeginOf(const Tape& tape, const Vertex& v, const Block& block) {
  Column begin;
  for (int64_t& x : begin.v) x = v.earliest;
  RaiseTo(begin, block.lanes[v.lane][v.overlaps], 0);
  for (uint32_t k = v.starts; k < v.ends; ++k) {
    RaiseTo(begin, block.slots[tape.inputs[k].slot], tape.inputs[k].lag);
  }
  return begin;
}

DD_INLINE void EndOf(const Tape& tape, const Vertex& v, const Column& begin, Block& block,
                     Column* watched) {
  Column until = begin;
  AddWork(until, v.duration, v.work, block);
  for (uint32_t k = v.ends; k < v.inputs_end; ++k) {
    RaiseTo(until, block.slots[tape.inputs[k].slot], tape.inputs[k].lag);
  }
  std::array<Column, 2>& lane = block.lanes[v.lane];
  lane[1] = begin;
  Column free = until;
  if (v.gap != 0) AddWork(free, v.gap, v.work, block);
  RaiseTo(lane[0], free, 0);
  if (v.start_slot != kNoSlot) block.slots[v.start_slot] = begin;
  if (v.end_slot != kNoSlot) block.slots[v.end_slot] = until;
  if (v.watched != kNoSlot) watched[v.watched] = until;
}

// One block from one collective, whose Meeting is in `arrival`, to the arrival at the next.
DD_INLINE void PlaySpan(const Tape& tape, size_t span, Block& block, Column* watched) {
  const Span s = tape.spans[span];
  if (span > 0) EndOf(tape, tape.vertices[s.begin - 1], block.arrival, block, watched);
  for (size_t i = s.begin; i < s.end; ++i) {
    const Vertex& v = tape.vertices[i];
    EndOf(tape, v, BeginOf(tape, v, block), block, watched);
  }
  if (s.end < tape.vertices.size()) block.arrival = BeginOf(tape, tape.vertices[s.end], block);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512f,avx512dq"))) void PlaySpanAvx512(const Tape& tape, size_t span,
                                                                Block& block, Column* watched) {
  PlaySpan(tape, span, block, watched);
}
__attribute__((target("avx2"))) void PlaySpanAvx2(const Tape& tape, size_t span, Block& block,
                                                  Column* watched) {
  PlaySpan(tape, span, block, watched);
}
#endif

void PlayOn(const Tape& tape, size_t span, Block& block, Column* watched) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return PlaySpanAvx512(tape, span, block, watched);
  }
  if (__builtin_cpu_supports("avx2")) return PlaySpanAvx2(tape, span, block, watched);
#endif
  PlaySpan(tape, span, block, watched);
}

// Turns the rows of a Program into a tape whose instants share slots.
class TapeMaker {
 public:
  TapeMaker(const Graph& graph, const Program& program, Tape& tape)
      : graph_(graph), program_(program), tape_(tape), none_(2 * uint32_t(graph.size())) {}

  absl::Status Run(std::span<const TaskId> watched) {
    tape_.lanes = program_.lanes;
    tape_.watched = watched.size();
    std::vector<uint32_t> watch(graph_.size(), kNoSlot);
    for (size_t i = 0; i < watched.size(); ++i) {
      watch[watched[i].index()] = static_cast<uint32_t>(i);
    }
    FindLastReaders();
    slot_.assign(2 * graph_.size(), kNoSlot);
    size_t begin = 0;
    for (size_t i = 0; i < program_.rows.size(); ++i) {
      DD_RETURN_IF_ERROR(AddVertex(i));
      Vertex& v = tape_.vertices.back();
      v.watched = watch[program_.rows[i].task];
      if (!v.meets) continue;
      tape_.spans.push_back({begin, i});
      begin = i + 1;
    }
    tape_.spans.push_back({begin, program_.rows.size()});
    return absl::OkStatus();
  }

 private:
  // How many rows before this one have entries in Program::into and Program::more.
  struct Before {
    size_t into = 0, more = 0;
    void Pass(const Row& row) {
      into += (row.lane_and_flags & Row::kEdges) != 0;
      more += (row.lane_and_flags & Row::kMore) != 0;
    }
  };

  template <class Visit>
  void ForSources(const Row& row, const Before& before, Visit visit) const {
    for (int k = 0; k < 3 && (row.lane_and_flags & Row::kEdges) != 0; ++k) {
      const Into& into = program_.into[before.into];
      if (into.source[k] != none_) visit(into.source[k], int64_t{into.lag[k]}, k == 2);
    }
    if ((row.lane_and_flags & Row::kMore) == 0) return;
    const More& m = program_.more[before.more];
    for (uint32_t k = m.starts_begin; k < m.ends_end; ++k) {
      const More::In& in = program_.more_edges[k];
      visit(in.source, in.lag, k >= m.ends_begin);
    }
  }

  void FindLastReaders() {
    last_reader_.assign(2 * graph_.size(), 0);
    Before before;
    for (size_t i = 0; i < program_.rows.size(); ++i) {
      const Row& row = program_.rows[i];
      ForSources(row, before, [&](Source s, int64_t, bool) { last_reader_[s] = i + 1; });
      before.Pass(row);
    }
  }

  absl::Status AddVertex(size_t i) {
    const Row& row = program_.rows[i];
    const Task& task = graph_.task(TaskId(row.task));
    Vertex v{.lane = row.lane_and_flags >> Row::kLaneShift,
             .overlaps = (row.lane_and_flags & Row::kOverlaps) != 0};
    const bool removed = (row.lane_and_flags & Row::kRemoved) != 0;
    v.meets = task.kind == TaskKind::kCollective && !removed;
    if (!removed) {
      v.duration =
          (v.meets ? std::min(graph_.Transfer(TaskId(row.task)), task.duration) : task.duration).ns;
      v.gap = task.gap.ns;
      if (IsHost(task.kind) && task.kind != TaskKind::kWait) v.work = Work::kHost;
      if (IsGpu(task.kind) && !v.meets) v.work = Work::kGpu;
    }
    if (v.duration > kLongest || v.gap > kLongest) {
      return FailedPrecondition("a task takes more than {} minutes", kLongest / 60 / 1'000'000'000);
    }
    v.starts = static_cast<uint32_t>(tape_.inputs.size());
    std::vector<Input> ends;
    std::vector<Source> read;
    ForSources(row, before_, [&](Source s, int64_t lag, bool end) {
      (end ? ends : tape_.inputs).push_back({slot_[s], lag});
      read.push_back(s);
    });
    v.ends = static_cast<uint32_t>(tape_.inputs.size());
    tape_.inputs.insert(tape_.inputs.end(), ends.begin(), ends.end());
    v.inputs_end = static_cast<uint32_t>(tape_.inputs.size());
    if ((row.lane_and_flags & Row::kMore) != 0) v.earliest = program_.more[before_.more].earliest;
    v.earliest = std::max<int64_t>(v.earliest, 0);
    before_.Pass(row);
    // Its own instants may not take the place of what it reads.
    v.start_slot = Keep(2 * row.task);
    v.end_slot = Keep(2 * row.task + 1);
    for (Source s : read) {
      if (last_reader_[s] == i + 1 && slot_[s] != kNoSlot) {
        free_.push_back(std::exchange(slot_[s], kNoSlot));
      }
    }
    tape_.vertices.push_back(v);
    return absl::OkStatus();
  }

  uint32_t Keep(Source s) {
    if (last_reader_[s] == 0) return kNoSlot;
    if (free_.empty()) free_.push_back(static_cast<uint32_t>(tape_.slots++));
    slot_[s] = free_.back();
    free_.pop_back();
    return slot_[s];
  }

  const Graph& graph_;
  const Program& program_;
  Tape& tape_;
  const Source none_;
  Before before_;                    // the next row
  std::vector<size_t> last_reader_;  // by source: row + 1; 0: nobody
  std::vector<uint32_t> slot_, free_;
};

// Every rank of a group begins its transfer when the last of them has come.
void Meet(std::vector<Block>& blocks, size_t ranks, size_t group) {
  for (size_t first = 0; first < ranks; first += group) {
    const size_t end = std::min(ranks, first + group);
    int64_t latest = kNoInstant;
    for (size_t r = first; r < end; ++r) {
      latest = std::max(latest, blocks[r / kBlock].arrival.v[r % kBlock]);
    }
    for (size_t r = first; r < end; ++r) blocks[r / kBlock].arrival.v[r % kBlock] = latest;
  }
}

uint32_t SpeedOf(std::span<const double> speeds, size_t rank) {
  const double speed = rank < speeds.size() ? speeds[rank] : 1;
  return static_cast<uint32_t>(std::clamp(speed, kFastest, kSlowest) * (1 << kSpeedBits) + 0.5);
}

}  // namespace

struct RankColumns::Impl {
  Tape tape;
};

void RankColumns::InOrder(size_t count, const std::function<void(size_t)>& body) {
  for (size_t i = 0; i < count; ++i) body(i);
}

absl::StatusOr<RankColumns> RankColumns::Make(const Graph& graph, std::span<const TaskId> watched) {
  DD_ASSIGN_OR_RETURN(const Program program,
                      Program::Compile(graph, watched, Program::Rows::kInTime));
  auto impl = std::make_shared<Impl>();
  DD_RETURN_IF_ERROR(TapeMaker(graph, program, impl->tape).Run(watched));
  return RankColumns(std::move(impl));
}

size_t RankColumns::meetings() const { return impl_->tape.spans.size() - 1; }
size_t RankColumns::live_rows() const { return impl_->tape.slots + 2 * impl_->tape.lanes; }

std::vector<Instant> RankColumns::Run(const RankSpeeds& speeds, size_t group,
                                      const ForEach& each) const {
  const Tape& tape = impl_->tape;
  const size_t ranks = speeds.host.size();
  DD_CHECK(group > 0 && speeds.gpu.size() == ranks);
  constexpr Column kNothing = [] {
    Column c{};
    for (int64_t& v : c.v) v = kNoInstant;
    return c;
  }();
  std::vector<Block> blocks((ranks + kBlock - 1) / kBlock);
  std::vector<Column> watched(blocks.size() * tape.watched);
  for (size_t span = 0; span < tape.spans.size(); ++span) {
    each(blocks.size(), [&](size_t b) {
      Block& block = blocks[b];
      if (span == 0) {
        block.slots.resize(tape.slots);
        block.lanes.assign(tape.lanes, {kNothing, kNothing});
        for (size_t i = 0; i < kBlock; ++i) {
          block.host[i] = SpeedOf(speeds.host, b * kBlock + i);
          block.gpu[i] = SpeedOf(speeds.gpu, b * kBlock + i);
        }
      }
      PlayOn(tape, span, block, watched.data() + b * tape.watched);
    });
    if (span + 1 < tape.spans.size()) Meet(blocks, ranks, group);
  }
  std::vector<Instant> latest;
  for (size_t first = 0; first < ranks; first += group) {
    for (size_t w = 0; w < tape.watched; ++w) {
      int64_t end = kNoInstant;
      for (size_t r = first; r < std::min(ranks, first + group); ++r) {
        end = std::max(end, watched[r / kBlock * tape.watched + w].v[r % kBlock]);
      }
      latest.push_back(Instant::AtNs(end));
    }
  }
  return latest;
}

}  // namespace daydream
