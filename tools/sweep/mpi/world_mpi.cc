// The world of all ranks of an MPI program. The first rank hands out work in small portions to
// whoever is done with the last one, so that ranks of different speed end together; its own threads
// take from the same queue. Only the main threads talk.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "report/parallel.h"
#include "tools/sweep/world.h"

namespace daydream {
namespace {

// From a worker: its results, one after the other, each ended by '\n'; it is ready for more.
constexpr int kReady = 1;
// From a worker that gives up, or from the first rank: places in the work; none: the end.
constexpr int kLeaving = 2, kPortion = 3;
// How long the first rank looks only at its own threads before it listens again.
constexpr std::chrono::milliseconds kPatience{1};

std::string Receive(int& from, int& tag) {
  MPI_Status status;
  MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string text(static_cast<size_t>(size), '\0');
  from = status.MPI_SOURCE;
  tag = status.MPI_TAG;
  MPI_Recv(text.data(), size, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return text;
}

void Send(int to, int tag, std::string_view text) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, tag, MPI_COMM_WORLD);
}

void SendPortion(int to, std::span<const size_t> places) {
  Send(to, kPortion,
       {reinterpret_cast<const char*>(places.data()), places.size() * sizeof(size_t)});
}

// What is to be done and what is done, shared by the threads of the first rank.
class Queue {
 public:
  explicit Queue(std::span<const size_t> todo) : rest_(todo) {}

  std::span<const size_t> Next(size_t count) {
    std::lock_guard lock(mutex_);
    auto portion = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(portion.size());
    return portion;
  }
  void Drop() {
    std::lock_guard lock(mutex_);
    rest_ = {};
  }
  void Put(std::string result) {
    std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
    changed_.notify_one();
  }
  // What own threads have done since the last call; waits a little for some.
  std::deque<std::string> Take() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return !results_.empty(); });
    return std::exchange(results_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<const size_t> rest_;
  std::deque<std::string> results_;
};

}  // namespace

struct World::Impl {
  int rank = 0, size = 1;
  bool distributed = false;

  absl::Status Lead(std::span<const size_t> todo, unsigned jobs,
                    const std::function<std::string(size_t)>& work,
                    const std::function<absl::Status(std::string)>& take);
  void Follow(unsigned jobs, const std::function<std::string(size_t)>& work);
};

World::World() : impl_(std::make_unique<Impl>()) {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  DD_CHECK(level >= MPI_THREAD_FUNNELED);
  MPI_Comm_rank(MPI_COMM_WORLD, &impl_->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &impl_->size);
}

World::~World() {
  // Whoever failed before the work began must not keep the others waiting.
  if (!impl_->distributed && !first()) Send(0, kLeaving, {});
  if (!impl_->distributed && first()) {
    (void)impl_->Lead(
        {}, 0, [](size_t) { return std::string(); },
        [](const std::string&) { return absl::OkStatus(); });
  }
  MPI_Finalize();
}

bool World::first() const { return impl_->rank == 0; }
size_t World::size() const { return static_cast<size_t>(impl_->size); }
bool BuiltWithMpi() { return true; }

absl::Status World::Distribute(std::span<const size_t> todo, unsigned jobs,
                               const std::function<std::string(size_t)>& work,
                               const std::function<absl::Status(std::string)>& take) {
  impl_->distributed = true;
  if (first()) return impl_->Lead(todo, jobs, work, take);
  impl_->Follow(jobs, work);
  return absl::OkStatus();
}

absl::Status World::Impl::Lead(std::span<const size_t> todo, unsigned jobs,
                               const std::function<std::string(size_t)>& work,
                               const std::function<absl::Status(std::string)>& take) {
  Queue queue(todo);
  std::vector<std::thread> threads;
  size_t outstanding = todo.size();
  int others = size - 1;
  for (unsigned t = 0; t < (todo.empty() ? 0 : jobs); ++t) {
    threads.emplace_back([&] {
      for (auto next = queue.Next(1); !next.empty(); next = queue.Next(1)) {
        queue.Put(work(next[0]));
      }
    });
  }
  absl::Status status;
  auto accept = [&](std::string result) {
    if (!status.ok()) return;
    --outstanding;
    status = take(std::move(result));
    // Nothing more is begun. What runs is waited for by joining and by answering the others.
    if (!status.ok()) queue.Drop();
  };
  while (others > 0 || (status.ok() && outstanding > 0)) {
    for (std::string& result : queue.Take()) accept(std::move(result));
    int waiting = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &waiting, MPI_STATUS_IGNORE);
    if (waiting == 0) continue;
    int from = MPI_ANY_SOURCE, tag = MPI_ANY_TAG;
    std::string text = Receive(from, tag);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      accept(text.substr(begin, end - begin));
      begin = end + 1;
    }
    std::span<const size_t> portion;
    if (tag == kReady) portion = queue.Next(std::max(1u, jobs));
    if (tag == kReady) SendPortion(from, portion);
    if (portion.empty()) --others;
  }
  for (std::thread& t : threads) t.join();
  for (std::string& result : queue.Take()) accept(std::move(result));
  return status;
}

void World::Impl::Follow(unsigned jobs, const std::function<std::string(size_t)>& work) {
  std::string done;
  for (;;) {
    Send(0, kReady, done);
    int from = 0, tag = kPortion;
    const std::string bytes = Receive(from, tag);
    std::vector<size_t> places(bytes.size() / sizeof(size_t));
    if (places.empty()) return;
    std::memcpy(places.data(), bytes.data(), places.size() * sizeof(size_t));
    std::vector<std::string> results(places.size());
    ForEachParallel(places.size(), jobs, [&](size_t i) { results[i] = work(places[i]); });
    done.clear();
    for (const std::string& result : results) done += result + "\n";
  }
}

}  // namespace daydream
