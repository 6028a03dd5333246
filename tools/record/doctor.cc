#include "tools/record/doctor.h"

#include <dlfcn.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "report/text/format.h"
#include "tools/record/python_check.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

// A minute of a launch-bound program takes about 120 MB (docs/recorder.md); below this a longer
// run could fill the disk.
constexpr uint64_t kLittleSpace = 1'000'000'000;

std::string Variable(const Environment& environment, std::string_view name) {
  auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool InContainer() { return Exists("/.dockerenv") || Exists("/run/.containerenv"); }

// Why a machine has no usable GPU, in the order in which to look.
Diagnostic NoGpu(const Driver& driver) {
  Diagnostic d{.code = "E0502"};
  bool device_files = Exists("/dev/nvidiactl");
  std::string container =
      InContainer() ? "start the container with --gpus all (and NVIDIA_DRIVER_CAPABILITIES "
                      "compute,utility)"
                    : "";
  if (!driver.loaded) {
    d.what = "no NVIDIA driver on this machine";
    d.why = driver.error;
    d.fix = !container.empty() ? container
            : device_files     ? "the kernel module is there, its library is not: install libcuda1 "
                                 "of the same version"
                               : "record on the machine with the GPU; everything else works here";
  } else if (!driver.error.empty()) {
    d.what = "the NVIDIA driver does not work";
    d.where = driver.path;
    d.why = driver.error;
    d.fix = !container.empty() ? container
            : driver.path.find("/stubs") != std::string::npos
                ? "this is a stub for linking: take its folder out of LD_LIBRARY_PATH"
                : "nvidia-smi says more; after an update of the driver, reboot";
  } else {
    d.what = "the NVIDIA driver sees no GPU";
    d.where = driver.path;
    d.fix = "look at CUDA_VISIBLE_DEVICES; nvidia-smi lists what is there";
  }
  return d;
}

Check DriverCheck(const Driver& driver) {
  if (absl::Status status = CheckGpu(driver); !status.ok()) {
    Diagnostic d = DiagnosticOf(status);
    return {Fitness::kFailure, "driver", d.why.empty() ? d.what : d.what + ": " + d.why, d.fix};
  }
  return {Fitness::kOk, "driver",
          fmt::format("{}CUDA {} ({})", driver.release.empty() ? "" : driver.release + ", ",
                      CudaVersionText(driver.cuda_version), driver.path),
          ""};
}

Check GpuCheck(const Driver& driver) {
  std::string names;
  for (const std::string& name : driver.devices) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return {Fitness::kOk, "GPU", names, ""};
}

Check LibraryCheck(const RecorderFiles& files) {
  if (absl::Status status = CheckRecorder(files); !status.ok()) {
    Diagnostic d = DiagnosticOf(status);
    return {Fitness::kFailure, "recorder", d.what, d.fix};
  }
  std::string answer = AskChild([&](std::string& text) {
    void* library = dlopen(files.library.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      text = dlerror();
      return;
    }
    text = "loaded";
    for (const char* name : {"InitializeInjection", "InitializeInjectionNvtx2", "daydream_name",
                             "daydream_mark", "daydream_finish"}) {
      if (dlsym(library, name) == nullptr) text = fmt::format("{} is missing", name);
    }
  });
  if (answer == "loaded") return {Fitness::kOk, "recorder", files.library, ""};
  return {Fitness::kFailure, "recorder",
          fmt::format("{}: {}", files.library, answer.empty() ? "crashes when loaded" : answer),
          "build or install daydream again"};
}

// CUPTI itself says which driver it needs: it may be older than the driver, never newer.
Check CuptiCheck(const Environment& environment, const std::vector<std::string>& of_python,
                 const Driver& driver) {
  std::vector<std::string> candidates = of_python;
  std::string own = Variable(environment, "DAYDREAM_CUPTI");
  if (!own.empty()) candidates.insert(candidates.begin(), own);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) candidates.emplace_back(name);
  for (const char* folder : {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"}) {
    candidates.push_back(fmt::format("{}/libcupti.so", folder));
  }
  Cupti cupti = AskCupti(candidates);
  if (cupti.path.empty()) {
    return {Fitness::kFailure, "CUPTI", "libcupti was not found",
            "install the CUDA Toolkit or PyTorch for CUDA, or set DAYDREAM_CUPTI to its path"};
  }
  int cuda = CudaVersionOfCupti(cupti.version);
  std::string text = fmt::format("version {}{} ({})", cupti.version,
                                 cuda == 0 ? "" : ", of CUDA " + CudaVersionText(cuda), cupti.path);
  if (driver.cuda_version > 0 && cuda / 1000 > driver.cuda_version / 1000) {
    return {Fitness::kFailure, "CUPTI", text + " is newer than the driver",
            "update the driver, or set DAYDREAM_CUPTI to an older libcupti"};
  }
  if (driver.cuda_version > 0 && cuda > driver.cuda_version) {
    return {Fitness::kWarning, "CUPTI", text + " is newer than the driver",
            "if recording fails: update the driver, or set DAYDREAM_CUPTI to an older libcupti"};
  }
  // Release notes of CUPTI 13.0 Update 1: what it mended.
  if (cupti.version == 130000) {
    return {Fitness::kWarning, "CUPTI",
            text + " misses cudaDeviceSynchronize and can hang at the end of a range",
            "update to CUDA 13.0 Update 1 (CUPTI 130001)"};
  }
  return {Fitness::kOk, "CUPTI", text, ""};
}

Check OthersCheck(const Environment& environment) {
  Check check{Fitness::kOk, "others", "no other profiler in the environment", ""};
  auto found = [&](Fitness health, std::string text, std::string fix) {
    if (health <= check.health && check.health != Fitness::kOk) return;
    check = {health, "others", std::move(text), std::move(fix)};
  };
  // The name by which a running process is known in /proc, and what it does.
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::ifstream file(entry.path() / "comm");
    std::string name;
    if (!std::getline(file, name)) continue;
    if (name == "nv-hostengine" || name.starts_with("dcgm-exporter")) {
      found(Fitness::kWarning, fmt::format("{} runs (DCGM)", name),
            "if CUPTI is refused: dcgmi profile --pause while you record");
    }
    if (name == "nsys" || name == "ncu") {
      found(Fitness::kWarning, fmt::format("{} runs", name),
            "do not record the same program twice");
    }
  }
  if (std::string daemon = Variable(environment, "KINETO_USE_DAEMON"); !daemon.empty()) {
    found(Fitness::kWarning, "KINETO_USE_DAEMON=" + daemon + ": PyTorch takes CUPTI for itself",
          "unset KINETO_USE_DAEMON");
  }
  std::string preload = Variable(environment, "LD_PRELOAD");
  if (preload.find("nsight") != std::string::npos || preload.find("nsys") != std::string::npos) {
    found(Fitness::kWarning, "LD_PRELOAD=" + preload, "unset LD_PRELOAD");
  }
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    std::string value = Variable(environment, name);
    if (value.empty() || value == "none") continue;
    found(Fitness::kFailure, fmt::format("{}={}", name, value), fmt::format("unset {}", name));
  }
  return check;
}

Check PermissionCheck() {
  std::ifstream file("/proc/driver/nvidia/params");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("RmProfilingAdminOnly:") || line.find('1') == std::string::npos) continue;
    if (geteuid() == 0) break;
    return {Fitness::kWarning, "permission",
            "hardware counters are for administrators only; recording does not read any",
            "if CUPTI still says INSUFFICIENT_PRIVILEGES: load the kernel module with "
            "NVreg_RestrictProfilingToAdminUsers=0"};
  }
  return {Fitness::kOk, "permission", "nothing is restricted, or it does not matter here", ""};
}

Check ContainerCheck(const Driver& driver) {
  bool control = Exists("/dev/nvidiactl"), container = InContainer();
  if (!container) return {Fitness::kOk, "container", "none", ""};
  if (driver.error.empty()) return {Fitness::kOk, "container", "the GPU is passed in", ""};
  return {Fitness::kWarning, "container",
          control ? "/dev/nvidiactl is here, the driver's library is not"
                  : "no /dev/nvidia*: the GPU is not passed in",
          "start it with --gpus all, and NVIDIA_DRIVER_CAPABILITIES with compute and utility"};
}

Check StubCheck(const Environment& environment) {
  std::string folder = StubFolder(environment);
  if (folder.empty()) return {Fitness::kOk, "stubs", "none in LD_LIBRARY_PATH", ""};
  return {Fitness::kWarning, "stubs", folder + " is in LD_LIBRARY_PATH",
          "take it out: it is for linking only, programs that load it find no GPU"};
}

Check DiskCheck() {
  std::error_code error;
  std::string folder = fs::current_path(error).string();
  struct statvfs info {};
  if (access(".", W_OK) != 0 || statvfs(".", &info) != 0) {
    return {Fitness::kFailure, "disk", folder + " cannot be written to",
            "daydream trace -o /another/folder/NAME"};
  }
  uint64_t free = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  std::string text = fmt::format("{} free in {}", FormatBytes(free), folder);
  if (free >= kLittleSpace) return {Fitness::kOk, "disk", text, ""};
  return {Fitness::kWarning, "disk", text,
          "record elsewhere: daydream trace -o /another/folder/NAME"};
}

}  // namespace

absl::Status CheckGpu(const Driver& driver) {
  if (driver.error.empty() && !driver.devices.empty()) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kFailedPrecondition, NoGpu(driver));
}

absl::Status CheckRecorder(const RecorderFiles& files) {
  if (files.complete()) return absl::OkStatus();
  return MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0503",
       .what = "this build of daydream has no recorder",
       .why = "the CUDA Toolkit was not there when it was built, or its files were moved apart",
       .fix = "install the CUDA Toolkit with CUPTI (no driver needed) and build again"});
}

std::vector<Check> Examine(const Environment& environment) {
  RecorderFiles files = FindRecorderFiles();
  Driver driver = AskDriver();
  Python python = AskPython(files);
  std::vector<Check> checks = {DriverCheck(driver)};
  if (CheckGpu(driver).ok()) checks.push_back(GpuCheck(driver));
  checks.push_back(LibraryCheck(files));
  checks.push_back(CuptiCheck(environment, python.cupti, driver));
  checks.push_back(OthersCheck(environment));
  checks.push_back(PermissionCheck());
  checks.push_back(ContainerCheck(driver));
  checks.push_back(StubCheck(environment));
  for (Check& check : PythonChecks(python, files)) checks.push_back(std::move(check));
  checks.push_back(DiskCheck());
  return checks;
}

}  // namespace daydream
