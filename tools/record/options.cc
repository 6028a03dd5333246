#include "tools/record/options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "tools/input/input.h"

namespace daydream {
namespace {

constexpr std::string_view kAfter[] = {"continue", "stop"};
constexpr std::string_view kGraph[] = {"node", "graph"};
constexpr std::string_view kLayers[] = {"auto", "force", "off"};
constexpr std::string_view kSources[] = {"cuda", "nvtx", "nccl", "torch"};

// Steps before the recorded ones in which layers are marked; docs/recorder.md says why not more.
constexpr uint64_t kLabelledSteps = 3;

constexpr Flag kFlags[] = {
    {.name = "--output",
     .letter = 'o',
     .value = "NAME",
     .help = "the recording; %h host, %p process, %r rank, %n next free number, %q{VAR} "
             "variable (default: COMMAND-%n.ddtrace)"},
    {.name = "--force-overwrite", .letter = 'f', .help = "replace recordings that exist"},
    {.name = "--warmup",
     .value = "N",
     .help =
         "steps before the recorded ones; the last 3 of them are used to mark layers (2 at least)",
     .fallback = "10"},
    {.name = "--steps", .value = "N", .help = "steps to record", .fallback = "8"},
    {.name = "--windows",
     .value = "N",
     .help = "record these steps so many times, with steps between them that are not recorded",
     .fallback = "1"},
    {.name = "--every",
     .value = "N",
     .help = "with --windows: steps from the begin of one to that of the next, at least",
     .fallback = "40"},
    {.name = "--capture-range",
     .letter = 'c',
     .value = "RANGE",
     .help = "what to record: steps, none (all of it), cudaProfilerApi, nvtx:NAME, or time",
     .fallback = "steps"},
    {.name = "--delay",
     .value = "SECONDS",
     .help = "with --capture-range time: when recording begins"},
    {.name = "--duration",
     .value = "SECONDS",
     .help = "with --capture-range time: how long to record"},
    {.name = "--after",
     .value = "WHAT",
     .help = "after the range: continue without recording, or stop the program",
     .fallback = "continue",
     .choices = kAfter},
    {.name = "--trace",
     .letter = 't',
     .value = "LIST",
     .help = "what to record, of cuda, nvtx, nccl (sizes), torch (layers)",
     .fallback = "cuda,nvtx,nccl,torch"},
    {.name = "--layers",
     .value = "HOW",
     .help = "PyTorch layers: auto, force (also in compiled code), or off",
     .fallback = "auto",
     .choices = kLayers},
    {.name = "--cuda-graph",
     .value = "LEVEL",
     .help = "CUDA graphs by node, or as one piece per launch, which costs less",
     .fallback = "node",
     .choices = kGraph},
    {.name = "--ranks",
     .value = "LIST",
     .help = "ranks to record: all, or numbers like 0,3; processes without a rank always are",
     .fallback = "all"},
    {.name = "--max-events",
     .value = "N",
     .help = "events of one process after which recording ends",
     .fallback = "20000000"},
    {.name = "--flush",
     .value = "MS",
     .help = "milliseconds between writes: what a crash can lose",
     .fallback = "100"},
    {.name = "--env",
     .letter = 'e',
     .value = "NAME=VALUE",
     .help = "set a variable for the command",
     .repeats = true},
    {.name = "--keep-command",
     .help = "keep the command line in the file as it is; otherwise only names of programs and "
             "options, and numbers"},
    {.name = "--check", .help = "only look whether recording can work, as daydream doctor does"},
};

absl::Status Bad(std::string what, std::string fix) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104", .what = std::move(what), .fix = std::move(fix)});
}

// "1.5" -> 1500.
absl::StatusOr<uint64_t> Milliseconds(std::string_view flag, std::string_view text) {
  const double seconds = PlainNumber(text).value_or(-1);
  constexpr double kLongest = 1e7;  // four months
  if (!(seconds >= 0 && seconds <= kLongest)) {
    return Bad(fmt::format("{} '{}' is not a number of seconds", flag, text),
               fmt::format("{} 10", flag));
  }
  return static_cast<uint64_t>(std::llround(seconds * 1000));
}

// What the recorder takes (tracer/options.cc).
constexpr int64_t kMostSteps = int64_t{1} << 40, kMostEvents = int64_t{1} << 32;
constexpr int64_t kLongestFlushMs = 60'000;

absl::StatusOr<uint64_t> Number(const Args& args, std::string_view flag, int64_t min, int64_t max) {
  const std::string_view text = args.Get(flag);
  const std::string fix = fmt::format("{} 10", flag);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && !text.empty();
  if (!whole || error == std::errc::invalid_argument) {
    return Bad(fmt::format("{} '{}' is not a whole number", flag, text), fix);
  }
  const bool too_large = error == std::errc::result_out_of_range && text[0] != '-';
  if (too_large || value > max)
    return Bad(fmt::format("{} {}: not {} or less", flag, text, max), fix);
  if (error != std::errc() || value < min) {
    return Bad(fmt::format("{} {}: not {} or above", flag, text, min), fix);
  }
  return static_cast<uint64_t>(value);
}

absl::Status CheckRanks(std::string_view list) {
  if (list == "all") return absl::OkStatus();
  std::string_view rest = list;
  do {
    const size_t comma = std::min(rest.find(','), rest.size());
    int32_t rank = -1;
    const char* end = rest.data() + comma;
    const auto [at, error] = std::from_chars(rest.data(), end, rank);
    if (error != std::errc() || at != end || rank < 0) {
      return Bad(fmt::format("--ranks '{}' is not a list of ranks", list), "--ranks 0,3 or all");
    }
    rest.remove_prefix(comma == rest.size() ? comma : comma + 1);
  } while (!rest.empty());
  return absl::OkStatus();
}

// The words of -t, checked.
absl::StatusOr<std::vector<std::string>> Sources(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (std::find(std::begin(kSources), std::end(kSources), word) == std::end(kSources)) {
      return Bad(fmt::format("--trace cannot be '{}'{}", word, DidYouMean(word, kSources)),
                 "a list of cuda, nvtx, nccl and torch");
    }
    words.emplace_back(word);
  }
  if (std::find(words.begin(), words.end(), "cuda") == words.end()) {
    return Bad("--trace without cuda records no GPU work", "--trace cuda,nvtx,nccl,torch");
  }
  return words;
}

// Adds what --capture-range, --delay and --duration say.
absl::Status AddRange(const Args& args, std::string& settings) {
  std::string_view range = args.Get("--capture-range");
  bool timed = args.Has("--delay") || args.Has("--duration");
  if (timed && !args.Has("--capture-range")) range = "time";
  constexpr std::string_view kNvtx = "nvtx:";
  bool named = range.starts_with(kNvtx) && range.size() > kNvtx.size() &&
               range.find(';') == std::string_view::npos;
  constexpr std::string_view kRanges[] = {"steps", "none", "cudaProfilerApi", "time"};
  if (!named && std::find(std::begin(kRanges), std::end(kRanges), range) == std::end(kRanges)) {
    return Bad(fmt::format("--capture-range cannot be '{}'{}", range, DidYouMean(range, kRanges)),
               "--capture-range steps, none, cudaProfilerApi, nvtx:NAME or time");
  }
  if (range == "time" && !timed) {
    return Bad("--capture-range time needs to know when", "--delay SECONDS --duration SECONDS");
  }
  if (timed && range != "time") {
    return Bad("--delay and --duration belong to --capture-range time",
               "leave --capture-range away");
  }
  settings += fmt::format("capture={};", range);
  for (std::string_view flag : {"--delay", "--duration"}) {
    if (!args.Has(flag)) continue;
    DD_ASSIGN_OR_RETURN(uint64_t ms, Milliseconds(flag, args.Get(flag)));
    if (flag == "--duration" && ms == 0)
      return Bad("--duration 0 records nothing", "--duration 10");
    settings += fmt::format("{}_ms={};", flag.substr(2), ms);
  }
  return absl::OkStatus();
}

absl::Status CheckWindows(const Args& args) {
  const bool several = args.Has("--windows");
  if (args.Has("--every") && !several) {
    return Bad("--every belongs to --windows", "--windows 3 --every 40");
  }
  if (several && args.Get("--capture-range") != "steps") {
    return Bad("--windows are windows of steps", "leave --capture-range away");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Extra(const Args& args) {
  std::vector<std::string> extra = args.All("--env");
  for (const std::string& e : extra) {
    if (e.find('=') == 0 || e.find('=') == std::string::npos) {
      return Bad(fmt::format("--env '{}' sets no variable", e), "--env NAME=VALUE");
    }
  }
  return extra;
}

void Set(Environment& environment, std::string_view entry) {
  size_t equals = std::min(entry.find('='), entry.size());
  environment[std::string(entry.substr(0, equals))] =
      std::string(entry.substr(std::min(equals + 1, entry.size())));
}

std::string_view Get(const Environment& environment, std::string_view name) {
  auto it = environment.find(name);
  return it == environment.end() ? std::string_view() : it->second;
}

absl::Status CheckForOthers(const Environment& environment) {
  if (!Get(environment, "DAYDREAM_SESSION_DIR").empty()) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0501",
                       .what = "daydream trace inside daydream trace",
                       .why = "a process can be recorded once; the outer one records it already",
                       .fix = "leave one of them away"});
  }
  for (std::string_view name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    std::string_view value = Get(environment, name);
    // The PyTorch profiler reads "none" as not set.
    if (value.empty() || value == "none") continue;
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0501",
                       .what = "another tool is to record this command already",
                       .where = fmt::format("{}={}", name, value),
                       .why = "CUDA lets one profiler into a process at a time",
                       .fix = fmt::format("end the other tool, or: unset {}", name)});
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const Flag> RecordFlags() { return kFlags; }

absl::StatusOr<RecordOptions> ParseRecordOptions(const Args& args) {
  RecordOptions o;
  DD_RETURN_IF_ERROR(AddRange(args, o.settings));
  DD_ASSIGN_OR_RETURN(uint64_t warmup, Number(args, "--warmup", 0, kMostSteps));
  DD_ASSIGN_OR_RETURN(uint64_t steps, Number(args, "--steps", 1, kMostSteps));
  DD_ASSIGN_OR_RETURN(const uint64_t windows, Number(args, "--windows", 1, kMostSteps));
  DD_ASSIGN_OR_RETURN(const uint64_t every, Number(args, "--every", 1, kMostSteps));
  DD_RETURN_IF_ERROR(CheckWindows(args));
  DD_ASSIGN_OR_RETURN(uint64_t events, Number(args, "--max-events", 1, kMostEvents));
  DD_ASSIGN_OR_RETURN(uint64_t flush, Number(args, "--flush", 1, kLongestFlushMs));
  DD_ASSIGN_OR_RETURN(auto sources, Sources(args.Get("--trace")));
  DD_ASSIGN_OR_RETURN(o.extra, Extra(args));
  const std::string_view ranks = args.Get("--ranks");
  DD_RETURN_IF_ERROR(CheckRanks(ranks));
  auto has = [&](std::string_view name) {
    return std::find(sources.begin(), sources.end(), name) != sources.end() ? 1 : 0;
  };
  std::string_view layers = has("torch") != 0 ? args.Get("--layers") : "off";
  o.python = has("torch") != 0;
  bool nvtx_range = args.Get("--capture-range").starts_with("nvtx:");
  o.nvtx = has("nvtx") != 0 || has("nccl") != 0 || nvtx_range;
  // A whole step is needed whose layers are marked, and the first one begins before any mark.
  if (layers != "off") warmup = std::max<uint64_t>(warmup, 2);
  uint64_t labels = layers == "off" ? 0 : std::min(kLabelledSteps, warmup);
  o.settings += fmt::format(
      "warmup={};steps={};labels={};after={};graph={};nvtx={};nccl={};layers={};"
      "max_events={};flush_ms={};quiet={}",
      warmup, steps, labels, args.Get("--after"), args.Get("--cuda-graph"), has("nvtx"),
      has("nccl"), layers, events, flush, args.Has("--quiet") ? 1 : 0);
  if (windows > 1) o.settings += fmt::format(";windows={};every={}", windows, every);
  if (args.Has("--keep-command")) o.settings += ";command=whole";
  if (ranks != "all") o.settings += fmt::format(";ranks={}", ranks);
  return o;
}

Environment CurrentEnvironment() {
  Environment environment;
  for (char** e = environ; *e != nullptr; ++e) Set(environment, *e);
  return environment;
}

absl::StatusOr<Environment> RecordingEnvironment(const Environment& own,
                                                 const RecordOptions& options,
                                                 const RecorderFiles& files,
                                                 std::string_view session_folder,
                                                 std::string_view session_id) {
  Environment all = own;
  for (const std::string& e : options.extra) Set(all, e);
  DD_RETURN_IF_ERROR(CheckForOthers(all));
  all["CUDA_INJECTION64_PATH"] = files.library;
  if (options.nvtx) all["NVTX_INJECTION64_PATH"] = files.library;
  all["DAYDREAM_INJECT"] = files.library;
  all["DAYDREAM_SESSION_DIR"] = session_folder;
  all["DAYDREAM_SESSION_ID"] = session_id;
  all["DAYDREAM_RECORD"] = options.settings;
  if (options.python && !files.python.empty()) {
    std::string site = files.python + "/site";
    std::string_view before = Get(all, "PYTHONPATH");
    all["PYTHONPATH"] = before.empty() ? site : fmt::format("{}:{}", site, before);
  }
  return all;
}

std::vector<std::string> AsList(const Environment& environment) {
  std::vector<std::string> list;
  for (const auto& [name, value] : environment) list.push_back(fmt::format("{}={}", name, value));
  return list;
}

std::string StubFolder(const Environment& environment) {
  std::string_view rest = Get(environment, "LD_LIBRARY_PATH");
  while (!rest.empty()) {
    size_t colon = std::min(rest.find(':'), rest.size());
    std::string folder(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    // CUDA ships its stubs in a folder of that name; a driver is never in one.
    bool named = folder.ends_with("/stubs") || folder.ends_with("/stubs/");
    if (named && access((folder + "/libcuda.so").c_str(), F_OK) == 0) return folder;
  }
  return "";
}

}  // namespace daydream
