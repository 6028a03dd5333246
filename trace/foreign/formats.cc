#include "trace/foreign/formats.h"

#include <algorithm>
#include <filesystem>

#include "base/shell_word.h"
#include "base/text.h"
#include "trace/bytes/varint.h"

namespace daydream {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kExport = "nsys export --type sqlite --output {stem}.sqlite {file}";
constexpr std::string_view kProfiler =
    "record with torch.profiler and prof.export_chrome_trace(\"trace.json.gz\")";

bool IsJson(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
}

// Categories of the PyTorch profiler: whatever else is in the file, it is one of ours.
bool IsOfPyTorch(std::string_view head) {
  for (std::string_view word : {"\"cpu_op\"", "\"Operator\"", "\"cuda_runtime\"", "\"hip_runtime\"",
                                "\"deviceProperties\"", "\"user_annotation\"", "\"Kernel\"",
                                "\"kernel\"", "\"python_function\"", "\"cpu_instant_event\""}) {
    if (Contains(head, word)) return true;
  }
  return false;
}

bool IsOtherJson(std::string_view head, std::initializer_list<std::string_view> words) {
  if (!IsJson(head) || IsOfPyTorch(head)) return false;
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return Contains(head, w); });
}

// The first packet of a Perfetto trace has a time, a sequence, a clock or a configuration
// (perfetto/protos/perfetto/trace/trace_packet.proto). XPlane begins with the same byte; there,
// field 2 of the first plane is its name.
bool IsPerfetto(std::string_view head) {
  if (!head.starts_with('\x0a')) return false;
  head.remove_prefix(1);
  uint64_t size = 0;
  if (!ReadVarint(head, size) || size == 0) return false;
  std::string_view packet = head.substr(0, size);
  bool known = false;
  for (int fields = 0; !packet.empty() && fields < 64; ++fields) {
    uint64_t tag = 0, value = 0;
    if (!ReadVarint(packet, tag)) return known;
    for (uint64_t field : {6, 8, 10, 11, 13, 33, 36, 42, 60, 79, 89}) known |= tag >> 3 == field;
    switch (tag & 7) {
      case 0:
        if (!ReadVarint(packet, value)) return known;
        break;
      case 1:
        packet.remove_prefix(std::min<size_t>(8, packet.size()));
        break;
      case 2:
        if (!ReadVarint(packet, value)) return known;
        if ((tag >> 3) == 2) return false;
        packet.remove_prefix(std::min<uint64_t>(value, packet.size()));
        break;
      case 5:
        packet.remove_prefix(std::min<size_t>(4, packet.size()));
        break;
      default:
        return false;
    }
  }
  return known;
}

constexpr ForeignFormat kFormats[] = {
    {"an Nsight Systems report", "only Nsight Systems reads its own reports", kExport,
     IsNsysReport},
    {"an unfinished Nsight Systems recording", "no report was made of it: the importer was missing",
     "QdstrmImporter -i {file} (it comes with Nsight Systems), then nsys export --type sqlite",
     [](std::string_view head) { return head.starts_with("QDSTRM"); }},
    {"an HDF5 file, as Nsight Systems exports",
     "of the export formats of Nsight Systems only SQLite is read",
     "nsys export --type sqlite --output {stem}.sqlite {stem}.nsys-rep",
     [](std::string_view head) { return head.starts_with("\x89HDF\r\n\x1a\n"); }},
    {"a Parquet file, as Nsight Systems exports",
     "of the export formats of Nsight Systems only SQLite is read",
     "nsys export --type sqlite --output NAME.sqlite NAME.nsys-rep",
     [](std::string_view head) { return head.starts_with("PAR1"); }},
    {"an Arrow file, as Nsight Systems exports",
     "of the export formats of Nsight Systems only SQLite is read",
     "nsys export --type sqlite --output NAME.sqlite NAME.nsys-rep",
     [](std::string_view head) {
       return head.starts_with("ARROW1") || head.starts_with("\xff\xff\xff\xff"sv);
     }},
    {"a JSON export of Nsight Systems",
     "of the export formats of Nsight Systems only SQLite is read",
     "nsys export --type sqlite --output {stem}.sqlite {stem}.nsys-rep",
     [](std::string_view head) {
       return IsOtherJson(head, {"\"CudaEvent\"", "\"TraceProcessEvent\"", "\"NvtxEvent\"",
                                 "\"globalTid\"", "\"GlobalId\""});
     }},
    {"an Nsight Compute report", "it measures single kernels: no calls, no order, no steps",
     "nsys profile --trace=cuda,nvtx --output run PROGRAM, then nsys export --type sqlite "
     "run.nsys-rep",
     [](std::string_view head) { return head.starts_with("NVR\0"sv); }},
    {"a Perfetto trace (protobuf)", "launches and kernels are not joined in it",
     "for rocprofv3: rocprofv3 --output-format rocpd; for others: the recorder's own format",
     IsPerfetto},
    {"a timeline of Horovod", "it has no GPU work: only when which tensor was negotiated",
     kProfiler,
     [](std::string_view head) {
       return IsOtherJson(head,
                          {"NEGOTIATE_ALLREDUCE", "NEGOTIATE_BROADCAST", "NEGOTIATE_ALLGATHER",
                           "WAIT_FOR_DATA", "MEMCPY_IN_FUSION_BUFFER"});
     }},
    {"a trace of TensorBoard or JAX as JSON", "it is not all of the profile, and joins nothing",
     "name the .xplane.pb file beside it: plugins/profile/TIME/HOST.xplane.pb",
     [](std::string_view head) {
       return IsOtherJson(head, {"\"/host:CPU", "\"/device:GPU", "\"/device:TPU",
                                 "\"/host:metadata", "python-xplane"});
     }},
    {"a trace of PyTorch's old autograd profiler", "it joins no launches and kernels", kProfiler,
     [](std::string_view head) {
       return IsJson(head) &&
              (Contains(head, "\"CUDA functions\"") || Contains(head, "\"CPU functions\""));
     }},
    {"a profile of MXNet", "it has no GPU streams", kProfiler,
     [](std::string_view head) {
       return IsOtherJson(head, {"\"cpu/0\"", "\"gpu/0\""});
     }},
    {"a trace of dPRO", "it has operators without launches", kProfiler,
     [](std::string_view head) {
       return IsJson(head) && !IsOfPyTorch(head) && Contains(head, "\"FW.") &&
              Contains(head, "\"BW.");
     }},
    {"a table of rocprofv3 as CSV", "names and order are there, launches are not joined",
     "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace --output-format "
     "rocpd -- PROGRAM",
     [](std::string_view head) {
       return head.starts_with("\"Kind\",") || head.starts_with("\"Domain\",\"Function\"") ||
              head.starts_with("\"Index\",\"KernelName\"");
     }},
    {"an OTF2 archive", "this format is not read",
     "rocprofv3 --output-format rocpd, or the recorder's own format",
     [](std::string_view head) { return head.starts_with("OTF2"); }},
    {"a Python pickle, perhaps a memory snapshot of PyTorch",
     "it tells about memory; what ran when is in a trace",
     "name a trace of the same run, and this one beside it: daydream summary TRACE --memory {file}",
     [](std::string_view head) {
       return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
     }},
    {"a ZIP archive", "archives are not read", "unzip {file}, then name the trace in it",
     [](std::string_view head) { return head.starts_with("PK\x03\x04"); }},
    {"a tar archive", "archives are not read", "tar -xf {file}, then name the trace in it",
     [](std::string_view head) { return head.size() > 262 && head.substr(257, 5) == "ustar"; }},
    {"a file packed with xz", "gzip and Zstandard are unpacked while they are read, xz is not",
     "xz -dk {file}, then name what it unpacks to",
     [](std::string_view head) {
       return head.starts_with(
           "\xfd"
           "7zXZ\0"sv);
     }},
    {"a file packed with bzip2",
     "gzip and Zstandard are unpacked while they are read, bzip2 is not",
     "bzip2 -dk {file}, then name what it unpacks to",
     [](std::string_view head) {
       return head.starts_with("BZh") && head.size() > 9 && head.substr(4, 6) == "1AY&SY";
     }},
    {"a file packed with LZ4", "gzip and Zstandard are unpacked while they are read, LZ4 is not",
     "lz4 -dk {file}, then name what it unpacks to",
     [](std::string_view head) { return head.starts_with("\x04\x22\x4d\x18"); }},
    {"a file packed twice", "what is unpacked is packed with gzip again",
     "gzip -dk {file}, then name what it unpacks to",
     [](std::string_view head) { return head.starts_with("\x1f\x8b"); }},
    {"a pointer of Git LFS", "the file itself is on a server",
     "git lfs pull --include {file}, then name it again",
     [](std::string_view head) { return head.starts_with("version https://git-lfs"); }},
    {"a web page", "the page around a file, or one to log in, was saved instead of the file",
     "download the file itself, as with the button for the raw file",
     [](std::string_view head) {
       return head.starts_with("<!DOCTYPE html") || head.starts_with("<!doctype html") ||
              head.starts_with("<html");
     }},
    {"text in UTF-16", "traces are written in UTF-8",
     "iconv -f UTF-16 -t UTF-8 {file} > trace.json, then name that one",
     [](std::string_view head) {
       return head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff");
     }},
    {"a PyTorch execution trace (Chakra schema)", "it has no times",
     "name the profiler's trace of the same run, and this one as --et {file}",
     [](std::string_view head) {
       return IsJson(head) && Contains(head, "\"schema\"") && Contains(head, "\"nodes\"") &&
              !Contains(head, "\"traceEvents\"");
     }},
};

void Replace(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), with);
    at += with.size();
  }
}

// "2023.4.4.54" of "NVIDIA Tegra Profiler Report 2023@4@4@54-234433..."; empty for older reports.
std::string ReportVersion(std::string_view head) {
  constexpr std::string_view kStart = "NVIDIA Tegra Profiler Report ";
  std::string version;
  if (!head.starts_with(kStart)) return version;
  bool parts = false;
  for (char c : head.substr(kStart.size(), 32)) {
    parts |= c == '@';
    if (c != '@' && (c < '0' || c > '9')) break;
    version += c == '@' ? '.' : c;
  }
  return parts ? version : "";
}

}  // namespace

bool IsNsysReport(std::string_view head) {
  return head.starts_with("NVIDIA Tegra Profiler") || head.starts_with("NVIDIA\0\0"sv);
}

const ForeignFormat* FindForeign(std::string_view head) {
  for (const ForeignFormat& format : kFormats) {
    if (format.is(head)) return &format;
  }
  return nullptr;
}

absl::Status ForeignError(const ForeignFormat& format, std::string_view head,
                          const std::string& name, const std::string& path) {
  std::string stem = path;
  for (std::string_view ending :
       {".gz", ".zst", ".nsys-rep", ".qdrep", ".qdstrm", ".h5", ".json"}) {
    if (stem.size() > ending.size() && stem.ends_with(ending)) {
      stem.resize(stem.size() - ending.size());
    }
  }
  std::string why(format.why), fix(format.fix);
  const std::string version = ReportVersion(head);
  if (!version.empty()) {
    why += fmt::format("; version {} wrote it, and {} or a newer one exports it", version, version);
  }
  const bool packed = IsNsysReport(head) && path.ends_with(".gz");
  if (packed) fix = fmt::format("gzip -dk {}, then {}", ShellWord(path), fix);
  Replace(fix, "{file}", ShellWord(packed ? path.substr(0, path.size() - 3) : path));
  for (std::string_view ending : {".sqlite", ".nsys-rep"}) {
    Replace(fix, fmt::format("{{stem}}{}", ending), ShellWord(fmt::format("{}{}", stem, ending)));
  }
  return MakeStatus(absl::StatusCode::kUnimplemented,
                    {.code = "E0204",
                     .what = fmt::format("this is {}, which is not read", format.what),
                     .where = name,
                     .why = std::move(why),
                     .fix = std::move(fix)});
}

absl::Status CheckFolder(const std::string& folder) {
  std::error_code error;
  std::string report;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string extension = it->path().extension().string();
    if (extension == ".nsys-rep" || extension == ".qdrep") {
      const std::string name = it->path().string();
      if (report.empty() || name < report) report = name;
    }
    if (extension != ".parquet" && extension != ".arrow") continue;
    return MakeStatus(
        absl::StatusCode::kUnimplemented,
        {.code = "E0204",
         .what = fmt::format("this is a folder of {} tables, as Nsight Systems exports, which is "
                             "not read",
                             extension == ".arrow" ? "Arrow" : "Parquet"),
         .where = folder,
         .why = "of the export formats of Nsight Systems only SQLite is read",
         .fix = "nsys export --type sqlite --output NAME.sqlite NAME.nsys-rep"});
  }
  if (report.empty()) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kUnimplemented,
                    {.code = "E0204",
                     .what = "this folder holds reports of Nsight Systems, which are not read",
                     .where = folder,
                     .why = "only Nsight Systems reads its own reports",
                     .fix = fmt::format("of each: nsys export --type sqlite --output {} {}",
                                        ShellWord(report.substr(0, report.rfind('.')) + ".sqlite"),
                                        ShellWord(report))});
}

}  // namespace daydream
