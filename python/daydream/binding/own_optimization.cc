#include "python/daydream/binding/own_optimization.h"

#include "python/daydream/binding/edit.h"
#include "python/daydream/binding/raise.h"

namespace nb = nanobind;

namespace daydream {

OwnOptimization::OwnOptimization(std::string name, std::string summary,
                                 std::vector<OwnParam> params, nb::callable function)
    : name_(std::move(name)),
      summary_(std::move(summary)),
      own_(std::move(params)),
      function_(std::move(function)) {
  for (const OwnParam& p : own_) {
    specs_.push_back({.name = p.name,
                      .fallback = p.value,
                      .low = p.low,
                      .high = p.high,
                      .min = -1e18,
                      .max = 1e18,
                      .help = "chosen by the user",
                      .source = "chosen by the user"});
  }
  transform_ = {.name = name_,
                .summary = summary_,
                .params = specs_,
                .stated_by_user = true,
                .model = "a function in Python",
                .ignores = "what the function does not say",
                .sources = "the user",
                .twice = "",
                .memory_model = "what edited forward work kept for backward",
                .own = this};
}

absl::StatusOr<Application> OwnOptimization::Apply(
    const std::vector<std::pair<std::string, std::string>>& given) const {
  DD_ASSIGN_OR_RETURN(Params params, BindParams(name_, specs_, given));
  return Application{&transform_, std::move(params), nullptr};
}

absl::Status OwnOptimization::Apply(const Params& params, Editor& editor) const {
  nb::gil_scoped_acquire python;
  Edit* edit = new Edit(editor);
  // Python owns it: whoever keeps it finds it closed.
  nb::object handed = nb::cast(edit, nb::rv_policy::take_ownership);
  struct End {
    Edit* edit;
    ~End() { edit->Close(); }
  } end{edit};
  nb::dict named;
  for (const OwnParam& p : own_) named[p.name.c_str()] = params[p.name];
  function_(handed, **named);
  return absl::OkStatus();
}

}  // namespace daydream
