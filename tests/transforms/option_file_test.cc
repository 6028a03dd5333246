#include "transforms/scenario/option_file.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/validate.h"
#include "simulator/simulate.h"
#include "transforms/scenario/apply.h"
#include "transforms/scenario/option_files.h"

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

// What applying the file to a graph of this text fails with.
Diagnostic ErrorOn(std::string_view graph_text, std::string_view text) {
  auto file = Read(text);
  auto graph = ParseGraph(graph_text);
  EXPECT_TRUE(file.ok() && graph.ok()) << text;
  if (!file.ok() || !graph.ok()) return {};
  const Transform& t = (*file)->transform();
  return DiagnosticOf(Apply({&t, *BindParams(t.name, t.params, {}), *file}, *graph).status());
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
  EXPECT_EQ(scaled("{kernel: ., between: {kernel: relu}}"), 0u);
  EXPECT_EQ(scaled("{kernel: ., between: {kernel: 'sgemm|softmax'}}"), 2u);
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
  Outcome between = Play(R"(steps:
  - insert: {kernel: {name: pack, time: 10us}, between: {kernel: relu}, launch: none}
)");
  EXPECT_EQ(between.after, kBefore + Duration::Us(10));
  Outcome apart = Play(R"(steps:
  - insert:
      copy: {name: offload, time: 200us, bytes: 1MB, direction: d2h, stream: new(out)}
      after: {kernel: sgemm}
)");
  // The copy runs from the end of sgemm at 150 us, beside everything else.
  EXPECT_EQ(apart.after, Duration::Us(350));
}

TEST(OptionFile, ScalesToTheRooflineOfAKnownGpu) {
  constexpr std::string_view kText =
      "steps: [{select: {kind: kernel}, scale: {roofline: {dtype: fp16, efficiency: 50%}}}]\n";
  auto file = Read(kText);
  auto graph = ParseGraph(
      "device 0 \"Tesla V100-SXM2-32GB\" memory=34089730048 capability=7.0 multiprocessors=80\n" +
      std::string(kGraph));
  ASSERT_TRUE(file.ok() && graph.ok());
  const Transform& t = (*file)->transform();
  auto applied = Apply({&t, *BindParams(t.name, {}, {}), *file}, *graph);
  ASSERT_TRUE(applied.ok()) << Message(applied.status());
  EXPECT_LT(graph->task(TaskId(4)).duration, Duration::Us(1));
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

TEST(OptionFile, ThatAddsOrRemovesGpuWorkDoesNotTellTheMemory) {
  constexpr std::string_view kInsert =
      "steps: [{insert: {kernel: {name: n, time: 5us}, before: {kernel: softmax}}}]";
  auto unknown = [](const std::string& text) {
    const std::vector<MemoryChange> changes = Play(text).applied.changes.memory;
    return std::any_of(changes.begin(), changes.end(),
                       [](const MemoryChange& c) { return c.unknown; });
  };
  EXPECT_TRUE(unknown(std::string(kInsert)));
  EXPECT_TRUE(unknown("steps: [{select: {kernel: softmax}, remove: true}]"));
  EXPECT_FALSE(unknown("memory: 0GB\n" + std::string(kInsert)));
  EXPECT_FALSE(unknown("steps: [{select: {kernel: softmax}, scale: {time: 2}}]"));
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
  EXPECT_EQ(Play("steps: [{select: {kernel: relu}, scale: {time: '1us / gap'}}]").error, "E0424");
  EXPECT_EQ(Play("steps: [{select: {kernel: relu}, scale: {time: 'gap / gap'}}]").error, "E0424");
  EXPECT_EQ(Play("steps: [{select: {kernel: relu}, set: {time: 'time * 1e18'}}]").error, "E0424");
}

TEST(OptionFile, WorkThatWaitsForItselfIsAnError) {
  // By its recorded start the kernel is before the call that launched it.
  Diagnostic d = ErrorOn(R"text(
lane main   thread
lane gpu0.7 stream
c1 main call 5us "cudaLaunchKernel" at 5us
k1 gpu0.7 kernel 40us "sgemm" after c1 launch at 1us
)text",
                         "steps:\n  - link: {from: {kernel: sgemm}, to: {call: .}}\n");
  EXPECT_EQ(d.code, "E0425");
  EXPECT_THAT(d.where, HasSubstr("mine.yaml:5:5\n"));
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
  EXPECT_EQ(Wrong("checks: [{expect: matched, of: {kernel: x}, at_least: 5, at_most: 3}]\n"
                  "steps: [{use: fuse}]\n"),
            "E0406 4:67");
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

TEST(OptionFile, StepsThatDoubleTheGraphEndInAnError) {
  // 4 kernels, 8 after the first line, 16 after the second, ...
  std::string text = "steps:\n";
  for (int i = 0; i < 40; ++i) {
    text += "  - insert: {kernel: {name: k, time: 1us}, after: {kind: kernel}, launch: none}\n";
  }
  // The 18th insert adds the 1,048,572nd kernel.
  Diagnostic d = ErrorOn(kGraph, text);
  EXPECT_EQ(d.code, "E0426");
  EXPECT_THAT(d.where, HasSubstr("mine.yaml:22:5\n"));
}

TEST(OptionFile, GroupsAreOfOneStepAndOneLane) {
  constexpr std::string_view kTwoSteps = R"text(
lane gpu0.7 stream
lane gpu0.8 stream
step "1" period 100us
step "2" period 100us
layer a "a"
k1 gpu0.7 kernel 10us "relu" layer a phase forward
k2 gpu0.7 kernel 10us "relu" layer a phase forward
k3 gpu0.8 kernel 10us "relu" layer a phase forward
k4 gpu0.7 kernel 10us "relu" layer a phase forward step=1
k5 gpu0.7 kernel 10us "relu" layer a phase forward step=1
)text";
  for (std::string_view by : {"step", "module", "phase", "stream", "op", "[module, phase]"}) {
    auto file =
        Read(fmt::format("steps: [{{fuse: {{select: {{kind: kernel}}, group_by: {}, "
                         "into: {{name: f, time: sum(time)}}}}}}]\n",
                         by));
    auto graph = ParseGraph(kTwoSteps);
    ASSERT_TRUE(file.ok() && graph.ok()) << by;
    const Transform& t = (*file)->transform();
    auto applied = Apply({&t, *BindParams(t.name, {}, {}), *file}, *graph);
    ASSERT_TRUE(applied.ok()) << by;
    // k1 with k2 and k4 with k5; k3 is alone on its stream.
    EXPECT_THAT(applied->changes.notes, ElementsAre("mine: 4 kernels become 2 f")) << by;
    for (int i = 0; i < 5; ++i) {
      const Task& task = graph->task(TaskId(i));
      EXPECT_EQ(task.duration, Duration::Us(std::array{20, 0, 10, 20, 0}[i])) << by << i;
    }
  }
  EXPECT_EQ(Wrong("steps: [{fuse: {select: {kind: kernel}, group_by: [], "
                  "into: {name: f, time: sum(time)}}}]\n"),
            "E0406 4:51");
}

TEST(OptionFile, OnlyCopiesAndCollectivesMoveFewerBytes) {
  Outcome out = Play("steps: [{select: {kind: gpu}, scale: {bytes: 50%}}]\n");
  EXPECT_EQ(out.after, kBefore - Duration::Us(50));
  EXPECT_EQ(out.graph.Copy(TaskId(1))->bytes, 500'000u);
  EXPECT_THAT(out.applied.changes.warnings,
              ElementsAre("mine.yaml:4: 4 of 5 tasks stay as they are: no copies or collectives"));
  EXPECT_EQ(Play("steps: [{select: {kind: kernel}, scale: {bytes: 50%}}]\n").error, "E0601");
}

TEST(OptionFile, WhatItUsesIsAsMuchAPartOfIt) {
  EXPECT_EQ(Wrong("steps: [{use: amp}, {use: amp}]\n"), "E0416 4:22");
  EXPECT_EQ(Wrong("steps: [{use: graphs}, {use: aot}]\n"), "E0416 4:25");
  EXPECT_EQ(Wrong("steps: [{use: 'speedup(relu, 2x)'}, {use: 'speedup(relu, 3x)'}]\n"), "fine");
  auto limit = Read("steps: [{use: free-launch}]\n");
  auto prediction = Read("steps: [{use: amp}]\n");
  ASSERT_TRUE(limit.ok() && prediction.ok());
  EXPECT_TRUE((*limit)->transform().bound);
  EXPECT_FALSE((*prediction)->transform().bound);
}

TEST(OptionFile, ValuesThatNoTaskCanHaveAreErrorsWithoutATrace) {
  auto set = [](std::string_view value) {
    return Wrong(
        fmt::format("steps: [{{select: {{kernel: relu}}, set: {{time: '{}'}}}}]\n", value));
  };
  EXPECT_EQ(set("1us - 2us"), "E0424 4:47");
  EXPECT_EQ(set("1us / 0"), "E0424 4:47");
  EXPECT_EQ(set("-1us"), "E0424 4:47");
  EXPECT_EQ(set("2us - 1us"), "fine");
  EXPECT_EQ(set("time - 1us"), "fine");
  EXPECT_EQ(Wrong("steps: [{select: {kernel: relu}, scale: {time: '-1'}}]\n"), "E0424 4:49");
  EXPECT_EQ(Wrong("params: {x: {default: 2, source: s}}\n"
                  "steps: [{select: {kernel: relu}, scale: {time: '1 - $x'}}]\n"),
            "fine");
}

TEST(OptionFile, ValuesHaveUnitsInMessages) {
  Diagnostic d =
      ErrorOn(kGraph, "steps: [{select: {kernel: relu}, set: {time: 'time - 1234567ns'}}]\n");
  // relu takes 10 us.
  EXPECT_EQ(d.what, "mine: the value is -1225us for 'relu'");
  EXPECT_EQ(d.why, "it has to be from 0 to 10000s");
}

TEST(OptionFile, TextsAreSentences) {
  Outcome out = Play("steps: [{select: {kernel: relu}, priority: 3}]\n");
  EXPECT_EQ(out.applied.causes[0].what, "given a priority (mine.yaml:4)");
  EXPECT_EQ(ErrorOn(kGraph, "needs: [gpu]\nsteps: [{select: {kernel: relu}, remove: true}]\n").what,
            "mine: this trace has no GPU whose data sheet is known");
  auto needs = Read("needs: [shapez_of_all]\nsteps: [{use: fuse}]\n");
  const std::string known = DiagnosticOf(needs.status()).where;
  EXPECT_EQ(known.find("launches"), known.rfind("launches")) << known;
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
