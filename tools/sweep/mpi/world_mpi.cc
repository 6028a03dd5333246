// The world of all ranks of an MPI program. The first rank hands out work in small portions to
// whoever is done with the last one, so that ranks of different speed end together; its own threads
// take from the same queue. Only the main threads talk.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "report/fields.h"
#include "report/parallel.h"
#include "tools/sweep/world.h"

namespace daydream {
namespace {

// From a worker: its results, one after the other, each ended by '\n'; it is ready for more.
constexpr int kReady = 1;
// From the first rank: places in the work; none: the end.
constexpr int kPortion = 2;
// From a worker, before any work: its key and then its host; or, on lines of their own, its host,
// the code of what ends it, and why it gives up. The first rank answers the former: some text, or
// none when there will be no work.
constexpr int kKey = 3, kLeaving = 4, kAgreed = 5;
// Exit code of a job of which a rank gave up in the middle: Exit::kNoRoom.
constexpr int kAbort = 7;
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

std::string HostName() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int size = 0;
  MPI_Get_processor_name(name, &size);
  return std::string(name, static_cast<size_t>(size));
}

absl::Status Disagreement(int rank, std::string_view host, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0707",
                     .what = fmt::format("rank {} on {} cannot take part", rank, Field(host)),
                     .why = std::move(why),
                     .effect = "no rank does any work",
                     .fix = "the same program, command and files on every host"});
}

// Of a rank that leaves before any work.
absl::Status Left(int rank, std::string_view text) {
  const size_t host = std::min(text.find('\n'), text.size());
  const size_t code = std::min(text.find('\n', host + 1), text.size());
  const std::string_view named = text.substr(0, host);
  const std::string_view failed =
      text.substr(std::min(host + 1, code), code - std::min(host + 1, code));
  std::string why(text.substr(std::min(code + 1, text.size())));
  if (failed != "E0120" && failed != "E0121") return Disagreement(rank, named, std::move(why));
  return MakeStatus(
      absl::StatusCode::kResourceExhausted,
      {.code = std::string(failed),
       .what = fmt::format("rank {} on {} cannot take part: {}", rank, Field(named), why),
       .effect = "no rank does any work",
       .fix = "fewer ranks on that host, or one with more memory"});
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
  // Keeps what a thread threw; nothing more is begun.
  void Fail(std::exception_ptr failure) {
    Drop();
    std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
  }
  std::exception_ptr failure() {
    std::lock_guard lock(mutex_);
    return failure_;
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
  std::exception_ptr failure_;
};

}  // namespace

struct World::Impl {
  int rank = 0, size = 1;
  // Refused: it is known that the ranks do not agree, and nobody waits for anybody.
  enum class Stage { kBefore, kRefused, kWorking, kDone } stage = Stage::kBefore;
  std::string gives_up = "\n";  // a code and why, for the first rank

  absl::Status Gather(uint64_t key, bool willing);
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
  using enum Impl::Stage;
  // Whoever failed before the work began must not keep the others waiting.
  if (impl_->stage == kBefore && !first()) Send(0, kLeaving, HostName() + "\n" + impl_->gives_up);
  if (impl_->stage == kBefore && first()) (void)impl_->Gather(0, /*willing=*/false);
  // One that leaves in the middle of the work has rows that nobody else will do.
  if (impl_->stage == kWorking && !first()) MPI_Abort(MPI_COMM_WORLD, kAbort);
  MPI_Finalize();
}

bool World::first() const { return impl_->rank == 0; }
size_t World::size() const { return static_cast<size_t>(impl_->size); }
std::string World::name() const {
  return size() == 1 ? "" : fmt::format("rank {} on {}", impl_->rank, Field(HostName()));
}
bool BuiltWithMpi() { return true; }

void World::Leave(const absl::Status& why) {
  const Diagnostic told = DiagnosticOf(why);
  impl_->gives_up = told.code + "\n" + told.what;
}

bool TellsOwnMistake(const absl::Status& why) {
  World world;
  if (!world.first()) world.Leave(why);
  return world.first();
}

absl::Status World::Agree(uint64_t key) {
  absl::Status agreed;
  if (first()) {
    agreed = impl_->Gather(key, /*willing=*/true);
  } else {
    Send(0, kKey, std::string(reinterpret_cast<const char*>(&key), sizeof key) + HostName());
    int from = 0, tag = kAgreed;
    // Why not is told by the first rank.
    if (Receive(from, tag).empty()) agreed = absl::CancelledError("the ranks do not agree");
  }
  impl_->stage = agreed.ok() ? Impl::Stage::kWorking : Impl::Stage::kRefused;
  return agreed;
}

// Hears every other rank, and answers those that wait for it.
absl::Status World::Impl::Gather(uint64_t key, bool willing) {
  std::vector<int> waiting;
  std::vector<absl::Status> found(static_cast<size_t>(size));
  for (int i = 1; i < size; ++i) {
    int from = MPI_ANY_SOURCE, tag = MPI_ANY_TAG;
    const std::string text = Receive(from, tag);
    absl::Status& told = found[static_cast<size_t>(from)];
    uint64_t theirs = 0;
    if (tag == kKey && text.size() >= sizeof theirs) {
      std::memcpy(&theirs, text.data(), sizeof theirs);
      waiting.push_back(from);
      if (theirs == key) continue;
      told = Disagreement(from, text.substr(sizeof theirs),
                          "its trace, another file, its flags or its program differ from rank 0's");
    } else {
      told = Left(from, text);
    }
  }
  const auto bad = std::find_if(found.begin(), found.end(), [](auto& s) { return !s.ok(); });
  for (int rank : waiting) Send(rank, kAgreed, bad == found.end() && willing ? "agreed" : "");
  return bad == found.end() ? absl::OkStatus() : *bad;
}

absl::Status World::Distribute(std::span<const size_t> todo, unsigned jobs,
                               const std::function<std::string(size_t)>& work,
                               const std::function<absl::Status(std::string)>& take) {
  absl::Status done;
  if (first()) {
    done = impl_->Lead(todo, jobs, work, take);
  } else {
    impl_->Follow(jobs, work);
  }
  impl_->stage = Impl::Stage::kDone;
  return done;
}

absl::Status World::Impl::Lead(std::span<const size_t> todo, unsigned jobs,
                               const std::function<std::string(size_t)>& work,
                               const std::function<absl::Status(std::string)>& take) {
  Queue queue(todo);
  std::vector<std::thread> threads;
  size_t outstanding = todo.size();
  int others = size - 1;
  auto work_off = [&](size_t most) {
    try {
      for (; most > 0; --most) {
        const std::span<const size_t> next = queue.Next(1);
        if (next.empty()) return;
        queue.Put(work(next[0]));
      }
    } catch (...) {
      queue.Fail(std::current_exception());
    }
  };
  for (unsigned t = 0; t < (todo.empty() ? 0 : jobs); ++t) {
    try {
      threads.emplace_back(work_off, SIZE_MAX);
    } catch (const std::system_error&) {
      break;  // the system has no more threads
    }
  }
  absl::Status status;
  auto accept = [&](std::string result) {
    if (!status.ok() && !absl::IsCancelled(status)) return;
    --outstanding;
    status = take(std::move(result));
    // Nothing more is begun. What runs is waited for by joining and by answering the others.
    if (!status.ok()) queue.Drop();
  };
  while (others > 0 || (status.ok() && outstanding > 0 && !queue.failure())) {
    if (threads.empty()) work_off(1);
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
    const std::span<const size_t> portion = queue.Next(std::max(1u, jobs));
    SendPortion(from, portion);
    if (portion.empty()) --others;
  }
  for (std::thread& t : threads) t.join();
  if (auto failure = queue.failure()) std::rethrow_exception(failure);
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
