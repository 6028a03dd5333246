#include "tools/input/candidates.h"

#include <algorithm>

#include "tools/input/scenarios.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

// What `fuse` brings in one word is the optimizer; kernels of the model are merged by a compiler,
// which is `compile`.
std::vector<std::pair<std::string, std::string>> ArgumentsToTry(const Transform& t) {
  if (t.file == nullptr && t.name == "fuse") return {{"what", "optimizer"}};
  return {};
}

// The first parameter without a value, or "".
std::string_view OpenParam(const Transform& t) {
  for (const ParamSpec& spec : t.params) {
    if (spec.required) return spec.name;
  }
  return "";
}

absl::Status CheckExcluded(std::span<const std::string> excluded,
                           std::span<const Transform* const> known) {
  std::vector<std::string_view> names;
  for (const Transform* t : known) names.push_back(t->name);
  for (const std::string& name : excluded) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0102",
                       .what = fmt::format("--exclude: unknown optimization '{}'{}", name,
                                           DidYouMean(name, names)),
                       .fix = "daydream opt list"});
  }
  return absl::OkStatus();
}

// Those of --opt, one each.
absl::StatusOr<std::vector<Application>> GivenOptions(const Args& args, OptionFiles& files) {
  std::vector<Application> given;
  for (const std::string& spec : args.All("--opt")) {
    DD_ASSIGN_OR_RETURN(std::vector<Application> scenario, ParseScenario(spec, &files));
    if (scenario.size() != 1) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0104",
                         .what = fmt::format("--opt '{}' is more than one optimization", spec),
                         .why = "advise looks for the set itself",
                         .fix = "give each its own --opt, or ask whatif about the list"});
    }
    given.push_back(std::move(scenario[0]));
  }
  return given;
}

}  // namespace

absl::StatusOr<Candidates> FindCandidates(const Args& args, const Budget& budget,
                                          Session& session) {
  OptionFiles files(OptionFolders());
  for (const std::string& path : args.All("--opt-file")) {
    DD_RETURN_IF_ERROR(files.Load(path).status());
  }
  LoadFolders(files, session);
  const std::vector<std::string> excluded = args.All("--exclude");
  std::vector<const Transform*> known(Transforms().begin(), Transforms().end());
  for (const auto& file : files.all()) known.push_back(&file->transform());
  DD_RETURN_IF_ERROR(CheckExcluded(excluded, known));
  DD_RETURN_IF_ERROR(CheckRisks(budget, known));
  DD_ASSIGN_OR_RETURN(std::vector<Application> given, GivenOptions(args, files));
  Candidates out;
  auto add = [&](Application a) {
    const std::string over = a.transform->bound ? "" : OverBudget(budget, a.transform->advice);
    if (over.empty()) {
      (a.transform->bound ? out.limits : out.options).push_back(std::move(a));
    } else {
      out.over_budget.push_back(fmt::format("{} ({})", a.transform->name, over));
    }
  };
  for (size_t i = 0; i < known.size(); ++i) {
    const Transform& t = *known[i];
    const bool mine = i >= Transforms().size();
    // Without advice it is a verb of modelling, which nobody can switch on.
    if (!mine && !t.bound && t.advice.how.empty()) continue;
    if (std::find(excluded.begin(), excluded.end(), t.name) != excluded.end()) continue;
    if (std::string_view open = OpenParam(t); !open.empty()) {
      const bool known_value = std::any_of(given.begin(), given.end(),
                                           [&](const Application& a) { return a.transform == &t; });
      if (!t.bound && !known_value) out.open.push_back(fmt::format("{}({}=...)", t.name, open));
      continue;
    }
    DD_ASSIGN_OR_RETURN(Params params, BindParams(t.name, t.params, ArgumentsToTry(t)));
    add({&t, std::move(params), mine ? files.all()[i - Transforms().size()] : nullptr});
  }
  for (Application& a : given) add(std::move(a));
  return out;
}

}  // namespace daydream
