#include "tools/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "report/text/format.h"
#include "trace/bytes/atomic_file.h"

namespace daydream {
namespace {

// Measured on four recordings of 42,000 to 75,000 events with `advise`, which takes the most, as
// the peak of resident memory less that of an import, for each event: 1,710 to 2,510 bytes with one
// thread, 2,140 to 3,020 with two, 4,760 to 6,500 with eight and 8,370 with 16. `whatif` of
// `amp,fuse` and `report` take 1,130 to 1,340 and 1,620 to 2,750, eight ranks played together at
// most 700 and 2,200, with one thread and with eight.
constexpr uint64_t kGraphBytesPerRow = 2000;
constexpr uint64_t kThreadBytesPerRow = 600;
constexpr unsigned kMostThreads = 16;  // 11,150 bytes with 32: `advise` has no work for more

constexpr char kFix[] =
    "record or take fewer steps (--steps), one rank (--rank), or use a machine with more memory";

// The number behind `key` in a file of "key: number kB" or of a number alone; 0 when there is none.
uint64_t NumberIn(const std::string& path, std::string_view key = {}) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const uint64_t number = std::strtoull(line.c_str() + key.size(), nullptr, 10);
    return line.ends_with("kB") ? number * 1024 : number;
  }
  return 0;
}

// Folders of this process's control group (version 2) and of those around it: each may have a
// limit.
std::vector<std::string> ControlGroups() {
  const std::string root = "/sys/fs/cgroup";
  std::vector<std::string> groups = {root};
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::/")) continue;
    for (size_t at = 4; at < line.size(); ++at) {
      at = std::min(line.find('/', at), line.size());
      groups.push_back(root + line.substr(3, at - 3));
    }
  }
  return groups;
}

std::string WhyNoMemory(uint64_t free, uint64_t needs) {
  if (free == 0) return "the system gives no more";
  std::string left =
      fmt::format("{} are free after what was taken was given back", FormatBytes(free));
  if (needs == 0) return left;
  if (needs > free) return fmt::format("{}; up to {} may be needed", left, FormatBytes(needs));
  return fmt::format("{}; {} were expected to do, and did not", left, FormatBytes(needs));
}

absl::Status NoMemory(const Session& session) {
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    {.code = "E0120",
                     .what = "there is not enough memory",
                     .where = session.doing(),
                     .why = WhyNoMemory(FreeMemory(), session.needs()),
                     .effect = "nothing was written",
                     .fix = kFix});
}

}  // namespace

uint64_t FreeMemory() {
  uint64_t free = NumberIn("/proc/meminfo", "MemAvailable:");
  auto at_most = [&](uint64_t bytes) { free = free == 0 ? bytes : std::min(free, bytes); };
  for (const std::string& group : ControlGroups()) {
    const uint64_t limit = NumberIn(group + "/memory.max");  // "max" reads as 0
    const uint64_t used = NumberIn(group + "/memory.current");
    if (limit > 0) at_most(limit > used ? limit - used : 1);
  }
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    const uint64_t taken = NumberIn("/proc/self/status", "VmSize:");
    at_most(space.rlim_cur > taken ? space.rlim_cur - taken : 1);
  }
  return free;
}

uint64_t GraphMemory(uint64_t rows, unsigned threads) {
  return rows * (kGraphBytesPerRow + kThreadBytesPerRow * std::min(threads, kMostThreads));
}

void WarnAboutMemory(std::span<const std::shared_ptr<const Trace>> traces, Session& session) {
  uint64_t rows = 0, read = 0;
  for (const auto& trace : traces) rows += trace->rows(), read += trace->MemoryBytes();
  const uint64_t needs = GraphMemory(rows, session.jobs()), free = FreeMemory();
  session.Needs(read + needs);
  if (free == 0 || needs <= free) return;
  session.Warn({.code = "W0120",
                .what = fmt::format("{} may need up to {} of memory, and {} are free",
                                    Plural(rows, "event"), FormatBytes(needs), FormatBytes(free)),
                .effect = "the system may end this program before it is done",
                .fix = kFix});
}

namespace {

// What EndWithoutMemory() needs; `room` is for telling it.
const Session* running = nullptr;
const Failure* tell = nullptr;
std::unique_ptr<char[]> room;
std::atomic_flag ending = ATOMIC_FLAG_INIT;
constexpr int kNoMemoryLeft = static_cast<int>(Exit::kNoRoom);

[[noreturn]] void EndWithoutMemory() {
  thread_local bool telling = false;
  if (std::exchange(telling, true)) {  // no memory to tell it, either
    constexpr std::string_view kSaid = "error[E0120]: there is no memory left\n";
    if (write(STDERR_FILENO, kSaid.data(), kSaid.size()) < 0) std::_Exit(kNoMemoryLeft);
    std::_Exit(kNoMemoryLeft);
  }
  while (ending.test_and_set()) pause();  // another thread ends the program
  AtomicFile::UnlinkTemporary();
  room.reset();
  const Exit exit = (*tell)(NoMemory(*running));
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(exit));
}

struct HandlerWhile {
  explicit HandlerWhile(std::new_handler handler) : before(std::set_new_handler(handler)) {}
  ~HandlerWhile() { std::set_new_handler(before); }
  const std::new_handler before;
};

}  // namespace

absl::StatusOr<Exit> WithinMemory(const Session& session, const Failure& fail,
                                  const std::function<absl::StatusOr<Exit>()>& work) {
  constexpr size_t kToTell = size_t{256} << 10;
  if (fail) room = std::make_unique<char[]>(kToTell), running = &session, tell = &fail;
  const HandlerWhile handler(fail ? EndWithoutMemory : nullptr);
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return NoMemory(session);
  } catch (const std::length_error&) {  // a vector of more than there can be
    return NoMemory(session);
  } catch (const std::system_error& error) {
    return MakeStatus(absl::StatusCode::kResourceExhausted,
                      {.code = "E0121",
                       .what = "the system gives no thread or another thing that is needed",
                       .where = session.doing(),
                       .why = error.what(),
                       .effect = "nothing was written",
                       .fix = "-j1, or a higher limit (`ulimit -u`)"});
  }
}

}  // namespace daydream
