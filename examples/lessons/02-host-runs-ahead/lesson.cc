// The host only launches; a timer around its calls says nothing about the GPU.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  Loop loop;
  loop.item = false;
  const int64_t gpu = Ms(draw.Between(30, 50));
  constexpr int64_t kKernels = 10;
  for (int64_t i = 0; i < kKernels; ++i) {
    loop.kernels.push_back(
        {"aten::mm", "ampere_sgemm_128x128_nn", gpu / kKernels, 0, Us(draw.Between(200, 500))});
  }
  DD_ASSIGN_OR_RETURN(const Played played, PlayLoop("lesson2", loop));
  Numbers n = {{"gpu", InMs(gpu)}, {"step", played.step_ms}, {"host", played.host_ms}};
  n["kernels"] = kKernels;
  n["each"] = n["host"] / n["kernels"];
  n["sum"] = n["gpu"] + n["host"];
  return LessonPlay{{{"lesson2.ddtrace", played.trace}}, std::move(n)};
}

constexpr Fact kFacts[] = {
    {"answer", "whatif lesson2.ddtrace --opt free-gpu", "scenarios.1.step_ms"},
    {"without_host", "whatif lesson2.ddtrace --opt free-host", "scenarios.1.step_ms"},
};
constexpr WrongThought kThoughts[] = {
    {"gpu",
     "That is how long the GPU works. The timer does not wait for it: a call that launches a\n"
     "kernel returns as soon as the kernel stands in the queue."},
    {"sum", "Host and GPU work at the same time here, and the timer sees only the host."},
};
constexpr std::string_view kHints[] = {
    "Which of the three lines waits for the GPU?",
    "None. So whose time is between the two readings of the clock, and how much does each op\n"
    "need of it?",
};

}  // namespace

const Lesson kAheadLesson = {
    .id = "2",
    .name = "host-runs-ahead",
    .title = "The host runs ahead",
    .minutes = 5,
    .play = Play,
    .facts = kFacts,
    .story = R"(
Somebody measures a model like this:

    begin = time.perf_counter()
    y = model(x)                 # {kernels} matrix products, {gpu} ms on the GPU
    print(1000 * (time.perf_counter() - begin))

Python, PyTorch and the launch need {each} ms of the host for each of the {kernels} ops, on average.
Nothing reads a result back.
)",
    .question = "How many milliseconds does the timer print?",
    .unit = "ms",
    .truth = "host",
    .answer = "answer",
    .tolerance = 0.05,
    .slack = 0.5,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
The timer sees the host alone, {host} ms. The GPU needs {step} ms for each step and falls behind. So
daydream counts a step from the start of its work on the GPU to the start of that of the next step:
{step} ms here. (The trace holds six such steps. Five of them count, for in the first one the
profiler starts up.) What would it take if one of the two took no time at all? These limits show
both sides; `--no-interval` leaves out how sure they are, which is a matter of lesson 3:

$ daydream whatif lesson2.ddtrace --opt free-host --opt free-gpu --no-interval

With a GPU that takes no time the host is left: that is what the timer prints. With a host that
takes no time the step stays at {without_host} ms: this program is bound by the GPU. In the lower
table `work` is the time that is taken out of the kernels, and `step` what the step gets shorter by.
`then bound by` says what the step would be waiting for after that.

The first lines are daydream's own check. It turns the recording into a graph: pieces of work and
what each waits for. Played again unchanged, the graph has to take as long as was measured; 0.0 %
off is as good as can be. The other percentages are harder checks of the same kind: each step played
by itself, and with other lags than its own, typical ones or those of the other steps. A lag is a
short wait that no work explains, as from a launch to the start of its kernel.
)",
    .surprise = R"(
Python twice as fast would gain nothing here, although Python is what the timer shows. And the wait
has not gone away: the first line that needs a result (`item()`, `print(loss)`) pays for all of it,
and once about a thousand launches are in the queue, each further one waits for a free place. To
time a GPU, call `torch.cuda.synchronize()` before each reading of the clock.
)",
};

}  // namespace daydream::examples
