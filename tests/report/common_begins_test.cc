// Lists that begin alike come out as if each was applied by itself.
#include "report/predict/common_begins.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "report/parallel.h"
#include "report/predict/what_if.h"
#include "simulator/simulate.h"
#include "tests/example_graph.h"
#include "transforms/optimizations/optimizations.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/scenario.h"

namespace daydream {
namespace {

std::vector<std::vector<Application>> Lists(std::span<const char* const> specs) {
  std::vector<std::vector<Application>> lists;
  for (const char* spec : specs) lists.push_back(*ParseScenario(spec));
  return lists;
}

void ExpectAsAlone(const Graph& recorded, const std::vector<Application>& list,
                   const CommonBegins::Applied& applied) {
  Graph alone = recorded;
  double samples = 1;
  const Transform* idle = nullptr;
  const absl::Status status = ApplyAll(list, alone, [&](const Application& a, const Applied* done) {
    if (done == nullptr) idle = a.transform;
    if (done != nullptr) samples *= done->changes.samples;
    return absl::OkStatus();
  });
  EXPECT_EQ(applied.status.code(), status.code());
  EXPECT_EQ(DiagnosticOf(applied.status).what, DiagnosticOf(status).what);
  if (!status.ok()) return;
  EXPECT_EQ(applied.samples, samples);
  EXPECT_EQ(applied.idle, idle);
  EXPECT_TRUE(Plan::SameStructure(*applied.graph, alone));
  const Timeline expected = *Simulate(alone), played = *Simulate(*applied.graph);
  EXPECT_EQ(played.start, expected.start);
  EXPECT_EQ(played.end, expected.end);
}

// What begins alike: nothing, one, two, a whole list, and what finds nothing to do.
constexpr const char* kLists[] = {"amp",
                                  "amp,fuse",
                                  "amp,fuse,compile",
                                  "amp,fuse,graphs",
                                  "amp,compile,graphs",
                                  "amp,free-comm,graphs",
                                  "amp,free-comm,checkpointing",
                                  "batch(x2),compile,graphs",
                                  "batch(x2),compile,checkpointing",
                                  "free-comm",
                                  "free-comm,no-data-wait"};

TEST(CommonBegins, ListsAreAppliedAsIfAlone) {
  for (const char* name : {"resnet50", "launch-bound"}) {
    const BuiltGraph built = Example(name);
    const std::vector<std::vector<Application>> lists = Lists(kLists);
    GraphCopies copies(built.graph);
    for (const unsigned threads : {1, 3}) {
      CommonBegins begins(built.graph.size(), copies);
      std::vector<CommonBegins::Applied> applied(lists.size());
      ForEachParallel(lists.size(), threads,
                      [&](size_t i) { applied[i] = begins.Apply(lists[i]); });
      for (size_t i = 0; i < lists.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} {}", name, kLists[i]));
        ExpectAsAlone(built.graph, lists[i], applied[i]);
      }
    }
  }
}

// `fuse`, and how often it was applied.
class CountedFuse {
 public:
  CountedFuse() : counted_(*(original_ = FindTransform("fuse"))) {
    applies_ = 0;
    counted_.apply = [](const Params& params, Editor& edit) {
      ++applies_;
      return original_->apply(params, edit);
    };
  }
  // Lists whose second is it.
  std::vector<Application> ListOf(const char* spec) const {
    std::vector<Application> list = *ParseScenario(spec);
    list[1].transform = &counted_;
    return list;
  }
  int applies() const { return applies_; }

 private:
  inline static const Transform* original_ = nullptr;
  inline static int applies_ = 0;
  Transform counted_;
};

// Others use the memory then.
TEST(CommonBegins, WhatIsForgottenIsAppliedOnceMore) {
  const CountedFuse fuse;
  const BuiltGraph built = Example("launch-bound");
  GraphCopies copies(built.graph);
  CommonBegins begins(built.graph.size(), copies);
  for (const int expected : {1, 1, 2}) {
    if (expected == 2) begins.Forget();
    ExpectAsAlone(built.graph, *ParseScenario("amp,fuse"), begins.Apply(fuse.ListOf("amp,fuse")));
    EXPECT_EQ(fuse.applies(), expected);
  }
}

TEST(CommonBegins, AListThatWasAppliedInFullIsBegunWith) {
  const CountedFuse fuse;
  const BuiltGraph built = Example("launch-bound");
  GraphCopies copies(built.graph);
  CommonBegins begins(built.graph.size(), copies);
  for (const char* list : {"amp,fuse", "amp,fuse,graphs", "amp,fuse,aot"}) {
    SCOPED_TRACE(list);
    ExpectAsAlone(built.graph, *ParseScenario(list), begins.Apply(fuse.ListOf(list)));
    EXPECT_EQ(fuse.applies(), 1);
  }
}

// Lists in full make place for what others begin with.
TEST(CommonBegins, ListsThatNoneBeginsWithTakeNoPlaceOfOthers) {
  const CountedFuse fuse;
  const BuiltGraph built = Example("launch-bound");
  GraphCopies copies(built.graph);
  CommonBegins begins(/*tasks=*/1'000'000 / 3, copies);
  for (const char* list : {"amp,fuse,graphs", "free-comm", "no-data-wait", "amp,fuse,aot"}) {
    begins.Apply(std::string_view(list).starts_with("amp") ? fuse.ListOf(list)
                                                           : *ParseScenario(list));
    EXPECT_EQ(fuse.applies(), 1) << list;
  }
}

// Too large for copies to be kept, nothing is common.
TEST(CommonBegins, LargeGraphsAreAppliedListByList) {
  const BuiltGraph built = Example("launch-bound");
  const std::vector<std::vector<Application>> lists = Lists(kLists);
  GraphCopies copies(built.graph);
  CommonBegins begins(/*tasks=*/1'000'000'000, copies);
  ExpectAsAlone(built.graph, lists[2], begins.Apply(lists[2]));
}

// Where few are kept, those that make place for others are made anew.
TEST(CommonBegins, WhatIsKeptMakesPlaceForOthers) {
  const BuiltGraph built = Example("launch-bound");
  const std::vector<std::vector<Application>> lists = Lists(kLists);
  for (const size_t kept : {1, 2, 3}) {
    GraphCopies copies(built.graph);
    CommonBegins begins(/*tasks=*/1'000'000 / kept, copies);
    for (int twice = 0; twice < 2; ++twice) {
      for (const auto& list : lists) ExpectAsAlone(built.graph, list, begins.Apply(list));
    }
  }
}

}  // namespace
}  // namespace daydream
