#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "tests/example_graph.h"
#include "transforms/core/suggest.h"
#include "transforms/core/transform.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_files.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

Diagnostic ErrorOf(std::string_view spec) {
  auto scenario = ParseScenario(spec);
  EXPECT_FALSE(scenario.ok()) << spec;
  return DiagnosticOf(scenario.status());
}

TEST(Scenario, ReadsItemsAndPutsThemInTurn) {
  auto items = ParseScenario("free-gpu, speedup(kernel:sgemm, by=3x) ,free-host()");
  ASSERT_TRUE(items.ok()) << Message(items.status());
  ASSERT_EQ(items->size(), 3u);
  EXPECT_EQ((*items)[0].params.spelled(), "speedup(select=kernel:sgemm,by=3x)");
  EXPECT_EQ((*items)[1].params.spelled(), "free-gpu");
  EXPECT_EQ((*items)[2].transform->name, "free-host");
}

std::string Names(const std::vector<Application>& scenario) {
  std::string names;
  for (const Application& a : scenario) names += fmt::format("{} ", a.transform->name);
  return names;
}

// Whoever asks for two things in the other order gets the same answer, or the same refusal.
TEST(Scenario, AnyOrderOfTheSameIsTheSame) {
  for (const Transform* a : Transforms()) {
    for (const Transform* b : Transforms()) {
      if (a == b) continue;
      auto one = ParseScenario(fmt::format("{},{}", a->name, b->name));
      auto other = ParseScenario(fmt::format("{},{}", b->name, a->name));
      EXPECT_EQ(one.ok(), other.ok()) << a->name << ", " << b->name;
      if (one.ok() && other.ok()) {
        EXPECT_EQ(Names(*one), Names(*other));
      }
    }
  }
  EXPECT_EQ(Names(*ParseScenario("graphs,compile,amp,pin-memory,batch(x2),gpu(A100)")),
            "gpu batch pin-memory amp compile graphs ");
}

TEST(Scenario, ValuesMayHoldBracketsAndQuotes) {
  auto items = ParseScenario("remove(kernel:f(int, float[2]){1,2}),remove('a,b)')");
  ASSERT_TRUE(items.ok()) << Message(items.status());
  EXPECT_EQ((*items)[0].params.text("select"), "kernel:f(int, float[2]){1,2}");
  EXPECT_EQ((*items)[1].params.text("select"), "a,b)");
}

TEST(Scenario, WhatIsSpelledIsReadBackAsTheSame) {
  for (std::string_view spec : {"remove('a,b)')", "remove(\"it's\")", "speedup(op:conv,x4)"}) {
    auto once = ParseScenario(spec);
    ASSERT_TRUE(once.ok()) << spec;
    auto again = ParseScenario((*once)[0].params.spelled());
    ASSERT_TRUE(again.ok()) << (*once)[0].params.spelled();
    EXPECT_EQ((*once)[0].params.spelled(), (*again)[0].params.spelled());
  }
}

TEST(Scenario, PointsAtUnknownNames) {
  Diagnostic d = ErrorOf("free-gpu,free-hots");
  EXPECT_EQ(d.code, "E0102");
  EXPECT_EQ(d.what, "unknown optimization 'free-hots'");
  EXPECT_EQ(d.where, "free-gpu,free-hots\n         ^^^^^^^^^ did you mean 'free-host'?");
}

TEST(Scenario, PointsAtBadParameters) {
  Diagnostic d = ErrorOf("free-gpu,speedup(conv,by=fast)");
  EXPECT_EQ(d.code, "E0103");
  EXPECT_EQ(d.where, "free-gpu,speedup(conv,by=fast)\n         ^^^^^^^^^^^^^^^^^^^^^");
  EXPECT_EQ(ErrorOf("speedup").what.substr(0, 26), "speedup: select is missing");
  EXPECT_EQ(ErrorOf("free-gpu(3)").what, "free-gpu: takes no parameters");
}

TEST(Scenario, PathsMayHoldSpacesAndQuotedOnesAnything) {
  const std::string folder = testing::TempDir() + "daydream scenario, (test)";
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(testing::TempDir() + "daydream scenario");
  constexpr char kText[] =
      "daydream: 1\nname: mine\nsummary: s\nparams: {x: {default: 2, source: s}}\n"
      "steps: [{use: fuse}]\n";
  std::ofstream(folder + "/my idea.yaml") << kText;
  const std::string plain = testing::TempDir() + "daydream scenario/my idea.yaml";
  std::ofstream(plain) << kText;
  for (const std::string& spec :
       {"amp," + plain + "(x=3) ,free-gpu", "amp, '" + folder + "/my idea.yaml'(x=3),free-gpu",
        "amp,\"" + folder + "/my idea.yaml\" (x=3), free-gpu"}) {
    OptionFiles files;
    auto items = ParseScenario(spec, &files);
    ASSERT_TRUE(items.ok()) << spec << DiagnosticOf(items.status()).where;
    ASSERT_EQ(items->size(), 3u) << spec;
    EXPECT_EQ((*items)[0].params.spelled(), "mine(x=3)");
  }
  OptionFiles files;
  Diagnostic d = DiagnosticOf(ParseScenario("'" + plain + "'(y=3)", &files).status());
  EXPECT_EQ(d.fix, "daydream opt show " + plain);
  EXPECT_FALSE(ParseScenario("'" + plain, &files).ok());
  std::filesystem::remove_all(folder);
  std::filesystem::remove_all(testing::TempDir() + "daydream scenario");
}

TEST(Scenario, RefusesBrokenText) {
  for (std::string_view spec :
       {"", ",", "free-gpu,", "remove(", "remove(a", "remove('a)", "free-gpu)",
        "free-gpu free-host", "remove(a,,b)", "(", "=", "remove(select=)"}) {
    EXPECT_FALSE(ParseScenario(spec).ok()) << spec;
  }
}

TEST(Scenario, OptimizationsThatExcludeEachOtherAreRefused) {
  OptionFiles files;
  const std::string path = DAYDREAM_SOURCE_DIR "/examples/optimizations/launch-removal.yaml";
  ASSERT_TRUE(files.Load(path).ok());
  for (std::string_view spec : {"graphs,fuse,launch-removal", "launch-removal, graphs"}) {
    auto items = ParseScenario(spec, &files);
    ASSERT_FALSE(items.ok()) << spec;
    Diagnostic d = DiagnosticOf(items.status());
    EXPECT_EQ(d.code, "E0111");
    EXPECT_NE(d.where.find("both say what launches the kernels"), std::string::npos) << d.where;
    EXPECT_EQ(d.where.find('^') - d.where.find('\n') - 1,
              spec.find(spec.ends_with("graphs") ? "graphs" : "launch"));
  }
  EXPECT_TRUE(ParseScenario("launch-removal,fuse", &files).ok());
}

TEST(Scenario, SwitchesAreThereOnceWhileOthersMayRepeat) {
  for (std::string_view spec : {"amp,amp", "checkpointing,fuse,checkpointing", "offload,offload",
                                "gist,gist", "graphs,graphs", "prefetch(2),prefetch(4)",
                                "batch(x0.25),batch(x4)", "hidden(2),hidden(0.5)"}) {
    auto items = ParseScenario(spec);
    ASSERT_FALSE(items.ok()) << spec;
    const Diagnostic d = DiagnosticOf(items.status());
    EXPECT_EQ(d.code, "E0111") << spec;
    EXPECT_NE(d.what.find("is there twice"), std::string::npos) << d.what;
  }
  for (std::string_view spec :
       {"speedup(class:gemm,2x),speedup(class:conv,3x)", "batch(x2),hidden(2)",
        "remove(class:gemm),remove(class:conv)", "fuse(norm),fuse"}) {
    EXPECT_TRUE(ParseScenario(spec).ok()) << spec;
  }
}

// They copy what was recorded, or compute it again: at its new size and width.
TEST(Scenario, MemoryOptionsComeBehindWhatChangesTheWork) {
  EXPECT_EQ(Names(*ParseScenario("offload,amp,checkpointing,batch(x2)")),
            "batch amp checkpointing offload ");
  EXPECT_EQ(Names(*ParseScenario("gist,hidden(x2),amp")), "hidden amp gist ");
}

TEST(Scenario, FilesAreNamedByPathOrByName) {
  const std::string folder = DAYDREAM_SOURCE_DIR "/examples/optimizations";
  OptionFiles files({folder});
  auto items = ParseScenario(folder + "/fused-adam.yaml(bytes_left=40%), fused-adam, fuse", &files);
  ASSERT_TRUE(!items.ok());  // both merge the kernels of the optimizer
  items = ParseScenario(folder + "/fused-adam.yaml(bytes_left=40%), fused-adam", &files);
  ASSERT_TRUE(items.ok()) << Message(items.status());
  EXPECT_EQ((*items)[0].params.spelled(), "fused-adam(bytes_left=40%)");
  EXPECT_EQ((*items)[0].transform, (*items)[1].transform);
  EXPECT_EQ(files.all().size(), 1u);
  auto missing = ParseScenario("./no-such-file.yaml", &files);
  EXPECT_EQ(DiagnosticOf(missing.status()).code, "E0401");
  auto misspelt = ParseScenario("fused-adm", &files);
  EXPECT_NE(DiagnosticOf(misspelt.status()).where.find("did you mean 'fused-adam'?"),
            std::string::npos);
}

TEST(Suggest, CountsEdits) {
  EXPECT_EQ(EditDistance("fues", "fuse"), 1u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("amp", "amp"), 0u);
}

TEST(Transforms, AreDescribed) {
  std::set<std::string_view> names;
  for (const Transform* t : Transforms()) {
    EXPECT_TRUE(names.insert(t->name).second) << t->name;
    EXPECT_NE(t->apply, nullptr);
    for (std::string_view text : {t->summary, t->model, t->ignores, t->sources}) {
      EXPECT_FALSE(text.empty()) << t->name;
    }
    EXPECT_NE(t->summary.back(), '.') << t->name;
    EXPECT_EQ(FindTransform(t->name), t);
    for (const ParamSpec& p : t->params) {
      EXPECT_FALSE(p.source.empty()) << t->name << " " << p.name;
      EXPECT_FALSE(p.help.empty()) << t->name << " " << p.name;
      if (p.unit == Unit::kText) continue;
      EXPECT_LE(p.min, p.low) << t->name << " " << p.name;
      EXPECT_LE(p.low, p.fallback) << t->name << " " << p.name;
      EXPECT_LE(p.fallback, p.high) << t->name << " " << p.name;
      EXPECT_LE(p.high, p.max) << t->name << " " << p.name;
    }
  }
}

// Kernels take `factor` of their time.
struct OtherKernels : OwnEdits {
  double factor = 1;
  absl::Status Apply(const Params&, Editor& edit) const override {
    if (factor == 1) return absl::OkStatus();
    edit.Scale(
        edit.Select([](const Graph& g, TaskId t) { return g.task(t).kind == TaskKind::kKernel; }),
        factor);
    return absl::OkStatus();
  }
};

TEST(Scenario, EditsOfAnotherLanguageAreAppliedAndCheckedAsAll) {
  Graph graph = Example("launch-bound").graph;
  OtherKernels edits;
  const Transform mine = {.name = "mine", .own = &edits};
  auto nothing = Apply({.transform = &mine}, graph);
  EXPECT_EQ(DiagnosticOf(nothing.status()).code, "E0601");
  EXPECT_NE(DiagnosticOf(nothing.status()).fix.find("select()"), std::string::npos);
  edits.factor = 0.5;
  auto half = Apply({.transform = &mine}, graph);
  ASSERT_TRUE(half.ok()) << Message(half.status());
  EXPECT_GT(half->changes.scaled, 0u);
  edits.factor = 1e300;
  EXPECT_EQ(DiagnosticOf(Apply({.transform = &mine}, graph).status()).code, "E0617");
}

}  // namespace
}  // namespace daydream
