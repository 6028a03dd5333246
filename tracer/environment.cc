#include "tracer/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace daydream::tracer {
namespace {

// Variables that change how a training program runs; the file keeps those that are set.
constexpr std::array kVariables = {"CUDA_VISIBLE_DEVICES",
                                   "CUDA_LAUNCH_BLOCKING",
                                   "CUDA_MODULE_LOADING",
                                   "CUDA_DEVICE_MAX_CONNECTIONS",
                                   "CUDA_DEVICE_ORDER",
                                   "CUBLAS_WORKSPACE_CONFIG",
                                   "NVIDIA_TF32_OVERRIDE",
                                   "PYTORCH_CUDA_ALLOC_CONF",
                                   "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
                                   "NCCL_ALGO",
                                   "NCCL_PROTO",
                                   "NCCL_P2P_DISABLE",
                                   "NCCL_IB_DISABLE",
                                   "NCCL_SOCKET_IFNAME",
                                   "OMP_NUM_THREADS",
                                   "MKL_NUM_THREADS",
                                   "XLA_FLAGS",
                                   "DAYDREAM_RECORD"};

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// The first of these variables that holds a number, else -1.
template <size_t N>
int32_t FirstNumber(const std::array<const char*, N>& names) {
  for (const char* name : names) {
    std::string value = Variable(name);
    char* end = nullptr;
    long number = strtol(value.c_str(), &end, 10);
    if (!value.empty() && *end == '\0' && number >= 0 && number < (1 << 30)) {
      return static_cast<int32_t>(number);
    }
  }
  return -1;
}

// torchrun, Open MPI, MPICH and MVAPICH, Slurm.
int32_t LocalRank() {
  return FirstNumber<5>({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                         "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"});
}

std::string ReadFile(const char* path) {
  std::string text;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(file, buffer, sizeof buffer)) > 0 && text.size() < (1 << 20)) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(file);
  return text;
}

std::vector<std::string> Arguments() {
  std::vector<std::string> arguments;
  std::string text = ReadFile("/proc/self/cmdline");
  for (size_t at = 0; at < text.size();) {
    arguments.emplace_back(text.c_str() + at);
    at += arguments.back().size() + 1;
  }
  return arguments;
}

int32_t GlobalRank() {
  return FirstNumber<5>(
      {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"});
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A plain one, not so long that it could be a key.
bool IsNumber(const std::string& text) {
  constexpr size_t kLongest = 8;
  if (text.empty() || text.size() > kLongest) return false;
  char* end = nullptr;
  strtod(text.c_str(), &end);
  const bool plain = text.find_first_not_of("0123456789.eE+-") == text.npos;
  return plain && *end == '\0';
}

// "--learning-rate", "-x"
bool IsOptionName(const std::string& text) {
  constexpr size_t kLongest = 40;
  if (text.size() > kLongest) return false;
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == text.npos;
}

std::string FromHex(std::string_view hex) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return "";
    bytes += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  }
  return bytes;
}

}  // namespace

Environment ReadEnvironment() {
  Environment e;
  e.options = ParseOptions(Variable("DAYDREAM_RECORD"), e.problems);
  e.session_dir = Variable("DAYDREAM_SESSION_DIR");
  e.cupti_path = Variable("DAYDREAM_CUPTI");
  e.library_path = Variable("LD_LIBRARY_PATH");
  e.dump_raw = Variable("DAYDREAM_DUMP_RAW") == "1";
  e.speaks = LocalRank() <= 0;
  const std::vector<int64_t>& ranks = e.options.ranks;
  const int64_t rank = GlobalRank();
  // The session is over: this is a daemon that it left behind.
  if (access(e.session_dir.c_str(), F_OK) != 0 && errno == ENOENT) e.session_dir.clear();
  if (!ranks.empty() && rank >= 0 && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) {
    e.session_dir.clear();
  }
  return e;
}

std::vector<std::string> Redacted(const std::vector<std::string>& arguments) {
  std::vector<std::string> shown;
  // Up to the script: the program, options of its interpreter, what follows -m.
  bool program = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const size_t equals = word.find('=');
    if (word.starts_with("-") && !IsNumber(word)) {
      std::string name = word.substr(0, equals);
      // One dash and more than one letter may be a value: -pSECRET. So may odd letters.
      if (!word.starts_with("--") && name.size() > 2) name.resize(2);
      if (!IsOptionName(name)) name = "*";
      const bool number = equals != word.npos && IsNumber(word.substr(equals + 1));
      if (equals != word.npos) name += number ? word.substr(equals) : "=*";
      shown.push_back(std::move(name));
      if (word == "-c" || word.starts_with("--")) program = program && i == 0;
      continue;
    }
    if (IsNumber(word)) {
      shown.push_back(word);
    } else if (i == 0 || program) {
      shown.push_back(BaseName(word));
      program = i == 0 && shown[0].starts_with("python");
    } else {
      shown.push_back("*");
    }
  }
  return shown;
}

RecordingFacts ProcessFacts(int64_t clock_origin_ns, bool whole_command) {
  RecordingFacts facts;
  facts.clock_origin_ns = clock_origin_ns;
  facts.pid = static_cast<uint32_t>(getpid());
  facts.parent_pid = static_cast<uint32_t>(getppid());
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) facts.hostname = host;
  facts.boot_id = ReadFile("/proc/sys/kernel/random/boot_id");
  while (!facts.boot_id.empty() && facts.boot_id.back() == '\n') facts.boot_id.pop_back();
  facts.session_id = FromHex(Variable("DAYDREAM_SESSION_ID"));
  facts.argv = whole_command ? Arguments() : Redacted(Arguments());
  for (const char* name : kVariables) {
    if (std::string value = Variable(name); !value.empty()) {
      facts.environment.emplace_back(name, value);
    }
  }
  facts.rank = GlobalRank();
  facts.world_size = FirstNumber<5>(
      {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"});
  facts.local_rank = LocalRank();
  return facts;
}

std::string RecordingName(int64_t start_ns) {
  std::vector<std::string> arguments = Arguments();
  std::string name = arguments.empty() ? "" : BaseName(arguments[0]);
  if (name.starts_with("python")) {
    // The script, or what follows -m; options of the interpreter in between are left out.
    for (size_t i = 1; i < arguments.size(); ++i) {
      if (arguments[i].starts_with("-") && arguments[i] != "-m") continue;
      if (arguments[i] == "-m") continue;
      name = BaseName(arguments[i]);
      break;
    }
  }
  for (char& c : name) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  if (name.empty() || name[0] == '.') name = "program" + name;
  if (name.size() > 100) name.resize(100);
  return name + "." + std::to_string(getpid()) + "." + std::to_string(start_ns);
}

}  // namespace daydream::tracer
