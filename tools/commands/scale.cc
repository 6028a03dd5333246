// daydream scale: one GPU's trace on 1 to many thousands of them.
#include <charconv>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "costmodel/surface_lines.h"
#include "report/questions/scale.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/log_plot.h"
#include "report/text/table.h"
#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/input/joint_input.h"
#include "tools/input/scenarios.h"
#include "tools/output/joint_questions.h"
#include "tools/output/refused.h"
#include "tools/output/shown_path.h"
#include "tools/running/interrupt.h"
#include "tools/sweep/sweep_key.h"
#include "tools/sweep/together.h"
#include "transforms/parallel/fabric_choice.h"

namespace daydream {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr size_t kScaleMostPoints = 1024;
constexpr std::string_view kStrategies[] = {"ddp", "zero1", "zero2"};

const Flag kScaleFlags[] = {
    {.name = "--strategy",
     .value = "HOW",
     .help = "ddp, or with a sharded optimizer zero1, and gradients zero2",
     .fallback = "ddp",
     .choices = kStrategies},
    {.name = "--ranks",
     .value = "N,...",
     .help = "GPUs: 1,2,4..1024 goes on as it began",
     .fallback = "1,2,4..64"},
    {.name = "--fabric",
     .value = "NAME",
     .help = "what joins them: `daydream fabric list`, or a file"},
    {.name = "--with",
     .value = "ARGS",
     .help = "more arguments of the strategy: 'bucket=50MB,compress=bf16'"},
    {.name = "--also",
     .value = "OPTS",
     .help = "optimizations beside the strategy: 'powersgd(4)', 'amp,dgc(0.001)'"},
    {.name = "--jitter",
     .value = "[PCT]",
     .help = "standard deviation between ranks, of their own work; of a folder of ranks theirs",
     .fallback = "1.5%"},
    {.name = "--fixed-global-batch", .help = "all GPUs together handle the recorded batch"},
    kKeepRecordingCostFlag,
    kMaxReplayErrorFlag,
    kClockFlag,
};

absl::Status BadRanks(std::string_view text, std::string_view why) {
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0104",
       .what = fmt::format("--ranks {}: {}", text, why),
       .fix = fmt::format("numbers from 1 to {}, like 1,2,4,8 or 1,2,4..1024", kMostRanks)});
}

std::optional<int> RanksIn(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc() && end == text.data() + text.size();
  if (!good || value < 1 || value > kMostRanks) return std::nullopt;
  return value;
}

// "1,2,4..64": after two numbers that double (or grow by a factor) it goes on so, else it doubles.
absl::StatusOr<std::vector<int>> ParseRanks(std::string_view text) {
  std::vector<int> ranks;
  for (std::string_view item : SplitAt(text, ',')) {
    const size_t dots = item.find("..");
    std::string_view first = item.substr(0, dots);
    const auto from = RanksIn(first);
    if (!from) return BadRanks(text, fmt::format("'{}' is no number of GPUs", first));
    ranks.push_back(*from);
    if (dots == item.npos) continue;
    const auto to = RanksIn(item.substr(dots + 2));
    if (!to) return BadRanks(text, fmt::format("'{}' is no number of GPUs", item.substr(dots + 2)));
    if (*to < *from) return BadRanks(text, fmt::format("{} is less than {}", *to, *from));
    const int before = ranks.size() > 1 ? ranks[ranks.size() - 2] : 0;
    const bool grows = before > 0 && *from % before == 0 && *from / before > 1;
    const int64_t by = grows ? *from / before : 2;
    for (int64_t n = *from * by; n <= *to && ranks.size() <= kScaleMostPoints; n *= by) {
      ranks.push_back(static_cast<int>(n));
    }
  }
  if (ranks.size() > kScaleMostPoints) return BadRanks(text, "more points than are computed");
  return ranks;
}

struct ScaleReport {
  std::string name;
  ScaleOptions options;
  std::vector<int32_t> ranks;  // that were recorded, of a run of several
  double replay = 0;           // how far off
  ScaleCurve curve;
};

Table PointsTable(const ScaleReport& r, TimeUnit wish) {
  const TimeUnit unit = UnitFor(Duration::Ms(1), wish);
  const auto in_unit = [unit](Duration d) { return TimeIn(d, unit, 2); };
  const auto header = [unit](std::string_view what) {
    return fmt::format("{} {}", what, UnitName(unit));
  };
  Table table({{"GPUs"},
               {header("step")},
               {header("80 %"), Align::kLeft},
               {"efficiency"},
               {header("exposed")},
               {"bound by", Align::kLeft}});
  for (const ScalePoint& p : r.curve.points) {
    if (!p.error.ok()) {
      table.AddRow(
          {std::to_string(p.ranks), "-", "", "", "", std::string(DiagnosticOf(p.error).what)});
      continue;
    }
    table.AddRow({std::to_string(p.ranks), in_unit(p.step),
                  fmt::format("{} to {}", in_unit(p.low), in_unit(p.high)),
                  fmt::format("{:.1f} %", 100 * p.efficiency), in_unit(p.exposed), p.bound_by});
  }
  return table;
}

// What is missing of a curve that was told to stop.
std::string MissingPoints(const ScaleCurve& curve) {
  return fmt::format("interrupted: {} of {} are missing", FormatCount(curve.unplayed),
                     Plural(curve.unplayed + curve.points.size(), "point"));
}

std::string GpusText(double n) { return fmt::format("{:.0f}", n); }
std::string RateText(double rate) { return fmt::format("{:.3g} x", rate); }

// Examples a second against one GPU: a straight line is perfect.
std::string CurvePicture(const ScaleReport& r) {
  PlotSeries perfect{'.', "perfect", {}}, predicted{'o', "predicted", {}};
  for (const ScalePoint& p : r.curve.points) {
    if (!p.error.ok()) continue;
    perfect.points.emplace_back(p.ranks, p.ranks);
    predicted.points.emplace_back(p.ranks, p.ranks * p.efficiency);
  }
  if (predicted.points.size() < 3) return "";
  return LogPlot({perfect, predicted},
                 {.x = "GPUs", .y = "examples a second", .x_text = GpusText, .y_text = RateText});
}

// "lost to the slowest rank: 2 to 32 GPUs", a line for each reason.
std::string WhyItBends(const ScaleReport& r) {
  std::string text;
  const std::vector<ScalePoint>& points = r.curve.points;
  for (size_t i = 0, next = 0; i < points.size(); i = next) {
    while (next < points.size() && points[next].lost_to == points[i].lost_to) ++next;
    if (points[i].lost_to.empty()) continue;
    text += fmt::format("  lost to {}: {}{} GPUs\n", points[i].lost_to, points[i].ranks,
                        next - i > 1 ? fmt::format(" to {}", points[next - 1].ranks) : "");
  }
  return text;
}

std::string ScaleText(const ScaleReport& r, const Session& session) {
  const bool several = r.ranks.size() > 1;
  std::string text =
      fmt::format("{}: {}{} on {}, {}\n\n", Printable(r.name), r.options.strategy,
                  r.options.also.empty() ? "" : " + " + r.options.also, Printable(r.options.fabric),
                  r.options.fixed_global ? "all GPUs share the recorded batch"
                                         : "each GPU has the recorded batch");
  text += PointsTable(r, session.unit()).Text(session.table_style());
  if (r.curve.unplayed > 0) text += "  " + MissingPoints(r.curve) + "\n";
  text += WhyItBends(r) + "\n" + CurvePicture(r);
  text += fmt::format("\n  one GPU alone {}; replay {:+.2f} %; ranks differ by {:.2g} % ({})\n",
                      FormatTime(r.curve.one, session.unit()), 100 * r.replay, 100 * r.curve.jitter,
                      several && !r.options.jitter ? "as recorded" : "--jitter");
  if (several) text += fmt::format("  the mean of {} recorded ranks\n", r.ranks.size());
  return text +
         "  folded: one rank stands for n alike ones; with jitter the slowest of n drawn ones, "
         "exactly\n";
}

std::string ScaleJson(const ScaleReport& r) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.scale/1");
  if (r.curve.unplayed > 0) json.Key("interrupted").Bool(true);
  json.Key("trace").String(WithoutFolders(r.name));
  json.Key("strategy").String(r.options.strategy).Key("fabric").String(r.options.fabric);
  if (!r.options.also.empty()) json.Key("also").String(r.options.also);
  json.Key("jitter").Double(r.curve.jitter);
  if (!r.ranks.empty()) {
    json.Key("recorded").BeginInlineArray();
    for (int32_t rank : r.ranks) json.Int(rank);
    json.EndArray();
  }
  json.Key("fixed_global_batch").Bool(r.options.fixed_global);
  json.Key("step_ms").Rounded(r.curve.one.ms(), 6).Key("points").BeginArray();
  for (const ScalePoint& p : r.curve.points) {
    json.BeginInlineObject().Key("ranks").Int(p.ranks);
    if (!p.error.ok()) {
      const Diagnostic why = DiagnosticOf(p.error);
      json.Key("step_ms").Null().Key("error").String(why.code).Key("what").String(why.what);
      json.EndObject();
      continue;
    }
    json.Key("step_ms").Rounded(p.step.ms(), 6).Key("interval_ms").BeginInlineArray();
    json.Rounded(p.low.ms(), 6).Rounded(p.high.ms(), 6).EndArray();
    json.Key("efficiency").Rounded(p.efficiency, 6);
    json.Key("exposed_comm_ms").Rounded(p.exposed.ms(), 6);
    json.Key("alike_ms").Rounded(p.alike.ms(), 6).Key("bound_by").String(p.bound_by);
    json.Key("lost_to").String(p.lost_to).EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

absl::StatusOr<ScaleReport> Asked(const Args& args) {
  ScaleReport report;
  report.name = args.positional()[0];
  if (args.Has("--jitter")) {
    DD_ASSIGN_OR_RETURN(report.options.jitter, ParsePercent("--jitter", args.Get("--jitter")));
  }
  report.options.strategy = std::string(args.Get("--strategy"));
  report.options.fabric = std::string(args.Get("--fabric"));
  report.options.more = std::string(args.Get("--with"));
  report.options.also = std::string(args.Get("--also"));
  report.options.fixed_global = args.Has("--fixed-global-batch");
  DD_RETURN_IF_ERROR(ChooseFabric(report.options.fabric).status());
  return report;
}

// One GPU, or the ranks of a run.
struct Recorded {
  Inputs one;
  JointInput run;
  std::vector<const BuiltGraph*> ranks;
  const Trace& trace() const { return one.trace != nullptr ? *one.trace : *run.run.traces[0]; }
};

absl::Status Load(const Args& args, Session& session, ScaleReport& report, Recorded& in) {
  DD_ASSIGN_OR_RETURN(double limit,
                      ParsePercent("--max-replay-error", args.Get("--max-replay-error")));
  if (HoldsRanks(report.name) && !args.Has("--rank")) {
    DD_ASSIGN_OR_RETURN(in.run, LoadJoint(report.name, args, session));
    DD_ASSIGN_OR_RETURN(const JointReport joint, PredictOnRanks(in.run, report.name, {}, "all"));
    if (const absl::Status off = CheckJointReplay(joint, limit); !off.ok()) {
      return Refuse(off, "daydream.scale/1", nullptr, joint.findings, args, session);
    }
    report.replay = joint.baseline.check.span_error;
    for (size_t r = 0; r < in.run.run.built.size(); ++r) {
      in.ranks.push_back(&in.run.run.built[r]);
      report.ranks.push_back(in.run.run.Number(r));
    }
    return absl::OkStatus();
  }
  DD_ASSIGN_OR_RETURN(in.one, LoadInputs(report.name, args, session));
  if (in.one.replay.worst().error > limit) {
    return Refuse(ReplayFailed(in.one.replay, limit, report.name), "daydream.scale/1",
                  &in.one.replay, in.one.findings, args, session);
  }
  report.replay = in.one.replay.error();
  WarnAboutReplay(in.one.replay, session);
  in.ranks.push_back(&in.one.built);
  return absl::OkStatus();
}

// Flags that change no point.
std::vector<std::string_view> FlagsBesidePoints() {
  std::vector<std::string_view> names = {"--max-replay-error"};
  for (const Flag& f : GlobalFlags()) names.push_back(f.name);
  for (const Flag& f : ResultFlags()) names.push_back(f.name);
  return names;
}

// What all ranks of an MPI program have to have in common.
absl::StatusOr<uint64_t> KeyOf(const Args& args, const ScaleReport& report, const Recorded& in) {
  std::vector<std::vector<Application>> scenarios;
  if (!report.options.also.empty()) {
    DD_ASSIGN_OR_RETURN(scenarios.emplace_back(), ParseScenario(report.options.also));
  }
  uint64_t graphs = 0;
  for (const BuiltGraph* built : in.ranks) {
    graphs = HashOf(fmt::format("{}", HashOf(built->graph)), graphs);
  }
  return SweepKey(SweepParts(in.trace(), graphs, args, FlagsOf(kScaleCommand), FlagsBesidePoints(),
                             ScenarioFiles(scenarios)));
}

absl::StatusOr<Exit> WriteScale(const ScaleReport& report, const Args& args, Session& session) {
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table = [&] { return ScaleText(report, session); },
             .json = [&] { return ScaleJson(report); },
             .csv = [&] { return PointsTable(report, session.unit()).Csv(); },
             .markdown =
                 [&] {
                   const std::string points = PointsTable(report, session.unit()).Markdown();
                   return report.curve.unplayed > 0
                              ? points + "\n" + MissingPoints(report.curve) + "\n"
                              : points;
                 }}));
  for (const std::string& w : report.curve.changes.Caveats()) {
    session.Warn({.code = "W0603", .what = w});
  }
  for (const std::string& n : report.curve.changes.notes) session.Note(n);
  std::set<std::string> told;  // the same holds for many numbers of GPUs
  for (const ScalePoint& p : report.curve.points) {
    if (!p.error.ok() && told.insert(p.error.ToString()).second) session.Error(p.error);
  }
  if (report.curve.unplayed > 0) {
    session.Warn(
        {.what = MissingPoints(report.curve), .effect = "the result holds those that were played"});
    return Exit::kInterrupted;
  }
  return told.empty() ? Exit::kOk : Exit::kCannotAnswer;
}

// Fills `report.curve`, with the points that are done when it is told to stop: other ranks are not
// asked to.
absl::Status PlayCurve(const Recorded& in, const std::vector<int>& ranks, Session& session,
                       World& world, ScaleReport& report) {
  std::optional<InterruptNote> note;
  if (world.size() == 1) note.emplace(session.KeepsDone("points"));
  bool stopped = false;
  const auto share = [&](size_t count, const auto& work, const auto& take) -> absl::Status {
    std::vector<size_t> todo(count);
    std::iota(todo.begin(), todo.end(), size_t{0});
    const size_t each = in.ranks.size();  // of a point
    size_t played = 0;
    const auto tell = [&] {
      session.Progress(
          {.what = "playing points", .done = played / each, .total = count / each, .last = true});
    };
    if (note.has_value()) note->Done(0, count / each);
    tell();
    const auto hear = [&](const std::string& line) -> absl::Status {
      DD_RETURN_IF_ERROR(take(line));
      ++played;
      tell();
      if (!note.has_value()) return absl::OkStatus();
      // They are begun in order, and those that are begun are played.
      note->Done(played / each, count / each);
      stopped = played < count && note->stopped();
      return stopped ? absl::CancelledError() : absl::OkStatus();
    };
    const absl::Status done = world.Distribute(todo, session.jobs(), work, hear);
    if (!stopped) DD_RETURN_IF_ERROR(done);
    // The first one has all of it.
    return world.first() ? absl::OkStatus() : absl::CancelledError("told by the first rank");
  };
  session.Progress("playing one GPU alone");
  ScaleOptions options = report.options;
  options.stopped = [&] { return stopped; };
  DD_ASSIGN_OR_RETURN(report.curve, ScaleOver(in.ranks, ranks, options, session.jobs(), share));
  return absl::OkStatus();
}

absl::StatusOr<Exit> ScaleTogether(const Args& args, Session& session, World& world) {
  DD_RETURN_IF_ERROR(CheckRanks("scale", ""));
  DD_ASSIGN_OR_RETURN(const std::vector<int> ranks, ParseRanks(args.Get("--ranks")));
  DD_ASSIGN_OR_RETURN(ScaleReport report, Asked(args));
  Recorded in;
  DD_RETURN_IF_ERROR(Load(args, session, report, in));
  uint64_t key = 0;
  if (world.size() > 1) {
    DD_ASSIGN_OR_RETURN(key, KeyOf(args, report, in));
  }
  DD_RETURN_IF_ERROR(world.Agree(key));
  DD_RETURN_IF_ERROR(PlayCurve(in, ranks, session, world, report));
  return WriteScale(report, args, session);
}

absl::StatusOr<Exit> RunScale(const Args& args, Session& session) {
  return RunTogether(session, [&](World& world) { return ScaleTogether(args, session, world); });
}

}  // namespace

const Command kScaleCommand = {
    .name = "scale",
    .summary = "what the step of one GPU takes on many",
    .usage =
        "TRACE --fabric NAME [--strategy ddp|zero1|zero2] [--ranks 1,2,4..1024] [--jitter [PCT]]",
    .details =
        R"(Takes the trace of one GPU and predicts the step of n that train together: gradients are
exchanged in PyTorch's own buckets while backward goes on, over a network that is known or
described (daydream fabric). Efficiency is T(1) / T(n), each GPU with the recorded batch;
with --fixed-global-batch T(1) / (n T(n)). Of a folder of ranks the curve is their mean. The
interval is what n ranks that differ by --jitter come to in 80 % of all runs, and 20 % of the
exposed communication. Where MPI was there when it was built, `mpirun daydream-mpi scale ...`
shares the points among all ranks, with the same result, which the first one writes. Ctrl-C
leaves the points that were played; again, it ends at once.)",
    .examples =
        "daydream scale one-gpu.json --ranks 1,2,4..1024 --fabric ib-ndr\n"
        "daydream scale one-gpu.json --strategy zero1 --ranks 8 --fabric nvlink4 --format json\n"
        "mpirun -n 4 daydream-mpi scale profiles/ --ranks 1,2,4..1024 --fabric ib-ndr",
    .flags = kScaleFlags,
    .takes = kOneTrace,
    .run = RunScale,
    .tells_mistake = TellsOwnMistake,
};

}  // namespace daydream
