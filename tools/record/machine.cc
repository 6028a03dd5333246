#include "tools/record/machine.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

namespace daydream {
namespace {

namespace fs = std::filesystem;

// First use of a driver on a machine with many GPUs takes seconds; this is no limit for those.
constexpr auto kPatience = std::chrono::seconds(60);

// Reads `fd` to its end or until kPatience is over; false then.
bool ReadAll(int fd, std::string& text) {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::array<char, 4096> buffer;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait{fd, POLLIN, 0};
    int ready = left.count() <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
}

template <class Function>
Function Symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

std::string PathOf(void* symbol) {
  Dl_info info{};
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
}

void DescribeDevices(void* cuda, std::string& answer) {
  auto count = Symbol<int (*)(int*)>(cuda, "cuDeviceGetCount");
  auto get = Symbol<int (*)(int*, int)>(cuda, "cuDeviceGet");
  auto name = Symbol<int (*)(char*, int, int)>(cuda, "cuDeviceGetName");
  int n = 0;
  if (count == nullptr || count(&n) != 0) n = 0;
  answer += fmt::format("devices {}\n", n);
  for (int i = 0; i < n; ++i) {
    std::array<char, 256> text{};
    int device = i;
    if (get != nullptr && get(&device, i) != 0) continue;
    if (name == nullptr || name(text.data(), text.size() - 1, device) != 0) continue;
    answer += fmt::format("device{} {}\n", i, text.data());
  }
}

// Runs in the child.
void DescribeDriver(std::string& answer) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (cuda == nullptr) {
    answer += fmt::format("error {}\n", dlerror());
    return;
  }
  auto init = Symbol<int (*)(unsigned)>(cuda, "cuInit");
  auto version = Symbol<int (*)(int*)>(cuda, "cuDriverGetVersion");
  answer += fmt::format("path {}\n", PathOf(reinterpret_cast<void*>(init)));
  int number = 0;
  if (version != nullptr && version(&number) == 0) answer += fmt::format("version {}\n", number);
  int result = init == nullptr ? -1 : init(0);
  if (result != 0) {
    const char* text = nullptr;
    auto describe = Symbol<int (*)(int, const char**)>(cuda, "cuGetErrorName");
    if (describe == nullptr || describe(result, &text) != 0) text = nullptr;
    answer +=
        fmt::format("error cuInit fails with {} ({})\n", text == nullptr ? "error" : text, result);
    return;
  }
  DescribeDevices(cuda, answer);
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue ..." -> "580.95.05".
std::string DriverRelease() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    bool version = word.find('.') != std::string::npos &&
                   word.find_first_not_of("0123456789.") == std::string::npos;
    if (version) return word;
  }
  return "";
}

void DescribeCupti(const std::vector<std::string>& candidates, std::string& answer) {
  for (const std::string& name : candidates) {
    void* cupti = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (cupti == nullptr) {
      answer += fmt::format("error {}\n", dlerror());
      continue;
    }
    auto version = Symbol<int (*)(uint32_t*)>(cupti, "cuptiGetVersion");
    answer += fmt::format("path {}\n", PathOf(reinterpret_cast<void*>(version)));
    uint32_t number = 0;
    if (version != nullptr && version(&number) == 0) answer += fmt::format("version {}\n", number);
    return;
  }
}

std::string Existing(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) ? path.string() : "";
}

}  // namespace

std::string AskChild(const std::function<void(std::string& answer)>& work) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return "";
  pid_t child = fork();
  if (child == 0) {
    for (int signal : {SIGHUP, SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);  // the parent tells
    close(pipe[0]);
    std::string answer;
    work(answer);
    (void)!write(pipe[1], answer.data(), answer.size());
    _exit(0);  // not through the exit handlers of what was loaded
  }
  close(pipe[1]);
  std::string answer;
  bool whole = child > 0 && ReadAll(pipe[0], answer);
  close(pipe[0]);
  if (child <= 0) return "";
  if (!whole) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return whole && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? answer : "";
}

std::map<std::string, std::string> ParseAnswer(const std::string& answer) {
  std::map<std::string, std::string> values;
  size_t begin = 0;
  while (begin < answer.size()) {
    size_t end = std::min(answer.find('\n', begin), answer.size());
    std::string line = answer.substr(begin, end - begin);
    size_t space = std::min(line.find(' '), line.size());
    values[line.substr(0, space)] = line.substr(std::min(space + 1, line.size()));
    begin = end + 1;
  }
  return values;
}

Driver AskDriver() {
  std::string answer = AskChild(DescribeDriver);
  auto values = ParseAnswer(answer);
  Driver driver;
  driver.path = values["path"];
  driver.loaded = values.contains("path") && !driver.path.empty();
  driver.error = values["error"];
  if (answer.empty()) driver.error = "the driver crashed or did not answer";
  driver.cuda_version = std::atoi(values["version"].c_str());
  driver.release = DriverRelease();
  for (int i = 0; i < std::atoi(values["devices"].c_str()); ++i) {
    std::string name = values[fmt::format("device{}", i)];
    driver.devices.push_back(name.empty() ? "unnamed" : name);
  }
  return driver;
}

Cupti AskCupti(const std::vector<std::string>& candidates) {
  std::string answer = AskChild([&](std::string& text) { DescribeCupti(candidates, text); });
  auto values = ParseAnswer(answer);
  return {.path = values["path"],
          .error = values["error"],
          .version = static_cast<uint32_t>(std::strtoul(values["version"].c_str(), nullptr, 10))};
}

int CudaVersionOfCupti(uint32_t v) {
  // The list in cupti_version.h; from CUDA 13.0 on the version is xxyyzz.
  if (v >= 130000) return static_cast<int>(v / 10000 * 1000 + v / 100 % 100 * 10);
  constexpr std::array<std::pair<uint32_t, int>, 9> kKnown = {{{28, 12090},
                                                               {27, 12090},
                                                               {26, 12080},
                                                               {24, 12060},
                                                               {23, 12050},
                                                               {22, 12040},
                                                               {21, 12030},
                                                               {20, 12020},
                                                               {19, 12000}}};
  for (const auto& [cupti, cuda] : kKnown) {
    if (v == cupti) return cuda;
  }
  return 0;
}

std::string CudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

RecorderFiles FindRecorderFiles() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  fs::path installed = program.parent_path().parent_path() / "lib" / "daydream";
  RecorderFiles files{.library = Existing(installed / "libdaydream_inject.so"),
                      .python = Existing(installed / "python")};
  if (files.complete()) return files;
  fs::path built = program.parent_path() / "tracer";
  return {.library = Existing(built / "libdaydream_inject.so"),
          .python = Existing(built / "python")};
}

}  // namespace daydream
