#include "tools/record/python_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace daydream {
namespace {

// Prints "key value" lines. torch itself takes seconds to import; its version file does not.
constexpr char kQuestion[] = R"py(
import glob, importlib.util, os, sys
print("program", sys.executable)
print("version", sys.version.split()[0])
print("ours", getattr(sys.modules.get("daydream_torch"), "__file__", None) or "")
def folder(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return list(spec.submodule_search_locations or []) if spec else []
for path in folder("torch"):
    facts = {}
    try:
        with open(os.path.join(path, "version.py")) as file:
            exec(file.read(), facts)
    except Exception:
        pass
    print("torch", facts.get("__version__", "unknown"))
    print("torch_cuda", facts.get("cuda") or "")
n = 0
for path in folder("nvidia"):
    for part in ("cu13/lib", "cuda_cupti/lib"):
        for file in sorted(glob.glob(os.path.join(path, part, "libcupti.so*"))):
            print("cupti%d %s" % (n, file))
            n += 1
)py";

}  // namespace

Python AskPython(const RecorderFiles& files) {
  std::string answer = AskChild([&](std::string& text) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) return;
    pid_t child = fork();
    if (child == 0) {
      if (!files.python.empty()) {
        const char* before = std::getenv("PYTHONPATH");
        std::string path = files.python + "/site";
        if (before != nullptr && *before != '\0') path += std::string(":") + before;
        setenv("PYTHONPATH", path.c_str(), 1);
        // Our side is loaded in a session only, and does nothing without a recorder.
        setenv("DAYDREAM_SESSION_ID", "doctor", 1);
        unsetenv("DAYDREAM_INJECT");
      }
      int nothing = open("/dev/null", O_RDWR);
      dup2(nothing, STDIN_FILENO);
      dup2(nothing, STDERR_FILENO);
      dup2(pipe[1], STDOUT_FILENO);
      close(pipe[0]);
      execlp("python3", "python3", "-c", kQuestion, static_cast<char*>(nullptr));
      _exit(127);
    }
    close(pipe[1]);
    std::array<char, 4096> buffer;
    for (ssize_t n; (n = read(pipe[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<size_t>(n));
    }
  });
  auto values = ParseAnswer(answer);
  Python python{.program = values["program"],
                .version = values["version"],
                .torch = values["torch"],
                .torch_cuda = values["torch_cuda"],
                .ours = values["ours"],
                .cupti = {}};
  for (int i = 0; values.contains(fmt::format("cupti{}", i)); ++i) {
    python.cupti.push_back(values[fmt::format("cupti{}", i)]);
  }
  return python;
}

std::vector<Check> PythonChecks(const Python& python, const RecorderFiles& files) {
  if (python.program.empty()) {
    return {{Fitness::kWarning, "Python", "there is no python3 on the PATH",
             "none needed to record programs in other languages"}};
  }
  std::vector<Check> checks = {
      {Fitness::kOk, "Python", fmt::format("{} ({})", python.version, python.program), ""}};
  if (python.torch.empty()) {
    checks.push_back({Fitness::kWarning, "PyTorch", "not installed for this Python",
                      "layers of PyTorch models need it; activate its environment first"});
  } else if (python.torch_cuda.empty()) {
    checks.push_back({Fitness::kWarning, "PyTorch", python.torch + ", built without CUDA",
                      "it will not use the GPU: install a build for CUDA"});
  } else {
    checks.push_back(
        {Fitness::kOk, "PyTorch", fmt::format("{}, CUDA {}", python.torch, python.torch_cuda), ""});
  }
  if (files.python.empty()) {
    checks.push_back({Fitness::kWarning, "layers", "the Python side is not installed",
                      "build or install daydream again"});
  } else if (python.ours.empty()) {
    checks.push_back({Fitness::kWarning, "layers",
                      "Python does not run our sitecustomize.py, so layers are not marked",
                      fmt::format("python -I {}/daydream_torch SCRIPT, or mark layers with NVTX",
                                  files.python)});
  } else {
    checks.push_back({Fitness::kOk, "layers", python.ours, ""});
  }
  return checks;
}

}  // namespace daydream
