// Relations that hold between predictions whatever the right numbers are, over all options: what
// changes nothing leaves the step alone, more of the same is never slower, nothing beats the limit
// of its kind, causes add up, an interval holds its point, and the order in which options are asked
// for does not matter. On the example traces and the small real ones; DAYDREAM_ALL_TRACES=1
// (scripts/relations) takes all, and our own recordings.
#include <cstdlib>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "graph/build.h"
#include "report/predict/what_if.h"
#include "simulator/simulate.h"
#include "tests/real_traces.h"
#include "trace/importer.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kSmall = 30'000;  // bytes of a compressed file

bool TakesAll() { return std::getenv("DAYDREAM_ALL_TRACES") != nullptr; }

// Few steps that differ: that their mean never grows is no theorem (docs/decisions/004). A
// thousandth of the step is less than what recordings of one program differ by.
double Slack() { return TakesAll() ? 1e-3 : 0; }

void AddFiles(const fs::path& folder, std::string_view suffix, std::vector<std::string>& found) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().string().ends_with(suffix)) found.push_back(entry.path().string());
  }
}

std::vector<std::string> Traces() {
  std::vector<std::string> found;
  const bool all = TakesAll();
  for (const auto& entry : fs::directory_iterator(fs::path(DAYDREAM_SOURCE_DIR) / "examples")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".ddtrace") && (all || name.starts_with("launch-bound"))) {
      found.push_back(entry.path().string());
    }
  }
  for (const std::string& name : RealTraces()) {
    const fs::path path = RealTraceFolder() / name;
    if (all || fs::file_size(path) < kSmall) found.push_back(path.string());
  }
  if (all) {
    const fs::path own = fs::path(DAYDREAM_SOURCE_DIR) / "tests/data/h200";
    AddFiles(own, ".ddtrace", found);
    AddFiles(RealTraceFolder() / "nsys", ".sqlite", found);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Settings that say "nothing changes".
constexpr std::string_view kIdentities[] = {"speedup(kernel:.,by=1)",
                                            "batch(x1)",
                                            "layers(x1)",
                                            "hidden(1)",
                                            "share(100%)",
                                            "accumulate(1)",
                                            "sparse(class:gemm,kept=100%)"};

// From weak to strong.
std::vector<std::vector<std::string>> Ladders() {
  const auto of = [](std::string_view format, std::initializer_list<std::string_view> values) {
    std::vector<std::string> ladder;
    for (std::string_view v : values) ladder.push_back(fmt::format(fmt::runtime(format), v));
    return ladder;
  };
  return {of("speedup(kernel:.,by={})", {"1.05", "1.1", "1.2", "1.5", "2", "10", "1000"}),
          of("speedup(class:gemm,by={})", {"0.5", "0.9", "1.1", "2"}),
          of("prefetch({})", {"1", "2", "4", "8", "16"}),
          of("batch(x{})", {"4", "2", "0.5"}),
          of("layers(x{})", {"2", "0.5"}),
          of("hidden({})", {"2", "1.5", "0.5"}),
          of("share({}%)", {"25", "50", "75"}),
          of("gpu(A100-SXM4-40GB,cpu={}x)", {"0.5", "1", "1.5", "2"})};
}

// Nothing of its kind beats a limit.
struct Limit {
  std::string_view limit;
  std::vector<std::string_view> below;
};
std::vector<Limit> Limits() {
  return {{"free-host", {"no-sync", "free-launch", "no-data-wait"}},
          {"free-gpu", {"speedup(kernel:.,by=1000)", "free-comm", "roofline"}},
          {"no-data-wait", {"prefetch(4)", "prefetch(16)", "cache"}}};
}

class Relations : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto trace = ImportFile(GetParam());
    ASSERT_TRUE(trace.ok()) << Message(trace.status());
    auto built = BuildGraph(*trace);
    if (!built.ok()) GTEST_SKIP() << DiagnosticOf(built.status()).what;
    built_ = std::make_unique<BuiltGraph>(*std::move(built));
    std::vector<std::string> specs(std::begin(kIdentities), std::end(kIdentities));
    for (const auto& ladder : Ladders()) specs.insert(specs.end(), ladder.begin(), ladder.end());
    for (const Limit& l : Limits()) {
      specs.emplace_back(l.limit);
      specs.insert(specs.end(), l.below.begin(), l.below.end());
    }
    for (const Transform* t : Transforms()) {
      const bool open = std::none_of(t->params.begin(), t->params.end(),
                                     [](const ParamSpec& p) { return p.required; });
      if (open) specs.emplace_back(t->name);
    }
    Predict(specs);
  }

  void Predict(const std::vector<std::string>& specs) {
    std::vector<std::vector<Application>> scenarios;
    for (const std::string& spec : specs) {
      auto scenario = ParseScenario(spec);
      ASSERT_TRUE(scenario.ok()) << spec << ": " << Message(scenario.status());
      scenarios.push_back(*std::move(scenario));
    }
    auto replay = CheckReplay(*built_, nullptr);
    ASSERT_TRUE(replay.ok()) << Message(replay.status());
    auto result = PredictAll(*built_, *replay, scenarios, {.alone = false});
    ASSERT_TRUE(result.ok()) << Message(result.status());
    for (const Prediction& p : result->predictions) {
      if (p.error.ok()) known_.emplace(p.name, p);
    }
    base_ = known_.at("baseline").step;
    for (size_t i = 0; i < specs.size(); ++i) {
      std::string name;
      for (const Application& a : scenarios[i]) {
        const std::string spelled(a.params.spelled().empty() ? a.transform->name
                                                             : a.params.spelled());
        name += (name.empty() ? "" : " + ") + spelled;
      }
      name_[specs[i]] = name;
    }
  }

  // nullptr where it cannot be applied.
  const Prediction* Of(std::string_view spec) const {
    const auto name = name_.find(spec);
    const auto it = known_.find(name == name_.end() ? std::string(spec) : name->second);
    return it == known_.end() ? nullptr : &it->second;
  }

  std::unique_ptr<BuiltGraph> built_;
  std::map<std::string, Prediction> known_;
  std::map<std::string, std::string, std::less<>> name_;
  Duration base_;
};

TEST_P(Relations, Hold) {
  for (std::string_view spec : kIdentities) {
    if (const Prediction* p = Of(spec)) {
      EXPECT_EQ(p->step, base_) << spec;
    }
  }
  for (const auto& ladder : Ladders()) {
    const Prediction* before = nullptr;
    for (const std::string& spec : ladder) {
      const Prediction* p = Of(spec);
      if (p != nullptr && before != nullptr) {
        EXPECT_LE(p->step, before->step + base_.Scaled(Slack()))
            << spec << " against " << before->name;
      }
      if (p != nullptr) before = p;
    }
  }
  for (const Limit& l : Limits()) {
    const Prediction* limit = Of(l.limit);
    for (std::string_view spec : l.below) {
      const Prediction* p = Of(spec);
      if (limit == nullptr || p == nullptr) continue;
      EXPECT_GE(p->step + base_.Scaled(1e-3), limit->step) << spec << " beats " << l.limit;
    }
  }
  for (const auto& [name, p] : known_) {
    Duration sum;
    for (const CauseShare& c : p.causes) sum += c.delta;
    EXPECT_LE(std::abs((sum - (p.step - base_)).ns), 2 + static_cast<int64_t>(p.causes.size()))
        << name;
    if (p.low && p.high) {
      EXPECT_LE(*p.low, p.step) << name;
      EXPECT_GE(*p.high, p.step) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, Relations, testing::ValuesIn(Traces()), [](const auto& info) {
  return TestNameOf(fs::path(info.param).filename().string());
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Relations);

}  // namespace
}  // namespace daydream
