// Chakra execution traces (.et): one rank's graph of what depends on what, with durations and
// without times. The rows are a plan (Provenance::planned), and generated: nothing in the file says
// when anything ran.
#include <algorithm>
#include <charconv>

#include "absl/container/flat_hash_map.h"
#include "trace/chakra/node.h"
#include "trace/chakra/plan.h"
#include "trace/importer.h"
#include "trace/json/text.h"

namespace daydream {
namespace {

// Numbers of streams of work that names none: computing and communication may overlap.
constexpr int64_t kComputeStream = 0, kCommunicationStream = 1;

// et_def.proto, CollectiveCommType.
std::string_view CollectiveName(int64_t comm_type) {
  constexpr std::string_view kNames[] = {
      "allreduce", "reduce",     "allgather",      "gather",         "scatter",
      "broadcast", "all_to_all", "reduce_scatter", "reduce_scatter", "barrier"};
  return comm_type >= 0 && comm_type < std::ssize(kNames) ? kNames[comm_type] : "collective";
}

// 3 of "resnet.3.et"; -1: the name does not say.
int32_t RankOf(std::string_view name) {
  const size_t end = name.rfind(".et");
  if (end == std::string_view::npos) return -1;
  const size_t dot = name.substr(0, end).rfind('.');
  int32_t rank = -1;
  if (dot == std::string_view::npos) return -1;
  const std::string_view digits = name.substr(dot + 1, end - dot - 1);
  const auto [behind, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool whole = error == std::errc() && behind == digits.data() + digits.size();
  return whole && rank >= 0 ? rank : -1;
}

class ChakraReader {
 public:
  ChakraReader(const ImportOptions& options, TraceBuilder& builder, const std::string& source)
      : options_(options), builder_(builder), source_(source) {}

  absl::Status Read(std::string_view bytes) {
    std::string_view message;
    bool cut = !NextMessage(bytes, message);  // about the file
    while (!cut && !bytes.empty()) {
      cut = !NextMessage(bytes, message);
      ++inputs_;
      if (cut) {
        Damaged("nodes that are cut off", "the file ends early");
      } else {
        Add(message);
      }
    }
    DD_RETURN_IF_ERROR(CheckAny(cut));
    DD_RETURN_IF_ERROR(Schedule());
    return Finish();
  }

 private:
  void Damaged(std::string_view what, std::string_view why) {
    ++damaged_;
    builder_.Count(what, why, true);
  }

  NameId Name(std::string_view text) {
    CleanText(text, false, &scratch_);
    return builder_.names().Intern(scratch_.empty() ? "unnamed" : scratch_);
  }

  void Add(std::string_view message) {
    constexpr uint64_t kLongestUs = uint64_t{1} << 40;  // 12 days
    ChakraNode node;
    if (!ReadNode(message, node) || node.duration_us > kLongestUs ||
        node.duration_ns > static_cast<int64_t>(kLongestUs * 1000)) {
      return Damaged("damaged nodes", "a field makes no sense");
    }
    if (node.type < ChakraNode::kLoad || node.type > ChakraNode::kCollective) {
      return builder_.Count("nodes about the file", "they are no work", false);
    }
    const auto place = static_cast<uint32_t>(plan_.nodes.size());
    if (!ids_.try_emplace(node.id, place).second) {
      return Damaged("nodes with a number that another has", "what depends on it is not known");
    }
    without_duration_ += !node.has_duration && node.duration_ns < 0;
    const int64_t ns =
        node.duration_ns >= 0 ? node.duration_ns : static_cast<int64_t>(node.duration_us) * 1000;
    TraceBuilder::Event event = EventOf(node);
    plan_.nodes.push_back(
        {.lane = static_cast<uint32_t>(event.lane.index()), .duration = Duration{ns}});
    events_.push_back(event);
    for (uint64_t before : node.after) after_.emplace_back(before, place);
  }

  // What does not say where it runs is the GPU's: files that simulators are fed with hold nothing
  // else.
  TraceBuilder::Event EventOf(const ChakraNode& node) {
    TraceBuilder::Event event{.name = Name(node.name), .kind = EventKind::kKernel};
    if (node.is_between() && node.on_cpu != 1) {  // no work of the GPU: beside the threads
      event.kind = EventKind::kOp;
      event.lane = builder_.AddLane(LaneKind::kThread, 1, std::max<int64_t>(node.thread, 0), -1);
      builder_.NameLane(event.lane, "between GPU work");
      return event;
    }
    if (node.on_cpu == 1) {
      event.kind = EventKind::kOp;
      event.lane = builder_.AddLane(LaneKind::kThread, 0, std::max<int64_t>(node.thread, 0), -1);
      builder_.NameLane(event.lane, fmt::format("thread {}", std::max<int64_t>(node.thread, 0)));
      return event;
    }
    const int64_t stream = node.thread >= 0          ? node.thread
                           : node.is_communication() ? kCommunicationStream
                                                     : kComputeStream;
    event.lane = builder_.AddLane(LaneKind::kStream, 0, stream, 0);
    builder_.NameLane(event.lane, fmt::format("stream {}", stream));
    const auto bytes = [](int64_t n) { return std::clamp<int64_t>(n, 0, int64_t{1} << 50); };
    if (node.is_communication()) {
      KernelDetail detail;
      detail.collective = builder_.AddCollective(
          {.name = Name(node.type == ChakraNode::kSend      ? "send"
                        : node.type == ChakraNode::kReceive ? "recv"
                                                            : CollectiveName(node.comm_type)),
           .dtype = Name("Byte"),
           .process_group = node.group.empty() ? NameId() : Name(node.group),
           .elements_in = bytes(node.comm_bytes),
           .elements_out = bytes(node.comm_bytes)});
      event.detail = builder_.AddKernel(detail);
    } else if (node.type != ChakraNode::kCompute || node.name.starts_with("Memcpy")) {
      event.kind = EventKind::kMemcpy;
      event.detail = builder_.AddCopy({.bytes = static_cast<uint64_t>(bytes(node.tensor_bytes))});
    } else if (node.name.starts_with("Memset")) {
      event.kind = EventKind::kMemset;
    }
    return event;
  }

  // A file of which nothing but the message about it is there.
  absl::Status CheckAny(bool cut) const {
    if (!plan_.nodes.empty()) return absl::OkStatus();
    return MakeStatus(
        absl::StatusCode::kDataLoss,
        {.code = "E0210",
         .what = "this Chakra trace holds no node that can be read",
         .where = source_,
         .why = cut            ? "the file ends early, as a copy that was broken off does"
                : damaged_ > 0 ? "a field of each of them makes no sense"
                : inputs_ == 0 ? "what the file is about is there, and nothing behind it"
                               : "all of its nodes are about the file: none is work",
         .fix = "copy the file again, or convert the execution trace again"});
  }

  absl::Status Schedule() {
    uint64_t missing = 0, later = 0, own = 0;
    for (const auto& [before, place] : after_) {
      const auto it = ids_.find(before);
      if (it == ids_.end()) {
        ++missing;
        continue;
      }
      own += it->second == place;
      later += it->second > place;
      if (it->second != place) plan_.edges.emplace_back(it->second, place);
    }
    constexpr int64_t kLongestNs = int64_t{1} << 60;
    int64_t sum = 0;
    for (const PlannedNode& node : plan_.nodes) {
      sum += std::min(node.duration.ns, kLongestNs - sum);
    }
    if (sum == kLongestNs) return TooLong();
    Plan(plan_);
    std::vector<uint32_t> place_of(plan_.nodes.size());  // among the events
    for (uint32_t n : plan_.order) {
      TraceBuilder::Event event = events_[n];
      event.start = plan_.nodes[n].start;
      event.duration = plan_.nodes[n].duration;
      place_of[n] = static_cast<uint32_t>(builder_.events());
      builder_.AddEvent(event);
    }
    for (const auto& [before, after] : plan_.edges) {
      builder_.AddDependency(place_of[before], place_of[after]);
    }
    const auto note = [&](std::string_view what, std::string_view why, uint64_t n, bool loss) {
      builder_.Count(what, why, loss, n, -1, false);
    };
    note("dependencies on nodes that are not there", "the file names them and does not hold them",
         missing, true);
    note("dependencies on later nodes", "kept: the order of the file says nothing", later, false);
    note("dependencies that close a circle", "dropped: something would wait for itself",
         plan_.dropped + own, true);
    note("nodes without a duration", "they take no time", without_duration_, false);
    return absl::OkStatus();
  }

  absl::Status TooLong() const {
    return MakeStatus(absl::StatusCode::kDataLoss,
                      {.code = "E0210",
                       .what = "the durations of this Chakra trace add up to more than 36 years",
                       .where = source_,
                       .why = "they are not in microseconds, or damaged",
                       .fix = "convert the execution trace again"});
  }

  absl::Status Finish() {
    Provenance& provenance = builder_.provenance();
    provenance.synthetic = provenance.planned = true;
    provenance.input_events = inputs_;
    builder_.SetRank(RankOf(source_), -1);
    const double share = inputs_ == 0 ? 0 : static_cast<double>(damaged_) / double(inputs_);
    if (damaged_ == 0 || (!options_.strict && share <= options_.max_malformed)) {
      return absl::OkStatus();
    }
    return MakeStatus(absl::StatusCode::kDataLoss,
                      {.code = "E0210",
                       .what = fmt::format("{} of {} nodes are damaged", damaged_, inputs_),
                       .where = source_,
                       .why = "a field makes no sense, or the file ends early",
                       .fix = "convert it again, or accept the loss with --max-errors 100%"});
  }

  const ImportOptions& options_;
  TraceBuilder& builder_;
  const std::string& source_;
  uint64_t inputs_ = 0, damaged_ = 0, without_duration_ = 0;
  NodePlan plan_;
  std::vector<TraceBuilder::Event> events_;           // by node
  std::vector<std::pair<uint64_t, uint32_t>> after_;  // (id of what is before, node)
  absl::flat_hash_map<uint64_t, uint32_t> ids_;
  std::string scratch_;
};

absl::Status ImportChakra(ByteSource& source, const ImportOptions& options, TraceBuilder& builder) {
  DD_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(source, options.progress));
  return ChakraReader(options, builder, source.name()).Read(bytes);
}

}  // namespace

const Importer kChakra = {
    .name = "chakra",
    .summary = "Chakra execution trace (.et)",
    .sniff = LooksLikeChakra,
    .import = ImportChakra,
    .recorder = {.writer = "Chakra (MLCommons), ASTRA-sim, .et",
                 .record = "chakra_converter PyTorch --input LINKED.json --output run.et",
                 .answers =
                     "what would take how long: durations and dependencies, no times to check "
                     "against",
                 .both = "chakra_converter PyTorch, with the profile linked in (chakra_trace_link)",
                 .later = "record the program again for times of steps",
                 .waits = "chakra_trace_link joins a profile"},
};

}  // namespace daydream
