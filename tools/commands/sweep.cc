#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "report/questions/dense_sweep.h"
#include "report/questions/pareto.h"
#include "report/text/format.h"
#include "tools/command.h"
#include "tools/input/inputs.h"
#include "tools/input/joint_input.h"
#include "tools/input/scenarios.h"
#include "tools/output/joint_questions.h"
#include "tools/output/refused.h"
#include "tools/output/sweep_output.h"
#include "tools/running/interrupt.h"
#include "tools/sweep/journal.h"
#include "tools/sweep/sweep_key.h"
#include "tools/sweep/together.h"
#include "tools/sweep/world.h"

namespace daydream {
namespace {

const Flag kSweepFlags[] = {
    {.name = "--opt",
     .value = "SPEC",
     .help = "optimizations with ranges as values, 'prefetch(workers=1..8)'; each is a sweep",
     .repeats = true},
    {.name = "--opt-file",
     .value = "FILE",
     .help = "an optimization of your own (YAML) that --opt can name",
     .repeats = true},
    {.name = "--set",
     .value = "NAME.PARAM=VALUE",
     .help = "another value for a parameter, in all scenarios",
     .repeats = true},
    {.name = "--journal",
     .value = "FILE",
     .help = "keep every row as soon as it is known; a sweep that was killed goes on from there"},
    {.name = "--shard",
     .value = "I/N",
     .help = "only every N-th scenario, beginning with the I-th; needs --journal"},
    {.name = "--pareto",
     .value = "GOALS",
     .help = "also show the rows that no other beats in step,memory"},
    {.name = "--no-interval",
     .help = "skip the intervals, which need more replays; "
             "what is low for a wide one reads medium then"},
    kTrueStepFlag,
    kKeepRecordingCostFlag,
    kSamplesFlag,
    kMaxReplayErrorFlag,
    kClockFlag,
};

// Every N-th scenario from the I-th on.
struct Shard {
  size_t first = 0, of = 1;
};

absl::StatusOr<Shard> ParseShard(std::string_view text) {
  Shard shard;
  if (text.empty()) return shard;
  const char* end = text.data() + text.size();
  auto [slash, error] = std::from_chars(text.data(), end, shard.first);
  if (error == std::errc() && slash != end && *slash == '/') {
    auto [last, wrong] = std::from_chars(slash + 1, end, shard.of);
    if (wrong == std::errc() && last == end && shard.first >= 1 && shard.first <= shard.of) {
      --shard.first;
      return shard;
    }
  }
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0704",
                     .what = fmt::format("--shard '{}' is not I/N", text),
                     .why = "N shards are numbered from 1 to N",
                     .fix = "--shard 1/4, --shard 2/4, --shard 3/4, --shard 4/4"});
}

absl::Status CheckSweepFlags(const Args& args) {
  auto bad = [](std::string what, std::string fix) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0107", .what = std::move(what), .fix = std::move(fix)});
  };
  if (args.All("--opt").empty()) {
    return bad("daydream sweep needs --opt", "--opt 'prefetch(workers=1..8)'");
  }
  if (args.positional().size() > 1) {
    return bad(fmt::format("daydream sweep does not take '{}'", args.positional()[1]),
               "daydream sweep TRACE --opt SPEC, or daydream sweep merge FILE...");
  }
  if (args.Has("--shard") && !args.Has("--journal")) {
    return bad("--shard needs --journal",
               "--journal part1.sweep, then daydream sweep merge *.sweep");
  }
  if (args.Has("--pareto")) DD_RETURN_IF_ERROR(ParseGoals(args.Get("--pareto")).status());
  return CheckRanks("sweep", ", or --shard I/N for each rank");
}

// Rows that differ only in a part that does nothing here look like an answer about it.
void WarnAboutLeftOut(const SweepResult& result, Session& session) {
  size_t rows = 0;
  const SweepRow* first = nullptr;
  for (const SweepRow& r : result.rows) {
    if (r.left_out.empty()) continue;
    if (rows++ == 0) first = &r;
  }
  if (rows == 0) return;
  session.Warn({.code = "W0601",
                .what = fmt::format("{} of {}: a part finds nothing to change here ({})", rows,
                                    Plural(result.rows.size(), "scenario"), first->left_out),
                .effect = "they are predicted without it"});
}

// Which rows --pareto asks for, and how many it cannot judge.
absl::Status FindFront(const Args& args, SweepResult& result, Session& session) {
  if (!args.Has("--pareto")) return absl::OkStatus();
  result.pareto = std::string(args.Get("--pareto"));
  DD_ASSIGN_OR_RETURN(const std::vector<SweepGoal> goals, ParseGoals(result.pareto));
  result.front = OnFront(result.rows, result.head.baseline, goals);
  result.compared = std::any_of(result.rows.begin(), result.rows.end(),
                                [&](const SweepRow& r) { return Comparable(r, goals); });
  const bool memory = std::find(goals.begin(), goals.end(), SweepGoal::kMemory) != goals.end();
  const auto unknown = std::count_if(result.rows.begin(), result.rows.end(), [](const SweepRow& r) {
    return r.code.empty() && !r.memory.has_value();
  });
  if (memory && unknown > 0) {
    session.Warn({.code = "W0601",
                  .what = fmt::format("{} of {}: what the peak of memory becomes is not known",
                                      unknown, Plural(result.rows.size(), "scenario")),
                  .effect = "--pareto leaves them out"});
  }
  return absl::OkStatus();
}

absl::Status WriteSweep(SweepResult& result, const Args& args, Session& session) {
  WarnAboutLeftOut(result, session);
  DD_RETURN_IF_ERROR(FindFront(args, result, session));
  return session.WriteResult(args, {.table = [&] { return SweepTables(result, session); },
                                    .json = [&] { return SweepJson(result); },
                                    .csv = [&] { return SweepCsv(result); },
                                    .markdown = [&] { return SweepMarkdown(result, session); }});
}

// Code of a row that is none: it says which file was changed.
constexpr std::string_view kFileChanged = "E0708";

// Flags that change no row: what is done with the rows, and which of them are made.
std::vector<std::string_view> FlagsBesideRows() {
  std::vector<std::string_view> names = {"--journal", "--shard", "--pareto", "--max-replay-error"};
  for (const Flag& f : GlobalFlags()) names.push_back(f.name);
  for (const Flag& f : ResultFlags()) names.push_back(f.name);
  return names;
}

class Sweep {
 public:
  Sweep(const Args& args, Session& session, World& world)
      : args_(args), session_(session), world_(world) {}

  absl::StatusOr<Exit> Run() {
    DD_ASSIGN_OR_RETURN(const double limit,
                        ParsePercent("--max-replay-error", args_.Get("--max-replay-error")));
    DD_ASSIGN_OR_RETURN(const Shard shard, ParseShard(args_.Get("--shard")));
    result_.head.specs = args_.All("--opt");
    DD_ASSIGN_OR_RETURN(result_.plan, PlanSweep(result_.head.specs));
    DD_RETURN_IF_ERROR(ParsePoints());
    const std::string& path = args_.positional()[0];
    if (HoldsRanks(path) && !args_.Has("--rank")) {
      // As `whatif` does.
      constexpr std::string_view kOfOneRank[] = {"--steps", "--true-step", "--samples"};
      DD_RETURN_IF_ERROR(CheckAboutAllRanks(args_, kOfOneRank));
      absl::StatusOr<JointInput> in = LoadJoint(path, args_, session_);
      if (in.ok()) return RunOnRanks(*in, path, limit, shard);
      if (DiagnosticOf(in.status()).code != "E0435") return in.status();
      session_.Note("no two of these ranks have a collective in common: one is looked at alone");
    }
    DD_ASSIGN_OR_RETURN(Inputs in, LoadInputs(path, args_, session_));
    if (const absl::Status off = NoAnswer(in.replay, limit, path); !off.ok()) {
      return RefuseRows(off, &in.replay, in.findings, shard);
    }
    const WhatIfOptions options{.intervals = !args_.Has("--no-interval"),
                                .true_step = in.true_step ? &*in.true_step : nullptr};
    DD_ASSIGN_OR_RETURN(const SweepRunner runner, SweepRunner::Make(in.built, in.replay, options));
    result_.head.trace = in.trace->provenance.source;
    result_.head.measured = in.replay.measured;
    result_.head.baseline = runner.baseline();
    result_.head.step_name = in.replay.step_name();
    result_.head.steps = runner.steps();
    result_.head.findings = in.findings;
    DenseSweep rows(runner, result_.plan.points, scenarios_);
    DD_ASSIGN_OR_RETURN(
        const Exit exit,
        RunRows(
            *in.trace, HashOf(in.built.graph), shard, [&](size_t i) { return rows.Run(i); },
            [&](std::vector<size_t>& todo) { rows.PutInTurn(todo); }));
    if (world_.first()) WarnAboutReplay(in.replay, session_);
    return exit;
  }

 private:
  using MakeRow = std::function<SweepRow(size_t)>;
  using PutInTurn = std::function<void(std::vector<size_t>&)>;

  absl::Status RefuseRows(const absl::Status& off, const ReplayCheck* replay,
                          const std::vector<Finding>& findings, const Shard& shard) {
    const Diagnostic d = DiagnosticOf(off);
    for (size_t i = shard.first; i < result_.plan.points.size(); i += shard.of) {
      result_.rows.push_back({.index = i, .code = d.code, .error = d.what});
    }
    return Refuse(off, "daydream.sweep/1", replay, findings, args_, session_,
                  [&](JsonWriter& json) { WriteSweepRows(result_, json); });
  }

  absl::StatusOr<Exit> RunOnRanks(const JointInput& in, const std::string& path, double limit,
                                  const Shard& shard) {
    DD_ASSIGN_OR_RETURN(const JointReport report, PredictOnRanks(in, path, {}, "all"));
    if (const absl::Status off = CheckJointReplay(report, limit); !off.ok()) {
      return RefuseRows(off, nullptr, report.findings, shard);
    }
    result_.head.trace = path;
    result_.head.baseline = report.baseline.step;
    result_.head.findings = report.findings;
    uint64_t graphs = 0;
    for (const BuiltGraph& b : in.run.built)
      graphs = HashOf(fmt::format("{}", HashOf(b.graph)), graphs);
    return RunRows(*in.run.traces[0], graphs, shard, [&](size_t i) {
      SweepRow row = RowOf(i, PredictJoint(in.run, report.baseline, scenarios_[i]));
      if (args_.Has("--no-interval")) row.low = row.high = std::nullopt;
      return row;
    });
  }

  absl::StatusOr<Exit> RunRows(const Trace& trace, uint64_t graphs, const Shard& shard,
                               const MakeRow& make, const PutInTurn& put_in_turn = {}) {
    files_.emplace(scenarios_);
    result_.head.parts =
        SweepParts(trace, graphs, args_, FlagsOf(kSweepCommand), FlagsBesideRows(), *files_);
    result_.head.key = SweepKey(result_.head.parts);
    std::vector<size_t> todo;
    for (size_t i = shard.first; i < scenarios_.size(); i += shard.of) todo.push_back(i);
    if (world_.first()) DD_RETURN_IF_ERROR(Resume(todo));
    if (put_in_turn) put_in_turn(todo);
    DD_RETURN_IF_ERROR(world_.Agree(result_.head.key));
    DD_RETURN_IF_ERROR(Work(make, todo));
    result_.interrupted = stopped_;
    if (world_.first()) DD_RETURN_IF_ERROR(WriteSweep(result_, args_, session_));
    if (!stopped_) return Exit::kOk;
    session_.Warn({.what = fmt::format("interrupted: {} of {} are missing",
                                       FormatCount(todo.size() - result_.rows.size()),
                                       Plural(todo.size(), "row")),
                   .effect = "the result holds those that were done",
                   .fix = std::string(kKeepRows)});
    return Exit::kInterrupted;
  }

  absl::Status ParsePoints() {
    std::vector<std::string> specs;
    for (const SweepPoint& point : result_.plan.points) specs.push_back(point.spec);
    DD_ASSIGN_OR_RETURN(scenarios_, ParseSpecs(args_, specs));
    return absl::OkStatus();
  }

  absl::Status CheckFilesOfJournal() const {
    std::string once = FileReadOnce(args_, FlagsOf(kSweepCommand), FlagsBesideRows(), *files_);
    if (once.empty()) return absl::OkStatus();
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0703",
                       .what = "a journal cannot tell what was in this file",
                       .where = std::move(once),
                       .why = "it is no plain file, so nobody can read it a second time",
                       .effect = "rows of another experiment could be taken for these",
                       .fix = "write its content into a file first, or leave --journal away"});
  }

  // Takes from `todo` what the journal has already.
  absl::Status Resume(std::vector<size_t>& todo) {
    if (!args_.Has("--journal")) return absl::OkStatus();
    DD_RETURN_IF_ERROR(CheckFilesOfJournal());
    DD_ASSIGN_OR_RETURN(SweepJournal journal,
                        SweepJournal::Open(std::string(args_.Get("--journal")), result_.head));
    journal_.emplace(std::move(journal));
    std::vector<bool> wanted(scenarios_.size(), false), known = wanted;
    for (size_t i : todo) wanted[i] = true;
    for (const SweepRow& row : journal_->rows()) {
      if (row.index >= wanted.size()) continue;
      known[row.index] = true;
      if (wanted[row.index]) result_.rows.push_back(row);
    }
    std::erase_if(todo, [&](size_t i) { return known[i]; });
    if (!result_.rows.empty()) {
      session_.Note(fmt::format("{} in the journal already", Plural(result_.rows.size(), "row")));
    }
    return absl::OkStatus();
  }

  static constexpr std::string_view kKeepRows =
      "with --journal FILE each row is kept, and the same command goes on from there";

  void TellWhenInterrupted(size_t all) {
    Diagnostic d{.what = fmt::format("interrupted: {{N}} of {} are ", Plural(all, "row"))};
    if (journal_.has_value()) {
      d.what += fmt::format("in {}", args_.Get("--journal"));
      d.fix = "the same command goes on from there";
    } else {
      d.what += "done, and lost";
      d.fix = kKeepRows;
    }
    // Rows of a journal are kept anyway; other ranks are not asked.
    std::optional<std::string> stopping;
    if (!journal_.has_value() && world_.size() == 1) {
      stopping = session_.NoteText({.what = "stopping after the rows that are begun",
                                    .effect = "Ctrl-C again ends at once, without them"});
    }
    interrupted_.emplace(InterruptTexts{session_.NoteText(d), std::move(stopping)});
    interrupted_->Done(result_.rows.size());
  }

  absl::Status Work(const MakeRow& make, std::span<const size_t> todo) {
    const size_t all = result_.rows.size() + todo.size();
    if (world_.first()) TellWhenInterrupted(all);
    // Every rank looks at its own files, the first one refuses the row.
    auto work = [&](size_t i) {
      SweepRow row = make(i);
      if (std::string changed = files_->Changed(); !changed.empty()) {
        row = {.index = i, .code = std::string(kFileChanged), .error = std::move(changed)};
      }
      return FormatSweepRow(row);
    };
    const auto tell = [&] {
      session_.Progress(
          {.what = "sweeping", .done = result_.rows.size(), .total = all, .last = true});
    };
    if (world_.first()) tell();
    auto take = [&](const std::string& line) -> absl::Status {
      auto row = ParseSweepRow(line);
      if (!row.has_value()) return absl::InternalError("a rank sent no row");
      if (row->code == kFileChanged) return FileChanged(row->error);
      if (journal_.has_value()) DD_RETURN_IF_ERROR(journal_->Append(*row));
      result_.rows.push_back(*std::move(row));
      if (interrupted_.has_value()) interrupted_->Done(result_.rows.size());
      tell();
      const bool last = result_.rows.size() == all;
      stopped_ = !last && interrupted_.has_value() && interrupted_->stopped();
      return stopped_ ? absl::CancelledError() : absl::OkStatus();
    };
    const absl::Status done = world_.Distribute(todo, session_.jobs(), work, take);
    if (!stopped_) DD_RETURN_IF_ERROR(done);
    interrupted_.reset();
    std::sort(result_.rows.begin(), result_.rows.end(),
              [](const SweepRow& a, const SweepRow& b) { return a.index < b.index; });
    return absl::OkStatus();
  }

  const Args& args_;
  Session& session_;
  World& world_;
  SweepResult result_;
  std::vector<std::vector<Application>> scenarios_;
  std::optional<SweepJournal> journal_;
  std::optional<InterruptNote> interrupted_;
  bool stopped_ = false;  // by Ctrl-C or SIGTERM
  std::optional<ScenarioFiles> files_;
};

absl::StatusOr<Exit> Merge(const Args& args, Session& session) {
  std::vector<std::string> paths(args.positional().begin() + 1, args.positional().end());
  if (paths.empty()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0107",
                       .what = "daydream sweep merge needs the journals of the shards",
                       .fix = "daydream sweep merge part*.sweep --format csv"});
  }
  DD_ASSIGN_OR_RETURN(SweepText all, MergeSweeps(paths));
  SweepResult result{.head = std::move(all.head), .rows = std::move(all.rows)};
  DD_ASSIGN_OR_RETURN(result.plan, PlanSweep(result.head.specs));
  const size_t wanted = result.plan.points.size();
  if (!result.rows.empty() && result.rows.back().index >= wanted) {
    return MakeStatus(absl::StatusCode::kDataLoss,
                      {.code = "E0703",
                       .what = fmt::format("row {} of {}", result.rows.back().index, wanted),
                       .fix = "leave out the file that does not belong here"});
  }
  DD_RETURN_IF_ERROR(WriteSweep(result, args, session));
  if (result.rows.size() == wanted) return Exit::kOk;
  session.Error(MakeStatus(
      absl::StatusCode::kFailedPrecondition,
      {.code = "E0705",
       .what =
           fmt::format("{} of {} are missing", wanted - result.rows.size(), Plural(wanted, "row")),
       .effect = "the result holds those that are there",
       .fix = "run the other shards, or go on with those that were killed, and merge again"}));
  return Exit::kCannotAnswer;
}

absl::StatusOr<Exit> RunSweep(const Args& args, Session& session) {
  if (args.positional()[0] == "merge") return Merge(args, session);
  return RunTogether(session, [&](World& world) -> absl::StatusOr<Exit> {
    DD_RETURN_IF_ERROR(CheckSweepFlags(args));
    return Sweep(args, session, world).Run();
  });
}

}  // namespace

const Command kSweepCommand = {
    .name = "sweep",
    .summary = "predict scenarios for ranges of parameters, on threads, shards or MPI ranks",
    .usage = "TRACE --opt SPEC... [FLAG...] | merge JOURNAL...",
    .details =
        R"(A value of --opt may be a range or a list; several of them are crossed:
  1..8   1..16*2   10GB/s..25GB/s+5GB/s   {bf16,fp16}   {1,2,8..32+8}
Each row is what whatif says about that scenario; ranks of a folder are played together. A row
that cannot be predicted carries its error and does not stop the others. Of 64 values or more
of the last parameter, most intervals are not played where rows differ in times alone: they lie
between those of neighbours, and say so in JSON and CSV (interval_between; docs/decisions/019 has
how far off).

Ctrl-C leaves the rows that are done; again, it ends at once. With --journal they are in the
journal, and a sweep that was killed goes on where it was. --shard splits it for job
arrays; `sweep merge` puts the journals of all shards together. Where MPI was there when
it was built, `mpirun daydream-mpi sweep ...` shares the rows among all ranks. The
result is the same for any number of threads, shards and ranks.

--pareto step,memory shows the rows that no other row, nor the recorded step, beats: none
is at least as short with a peak of GPU memory at least as low, and better in one. Where
steps handle more or fewer examples, they are compared by the examples a second.)",
    .examples =
        R"(daydream sweep run.ddtrace --opt 'prefetch(workers=1..16*2)'
daydream sweep run.ddtrace --opt 'pin-memory(rate=5GB/s..25GB/s+5GB/s)' --format csv
daydream sweep run.ddtrace --opt 'amp(dtype={bf16,fp16}),prefetch(1..4)'
daydream sweep run.ddtrace --opt 'prefetch(1..64)' --journal p1.sweep --shard 1/4
daydream sweep run.ddtrace --opt 'checkpointing,batch(x1..x4)' --pareto step,memory
daydream sweep profiles/ --opt 'straggler(0..7,gpu=0.9)'
daydream sweep merge p1.sweep p2.sweep p3.sweep p4.sweep -o all.csv
mpirun -n 16 daydream-mpi sweep run.ddtrace --opt 'prefetch(1..64)' -o all.csv)",
    .flags = kSweepFlags,
    .takes = {.traces = true, .result = true, .least = 1, .most = 100'000},
    .run = RunSweep,
    .tells_mistake = TellsOwnMistake,
};

}  // namespace daydream
