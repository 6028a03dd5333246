// Real files of other recorders with bytes changed: read or refused, never a crash, a hang or a row
// that is not accounted for. A second for each file; DD_MUTATIONS=100000 makes that many instead,
// DD_MUTATE_ONLY=nsys takes the files with that in their path.
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trace/recorded_files.h"
#include "trace/bytes/source.h"

namespace daydream {
namespace {

using Clock = std::chrono::steady_clock;

// A file without its packing: changed bytes of that would fail its checksum.
std::string Unpacked(const std::string& path) {
  auto source = OpenFile(path, int64_t{1} << 30);
  std::string bytes;
  if (!source.ok()) return bytes;
  for (;;) {
    const auto chunk = (*source)->Next();
    if (!chunk.ok() || chunk->empty()) return bytes;
    bytes += *chunk;
  }
}

std::string Mutated(std::string bytes, std::mt19937_64& random) {
  const size_t edits = 1 + random() % 8;
  for (size_t i = 0; i < edits && !bytes.empty(); ++i) {
    const size_t at = random() % bytes.size();
    const size_t length = std::min<size_t>(1 + random() % 64, bytes.size() - at);
    switch (random() % 6) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes[at] = static_cast<char>(random() % 4 == 0 ? 0xff : random() % 256);
        break;
      case 3:
        bytes.replace(at, length, bytes.substr(random() % bytes.size(), length));
        break;
      case 4:
        bytes.replace(at, length, length, '\0');
        break;
      default:
        if (random() % 16 == 0) bytes.resize(at);
    }
  }
  return bytes;
}

std::vector<std::string> Samples() {
  std::vector<std::string> files;
  const char* only = std::getenv("DD_MUTATE_ONLY");
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(Sample(""), error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    if (only != nullptr && path.find(only) == std::string::npos) continue;
    for (std::string_view ending : {".sqlite", ".db", ".pb", ".et", ".et.gz", "results.json.gz"}) {
      if (path.ends_with(ending)) files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(SampleMutations, AreReadOrRefused) {
  const std::vector<std::string> files = Samples();
  if (files.empty()) GTEST_SKIP() << Sample("") << " is not here";
  const char* asked = std::getenv("DD_MUTATIONS");
  const int64_t wanted = asked == nullptr ? INT64_MAX : std::atoll(asked);
  const auto enough = asked == nullptr ? std::chrono::seconds(1) : std::chrono::hours(24);
  for (const std::string& path : files) {
    const std::string bytes = Unpacked(path);
    std::mt19937_64 random(1);
    const auto begin = Clock::now();
    int64_t done = 0, read = 0;
    double slowest = 0;  // seconds of CPU: other programs may hold the machine
    for (; done < wanted && Clock::now() - begin < enough; ++done) {
      const std::string changed = Mutated(bytes, random);
      const std::clock_t before = std::clock();
      const auto trace = ImportBytes(changed, "changed", {.max_malformed = 1.0});
      const double took = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
      ASSERT_LT(took, 5) << path << ", mutation " << done;
      slowest = std::max(slowest, took);
      if (!trace.ok()) continue;
      ++read;
      ASSERT_EQ(AccountedFor(**trace), (*trace)->provenance.input_events)
          << path << ", mutation " << done;
    }
    std::cout << std::filesystem::path(path).filename().string() << ": " << done << " mutations, "
              << read << " of them read, the slowest in " << slowest << " s" << std::endl;
  }
}

}  // namespace
}  // namespace daydream
