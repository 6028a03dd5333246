#include "transforms/option_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "transforms/option_files.h"

namespace daydream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Two layers of two kernels each, and a blocking copy of 1 MB.
constexpr std::string_view kGraph = R"text(
lane main   thread
lane gpu0.7 stream
step "1" period 100us
layer a "a"
layer b "b"
scope mm op main "aten::mm" shapes="[[100, 100], [100, 100]]" types="[\"float\", \"float\"]"
scope cp op main "aten::copy_"
c0 main call 5us "cudaMemcpyAsync" scope cp
m0 gpu0.7 memcpy 100us "Memcpy HtoD" after c0 launch scope cp bytes=1000000 from=pageable to=device
w0 main wait "cudaMemcpyAsync" scope cp until m0 hostwait
c1 main call 5us "cudaLaunchKernel" scope mm
k1 gpu0.7 kernel 40us "sgemm" after c1 launch layer a phase forward scope mm
c2 main call 5us "cudaLaunchKernel"
k2 gpu0.7 kernel 10us "relu" after c2 launch layer a phase forward
c3 main call 5us "cudaLaunchKernel"
k3 gpu0.7 kernel 20us "relu" after c3 launch layer b phase forward
c4 main call 5us "cudaLaunchKernel"
k4 gpu0.7 kernel 30us "softmax" after c4 launch layer b phase backward
)text";

constexpr std::string_view kHead = "daydream: 1\nname: mine\nsummary: A test\n";

absl::StatusOr<std::shared_ptr<const OptionFile>> Read(std::string_view text) {
  return OptionFile::Parse(std::string(kHead) + std::string(text), "mine.yaml");
}

struct Outcome {
  std::string error;  // code
  Graph graph;
  Applied applied;
  Duration before, after;
};

Outcome Play(std::string_view text, std::string_view spec = "mine") {
  Outcome out;
  auto file = Read(text);
  EXPECT_TRUE(file.ok()) << Message(file.status());
  auto graph = ParseGraph(kGraph);
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
  if (!file.ok() || !graph.ok()) return out;
  out.graph = *graph;
  out.before = Simulate(*graph)->makespan;
  std::vector<std::pair<std::string, std::string>> args;
  if (spec.find('=') != std::string_view::npos) {
    args.emplace_back(spec.substr(0, spec.find('=')), spec.substr(spec.find('=') + 1));
  }
  const Transform& t = (*file)->transform();
  auto params = BindParams(t.name, t.params, args);
  EXPECT_TRUE(params.ok()) << Message(params.status());
  auto applied = Apply({&t, *params, *file}, out.graph);
  if (!applied.ok()) {
    out.error = DiagnosticOf(applied.status()).code;
    return out;
  }
  out.applied = *applied;
  auto after = Simulate(out.graph);
  EXPECT_TRUE(after.ok()) << Message(after.status());
  if (after.ok()) out.after = after->makespan;
  return out;
}

// "CODE LINE:COLUMN" of the error that reading `text` behind the head gives.
std::string Wrong(std::string_view text) {
  auto file = Read(text);
  if (file.ok()) return "fine";
  Diagnostic d = DiagnosticOf(file.status());
  std::string place = d.where.substr(0, d.where.find('\n'));
  return d.code + " " + place.substr(place.find(':') + 1);
}

// m0 5-105 blocks the host, c1 105-110, then k1-k4 one after the other: 110 + 40 + 10 + 20 + 30.
constexpr Duration kBefore = Duration::Us(210);

TEST(OptionFile, ScalesWhatItSelects) {
  Outcome out = Play(R"(params: {x: {default: 2, low: 1, high: 4, unit: x, source: s}}
steps: [{select: {kernel: relu}, scale: {time: '1 / $x'}}]
)");
  EXPECT_EQ(out.before, kBefore);
  EXPECT_EQ(out.after, kBefore - Duration::Us(15));
  EXPECT_EQ(out.applied.changes.scaled, 2u);
  ASSERT_THAT(out.applied.causes, SizeIs(1));
  EXPECT_EQ(out.applied.causes[0].what, "scaled (mine.yaml:5)");
}

TEST(OptionFile, ParametersAreThoseOfOtherOptimizations) {
  constexpr std::string_view kText = R"(params: {x: {default: 2, low: 1, high: 4, source: s}}
steps: [{select: {kernel: relu}, scale: {time: '1 / $x'}}]
)";
  EXPECT_EQ(Play(kText, "x=4").after, kBefore - Duration::Us(22) - Duration::Ns(500));
  EXPECT_EQ(Play(kText, "x=4").applied.spelled, "mine(x=4)");
  auto file = Read(kText);
  ASSERT_TRUE(file.ok());
  const ParamSpec& spec = (*file)->transform().params[0];
  EXPECT_EQ(spec.low, 1);
  EXPECT_EQ(spec.high, 4);
  EXPECT_EQ(spec.source, "s");
}

TEST(OptionFile, SelectorsCombine) {
  auto scaled = [](std::string_view selector) {
    return Play(fmt::format("steps: [{{select: {}, set: {{time: 1us}}}}]\n", selector))
        .applied.changes.set;
  };
  EXPECT_EQ(scaled("{kind: kernel, layer: a}"), 2u);
  EXPECT_EQ(scaled("{kernel: [relu, softmax]}"), 3u);
  EXPECT_EQ(scaled("{kind: kernel, not: {kernel: relu}}"), 2u);
  EXPECT_EQ(scaled("[{kind: kernel}, {phase: forward}]"), 3u);
  EXPECT_EQ(scaled("{any: [{kernel: sgemm}, {phase: backward}]}"), 2u);
  EXPECT_EQ(scaled("{kind: kernel, where: 'time >= 20us'}"), 3u);
  EXPECT_EQ(scaled("{kind: kernel, before: {layer: b}}"), 2u);
  EXPECT_EQ(scaled("{kind: kernel, after: {kernel: relu}}"), 1u);
  EXPECT_EQ(scaled("{first: {kernel: relu}}"), 1u);
  EXPECT_EQ(scaled("{last: {kind: kernel}}"), 1u);
  EXPECT_EQ(scaled("{launched_by: {kind: launch}}"), 5u);
  EXPECT_EQ(scaled("{kind: kernel, inside: {op: mm}}"), 1u);
  EXPECT_EQ(scaled("'kernel:relu&layer:a'"), 1u);
  EXPECT_EQ(scaled("{direction: h2d, memory: pageable}"), 1u);
  EXPECT_EQ(scaled("{kind: gpu, stream: 7}"), 5u);
  EXPECT_EQ(scaled("{kind: gpu, where: 'flops > 1MFLOP'}"), 1u);
}

TEST(OptionFile, FusesGroups) {
  Outcome out = Play(R"(define: {core: {kind: kernel}}
steps:
  - fuse:
      select: [core, {phase: forward}]
      group_by: [step, module]
      into: {name: fused, category: attention, time: 'sum(time) / 2', launches: 1}
)");
  // a: 50 us become 25; b has one kernel of the phase and stays.
  EXPECT_EQ(out.after, kBefore - Duration::Us(25));
  EXPECT_EQ(out.applied.changes.fused, 2u);
  EXPECT_EQ(out.applied.causes[0].what, "fused into fused_attention (mine.yaml:6)");
}

TEST(OptionFile, CopiesMoveAndNoLongerBlock) {
  Outcome out = Play(R"(steps:
  - select: {kind: memcpy, direction: h2d}
    set: {time: 'bytes / 20GB/s', memory: pinned}
    move: {stream: new(copy)}
    unblock: host
)");
  // The copy takes 50 us from 5 us on; k1 waits for it and runs from 55 us.
  EXPECT_EQ(out.after, Duration::Us(155));
  EXPECT_EQ(out.applied.changes.moved, 1u);
  EXPECT_EQ(out.graph.Copy(TaskId(1))->from, Memory::kPinned);
}

TEST(OptionFile, InsertsBesideAndOnItsOwnStream) {
  Outcome beside = Play(R"(steps:
  - insert: {kernel: {name: pack, time: 'time / 2'}, after: {kernel: relu}, launch: none}
)");
  EXPECT_EQ(beside.after, kBefore + Duration::Us(15));
  EXPECT_EQ(beside.applied.changes.inserted, 2u);
  Outcome apart = Play(R"(steps:
  - insert:
      copy: {name: offload, time: 200us, bytes: 1MB, direction: d2h, stream: new(out)}
      after: {kernel: sgemm}
)");
  // The copy runs from the end of sgemm at 150 us, beside everything else.
  EXPECT_EQ(apart.after, Duration::Us(350));
}

TEST(OptionFile, LaterStepsSeeEarlierOnes) {
  Outcome out = Play(R"(steps:
  - insert: {kernel: {name: pack, time: 10us}, after: {kernel: sgemm}, launch: none}
  - select: {kernel: pack}
    set: {time: 30us}
)");
  EXPECT_EQ(out.after, kBefore + Duration::Us(30));
}

TEST(OptionFile, RemovesLinksAndUses) {
  EXPECT_EQ(Play("steps: [{select: {kernel: softmax}, remove: true}]").after,
            kBefore - Duration::Us(30));
  // c2 waits for the end of sgemm at 150 us and 10 us more, and launches 5 us later.
  EXPECT_EQ(Play("steps: [{link: {from: {kernel: sgemm}, to: {call: .}, lag: 10us}}]").after,
            kBefore + Duration::Us(15));
  EXPECT_EQ(Play("steps: [{use: 'speedup(relu, 3x)'}]").after, kBefore - Duration::Us(20));
}

TEST(OptionFile, MaySayHowTheMemoryChanges) {
  const Outcome out = Play(R"(params: {saved: {default: 50%, source: a guess}}
memory: '-$saved * 3GB'
steps: [{select: {kernel: softmax}, remove: true}]
)");
  ASSERT_EQ(out.applied.changes.memory.size(), 1u);
  EXPECT_EQ(out.applied.changes.memory[0].bytes, -1'500'000'000);
  EXPECT_EQ(Play("memory: '1e9GB'\nsteps: [{select: {kernel: softmax}, remove: true}]").error,
            "E0424");
  EXPECT_FALSE(Read("memory: 3ms\nsteps: [{use: fuse}]\n").ok());
}

TEST(OptionFile, WhatMatchesNothingIsAnError) {
  EXPECT_EQ(Play("steps: [{select: {kernel: dropout}, remove: true}]").error, "E0601");
  EXPECT_EQ(Play(R"(steps: [{select: {kernel: relu}, remove: true}]
checks: [{expect: matched, of: {kernel: dropout}, at_least: 1}]
)")
                .error,
            "E0421");
  EXPECT_EQ(Play("needs: [module_names]\nsteps: [{select: {kernel: relu}, remove: true}]").error,
            "");
  EXPECT_EQ(Play("needs: [collectives]\nsteps: [{select: {kernel: relu}, remove: true}]").error,
            "E0422");
}

TEST(OptionFile, TasksThatLackAFieldAreCountedOrRefused) {
  Outcome out = Play("steps: [{select: {kind: kernel}, set: {time: 'flops / 1TFLOPS'}}]");
  EXPECT_EQ(out.error, "");
  EXPECT_THAT(out.applied.changes.warnings,
              ElementsAre("mine.yaml:4: 3 of 4 tasks stay as they are: no flops"));
  EXPECT_EQ(Play("needs: [flops]\nsteps: [{select: {kind: kernel}, "
                 "set: {time: 'flops / 1TFLOPS'}}]")
                .error,
            "E0423");
}

TEST(OptionFile, ValuesWithoutMeaningAreErrors) {
  EXPECT_EQ(Play("steps: [{select: {kernel: relu}, set: {time: 'time - 15us'}}]").error, "E0424");
  EXPECT_EQ(Play("steps: [{select: {kernel: relu}, scale: {time: '1 / 0'}}]").error, "E0424");
  EXPECT_EQ(Play("steps: [{select: {kernel: relu}, scale: {time: '0 / 0'}}]").error, "E0424");
  EXPECT_EQ(Play("steps: [{select: {kernel: relu}, set: {time: '1e9s * 1e9'}}]").error, "E0424");
}

TEST(OptionFile, WorkThatWaitsForItselfIsAnError) {
  // By its recorded start the kernel is before the call that launched it.
  auto graph = ParseGraph(R"text(
lane main   thread
lane gpu0.7 stream
c1 main call 5us "cudaLaunchKernel" at 5us
k1 gpu0.7 kernel 40us "sgemm" after c1 launch at 1us
)text");
  auto file = Read("steps:\n  - link: {from: {kernel: sgemm}, to: {call: .}}\n");
  ASSERT_TRUE(graph.ok() && file.ok());
  const Transform& t = (*file)->transform();
  auto applied = Apply({&t, *BindParams(t.name, {}, {}), *file}, *graph);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(DiagnosticOf(applied.status()).code, "E0425");
  EXPECT_THAT(DiagnosticOf(applied.status()).where, HasSubstr("mine.yaml:5:5\n"));
}

TEST(OptionFile, NeutralValuesChangeNothing) {
  for (std::string_view steps : {"steps: [{select: {kind: kernel}, scale: {time: 1}}]",
                                 "steps: [{select: {kind: gpu}, set: {time: 'time'}}]",
                                 "steps: [{select: {kind: host}, set: {gap: 'gap'}}]"}) {
    EXPECT_EQ(Play(steps).error, "E0601") << steps;
  }
}

TEST(OptionFile, MistakesHaveLineAndColumn) {
  EXPECT_EQ(Wrong("stepz: []\n"), "E0405 4:1");
  EXPECT_EQ(Wrong("steps: []\n"), "E0406 4:8");
  EXPECT_EQ(Wrong("steps:\n  - select: {kernl: x}\n    remove: true\n"), "E0405 5:14");
  EXPECT_EQ(Wrong("steps:\n  - select: {kernel: 'sgemm(128'}\n    remove: true\n"), "E0412 5:23");
  EXPECT_EQ(Wrong("steps:\n  - select: {phase: forwards}\n    remove: true\n"), "E0411 5:21");
  EXPECT_EQ(Wrong("steps:\n  - select: core\n    remove: true\n"), "E0415 5:13");
  EXPECT_EQ(Wrong("define: {a: b, b: {kernel: x}}\nsteps: []\n"), "E0415 4:13");
  EXPECT_EQ(Wrong("steps:\n  - select: {kernel: x}\n    set: {time: '5ms + 3MB'}\n"), "E0414 6:24");
  EXPECT_EQ(Wrong("steps:\n  - select: {kernel: x}\n    set: {time: '$y * time'}\n"), "E0413 6:18");
  EXPECT_EQ(Wrong("steps:\n  - select: {kernel: x}\n    scale: {tme: 2}\n"), "E0405 6:13");
  EXPECT_EQ(Wrong("steps:\n  - remove: true\n"), "E0406 5:5");
  EXPECT_EQ(Wrong("steps:\n  - use: ampp\n"), "E0416 5:10");
  EXPECT_EQ(Wrong("steps:\n  - use: ./mine.yaml\n"), "E0416 5:10");
  EXPECT_EQ(Wrong("params: {x: {default: 2}}\nsteps: []\n"), "E0406 4:13");
  EXPECT_EQ(Wrong("params: {x: {default: 2, low: 3, source: s}}\nsteps: []\n"), "E0408 4:10");
  EXPECT_EQ(Wrong("params: {x: {default: 2parsecs, source: s}}\nsteps: []\n"), "E0408 4:23");
  EXPECT_EQ(Wrong("checks: [{expect: hope, of: {kernel: x}}]\nsteps: [{use: fuse}]\n"),
            "E0406 4:19");
  EXPECT_EQ(Wrong("needs: [shapez]\nsteps: [{use: fuse}]\n"), "E0406 4:9");
  EXPECT_EQ(
      DiagnosticOf(OptionFile::Parse("daydream: 1\nname: fuse\nsummary: s\n", "f").status()).code,
      "E0407");
  EXPECT_EQ(
      DiagnosticOf(OptionFile::Parse("daydream: 2\nname: f\nsummary: s\n", "f").status()).code,
      "E0406");
}

TEST(OptionFile, ErrorsShowTheLine) {
  auto file = Read("steps:\n  - select: {kernel: 'sgemm(128'}\n    remove: true\n");
  ASSERT_FALSE(file.ok());
  Diagnostic d = DiagnosticOf(file.status());
  EXPECT_EQ(d.what, "regular expression does not compile");
  EXPECT_THAT(d.where, HasSubstr("  - select: {kernel: 'sgemm(128'}\n"));
  EXPECT_THAT(d.where, HasSubstr("missing ): sgemm(128"));
}

TEST(OptionFile, HostileFilesEndInAnError) {
  // Definitions that double what they hold are evaluated once each.
  std::string bomb = "define:\n  a0: {kind: kernel}\n";
  for (int i = 1; i < 60; ++i) bomb += fmt::format("  a{}: [a{}, a{}]\n", i, i - 1, i - 1);
  EXPECT_EQ(Play(bomb + "steps: [{select: a59, scale: {time: 2}}]").applied.changes.scaled, 4u);
  std::string many = "define:\n";
  for (int i = 0; i < 101; ++i) many += fmt::format("  a{}: {{kind: kernel}}\n", i);
  EXPECT_EQ(Wrong(many + "steps: []\n"), "E0406 5:3");
  for (std::string_view re : {"((a{100}){100}){100}", "(((((a*)*)*)*)*)*x{1000}{1000}"}) {
    EXPECT_EQ(Wrong(fmt::format("steps: [{{select: {{kernel: '{}'}}, remove: true}}]\n", re))
                  .substr(0, 5),
              "E0412")
        << re;
  }
  EXPECT_EQ(Wrong("define: &x {a: *x}\nsteps: []\n").substr(0, 5), "E0403");
}

TEST(OptionFile, MatchesAreReported) {
  auto file = Read(R"(define: {core: {kind: kernel}}
steps: [{select: core, set: {time: 'flops / 1TFLOPS'}}]
checks: [{expect: matched, of: core}]
)");
  auto graph = ParseGraph(kGraph);
  ASSERT_TRUE(file.ok() && graph.ok());
  auto params = BindParams("mine", {}, {});
  Editor edit(*graph);
  std::vector<OptionMatch> matches;
  ASSERT_TRUE((*file)->Apply(*params, edit, &matches).ok());
  ASSERT_THAT(matches, SizeIs(3));
  EXPECT_EQ(matches[0].what, "define core");
  EXPECT_EQ(matches[0].tasks, 4u);
  EXPECT_THAT(matches[0].names, ElementsAre("sgemm", "relu", "softmax"));
  EXPECT_EQ(matches[2].what, "step 1: set");
  EXPECT_EQ(matches[2].skipped, 3u);
}

TEST(OptionFile, TheSkeletonIsFine) {
  auto file = OptionFile::Parse(OptionFileSkeleton("my-idea"), "my-idea.yaml");
  ASSERT_TRUE(file.ok()) << DiagnosticOf(file.status()).where;
  EXPECT_EQ((*file)->transform().name, "my-idea");
}

}  // namespace
}  // namespace daydream
