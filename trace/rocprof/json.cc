// rocprofv3 --output-format json: one object, {"rocprofiler-sdk-tool": [{...}]}, with lists of
// records by kind and the tables that their numbers point into.
#include <map>

#include "trace/json/reader.h"
#include "trace/rocprof/rows.h"

namespace daydream {
namespace {

// Calls `member(key, value)` for each member of the object at `p`; `value` is the text of it.
// False when the text is broken.
template <class Fn>
bool ForEachMember(std::string_view object, const Fn& member) {
  if (object.empty() || object[0] != '{') return false;
  const char* end = object.data() + object.size();
  JsonObjectReader reader(object.data(), end);
  std::string_view key;
  while (reader.NextKey(&key)) {
    const char* value = reader.value();
    const char* behind = SkipJsonValue(value, end);
    if (behind == nullptr) return false;
    member(key, std::string_view(value, static_cast<size_t>(behind - value)));
    reader.Resume(behind);
  }
  return reader.closed();
}

// Calls `element(value)` for each element of the array. False when the text is broken.
template <class Fn>
bool ForEachElement(std::string_view array, const Fn& element) {
  if (array.empty() || array[0] != '[') return false;
  const char* end = array.data() + array.size();
  const char* p = SkipBlanks(array.data() + 1);
  while (p < end && *p != ']') {
    if (*p == ',') {
      p = SkipBlanks(p + 1);
      continue;
    }
    const char* behind = SkipJsonValue(p, end);
    if (behind == nullptr || behind == p) return false;
    element(std::string_view(p, static_cast<size_t>(behind - p)));
    p = SkipBlanks(behind);
  }
  return p < end;
}

int64_t Number(std::string_view value, int64_t fallback) {
  int64_t number = fallback;
  ReadJsonInteger(value.data(), value.data() + value.size() + 1, &number);
  return number;
}

// {"handle": N}
int64_t Handle(std::string_view value) {
  int64_t handle = -1;
  ForEachMember(value, [&](std::string_view key, std::string_view v) {
    if (key == "handle") handle = Number(v, -1);
  });
  return handle;
}

std::string Text(std::string_view value) {
  std::string text;
  if (value.size() < 2 || value[0] != '"') return text;
  CleanText(value.substr(1, value.size() - 2), true, &text);
  return text;
}

std::array<int64_t, 3> Three(std::string_view value) {
  std::array<int64_t, 3> xyz{};
  ForEachMember(value, [&](std::string_view key, std::string_view v) {
    if (key.size() == 1 && key[0] >= 'x' && key[0] <= 'z') {
      xyz[static_cast<size_t>(key[0] - 'x')] = Number(v, 0);
    }
  });
  return xyz;
}

struct Record {
  RocprofSpan span;
  RocprofLaunch launch;
  int64_t kind = -1, operation = -1, kernel = -1, source = -1, destination = -1, bytes = 0;
  int64_t queue = -1;
};

struct Symbol {
  std::string name;
  int64_t registers = 0;
};

class RocprofJson {
 public:
  explicit RocprofJson(RocprofRows& rows) : rows_(rows) {}

  // One recorded process.
  void ReadProcess(std::string_view process) {
    std::map<std::string_view, std::string_view> parts;
    ForEachMember(process, [&](std::string_view key, std::string_view v) { parts[key] = v; });
    symbols_.clear();
    operations_.clear();
    ranges_.clear();
    process_ = 0;
    ForEachMember(parts["metadata"], [&](std::string_view key, std::string_view v) {
      if (key == "pid") process_ = Number(v, 0);
    });
    ForEachElement(parts["agents"], [&](std::string_view v) { ReadAgent(v); });
    ForEachElement(parts["kernel_symbols"], [&](std::string_view v) { ReadSymbol(v); });
    ForEachMember(parts["strings"], [&](std::string_view key, std::string_view v) {
      if (key == "buffer_records") ForEachElement(v, [&](auto kind) { ReadKind(kind); });
      if (key == "marker_api") ForEachElement(v, [&](auto range) { ReadRange(range); });
    });
    ForEachMember(parts["buffer_records"], [&](std::string_view key, std::string_view v) {
      ForEachElement(v, [&](std::string_view record) { ReadRecord(key, record); });
    });
  }

 private:
  void ReadAgent(std::string_view agent) {
    int64_t id = -1, type = 0;
    std::string name, product;
    ForEachMember(agent, [&](std::string_view key, std::string_view v) {
      if (key == "id") id = Handle(v);
      if (key == "type") type = Number(v, 0);
      if (key == "name") name = Text(v);
      if (key == "product_name") product = Text(v);
    });
    constexpr int64_t kGpu = 2;  // ROCPROFILER_AGENT_TYPE_GPU
    rows_.AddAgent(id, type == kGpu, product.empty() ? name : product);
  }

  void ReadSymbol(std::string_view symbol) {
    int64_t id = -1;
    Symbol s;
    ForEachMember(symbol, [&](std::string_view key, std::string_view v) {
      if (key == "kernel_id") id = Number(v, -1);
      if (key == "kernel_name") s.name = Text(v);
      if (key == "arch_vgpr_count" || key == "accum_vgpr_count") s.registers += Number(v, 0);
    });
    symbols_[id] = std::move(s);
  }

  // Kinds are numbered by their place in the list, operations by theirs.
  void ReadKind(std::string_view kind) {
    auto& read = operations_.emplace_back();
    ForEachMember(kind, [&](std::string_view key, std::string_view v) {
      if (key == "kind") read.first = Text(v);
      if (key == "operations") {
        ForEachElement(v, [&](std::string_view o) { read.second.push_back(Text(o)); });
      }
    });
  }

  // Texts of ranges, by correlation id.
  void ReadRange(std::string_view range) {
    int64_t id = -1;
    std::string text;
    ForEachMember(range, [&](std::string_view key, std::string_view v) {
      if (key == "key") id = Number(v, -1);
      if (key == "value") text = Text(v);
    });
    ranges_[id] = std::move(text);
  }

  void ReadRecord(std::string_view list, std::string_view text) {
    Record r = Parse(text);
    r.span.process = process_;
    const bool known = r.kind >= 0 && static_cast<size_t>(r.kind) < operations_.size();
    const std::string category = known ? operations_[static_cast<size_t>(r.kind)].first : "";
    std::string operation;
    if (known && r.operation >= 0) {
      const auto& names = operations_[static_cast<size_t>(r.kind)].second;
      if (static_cast<size_t>(r.operation) < names.size()) {
        operation = names[static_cast<size_t>(r.operation)];
      }
    }
    if (list == "kernel_dispatch") {
      const Symbol& symbol = symbols_[r.kernel];
      r.launch.registers = symbol.registers;
      rows_.AddDispatch(r.span, symbol.name, r.launch);
    } else if (list == "memory_copy") {
      rows_.AddCopy(r.span, operation, r.source, r.destination, r.bytes);
    } else if (list == "hip_api") {
      rows_.AddRegion(r.span, "HIP", operation);
    } else if (list == "marker_api") {
      const auto range = ranges_.find(r.span.correlation);
      rows_.AddRegion(r.span, "MARKER", range == ranges_.end() ? operation : range->second);
    } else if (list == "rccl_api") {
      rows_.AddRegion(r.span, "RCCL", operation);
    } else if (list == "hsa_api") {
      rows_.AddRegion(r.span, category, operation);
    } else {
      rows_.Skip("records of " + std::string(list.substr(0, 40)), "no events are made of them");
    }
  }

  static Record Parse(std::string_view text) {
    Record r;
    r.span.start = r.span.end = -1;
    ForEachMember(text, [&](std::string_view key, std::string_view v) {
      if (key == "start_timestamp") r.span.start = Number(v, -1);
      if (key == "end_timestamp") r.span.end = Number(v, -1);
      if (key == "thread_id") r.span.thread = Number(v, 0);
      if (key == "kind") r.kind = Number(v, -1);
      if (key == "operation") r.operation = Number(v, -1);
      if (key == "bytes") r.bytes = Number(v, 0);
      if (key == "stream_id") r.span.stream = Handle(v);
      if (key == "src_agent_id") r.source = Handle(v);
      if (key == "dst_agent_id") r.destination = Handle(v);
      if (key == "correlation_id") {
        ForEachMember(v, [&](std::string_view inner, std::string_view id) {
          if (inner == "internal") r.span.correlation = Number(id, 0);
        });
      }
      if (key == "dispatch_info") ParseDispatch(v, r);
    });
    if (r.span.stream < 0) r.span.stream = r.queue;
    return r;
  }

  static void ParseDispatch(std::string_view text, Record& r) {
    ForEachMember(text, [&](std::string_view key, std::string_view v) {
      if (key == "agent_id") r.span.agent = Handle(v);
      if (key == "queue_id") r.queue = Handle(v);
      if (key == "kernel_id") r.kernel = Number(v, -1);
      if (key == "group_segment_size") r.launch.shared_memory = Number(v, 0);
      if (key == "workgroup_size") r.launch.block = Three(v);
      if (key == "grid_size") r.launch.grid = Three(v);
    });
  }

  RocprofRows& rows_;
  int64_t process_ = 0;
  std::map<int64_t, Symbol> symbols_;
  std::vector<std::pair<std::string, std::vector<std::string>>> operations_;  // by kind
  std::map<int64_t, std::string> ranges_;
};

bool SniffRocprofJson(std::string_view head) {
  return head.find("\"rocprofiler-sdk-tool\"") != std::string_view::npos;
}

absl::Status ImportRocprofJson(ByteSource& source, const ImportOptions& options,
                               TraceBuilder& builder) {
  DD_ASSIGN_OR_RETURN(std::string text, ReadAll(source, options.progress));
  const size_t size = text.size();
  text.append(kJsonPadding, '\0');
  RocprofRows rows(options, builder, source.name());
  RocprofJson reader(rows);
  bool found = false, whole = true;
  const char* begin = SkipBlanks(text.data());
  const auto skipped = static_cast<size_t>(begin - text.data());
  if (skipped < size) {
    whole = ForEachMember({begin, size - skipped}, [&](std::string_view key, std::string_view v) {
      if (key != "rocprofiler-sdk-tool") return;
      found = ForEachElement(v, [&](std::string_view process) { reader.ReadProcess(process); });
    });
  }
  if (!whole || !found) {
    return MakeStatus(absl::StatusCode::kDataLoss,
                      {.code = "E0205",
                       .what = "this file of rocprofv3 ends early or is damaged",
                       .where = source.name(),
                       .why = "its JSON is not closed",
                       .fix = "record or copy it again"});
  }
  return rows.Finish();
}

}  // namespace

const Importer kRocprofJson = {
    .name = "rocprof",
    .summary = "rocprofv3 JSON",
    .sniff = SniffRocprofJson,
    .import = ImportRocprofJson,
    .recorder = {.writer = "rocprofv3, JSON",
                 .record = "rocprofv3 --hip-trace --kernel-trace --memory-copy-trace "
                           "--marker-trace --output-format json -- PROGRAM",
                 .answers = "everything; without --hip-trace the GPU side only",
                 .later = "record more steps, or after warm-up: rocprofv3 --collection-period "
                          "30:10:1 (seconds)"},
};

}  // namespace daydream
