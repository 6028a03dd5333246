#include "trace/rows/lane_rows.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <span>

namespace daydream {
namespace {

// A lane of a few rows takes little, a long one blocks of 2 MiB: huge pages, where there are any,
// but for the first, which may be the last.
constexpr size_t kFirstBlock = 64, kLargestBlock = 65536;
// What is mapped goes back to the system when it is freed; smaller memory stays with the heap, and
// so does some of what is larger.
constexpr size_t kMapped = 128 << 10;

bool Before(const TraceRow& a, const TraceRow& b) {
  return a.start != b.start ? a.start < b.start : a.duration > b.duration;
}

// Positions of the rows of a block in the order of time.
class BlockOrder {
 public:
  std::vector<uint16_t> Of(std::span<const TraceRow> rows) {
    rows_ = rows;
    keys_.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) keys_[i] = {rows[i].start, static_cast<uint32_t>(i)};
    Sort();
    std::vector<uint16_t> order(keys_.size());
    for (size_t i = 0; i < keys_.size(); ++i) order[i] = static_cast<uint16_t>(keys_[i].at);
    return order;
  }

 private:
  struct Key {
    Instant start;
    uint32_t at = 0;
  };

  bool IsBefore(const Key& a, const Key& b) const {
    if (a.start != b.start) return a.start < b.start;
    const Duration x = rows_[a.at].duration, y = rows_[b.at].duration;
    return x != y ? x > y : a.at < b.at;
  }

  // A profiler writes a lane as a few sequences (operators, calls, ...), each of them in order but
  // for ranges that come after what they contain. So: short moves inside a sequence, then merges.
  void Sort() {
    constexpr size_t kShortMove = 16;
    std::vector<size_t> runs = {0};
    for (size_t i = 1; i < keys_.size(); ++i) {
      if (!IsBefore(keys_[i], keys_[i - 1])) continue;
      const Key key = keys_[i];
      const size_t first = i - std::min(i - runs.back(), kShortMove);
      if (first > runs.back() && IsBefore(key, keys_[first])) {
        runs.push_back(i);
        continue;
      }
      size_t j = i;
      for (; j > first && IsBefore(key, keys_[j - 1]); --j) keys_[j] = keys_[j - 1];
      keys_[j] = key;
    }
    runs.push_back(keys_.size());
    while (runs.size() > 2) Merge(runs);
  }

  // Each two neighbours of `runs`, which holds where they begin and the end of the last.
  void Merge(std::vector<size_t>& runs) {
    merged_.resize(keys_.size());
    std::vector<size_t> longer = {0};
    const auto at = [&](size_t i) { return keys_.begin() + static_cast<ptrdiff_t>(runs[i]); };
    for (size_t r = 0; r + 1 < runs.size(); r += 2) {
      const size_t end = std::min(r + 2, runs.size() - 1);
      std::merge(at(r), at(r + 1), at(r + 1), at(end),
                 merged_.begin() + static_cast<ptrdiff_t>(runs[r]),
                 [this](const Key& a, const Key& b) { return IsBefore(a, b); });
      longer.push_back(runs[end]);
    }
    keys_.swap(merged_);
    runs = std::move(longer);
  }

  std::span<const TraceRow> rows_;
  std::vector<Key> keys_, merged_;
};

}  // namespace

void LaneRows::FreeRows::operator()(TraceRow* rows) const {
  if (mapped) {
    munmap(rows, bytes);
  } else {
    std::free(rows);
  }
}

void LaneRows::AddBlock(size_t& heap_left) {
  const size_t before = blocks_.empty() ? 0 : RowsIn(blocks_.back());
  const size_t rows = before == 0 ? kFirstBlock : std::min(2 * before, kLargestBlock);
  const size_t bytes = rows * sizeof(TraceRow);
  const bool mapped = bytes >= kMapped && (rows == kLargestBlock || bytes > heap_left);
  if (bytes >= kMapped && !mapped) heap_left -= bytes;
  void* memory =
      !mapped ? std::malloc(bytes)
              : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == nullptr || memory == MAP_FAILED) throw std::bad_alloc();  // as a vector would
  if (before == kLargestBlock) madvise(memory, bytes, MADV_HUGEPAGE);
  const uint32_t place = size();
  blocks_.push_back(
      {.rows = {static_cast<TraceRow*>(memory), {bytes, mapped}}, .first_place = place});
  next_ = blocks_.back().rows.get();
  end_ = next_ + rows;
}

uint32_t LaneRows::size() const {
  if (blocks_.empty()) return 0;
  const Block& last = blocks_.back();
  return last.first_place + static_cast<uint32_t>(next_ - last.rows.get());
}

std::pair<Instant, Instant> LaneRows::Extent() const {
  Instant first{INT64_MAX};
  for (const Block& block : blocks_) first = std::min(first, block.earliest);
  return {first, latest_};
}

// A merge of the blocks, each of which is put in order when its first row is due.
void LaneRows::HandOutRuns(absl::FunctionRef<void(const Run&)> take) {
  struct Begun {
    std::vector<uint16_t> order;
    size_t taken = 0;
  };
  std::vector<Begun> runs(blocks_.size());
  std::vector<uint32_t> waiting(blocks_.size());  // the next one last
  for (uint32_t b = 0; b < waiting.size(); ++b) waiting[b] = b;
  std::stable_sort(waiting.begin(), waiting.end(), [&](uint32_t a, uint32_t b) {
    return blocks_[a].earliest > blocks_[b].earliest;
  });
  const auto row_of = [&](uint32_t b) -> const TraceRow& {
    return blocks_[b].rows.get()[runs[b].order[runs[b].taken]];
  };
  const auto after = [&](uint32_t a, uint32_t b) {
    const TraceRow &x = row_of(a), &y = row_of(b);
    return Before(y, x) || (!Before(x, y) && b < a);
  };
  BlockOrder order;
  std::vector<uint32_t> heap;  // blocks that rows are being taken from
  while (!waiting.empty() || !heap.empty()) {
    while (!waiting.empty() &&
           (heap.empty() || blocks_[waiting.back()].earliest <= row_of(heap.front()).start)) {
      const uint32_t b = waiting.back();
      waiting.pop_back();
      runs[b].order = order.Of({blocks_[b].rows.get(), EndOf(blocks_[b])});
      heap.push_back(b);
      std::push_heap(heap.begin(), heap.end(), after);
    }
    std::pop_heap(heap.begin(), heap.end(), after);
    const uint32_t b = heap.back();
    heap.pop_back();
    Begun& run = runs[b];
    const TraceRow* const rows = blocks_[b].rows.get();
    const size_t first = run.taken;
    const Instant until = waiting.empty() ? Instant{INT64_MAX} : blocks_[waiting.back()].earliest;
    // What starts before the first of the others needs no second look.
    const Instant clear = heap.empty() ? until : std::min(until, row_of(heap.front()).start);
    while (++run.taken < run.order.size()) {
      const Instant start = rows[run.order[run.taken]].start;
      if (start < clear) continue;
      if (start >= until || (!heap.empty() && !after(heap.front(), b))) break;
    }
    take({rows, blocks_[b].first_place, std::span(run.order).subspan(first, run.taken - first)});
    if (run.taken < run.order.size()) {
      heap.push_back(b);
      std::push_heap(heap.begin(), heap.end(), after);
    } else {
      blocks_[b].rows.reset();
      run.order = std::vector<uint16_t>();
    }
  }
  *this = LaneRows();
}

}  // namespace daydream
