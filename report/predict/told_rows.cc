#include "report/predict/told_rows.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "graph/retimed.h"
#include "report/predict/what_if.h"
#include "report/predict/whole_work.h"

namespace daydream {
namespace {

bool SameTexts(const Application& a, const Application& b) {
  return std::ranges::all_of(a.transform->params, [&](const ParamSpec& spec) {
    return spec.unit != Unit::kText || a.params.text(spec.name) == b.params.text(spec.name);
  });
}

bool Same(const Application& a, const Application& b) {
  return a.transform == b.transform && a.params.spelled() == b.params.spelled();
}

// The only application in which the lists differ.
std::optional<size_t> PlaceOfDifference(std::span<const Application> a,
                                        std::span<const Application> b) {
  if (a.size() != b.size()) return {};
  std::optional<size_t> place;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Same(a[i], b[i])) continue;
    if (place.has_value() || a[i].transform != b[i].transform) return {};
    place = i;
  }
  return place;
}

bool StatesTimes(const Transform& t) {
  return t.stated_by_user && t.ends == AtEnds::kGaps && t.memory == MemoryEffect::kNone;
}

bool TellsTimes(const Application& a) {
  return a.transform->ends == AtEnds::kTold || a.transform->ends == AtEnds::kGaps;
}

}  // namespace

std::optional<size_t> PlaceOfTimes(std::span<const Application> a, std::span<const Application> b) {
  const std::optional<size_t> place = PlaceOfDifference(a, b);
  if (!place.has_value() || !StatesTimes(*a[*place].transform)) return {};
  const auto bound = [](const Application& x) { return x.transform->bound; };
  const bool told = SameTexts(a[*place], b[*place]) && std::ranges::none_of(a, bound) &&
                    std::ranges::all_of(a.subspan(*place + 1), TellsTimes);
  return told ? place : std::nullopt;
}

// Follows the applications of the first row, and writes down what they do to all.
class ToldRows::Notes {
 public:
  Notes(ToldRows& told, size_t axis, const EndColumns& columns)
      : told_(told), axis_(axis), columns_(columns), before_(columns) {
    Snap(told.recorded_.graph, was_);
  }

  // Whether all rows are told so far.
  bool Follow(size_t application, const Graph& graph, bool changed) {
    Snap(graph, is_);
    if (application >= axis_ && !TellEdits(changed)) return false;
    if (application == axis_) told_.first_behind_ = told_.lead_.journals.size();
    std::swap(was_, is_);
    before_ = columns_;
    return true;
  }

  // After all of them.
  void TellTasks() {
    for (TaskId t : before_.tasks()) {
      if (was_[t.index()].removed) continue;
      told_.tasks_.push_back({0, t.value, told_.times_.size()});
      for (size_t row = 0; row < told_.width_; ++row) {
        told_.times_.push_back(At(was_, before_, t, row));
      }
    }
    std::ranges::sort(told_.edits_, {}, [](const Told& e) { return std::pair(e.journal, e.at); });
  }

 private:
  struct OfTask {
    Times times;
    bool removed = false;
  };
  // What an application did to a task: its first edit, and the sum of all.
  struct Edited {
    uint32_t first = kNone;
    Times sum;
  };

  static void Snap(const Graph& graph, std::vector<OfTask>& times) {
    times.resize(graph.size());
    for (size_t i = 0; i < graph.size(); ++i) {
      const Task& task = graph.tasks()[i];
      times[i] = task.removed ? OfTask{{}, true} : OfTask{{task.duration, task.gap}};
    }
  }

  uint32_t journal() const { return static_cast<uint32_t>(told_.lead_.journals.size() - 1); }

  bool HasColumn(TaskId t) const {
    return columns_.durations.Has(t) || columns_.gaps.Has(t) || before_.durations.Has(t) ||
           before_.gaps.Has(t);
  }

  Times At(const std::vector<OfTask>& times, const EndColumns& columns, TaskId t,
           size_t row) const {
    if (t.index() >= times.size() || times[t.index()].removed) return {};
    const Times& lead = times[t.index()].times;
    return {columns.durations.Of(row, t, lead.duration), columns.gaps.Of(row, t, lead.gap)};
  }

  // False: a task is edited for two causes, and what each is in other rows is not known.
  bool FindEdits(std::vector<Edited>& edited) {
    const std::vector<Editor::Edit>& edits = told_.lead_.journals.back().edits;
    for (uint32_t i = 0; i < edits.size(); ++i) {
      Edited& of = edited[edits[i].task.index()];
      of.sum.duration += edits[i].duration, of.sum.gap += edits[i].gap;
      if (of.first == kNone) {
        of.first = i;
      } else if (HasColumn(edits[i].task)) {
        if (edits[of.first].cause != edits[i].cause) return false;
        told_.edits_.push_back({journal(), i, kInFirst});
      }
    }
    return true;
  }

  // What all edits of a task together do in each row, as if it were the first of them. False: not
  // all that changes is of an edit.
  bool TellEdits(bool changed) {
    std::vector<Edited> edited(is_.size());
    if (changed && !FindEdits(edited)) return false;
    std::vector<TaskId> tasks = columns_.tasks(), all;
    std::ranges::set_union(tasks, before_.tasks(), std::back_inserter(all));
    return std::ranges::all_of(all, [&](TaskId t) { return TellEditsOf(t, edited[t.index()]); });
  }
  bool TellEditsOf(TaskId t, const Edited& of) {
    const size_t begin = told_.times_.size();
    bool same = true;
    for (size_t row = 0; row < told_.width_; ++row) {
      const Times was = At(was_, before_, t, row), is = At(is_, columns_, t, row);
      told_.times_.push_back({is.duration - was.duration, is.gap - was.gap});
      same &= told_.times_.back() == of.sum;
    }
    const bool noted = of.first != kNone && told_.times_[begin] == of.sum;
    if (noted) told_.edits_.push_back({journal(), of.first, begin});
    if (!noted) told_.times_.resize(begin);
    return noted || same || told_.recorded_.notes != EditNotes::kKept;
  }

  ToldRows& told_;
  const size_t axis_;
  const EndColumns& columns_;
  EndColumns before_;             // the last application
  std::vector<OfTask> was_, is_;  // in the first row, before the last application and after it
};

std::unique_ptr<ToldRows> ToldRows::Make(const Recorded& recorded,
                                         std::span<const std::vector<Application>* const> rows) {
  const std::vector<Application>& lead = *rows.front();
  const std::optional<size_t> axis = PlaceOfTimes(lead, *rows.back());
  if (!axis.has_value()) return nullptr;
  std::vector<EndColumns::End> ends;
  for (const auto* row : rows) ends.push_back({*axis, (*row)[*axis].params});
  EndColumns columns(std::move(ends));
  std::unique_ptr<ToldRows> told(new ToldRows(recorded, rows.size()));
  BegunRows::Begun& begun = told->lead_;
  begun.graph = recorded.copies.Make();
  Graph& graph = *begun.graph;
  const bool stated =
      std::ranges::all_of(lead, [](const Application& a) { return StatesTimes(*a.transform); });
  std::optional<Notes> notes;
  if (!stated) notes.emplace(*told, *axis, columns);
  bool all_told = true;
  const auto note = [&](const Application& a, Applied* applied) -> absl::Status {
    begun.noted().Add(a, graph, applied, recorded.limits_hold);
    const auto at = static_cast<size_t>(&a - lead.data());
    // Then each row says of its own number that it was left out.
    if (applied == nullptr && at == *axis) return absl::CancelledError();
    if (stated) return absl::OkStatus();
    all_told = notes->Follow(at, graph, applied != nullptr);
    // Those that tell durations do not tell what other gaps do to them.
    const auto durations = [](const Application& x) { return x.transform->ends == AtEnds::kTold; };
    if (at >= *axis && columns.gaps.any()) {
      all_told &= std::ranges::none_of(std::span(lead).subspan(at + 1), durations);
    }
    return all_told ? absl::OkStatus() : absl::CancelledError();
  };
  if (!ApplyAll(lead, graph, note, &columns, recorded.notes).ok()) return nullptr;
  begun.work = WorkOf(recorded.graph, graph);
  if (stated) return told->PlayAll(std::move(columns)) ? std::move(told) : nullptr;
  // Where only times are set, each row by itself takes no longer.
  if (graph.structure() == GraphCopies::kStructure) return nullptr;
  notes->TellTasks();
  told->FindWork(columns);
  return told;
}

bool ToldRows::PlayAll(EndColumns columns) {
  Graph& graph = *lead_.graph;
  if (graph.structure() != GraphCopies::kStructure) return false;
  graph.ShareFacts(std::make_shared<GraphFacts>());
  const Replays::Lent batch = recorded_.replays.Batch(graph);
  if (batch == nullptr) return false;
  columns_ = std::move(columns);
  const std::vector<TaskId> tasks = columns_.tasks();
  tasks_played_.reserve(tasks.size());
  for (TaskId t : tasks) {
    const Task &was = recorded_.graph.task(t), &is = graph.task(t);
    if (is.removed) continue;
    tasks_played_.push_back({t, is.kind, {was.duration, was.gap}, {is.duration, is.gap}});
  }
  FindAlone();
  played_.resize(width_);
  for (PlayedStep& row : played_) row.as_recorded = true;
  const auto retimed = RetimedOf(recorded_.graph, graph);
  for (const Retimed& t : *retimed) {
    const bool told = columns_.durations.Has(t.task) || columns_.gaps.Has(t.task);
    if (told || (t.duration_was == t.duration && t.gap_was == t.gap)) continue;
    others_.push_back(t);
    for (PlayedStep& row : played_) row.as_recorded = false;
  }
  bool all = true;
  for (size_t first = 0; first < width_ && all; first += StepBatch::kWidth) {
    all = PlayEight(first, *batch);
  }
  batch->Reset();
  lead_.graph.reset();
  if (!recorded_.graphs) columns_ = EndColumns({}), tasks_played_ = {}, others_ = {};
  return all;
}

// Of the first is known that it fits a replay; rows that need edits of their own are alone, too.
void ToldRows::FindAlone() {
  std::vector<TaskId> ids;
  for (const Played& played : tasks_played_) ids.push_back(played.task);
  const std::vector<double> durations = columns_.durations.About(ids);
  const std::vector<double> gaps = columns_.gaps.About(ids);
  const double rounded = static_cast<double>(ids.size());
  for (size_t row = 0; row < width_; ++row) {
    const double longer = durations[row] + gaps[row] - durations[0] - gaps[0];
    alone_[row] = columns_.needs_edits(row) || longer > rounded;
  }
}

namespace {

using Eight = TimeColumns::Eight;
static_assert(TimeColumns::kTogether == StepBatch::kWidth);

// Eight numbers that one instruction of the processor works on, or a few.
using Numbers [[gnu::vector_size(sizeof(Eight))]] = int64_t;

// What eight rows are against others.
struct AgainstOthers {
  Numbers of = {};        // those that are asked about: all bits set
  Numbers longer = {};    // than the first, all tasks together
  Numbers other = {};     // not 0: than the recorded graph
  Numbers negative = {};  // below 0: some time is
  int64_t all_other = 0;  // not 0: all rows are other than the recorded graph

  // One time of a task; `sums`: what it is part of.
  void Add(const Eight& times, Duration recorded, Duration first, int64_t* sums) {
    Numbers time, sum;
    std::memcpy(&time, times.data(), sizeof(time));
    std::memcpy(&sum, sums, sizeof(sum));
    const Numbers by = (time - first.ns) & of;
    sum += by, longer += by;
    other |= time ^ recorded.ns;
    negative |= time & of;
    std::memcpy(sums, &sum, sizeof(sum));
  }
  // The same in all rows.
  void AddSame(Duration recorded, Duration first) { all_other |= first.ns ^ recorded.ns; }
};

}  // namespace

bool ToldRows::PlayEight(size_t first, StepBatch& batch) {
  AgainstOthers rows;
  for (size_t s = 0; s < StepBatch::kWidth && first + s < width_; ++s) {
    rows.of[s] = alone_[first + s] ? 0 : -1;
  }
  batch.Reset();
  Eight times = {};
  const auto add = [&](const TimeColumns& column, TaskId t, Duration was, Duration is,
                       int64_t* sums) {
    if (!column.Has(t)) return rows.AddSame(was, is);
    column.ReadEight(t, first, times);
    rows.Add(times, was, is, sums);
  };
  for (const Played& p : tasks_played_) {
    const StepBatch::Sums sums = batch.sums(p.task);
    add(columns_.durations, p.task, p.recorded.duration, p.first.duration, sums.duration);
    add(columns_.gaps, p.task, p.recorded.gap, p.first.gap, sums.gap);
  }
  for (size_t s = 0; s < StepBatch::kWidth; ++s) {
    if (rows.negative[s] < 0) return false;
  }
  batch.Run([&](size_t s, Duration step) {
    if (rows.of[s] == 0) return;
    longer_[first + s] = Duration::Ns(rows.longer[s]);
    PlayedStep& row = played_[first + s];
    row.step = step;
    row.periods.assign(batch.periods().begin(), batch.periods().end());
    row.as_recorded &= (rows.other[s] | rows.all_other) == 0;
  });
  return true;
}

void ToldRows::FindWork(const EndColumns& columns) {
  // What a row takes longer than the first: exactly, where that is no more than a replay takes, and
  // about, which tells.
  struct Longer {
    uint64_t exact = 0;  // wraps around
    double about = 0;
    void Add(Duration is, Duration was) {
      exact += static_cast<uint64_t>((is - was).ns);
      about += static_cast<double>((is - was).ns);
    }
  };
  std::vector<Longer> longer(width_);
  for (const Told& told : tasks_) {
    const std::span<const Times> times = std::span(times_).subspan(told.times, width_);
    for (size_t row = 1; row < width_; ++row) {
      longer[row].Add(times[row].duration, times[0].duration);
      longer[row].Add(times[row].gap, times[0].gap);
    }
  }
  // Rows that need edits of their own are alone, and those that take longer than the first, of
  // which is known that it fits a replay.
  for (size_t row = 1; row < width_; ++row) {
    longer_[row] = Duration::Ns(static_cast<int64_t>(longer[row].exact));
    alone_[row] = columns.needs_edits(row) || longer[row].about > 0;
  }
}

ToldRows::Row ToldRows::Take(size_t row) {
  if (alone_[row]) return nullptr;
  std::unique_ptr<BegunRows::Begun> spare;
  {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) spare = std::move(spare_.back());
    if (spare != nullptr) spare_.pop_back();
  }
  if (spare == nullptr) {
    GraphCopies::Copy graph = played_.empty() ? recorded_.copies.MakeOf(*lead_.graph) : nullptr;
    spare = std::make_unique<BegunRows::Begun>(BegunRows::Begun{
        std::move(graph), lead_.left_out, lead_.changes, lead_.bound, lead_.journals, lead_.trail});
  }
  if (spare->graph == nullptr) spare->graph = recorded_.copies.Make();
  for (const Told& told : tasks_) {
    const Times& times = times_[told.times + row];
    spare->graph->SetDuration(TaskId(told.at), times.duration);
    spare->graph->SetGap(TaskId(told.at), times.gap);
  }
  if (!played_.empty()) spare->played = played_[row];
  spare->work = {lead_.work->shape, lead_.work->time + longer_[row]};
  auto told = edits_.begin();
  for (uint32_t j = 0; j < lead_.journals.size(); ++j) {
    const auto end = std::find_if(told, edits_.end(), [&](const Told& e) { return e.journal > j; });
    SetEdits(row, std::span(told, end), j, spare->journals[j].edits);
    told = end;
  }
  return Row(spare.release(), GiveBack{this});
}

ToldRows::Row ToldRows::TakeGraph(size_t row) {
  if (alone_[row] || played_.empty() || !recorded_.graphs) return nullptr;
  Row taken = Take(row);
  taken->played.reset();
  RetimedTasks tasks = others_;
  tasks.reserve(tasks.size() + tasks_played_.size());
  for (const Played& p : tasks_played_) {
    const Duration duration = columns_.durations.Of(row, p.task, p.first.duration);
    const Duration gap = columns_.gaps.Of(row, p.task, p.first.gap);
    tasks.push_back({p.task, p.kind, false, p.recorded.duration, p.recorded.gap, duration, gap});
  }
  Retime(*taken->graph, std::move(tasks));
  return taken;
}

void ToldRows::SetEdits(size_t row, std::span<const Told> told, uint32_t journal,
                        std::vector<Editor::Edit>& edits) const {
  if (told.empty()) return;
  const std::vector<Editor::Edit>& lead = lead_.journals[journal].edits;
  edits.clear();
  for (uint32_t i = 0; i < lead.size(); ++i) {
    edits.push_back(lead[i]);
    if (told.empty() || told.front().at != i) continue;
    const Times by = told.front().times == kInFirst ? Times() : times_[told.front().times + row];
    edits.back().duration = by.duration, edits.back().gap = by.gap;
    told = told.subspan(1);
    // Behind the axis, what is no other than before is not set.
    const bool was = edits.back().task.index() < recorded_.graph.size() && !edits.back().moved;
    if (was && by == Times() && journal >= first_behind_) edits.pop_back();
  }
}

void ToldRows::Keep(BegunRows::Begun* row) {
  std::unique_ptr<BegunRows::Begun> back(row);
  if (!played_.empty()) back->graph.reset();
  std::lock_guard lock(mutex_);
  spare_.push_back(std::move(back));
}

}  // namespace daydream
