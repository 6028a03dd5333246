// XPlane: what JAX and TensorFlow record (plugins/profile/TIME/HOST.xplane.pb).
//
// Nothing in it says when the CPU waited for the GPU: the trace is marked so.
#include <algorithm>
#include <charconv>
#include <map>

#include "trace/demangle.h"
#include "trace/importer.h"
#include "trace/json/text.h"
#include "trace/xplane/plane.h"

namespace daydream {
namespace {

constexpr std::string_view kGpu = "/device:GPU:", kHost = "/host:CPU", kTpu = "/device:TPU:";
// Older recorders left the calls in planes of their own, with the threads of the host.
constexpr std::string_view kCalls[] = {"/host:CUPTI", "/host:ROCTRACER"};

// "256" of "block:256,1,1" after `key`; false when there is none.
bool Numbers(std::string_view text, std::string_view key, std::array<uint32_t, 3>& to) {
  size_t at = text.find(key);
  if (at == std::string_view::npos) return false;
  const char* p = text.data() + at + key.size();
  const char* end = text.data() + text.size();
  for (uint32_t& value : to) {
    const auto [behind, error] = std::from_chars(p, end, value);
    if (error != std::errc()) return false;
    p = behind < end && *behind == ',' ? behind + 1 : behind;
  }
  return true;
}

template <class T = uint32_t>
T Number(std::string_view text, std::string_view key) {
  T value = 0;
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

// "pinned" of "kind_src:pinned kind_dst:device size:4 dest:0 async:1" (NVIDIA; others say nothing).
Memory MemoryOf(std::string_view details, std::string_view key) {
  const size_t at = details.find(key);
  if (at == std::string_view::npos) return Memory::kUnknown;
  const std::string_view word = details.substr(at + key.size());
  if (word.starts_with("pageable")) return Memory::kPageable;
  if (word.starts_with("pinned")) return Memory::kPinned;
  if (word.starts_with("device")) return Memory::kDevice;
  if (word.starts_with("managed")) return Memory::kManaged;
  return word.starts_with("array") ? Memory::kArray : Memory::kUnknown;
}

std::string_view MemoryWord(Memory memory) {
  constexpr std::string_view kWords[] = {"Unknown", "Pageable", "Pinned",
                                         "Device",  "Managed",  "Array"};
  static_assert(std::size(kWords) == static_cast<size_t>(Memory::kArray) + 1);
  return kWords[static_cast<size_t>(memory)];
}

// "Memcpy HtoD (Pinned -> Device)" of "MemcpyH2D", as the PyTorch profiler has it.
std::string CopyName(std::string_view name, const CopyDetail& copy) {
  constexpr std::string_view kStart = "Memcpy";
  if (!name.starts_with(kStart) || name.size() != kStart.size() + 3 || name[7] != '2') {
    return std::string(name);
  }
  std::string plain = fmt::format("Memcpy {}to{}", name[6], name[8]);
  if (copy.from == Memory::kUnknown && copy.to == Memory::kUnknown) return plain;
  return fmt::format("{} ({} -> {})", plain, MemoryWord(copy.from), MemoryWord(copy.to));
}

// "encoder.attention" of "jit(step)/transpose(jvp(encoder))/attention/dot_general": the parts
// between the function and the primitive. Without any, the primitive.
std::string LayerOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (part.starts_with("jit(") || part.starts_with("pjit(")) continue;
    for (std::string_view wrapper : {"transpose(", "jvp(", "vmap(", "remat(", "checkpoint("}) {
      if (!part.starts_with(wrapper) || !part.ends_with(')')) continue;
      part = part.substr(wrapper.size(), part.size() - wrapper.size() - 1);
    }
    if (!part.empty()) parts.push_back(part);
  }
  if (parts.size() > 1) parts.pop_back();
  std::string layer;
  for (std::string_view part : parts) layer += (layer.empty() ? "" : ".") + std::string(part);
  return layer;
}

class XPlaneReader {
 public:
  XPlaneReader(const ImportOptions& options, TraceBuilder& builder, const std::string& source)
      : options_(options), builder_(builder), source_(source) {}

  absl::Status Read(const std::vector<XPlane>& planes) {
    bool tpu = false;
    for (const XPlane& plane : planes) {
      if (plane.name.starts_with(kGpu)) {
        ReadGpu(plane);
      } else if (plane.name == kHost || plane.name == kCalls[0] || plane.name == kCalls[1]) {
        ReadHost(plane);
      } else {
        tpu = tpu || plane.name.starts_with(kTpu);
        ReadOther(plane);
      }
    }
    if (gpu_events_ == 0 && tpu) return OnlyTpu();
    FinishHandOffs();
    Provenance& provenance = builder_.provenance();
    provenance.no_waits = true;
    provenance.input_events = inputs_;
    const double share = inputs_ == 0 ? 0 : static_cast<double>(damaged_) / double(inputs_);
    if (damaged_ == 0 || (!options_.strict && share <= options_.max_malformed)) {
      return absl::OkStatus();
    }
    return MakeStatus(absl::StatusCode::kDataLoss,
                      {.code = "E0210",
                       .what = fmt::format("{} of {} events are damaged", damaged_, inputs_),
                       .where = source_,
                       .why = "they have no usable time",
                       .fix = "record again, or accept the loss with --max-errors 100%"});
  }

 private:
  absl::Status OnlyTpu() const {
    return MakeStatus(absl::StatusCode::kUnimplemented,
                      {.code = "E0204",
                       .what = "this is a profile of a TPU, which is not read",
                       .where = source_,
                       .why = "it has no GPU work",
                       .fix = "record the program on a GPU with jax.profiler.trace(FOLDER)"});
  }

  NameId Name(std::string_view text) {
    CleanText(text, false, &scratch_);
    return builder_.names().Intern(scratch_.empty() ? "unnamed" : scratch_);
  }

  // Lines have origins of their own.
  bool Times(const XLine& line, const XEvent& event, TraceBuilder::Event& row) {
    ++inputs_;
    constexpr int64_t kMaxNs = int64_t{1} << 52, kMaxPs = int64_t{1} << 61;
    const bool good = line.timestamp_ns >= 0 && line.timestamp_ns <= int64_t{1} << 61 &&
                      event.offset_ps > -kMaxPs && event.offset_ps < kMaxPs &&
                      event.duration_ps >= 0 && event.duration_ps < kMaxPs &&
                      event.offset_ps / 1000 < kMaxNs;
    if (!good) {
      ++damaged_;
      builder_.Count("damaged events", "they have no usable time", true);
      return false;
    }
    const int64_t end = (event.offset_ps + event.duration_ps) / 1000;
    row.start = Instant{line.timestamp_ns + event.offset_ps / 1000};
    row.duration = Duration{std::max<int64_t>(end - event.offset_ps / 1000, 0)};
    return true;
  }

  static uint32_t CorrelationOf(const XEvent& event) {
    const XStat* id = event.Find("correlation_id");
    return id != nullptr && id->number > 0 && id->number < UINT32_MAX
               ? static_cast<uint32_t>(id->number)
               : 0;
  }

  void ReadGpu(const XPlane& plane) {
    int32_t device = 0;
    const std::string_view number = plane.name.substr(kGpu.size());
    std::from_chars(number.data(), number.data() + number.size(), device);
    for (const XLine& line : plane.lines) {
      constexpr std::string_view kStream = "Stream #";
      int64_t stream = 0;
      if (!line.name.starts_with(kStream)) {
        inputs_ += line.events.size();
        builder_.Count("events of derived lines",
                       "XLA ops, modules and steps: the kernels are there", false,
                       line.events.size());
        continue;
      }
      const std::string_view id = line.name.substr(kStream.size());
      std::from_chars(id.data(), id.data() + id.size(), stream);
      const LaneId lane = builder_.AddLane(LaneKind::kStream, 0, stream, device);
      builder_.NameLane(lane, fmt::format("stream {}", stream));
      for (std::string_view event : line.events) AddWork(line, plane.Unpack(event), lane);
    }
    if (plane.events() > 0) AddDevice(plane, device);
  }

  void AddDevice(const XPlane& plane, int32_t id) {
    Device device{.id = id};
    for (const XStat& s : plane.stats) {
      const int64_t n = std::clamp<int64_t>(s.number, 0, int64_t{1} << 50);
      if (s.name == "memory_size") device.memory_bytes = static_cast<uint64_t>(n);
      if (s.name == "core_count" && n < INT32_MAX) device.multiprocessors = static_cast<int32_t>(n);
      if (s.name == "compute_cap_major" && n < 1000) device.compute_major = static_cast<int32_t>(n);
      if (s.name == "compute_cap_minor" && n < 1000) device.compute_minor = static_cast<int32_t>(n);
      if (s.name == "device_type_string") {
        CleanText(s.text, false, &device.name);
      }
    }
    builder_.AddDevice(std::move(device));
  }

  void AddWork(const XLine& line, const XEvent& event, LaneId lane) {
    TraceBuilder::Event row{.lane = lane};
    if (!Times(line, event, row)) return;
    ++gpu_events_;
    std::string_view name = event.name;
    if (name.ends_with(".kd")) name.remove_suffix(3);
    row.name = Name(Demangle(name));
    row.correlation = CorrelationOf(event);
    const XStat* copy = event.Find("memcpy_details");
    const XStat* set = event.Find("memset_details");
    if (copy != nullptr || set != nullptr) {
      const std::string_view text = (copy != nullptr ? copy : set)->text;
      CopyDetail detail{.bytes = Number<uint64_t>(text, "size:")};
      if (copy != nullptr) {
        detail.from = MemoryOf(text, "kind_src:");
        detail.to = MemoryOf(text, "kind_dst:");
        row.name = Name(CopyName(name, detail));
      }
      row.kind = copy != nullptr ? EventKind::kMemcpy : EventKind::kMemset;
      row.detail = builder_.AddCopy(detail);
    } else {
      row.kind = EventKind::kKernel;
      row.detail = builder_.AddKernel(KernelOf(event));
    }
    builder_.AddEvent(row);
  }

  KernelDetail KernelOf(const XEvent& event) {
    KernelDetail detail;
    if (const XStat* launch = event.Find("kernel_details")) {
      const std::string_view text = launch->text;
      Numbers(text, "grid:", detail.grid);
      Numbers(text, "block:", detail.block);
      // Older recorders on AMD wrote what was in memory.
      constexpr uint32_t kMostRegisters = 1024;
      const uint32_t registers = Number(text, "regs:");
      detail.registers_per_thread = registers <= kMostRegisters ? registers : 0;
      detail.shared_memory_bytes = Number(text, "static_shared:") +
                                   Number(text, "dynamic_shared:") + Number(text, "group_mem:");
    }
    if (const XStat* path = event.Find("name")) {
      const std::string layer = LayerOf(path->text);
      if (!layer.empty()) detail.layer = Name(layer);
      detail.backward = path->text.find("transpose(jvp") != std::string_view::npos;
    }
    return detail;
  }

  void ReadHost(const XPlane& plane) {
    for (const XLine& line : plane.lines) {
      // "Host Threads/583" and "py_xla_execute/233202453396781343"; ids are 64 bits.
      const LaneId lane = builder_.AddLane(LaneKind::kThread, 0, line.id & INT64_MAX, -1);
      CleanText(line.name, false, &scratch_);
      builder_.NameLane(lane, scratch_);
      for (std::string_view event : line.events) AddHost(line, plane.Unpack(event), lane);
    }
  }

  void AddHost(const XLine& line, const XEvent& event, LaneId lane) {
    TraceBuilder::Event row{.lane = lane, .kind = EventKind::kAnnotation};
    if (event.name.starts_with('$')) {
      ++inputs_;
      return builder_.Count("Python frames", "only ranges say to which layer work belongs", false);
    }
    if (!Times(line, event, row)) return;
    row.correlation = CorrelationOf(event);
    if (row.correlation != 0) row.kind = EventKind::kCall;
    row.name = Name(event.name);
    // jax.profiler.StepTraceAnnotation
    if (const XStat* step = event.Find("step_num"))
      row.name = Name(fmt::format("step {}", step->number));
    const auto place = static_cast<uint32_t>(builder_.events());
    NoteHandOff(event, "_pt", "_p", place, producers_);
    NoteHandOff(event, "_ct", "_c", place, consumers_);
    builder_.AddEvent(row);
  }

  using HandOffs = std::multimap<std::pair<int64_t, int64_t>, uint32_t>;
  static void NoteHandOff(const XEvent& event, std::string_view type, std::string_view id,
                          uint32_t place, HandOffs& to) {
    const XStat *t = event.Find(type), *i = event.Find(id);
    if (t != nullptr && i != nullptr) to.emplace(std::pair(t->number, i->number), place);
  }

  // A producer may have several consumers; the first producer of an id counts.
  void FinishHandOffs() {
    for (const auto& [key, consumer] : consumers_) {
      const auto producer = producers_.find(key);
      if (producer != producers_.end()) builder_.AddDependency(producer->second, consumer);
    }
  }

  void ReadOther(const XPlane& plane) {
    CleanText(plane.name, false, &scratch_);
    builder_.AddTableNotRead(scratch_, plane.events());
    if (plane.name != "Task Environment") return;
    constexpr int64_t kMaxNs = int64_t{1} << 61;
    for (const XStat& s : plane.stats) {
      if (s.name == "profile_start_time" && s.number > 0 && s.number < kMaxNs) {
        builder_.SetClockBase(s.number);
      }
    }
  }

  const ImportOptions& options_;
  TraceBuilder& builder_;
  const std::string& source_;
  uint64_t inputs_ = 0, damaged_ = 0, gpu_events_ = 0;
  HandOffs producers_, consumers_;
  std::string scratch_;
};

absl::Status ImportXPlane(ByteSource& source, const ImportOptions& options, TraceBuilder& builder) {
  DD_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(source, options.progress));
  std::vector<XPlane> planes;
  if (!ReadPlanes(bytes, planes) || planes.empty()) {
    return MakeStatus(absl::StatusCode::kDataLoss,
                      {.code = "E0205",
                       .what = "this XPlane file ends early or is damaged",
                       .where = source.name(),
                       .why = "a plane is not complete",
                       .fix = "record or copy it again"});
  }
  return XPlaneReader(options, builder, source.name()).Read(planes);
}

}  // namespace

const Importer kXPlane = {
    .name = "xplane",
    .summary = "XPlane of JAX or TensorFlow",
    .sniff = LooksLikeXSpace,
    .import = ImportXPlane,
    .recorder = {.writer = "JAX and TensorFlow, .xplane.pb",
                 .record = "jax.profiler.trace(FOLDER)",
                 .answers = "CPU-bound questions and the GPU side: waits are not recorded",
                 .both = "jax.profiler.trace(FOLDER) around steps on a GPU",
                 .later = "record after warm-up: jax.profiler.start_trace(FOLDER) after some steps",
                 .waits = "record the program with what notes waits: on NVIDIA GPUs nsys profile "
                          "--trace=cuda,nvtx, on AMD GPUs rocprofv3 --hip-trace --kernel-trace"},
};

}  // namespace daydream
