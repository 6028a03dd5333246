// Runs a fuzz target without libFuzzer: every file of the folders given, then mutations of them
// (or of nothing) from a fixed seed. The same bytes on every run and every machine. For more than a
// test has time for: DAYDREAM_FUZZ=SECONDS:SEED.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr uint64_t kMutations = 2000;
constexpr unsigned kSeconds = 20;
constexpr size_t kMaxBytes = 1 << 16;  // longer seeds are only run as they are

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// Flips, removes, repeats or overwrites a few places of `input`.
std::string Mutate(std::string input, std::mt19937_64& random) {
  int edits = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < edits; ++i) {
    size_t at = input.empty() ? 0 : random() % input.size();
    size_t length = std::min<size_t>(1 + random() % 16, input.size() - at);
    switch (random() % 5) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
      case 1:
        input.erase(at, length);
        break;
      case 2:
        input.insert(at, input.substr(at, length));
        break;
      case 3:
        if (!input.empty()) input[at] = static_cast<char>(random() % 256);
        break;
      case 4:
        if (random() % 8 == 0) input.resize(at);
        break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds = {""};
  for (int i = 1; i < argc; ++i) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      std::ifstream in(file, std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  for (const std::string& seed : seeds) Run(seed);

  const char* more = std::getenv("DAYDREAM_FUZZ");
  char* colon = nullptr;
  const uint64_t seconds = more == nullptr ? kSeconds : std::strtoull(more, &colon, 10);
  std::mt19937_64 random(more == nullptr || *colon == '\0' ? 1
                                                           : std::strtoull(colon + 1, nullptr, 10));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  uint64_t done = 0;
  for (; more != nullptr || done < kMutations; ++done) {
    if (std::chrono::steady_clock::now() > end) break;
    const std::string& seed = seeds[random() % seeds.size()];
    if (seed.size() <= kMaxBytes) Run(Mutate(seed, random));
  }
  std::printf("%zu seeds, %zu mutations, no crash\n", seeds.size(), static_cast<size_t>(done));
}
