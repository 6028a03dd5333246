// NVTX ranges as layers. A range is one when it lies around ops or launches, is no phase of the
// step, and comes back in every step; the path of a layer is made of the ranges around it.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "trace/nsys/finish.h"
#include "trace/step_names.h"

namespace daydream {
namespace {

constexpr std::string_view kModule = "nn.Module: ";

enum class RangeClass : uint8_t { kOther, kPath, kModule, kDotted, kWord };

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// "encoder.layer0", "model.layers.3.mlp": words joined by dots, no number first.
bool IsDotted(std::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  bool dot = false, word = false;
  for (char c : name) {
    if (c == '.') {
      if (!word) return false;
      dot = true;
      word = false;
    } else if (IsWordCharacter(c)) {
      word = true;
    } else {
      return false;
    }
  }
  return dot && word;
}

// Parts of every step, whatever the model is.
bool IsPhase(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(std::string(name));
  if (IsStepName(name) || lower.starts_with("## ") || lower.starts_with("nccl")) return true;
  for (std::string_view part : {"optimizer", "dataloader", "zero_grad", "forward", "backward",
                                "autograd", "grad-sync", "all-grads", "synchronize", "train"}) {
    if (lower.find(part) != std::string::npos) return true;
  }
  for (std::string_view word : {"step", "loss", "data", "batch", "update", "iteration"}) {
    if (lower == word) return true;
  }
  return false;
}

RangeClass ClassOf(std::string_view name) {
  if (name.find('\t') != std::string_view::npos) return RangeClass::kPath;
  if (name.starts_with(kModule)) return RangeClass::kModule;
  if (name.find(':') != std::string_view::npos) return RangeClass::kOther;  // of another domain
  const std::string_view plain = name.substr(0, name.find('('));
  if (IsPhase(plain)) return RangeClass::kOther;
  if (IsDotted(plain)) return RangeClass::kDotted;
  constexpr size_t kLongest = 64;
  const bool word = !plain.empty() && plain.size() <= kLongest &&
                    std::all_of(plain.begin(), plain.end(),
                                [](char c) { return IsWordCharacter(c) || c == ' ' || c == '-'; });
  return word ? RangeClass::kWord : RangeClass::kOther;
}

class Layers {
 public:
  explicit Layers(Trace& t) : t_(t) {}

  void Run() {
    FindSteps();
    for (size_t row = 0; row < t_.rows(); ++row) {
      if (t_.kind[row] == EventKind::kAnnotation) Note(row);
    }
    for (size_t lane = 0; lane < t_.lanes.size(); ++lane) {
      if (t_.lanes[lane].kind == LaneKind::kThread) NameLane(lane);
    }
  }

 private:
  struct Known {
    RangeClass range = RangeClass::kOther;
    size_t rows = 0, steps = 0, last_step = 0;
    bool around_work = false;
  };

  // Steps by the program's own marks; without any, nothing can be asked to come back.
  void FindSteps() {
    std::vector<Instant> ends;
    for (size_t row = 0; row < t_.rows(); ++row) {
      if (t_.kind[row] != EventKind::kAnnotation) continue;
      const std::string_view name = t_.EventName(row);
      if (IsStepName(name)) begins_.push_back(t_.start[row]);
      if (name.starts_with("Optimizer.step")) ends.push_back(t_.End(row));
    }
    if (begins_.size() < 2) begins_ = std::move(ends);
    std::sort(begins_.begin(), begins_.end());
  }

  size_t StepAt(Instant at) const {
    return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), at) -
                               begins_.begin());
  }

  bool LiesAroundWork(size_t row) const {
    const size_t end = t_.lane_begin[t_.lane[row].index() + 1];
    constexpr size_t kFurthest =
        64;  // further on come the ranges inside, which have work of their own
    for (size_t i = row + 1; i < std::min(end, row + kFurthest); ++i) {
      if (t_.start[i] >= t_.End(row)) return false;
      if (t_.kind[i] == EventKind::kOp || t_.kind[i] == EventKind::kCall) return true;
    }
    return false;
  }

  void Note(size_t row) {
    Known& known = names_[t_.name[row]];
    if (known.rows++ == 0) known.range = ClassOf(t_.EventName(row));
    if (known.range != RangeClass::kDotted && known.range != RangeClass::kWord) return;
    known.around_work |= LiesAroundWork(row);
    const size_t step = StepAt(t_.start[row]);
    if (known.rows == 1 || step != known.last_step) ++known.steps;
    known.last_step = step;
  }

  bool IsLayer(const Known& known) const;

  void NameLane(size_t lane) {
    struct Open {
      Instant end;
      std::string path;
    };
    std::vector<Open> open;
    for (size_t row = t_.lane_begin[lane]; row < t_.lane_begin[lane + 1]; ++row) {
      if (t_.kind[row] != EventKind::kAnnotation) continue;
      while (!open.empty() && open.back().end <= t_.start[row]) open.pop_back();
      const auto it = names_.find(t_.name[row]);
      if (it == names_.end() || !IsLayer(it->second)) continue;
      t_.kind[row] = EventKind::kFrame;
      if (it->second.range == RangeClass::kModule) {
        const std::string_view name = t_.EventName(row);
        t_.name[row] = t_.names->Intern(std::string(name.substr(0, name.find('('))));
        continue;
      }
      constexpr size_t kDeepest = 64;  // bounds the work of ranges that are all nested
      std::string path = PathOf(t_.EventName(row), open.empty() ? "" : open.back().path);
      t_.name[row] = t_.names->Intern(path);
      if (open.size() < kDeepest) open.push_back({t_.End(row), std::move(path)});
    }
  }

  // A path that goes on where the layer around it ends is whole; other names are parts of it.
  static std::string PathOf(std::string_view name, const std::string& around) {
    const size_t tab = name.find('\t');
    if (tab != std::string_view::npos) return std::string(name.substr(0, tab));
    const std::string part(name.substr(0, name.find('(')));
    if (around.empty() || part.starts_with(around + ".")) return part;
    return around + "." + part;
  }

  Trace& t_;
  std::vector<Instant> begins_;
  std::map<NameId, Known> names_;
};

bool Layers::IsLayer(const Known& known) const {
  // The recording may begin and end within a step.
  const size_t wanted = begins_.size() > 2 ? begins_.size() - 1 : begins_.size();
  switch (known.range) {
    case RangeClass::kPath:
    case RangeClass::kModule:
      return true;
    case RangeClass::kDotted:
      return known.around_work && (begins_.size() < 2 || known.steps >= wanted);
    case RangeClass::kWord:
      return known.around_work && begins_.size() >= 2 && known.steps >= wanted;
    case RangeClass::kOther:
      break;
  }
  return false;
}

}  // namespace

void FinishNsysTrace(Trace& trace) { Layers(trace).Run(); }

}  // namespace daydream
