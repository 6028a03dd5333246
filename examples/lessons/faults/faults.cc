// Recordings with a fault, and the finding of `daydream info` that tells it.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

constexpr std::string_view kFindings[] = {"unequal_steps", "cut_step", "one_time",
                                          "waits_for_ranks", "allocator"};
constexpr std::string_view kQuestion =
    "Which finding names the reason? `daydream explain NAME` says what each of them means. Guess\n"
    "first. To look for yourself: `daydream tour {lesson} --save .` writes the trace, and\n"
    "`daydream info lesson{lesson}.ddtrace` tells the finding in words, with `--format json` its\n"
    "name, too (`kind`).";

Loop UsualLoop(Draws& draw) {
  Loop loop;
  loop.load_ns = Ms(draw.Between(1, 2));
  const int64_t gpu = Ms(draw.Between(8, 14));
  loop.kernels = EqualKernels(4, {"aten::mm", "ampere_sgemm_128x128_nn", gpu});
  return loop;
}

absl::StatusOr<LessonPlay> PlayFault(const Loop& loop, std::string_view file,
                                     std::string_view answer, Numbers n) {
  DD_ASSIGN_OR_RETURN(const Played played, PlayLoop(file, loop));
  for (size_t i = 0; i < std::size(kFindings); ++i) {
    n[std::string(kFindings[i])] = static_cast<double>(i + 1);
  }
  n["truth"] = n.at(std::string(answer));
  n["step"] = played.step_ms;
  return LessonPlay{{{std::string(file) + ".ddtrace", played.trace}}, std::move(n)};
}

absl::StatusOr<LessonPlay> PlayStall(uint64_t seed) {
  Draws draw(seed);
  Loop loop = UsualLoop(draw);
  loop.late_stall_ns = Ms(draw.Between(200, 400));
  return PlayFault(loop, "lessonA", "one_time", {{"stall", InMs(loop.late_stall_ns)}});
}

absl::StatusOr<LessonPlay> PlayChurn(uint64_t seed) {
  Draws draw(seed);
  Loop loop = UsualLoop(draw);
  loop.memory_calls = static_cast<int>(draw.Between(12, 18));
  loop.memory_call_ns = Us(draw.Between(300, 500));
  Numbers n = {{"calls", loop.memory_calls}};
  n["churn"] = 2 * loop.memory_calls * InMs(loop.memory_call_ns);
  return PlayFault(loop, "lessonB", "allocator", std::move(n));
}

absl::StatusOr<LessonPlay> PlayCut(uint64_t seed) {
  Draws draw(seed);
  Loop loop = UsualLoop(draw);
  loop.item = false;
  loop.only_last = true;
  return PlayFault(loop, "lessonC", "cut_step", {{"played", loop.steps}});
}

absl::StatusOr<LessonPlay> PlayLateRank(uint64_t seed) {
  Draws draw(seed);
  Loop loop = UsualLoop(draw);
  loop.machine.world = 4;
  loop.peer_late_ns = Ms(draw.Between(6, 10));
  const int64_t transfer = Ms(draw.Between(2, 3));
  loop.kernels = {{"aten::mm", "ampere_sgemm_128x128_nn", Ms(draw.Between(14, 18))}};
  loop.kernels.push_back({.op = "c10d::allreduce_",
                          .kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
                          .ns = transfer,
                          .collective = true});
  return PlayFault(loop, "lessonD", "waits_for_ranks",
                   {{"late", InMs(loop.peer_late_ns)}, {"transfer", InMs(transfer)}});
}

constexpr Fact kStallFacts[] = {{"answer", "info lessonA.ddtrace", "findings.0.kind"}};
constexpr Fact kChurnFacts[] = {{"answer", "info lessonB.ddtrace", "findings.0.kind"}};
constexpr Fact kCutFacts[] = {{"answer", "info lessonC.ddtrace", "findings.0.kind"}};
constexpr Fact kRankFacts[] = {
    {"answer", "info lessonD.ddtrace", "findings.0.kind"},
    {.name = "per_step", .command = "info lessonD.ddtrace", .path = "findings.0.ms"}};
constexpr std::string_view kOneGpu =
    "One GPU was recorded, and no communication: there is nobody to wait for.";
constexpr WrongThought kStallThoughts[] = {
    {"allocator",
     "Memory that is given back and taken again costs something in each step. Here one step\n"
     "alone is long."},
    {"cut_step",
     "A cut step is at an end of the recording. Here the steps at both ends are normal."},
    {"waits_for_ranks", kOneGpu},
    {"unequal_steps",
     "The steps are unequal, too, and `info` says so below. That is what follows; the finding\n"
     "above it says why."},
};
constexpr WrongThought kChurnThoughts[] = {
    {"one_time", "What happens once makes one step long. Here every step takes {step} ms."},
    {"cut_step", "A cut step lacks work at an end of the recording. These steps are whole."},
    {"waits_for_ranks", kOneGpu},
    {"unequal_steps", "Every step takes {step} ms: they are equal."},
};
constexpr WrongThought kCutThoughts[] = {
    {"one_time",
     "Nothing here compiles, loads or begins: the host launches one step as it does any other."},
    {"allocator", "No call of this step takes memory from the driver or gives it back."},
    {"waits_for_ranks", kOneGpu},
    {"unequal_steps", "There is one step, and none that it could differ from."},
};
constexpr WrongThought kRankThoughts[] = {
    {"one_time", "It comes back: in every other step the all-reduce is long."},
    {"allocator",
     "What is long is the all-reduce on the GPU. No call takes memory or gives it back."},
    {"cut_step", "The steps are whole: each has its kernels and its all-reduce."},
    {"unequal_steps",
     "All steps take the same. What differs is the all-reduce in them, of the same bytes."},
};

}  // namespace

const Lesson kStallFault = {
    .id = "A",
    .name = "fault-a",
    .title = "a number that is far too high",
    .minutes = 3,
    .play = PlayStall,
    .facts = kStallFacts,
    .story = R"(
Six steps of a loop that everybody knows to take some ten milliseconds. The mean of this recording
is several times that. Everything looks normal in the first three steps and in the last two.
)",
    .question = kQuestion,
    .choices = kFindings,
    .truth = "truth",
    .answer = "answer",
    .thoughts = kStallThoughts,
    .solution = R"(
$ daydream info lessonA.ddtrace | head -10

A compiler ran inside of one step, for {stall} ms. With shapes that stay the same it does so once in
a whole training. That makes the steps unequal, which is the next finding: the first one is the
reason.
)",
    .surprise = R"(
A prediction must not count such a stall as a saving: it is about the steady step. Record later,
after some steps of warm-up; what compiles for each new shape needs more of them.
)",
};

const Lesson kChurnFault = {
    .id = "B",
    .name = "fault-b",
    .title = "a host that is busy with something else",
    .minutes = 3,
    .play = PlayChurn,
    .facts = kChurnFacts,
    .story = R"(
A batch that nearly fills the memory of the GPU. Every step takes {step} ms, the GPU is idle half of
the time, and no op of the model is to blame.
)",
    .question = kQuestion,
    .choices = kFindings,
    .truth = "truth",
    .answer = "answer",
    .thoughts = kChurnThoughts,
    .solution = R"(
$ daydream info lessonB.ddtrace | head -6

Each step gives memory back to the driver and takes it again, {calls} times each, {churn} ms in all.
PyTorch keeps memory for itself as long as there is room. `summary` and predictions are about the
step without these calls.
)",
    .surprise = R"(
A slightly smaller batch can be much faster: below the edge these calls vanish.
)",
};

const Lesson kCutFault = {
    .id = "C",
    .name = "fault-c",
    .title = "a gap at the beginning",
    .minutes = 3,
    .play = PlayCut,
    .facts = kCutFacts,
    .story = R"(
One single step was recorded out of a loop that never waits for the GPU. Before its first kernel the
GPU seems to do nothing for a long time.
)",
    .question = kQuestion,
    .choices = kFindings,
    .truth = "truth",
    .answer = "answer",
    .thoughts = kCutThoughts,
    .solution = R"(
$ daydream info lessonC.ddtrace | head -8

The GPU was busy with the steps before, which nobody recorded. Where it seems to wait, it was
working.
)",
    .surprise = R"(
`info` prints a step time all the same: from the start of the first recorded kernel to the end of
the last. With one step nobody can tell whether a step takes that long, for it ends where the next
one begins. Record five.
)",
};

const Lesson kLateRankFault = {
    .id = "D",
    .name = "fault-d",
    .title = "communication that takes long now and then",
    .minutes = 3,
    .play = PlayLateRank,
    .facts = kRankFacts,
    .story = R"(
One rank of four. Its all-reduce takes {transfer} ms in one step and far longer in the next, with as
many bytes each time.
)",
    .question = kQuestion,
    .choices = kFindings,
    .truth = "truth",
    .answer = "answer",
    .thoughts = kRankThoughts,
    .solution = R"(
$ daydream info lessonD.ddtrace | head -5

The bytes are the same, so the transfer takes the same time. The rest is waiting: in every other
step another rank is done {late} ms after this one. Three of the five steps that count are such; in
the mean that is the {per_step} ms a step that `info` prints. In the steps between, this rank
computes {late} ms longer itself: hence all steps are as long, and no other finding speaks up.
)",
    .surprise = R"(
This trace cannot say who is late, only that somebody is. Record all ranks: lesson 10.
)",
};

}  // namespace daydream::examples
