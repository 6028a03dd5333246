// The loader holds the step up: one line of Python against a GPU twice as fast.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

constexpr int64_t kReadyBatch = Us(100);  // next() when a batch is ready

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  Loop loop;
  loop.load_ns = Ms(draw.Between(24, 40));
  const int64_t gpu = Ms(draw.Between(12, 18));
  loop.kernels = EqualKernels(6, {"aten::conv2d", "cudnn_conv_sgemm", gpu});
  DD_ASSIGN_OR_RETURN(const Played before, PlayLoop("lesson5", loop));
  Loop workers = loop;
  workers.load_ns = kReadyBatch;
  DD_ASSIGN_OR_RETURN(const Played after, PlayLoop("lesson5", workers));
  loop.machine.gpu_percent = 50;
  DD_ASSIGN_OR_RETURN(const Played fast, PlayLoop("lesson5", loop));
  Numbers n = {{"load", InMs(loop.load_ns)}, {"gpu", InMs(gpu)}, {"step", before.step_ms}};
  n["speedup"] = before.step_ms / after.step_ms;
  n["gpu_speedup"] = before.step_ms / fast.step_ms;
  n["max"] = before.step_ms / std::max(n["load"], n["gpu"]);
  n["quarter"] = before.step_ms / (n["load"] / 4 + n["gpu"]);
  n["none"] = 1;
  n["busy"] = 100 * n["gpu"] / n["step"];
  return LessonPlay{{{"lesson5.ddtrace", before.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson5.ddtrace --opt 'prefetch(workers=4)'", "scenarios.1.speedup"},
    {"gpu_answer", "whatif lesson5.ddtrace --opt 'speedup(select=kind:kernel, by=2)'",
     "scenarios.1.speedup"},
};
constexpr WrongThought kThoughts[] = {
    {"max",
     "That would be one worker: it makes a batch in {load} ms while the step runs, and the\n"
     "step waits for it. Four workers make four batches in that time."},
    {"quarter",
     "You took a quarter of the loader and then the GPU, one after the other, as without\n"
     "workers. But they make the next batch while the GPU works on this one."},
    {"none",
     "The work of the loader does not get less, but other processes do it, while the GPU\n"
     "works."},
};
constexpr std::string_view kHints[] = {
    "Four workers share the work. How often is a batch ready?",
    "A batch every quarter of {load} ms is more than the GPU can take. What is left of a step?",
};

}  // namespace

const Lesson kLoaderLesson = {
    .id = "5",
    .name = "loader",
    .title = "The GPU waits for data",
    .minutes = 7,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A convolution network is trained from a DataLoader without workers. The main process decodes a batch
for {load} ms; then the GPU works for {gpu} ms, and the loss is read. A step takes {step} ms, the
GPU is busy {busy} % of it.

You may have one of two things: a GPU that is twice as fast, or `num_workers=4`, on a machine with
cores to spare.
)",
    .question = "How many times as fast is the training with `num_workers=4`?",
    .unit = "times as fast",
    .truth = "speedup",
    .answer = "answer",
    .tolerance = 0.02,
    .slack = 0.05,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
Four workers hand a batch over every quarter of {load} ms, which is sooner than the GPU is done with
the last one. So a batch is ready whenever the step asks for it, and only the GPU is left:

$ daydream whatif lesson5.ddtrace --opt 'prefetch(workers=4)' \
    --opt 'speedup(select=kind:kernel, by=2)' --no-interval | head -17

The GPU twice as fast makes it only {gpu_speedup} times as fast: the loader stays as slow as it was.
The {answer} is `low` in confidence, as gains of workers were checked on one program only.
)",
    .surprise = R"(
A profile of the kernels alone does not show any of this: there are fast kernels in it, and nothing
to repair. The `!` above the answers is daydream's own finding about the same wait. It comes back in
every step, so the recording is fine: the program is what to change. `daydream advise` ranks options
for the host and for the GPU against each other, by what is gained for sure, for how little work and
risk (`no-sync` is lesson 7 and `amp` lesson 8; `cache` keeps decoded batches in memory). Its best
set is as rough as the roughest of its parts:

$ daydream advise lesson5.ddtrace --details 0 | head -24
)",
};

}  // namespace daydream::examples
