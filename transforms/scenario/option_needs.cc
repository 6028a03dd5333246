// What the traces that an option file works on have to hold.
#include <algorithm>

#include "base/text.h"
#include "transforms/analysis/precision.h"
#include "transforms/scenario/option_run.h"

namespace daydream {
namespace {

bool HasScope(const Graph& graph, EventKind kind) {
  const std::vector<Scope>& scopes = graph.tables().scopes;
  return std::any_of(scopes.begin(), scopes.end(), [&](const Scope& s) { return s.kind == kind; });
}

// Layers are numbered ("conv2d #7") when no names of modules were recorded.
bool HasModuleNames(const Graph& graph) {
  return std::any_of(graph.layers().begin(), graph.layers().end(),
                     [&](const Layer& l) { return !Contains(graph.Name(l.name), " #"); });
}

bool HasShapes(const Graph& graph) {
  const std::vector<OpDetail>& ops = graph.tables().ops;
  return std::any_of(ops.begin(), ops.end(), [](const OpDetail& op) { return op.shapes.valid(); });
}

bool HasTask(const Graph& graph, const std::function<bool(const Task&)>& wanted) {
  return std::any_of(graph.tasks().begin(), graph.tasks().end(),
                     [&](const Task& t) { return !t.removed && wanted(t); });
}

bool HasGpu(const Graph& graph) {
  for (const GraphLane& lane : graph.lanes()) {
    if (lane.lane.kind == LaneKind::kStream && lane.first.valid() &&
        DeviceOf(graph, lane.first).spec != nullptr) {
      return true;
    }
  }
  return false;
}

struct Need {
  std::string_view word;
  bool (*met)(const Graph& graph);
  std::string_view lacks, fix;
};
constexpr std::string_view kShapes = "profile(..., record_shapes=True)";
constexpr std::string_view kActivities =
    "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], ...)";
constexpr Need kNeeds[] = {
    {"op_names", [](const Graph& g) { return HasScope(g, EventKind::kOp); },
     "names of framework ops", kActivities},
    {"module_names", HasModuleNames, "names of modules", "profile(..., with_modules=True, ...)"},
    {"shapes", HasShapes, "shapes of the inputs of ops", kShapes},
    {"phases",
     [](const Graph& g) {
       return HasTask(g, [](const Task& t) { return t.phase == Phase::kBackward; });
     },
     "phases of training", "record a training step, with its backward pass"},
    {"kernels",
     [](const Graph& g) {
       return HasTask(g, [](const Task& t) { return t.kind == TaskKind::kKernel; });
     },
     "kernels", kActivities},
    {"copies",
     [](const Graph& g) {
       return HasTask(g, [](const Task& t) { return t.kind == TaskKind::kMemcpy; });
     },
     "copies", "nothing: the program makes none"},
    {"collectives",
     [](const Graph& g) {
       return HasTask(g, [](const Task& t) { return t.kind == TaskKind::kCollective; });
     },
     "collectives", "record a run on several GPUs"},
    {"launches",
     [](const Graph& g) {
       return std::any_of(g.edges().begin(), g.edges().end(),
                          [](const Edge& e) { return e.rule == Rule::kLaunch; });
     },
     "calls that launch the kernels", kActivities},
    {"steps", [](const Graph& g) { return !g.steps().empty(); }, "steps",
     "call prof.step() once in every step"},
    {"gpu", HasGpu, "GPU whose data sheet is known", "give rates as parameters instead of gpu.*"},
};

bool AnyTaskHas(const Graph& graph, Field field, ExpressionValues& values) {
  for (size_t i = 0; i < graph.size(); ++i) {
    const Task& task = graph.task(TaskId(i));
    if (!task.removed && IsGpu(task.kind) && values.Value(TaskId(i), field)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> OptionNeedWords() {
  std::vector<std::string_view> words;
  for (const Need& need : kNeeds) words.push_back(need.word);
  for (size_t f = 0; f < kFields; ++f) {
    const std::string_view field = FieldName(static_cast<Field>(f));
    if (std::find(words.begin(), words.end(), field) == words.end()) words.push_back(field);
  }
  return words;
}

absl::Status CheckNeeds(const OptionFile& file, const Graph& graph, ExpressionValues& values) {
  for (const OptionNeed& need : file.program().needs) {
    std::string lacks, fix;
    for (const Need& known : kNeeds) {
      if (known.word != need.word || known.met(graph)) continue;
      lacks = known.lacks, fix = known.fix;
    }
    auto field = FindField(need.word);
    if (field && !AnyTaskHas(graph, *field, values)) {
      lacks = fmt::format("GPU work with known {}", need.word);
      fix = field == Field::kTime ? kActivities : kShapes;
    }
    if (lacks.empty()) continue;
    return file.source().Error(
        absl::StatusCode::kFailedPrecondition, need.place, need.word.size(),
        {.code = "E0422",
         .what = fmt::format("{}: this trace has no {}", file.transform().name, lacks),
         .why = fmt::format("the file needs {}", need.word),
         .fix = std::move(fix)});
  }
  return absl::OkStatus();
}

}  // namespace daydream
