#include "tools/output/about_last.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "report/export/chrome_trace.h"
#include "report/export/perfetto_trace.h"
#include "report/text/format.h"
#include "simulator/simulate.h"
#include "tools/input/learned_file.h"
#include "tools/output/score.h"

namespace daydream {
namespace {

void AddBreakdown(WhatIfReport& report, const Graph& before, const Timeline& before_timeline,
                  const Played& after) {
  if (report.by == "resource") {
    BoundBy a = report.result.predictions[0].path;
    BoundBy b = report.result.predictions[report.result.main].path;
    auto row = [&](std::string_view name, Duration x, Duration y) {
      report.breakdown.push_back({std::string(name), {}, {}, x, y});
    };
    row("GPU", a.gpu, b.gpu);
    row("CPU", a.cpu, b.cpu);
    row("comm", a.comm, b.comm);
    row("data", a.data, b.data);
    return;
  }
  GroupBy by = ParseGroupBy(report.by).value_or(GroupBy::kPhase);
  std::map<std::string, BreakdownRow> rows;
  for (const Group& g : Summarize(before, before_timeline, by).groups) {
    rows[g.name].before += g.time;
    rows[g.name].path_before += g.path;
  }
  for (const Group& g : Summarize(after.graph, after.timeline, by).groups) {
    rows[g.name].after += g.time;
    rows[g.name].path_after += g.path;
  }
  for (auto& [name, row] : rows) {
    row.name = name;
    report.breakdown.push_back(std::move(row));
  }
  // What changed most comes first; names decide between equals.
  std::stable_sort(report.breakdown.begin(), report.breakdown.end(),
                   [](const BreakdownRow& a, const BreakdownRow& b) {
                     auto size = [](const BreakdownRow& r) {
                       return std::max(std::llabs((r.path_after - r.path_before).ns),
                                       std::llabs((r.after - r.before).ns));
                     };
                     return size(a) > size(b);
                   });
}

// Keeps the residual of a scored prediction.
absl::Status Learn(const Args& args, Session& session, const std::vector<Application>& scenario,
                   const WhatIf& result, const Score& score) {
  const Prediction& p = result.predictions[result.main];
  if (!score.not_the_same.empty()) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0606",
                       .what = fmt::format("{} does not measure what was predicted", score.file),
                       .why = score.not_the_same,
                       .effect = "nothing was written to the file of --learn",
                       .fix = "record before and after with the same program and machine"});
  }
  if (p.bound) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      {.code = "E0606",
                       .what = fmt::format("{} is a limit, not a prediction", p.name),
                       .effect = "there is nothing to learn from it",
                       .fix = "--learn with an optimization that can be tried"});
  }
  LearnedRow row{.opts = LearnedName(scenario),
                 .device = score.device,
                 .before = result.predictions[0].step,
                 .predicted = p.simulated,
                 .measured = score.measured,
                 .source = score.file};
  const std::string file(args.Get("--learn"));
  DD_RETURN_IF_ERROR(AppendLearned(file, row, session));
  session.Note(fmt::format("kept in {}; use it with --learned {}", file, file));
  return absl::OkStatus();
}

class AboutLast {
 public:
  AboutLast(const Args& args, Session& session, const Inputs& in,
            const std::vector<Application>& last, const std::function<bool()>& stopped,
            WhatIfReport& report)
      : args_(args), session_(session), in_(in), last_(last), stopped_(stopped), report_(report) {}

  absl::Status Run() {
    const bool by = report_.by != "cause" && !last_.empty();
    if (by && !IsStopped("--by")) {
      DD_RETURN_IF_ERROR(Play());
      AddBreakdown(report_, in_.built.graph, before_, after_);
    }
    if (!file_.empty() && !IsStopped("--timeline")) DD_RETURN_IF_ERROR(WriteTimeline());
    if (args_.Has("--measured") && !IsStopped("--measured")) {
      DD_ASSIGN_OR_RETURN(report_.score,
                          ScoreAgainst(std::string(args_.Get("--measured")), args_, session_, in_,
                                       last_, report_.result.predictions[report_.result.main]));
    }
    if (args_.Has("--learn") && !IsStopped("--learn")) {
      DD_RETURN_IF_ERROR(Learn(args_, session_, last_, report_.result, *report_.score));
    }
    return absl::OkStatus();
  }

 private:
  bool IsStopped(std::string_view flag) {
    if (report_.result.main_done && !stopped_()) return false;
    report_.missing.parts.push_back(flag);
    return true;
  }

  absl::Status Play() {
    if (played_) return absl::OkStatus();
    session_.Progress("playing before and after");
    DD_ASSIGN_OR_RETURN(before_, Simulate(in_.built.graph, {.blockers = true}));
    DD_ASSIGN_OR_RETURN(after_, daydream::Play(in_.built.graph, last_));
    played_ = true;
    return absl::OkStatus();
  }

  absl::Status WriteTimeline() {
    DD_RETURN_IF_ERROR(Play());
    std::vector<Side> sides = {
        {"before: replayed", "simulated, not measured", &in_.built.graph, &before_}};
    if (!last_.empty()) {
      sides.push_back(
          {fmt::format("after: {}", report_.result.predictions[report_.result.main].name),
           "predicted, not measured", &after_.graph, &after_.timeline});
    }
    const bool chrome = file_.ends_with(".json");
    if (!chrome && !file_.ends_with(".pftrace")) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0104",
                         .what = fmt::format("--timeline {}: unknown kind of file", file_),
                         .fix = "a name that ends in .pftrace (Perfetto) or .json (Chrome)"});
    }
    if (IsStopped("--timeline")) return absl::OkStatus();
    const std::string what = fmt::format("making {}", file_);
    session_.Progress(what);
    const auto hear = [&](uint64_t done, uint64_t total) {
      session_.Progress(what, done, total);
      return !stopped_();
    };
    const std::string bytes = chrome ? ChromeTrace(sides, hear) : PerfettoTrace(sides, hear);
    if (bytes.empty()) {
      report_.missing.parts.emplace_back("--timeline");
      return absl::OkStatus();
    }
    DD_RETURN_IF_ERROR(WriteFile(file_, bytes, args_.Has("--force-overwrite")));
    session_.Note(fmt::format("wrote {} ({}); open it at https://ui.perfetto.dev", file_,
                              FormatBytes(bytes.size())));
    return absl::OkStatus();
  }

  const Args& args_;
  Session& session_;
  const Inputs& in_;
  const std::vector<Application>& last_;
  const std::function<bool()>& stopped_;
  WhatIfReport& report_;
  const std::string file_{args_.Get("--timeline")};
  bool played_ = false;
  Timeline before_;
  Played after_;
};

}  // namespace

absl::Status AnswerAboutLast(const Args& args, Session& session, const Inputs& in,
                             const std::vector<Application>& last,
                             const std::function<bool()>& stopped, WhatIfReport& report) {
  const WhatIf& result = report.result;
  if (result.main_done && !result.predictions[result.main].error.ok()) return absl::OkStatus();
  return AboutLast(args, session, in, last, stopped, report).Run();
}

}  // namespace daydream
