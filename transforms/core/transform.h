// A Transform is what users call an optimization: data and one function, no state. Each lives in
// its own file of transforms/optimizations/ and has one line in transforms.def there, a page in
// docs/optimizations/ and a golden case in tests/golden/; a test fails while one is missing.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "transforms/core/editor.h"
#include "transforms/core/params.h"

namespace daydream {

// What trying it for real takes, for `advise`. Empty for bounds and modelling verbs, which nobody
// can switch on.
struct Advice {
  std::string_view effort;  // "2 lines", "1 word", "~20 lines"
  std::string_view risk;    // "none", "numerics", "fixed shapes"
  std::string_view how;     // the code line to try
};

// Another transform that cannot be in the same scenario.
struct Conflict {
  std::string_view with;    // its name
  std::string_view reason;  // "both say what launches the kernels"
  // Where the other one would have to stand for that: anywhere, or before or after this one only.
  enum Place : uint8_t { kAnywhere, kBefore, kAfter };
  Place comes = kAnywhere;
};

// How applying it changes the peak of GPU memory (transforms/analysis/memory_profile.h).
enum class MemoryEffect : uint8_t {
  kKept,  // by what the edited ops keep for backward, and by what Changes::memory adds
  kAdds,  // only by what Changes::memory says
  kNone,
};

class OptionFile;

// Edits that are no plain function: those of another language (python/daydream). Apply() may be
// called from several threads at once, and what it throws ends the prediction.
class OwnEdits {
 public:
  virtual ~OwnEdits() = default;
  virtual absl::Status Apply(const Params& params, Editor& edit) const = 0;
};

// What an optimization does at other values of its parameters than those that it is applied with.
enum class AtEnds : uint8_t {
  kEdits,  // other edits, or nobody has said
  kTimes,  // the same edits, where nothing that came before takes other times: only durations are
           // others, and it tells them all (Editor::SetAtEnds)
  kTold,   // the same, whatever the times of what came before
  kGaps,   // as kTold, and gaps may be others, too, where all that comes after is of this kind.
           // Where other edits are needed, it says so (Editor::NeedEditsAt)
};

struct Transform {
  std::string_view name;     // "amp"
  std::string_view summary;  // one line, no full stop
  std::span<const ParamSpec> params = {};
  bool bound = false;  // a limit, not a prediction: printed with <=
  // Ops do the recorded work in another time, as on another GPU: their shapes still tell the work.
  bool same_work = false;
  // The user says what changes: there is no model that could be wrong.
  bool stated_by_user = false;
  AtEnds ends = AtEnds::kEdits;
  // Edits the graph. FailedPrecondition (with a Diagnostic) when the trace lacks what it needs.
  absl::Status (*apply)(const Params& params, Editor& edit) = nullptr;
  std::string_view model;    // what changes and how the new times are found, a few sentences
  std::string_view ignores;  // what is not modelled
  std::string_view sources;  // papers and documents behind the model
  Advice advice = {};
  std::span<const Conflict> conflicts = {};  // one of the two transforms needs to say it
  // Why a scenario cannot have it twice. Empty when it can: a second one is about other tasks, or
  // does more of the same.
  std::string_view twice = "a second time would count the same gain twice";
  MemoryEffect memory = MemoryEffect::kKept;
  std::string_view memory_model;  // what the change of the peak rests on, or why there is none
  // An optimization of the user's own (transforms/scenario/option_file.h), which then does what
  // `apply` does for the others.
  const OptionFile* file = nullptr;
  const OwnEdits* own = nullptr;  // the same for edits in another language
};

}  // namespace daydream
