// Checkpointing: memory for time.
#include "examples/lessons/lesson.h"
#include "examples/lessons/loop.h"

namespace daydream::examples {
namespace {

absl::StatusOr<LessonPlay> Play(uint64_t seed) {
  Draws draw(seed);
  TransformerProgram program;
  program.machine.seed = seed;
  program.adam = false;
  program.size.layers = draw.Between(4, 6);
  program.size.batch = draw.Between(12, 16);
  program.size.length = 256;
  program.size.width = 512;
  program.size.heads = 8;
  DD_ASSIGN_OR_RETURN(const Played before, PlayTransformer("lesson11", program));
  program.recompute = true;
  DD_ASSIGN_OR_RETURN(const Played after, PlayTransformer("lesson11", program));
  Numbers n = {{"step", before.step_ms}, {"gpu", before.gpu_ms}, {"after", after.step_ms}};
  n["longer"] = 100 * (after.step_ms / before.step_ms - 1);
  n["half"] = 1.5 * before.step_ms;
  n["twice"] = 2 * before.step_ms;
  n["layers"] = static_cast<double>(program.size.layers);
  n["batch"] = static_cast<double>(program.size.batch);
  return LessonPlay{{{"lesson11.ddtrace", before.trace}}, std::move(n)};
}

constexpr std::string_view kAsk = "whatif lesson11.ddtrace --opt checkpointing";
constexpr Fact kFacts[] = {
    {"answer", kAsk, "scenarios.1.step_ms"},
    {"both", "whatif lesson11.ddtrace --opt 'checkpointing,batch(x2)'", "scenarios.3.step_ms"},
    {"wide", "whatif lesson11.ddtrace --opt 'batch(x2)'", "scenarios.1.step_ms"},
    {"each", "whatif lesson11.ddtrace --opt 'batch(x2)'", "scenarios.1.throughput_gain"},
    {"peak", kAsk, "scenarios.0.peak_memory_bytes", {}, 1e-6},
    {"peak_after", kAsk, "scenarios.1.peak_memory_bytes", {}, 1e-6},
};
constexpr WrongThought kThoughts[] = {
    {"half",
     "You took the forward pass for half of a step. Backward does two products for each one\n"
     "of forward, so that forward is about a third of the work."},
    {"twice", "Only the forward pass runs again, not the whole step."},
    {"step", "The forward pass of each layer runs a second time; on a busy GPU that takes time."},
};
constexpr std::string_view kHints[] = {
    "How many matrix products does backward need for one of forward?",
    "Two: one for the gradient of the input, one for that of the weight. What part of the step is\n"
    "forward, then?",
};

}  // namespace

const Lesson kMemoryLesson = {
    .id = "11",
    .name = "memory",
    .title = "Memory and recomputation",
    .minutes = 8,
    .play = Play,
    .facts = kFacts,
    .story = R"(
A transformer with {layers} layers and batch {batch} keeps its GPU busy: a step takes {step} ms,
{gpu} ms of it are kernels. It needs about {peak} MB, most of it for results of the forward pass
that wait for the backward pass. Now each layer is wrapped in `torch.utils.checkpoint.checkpoint`:
it keeps only its input, and runs forward again just before its backward pass.
)",
    .question = "How many milliseconds does a step take with checkpointing?",
    .unit = "ms",
    .truth = "after",
    .answer = "answer",
    .tolerance = 0.03,
    .slack = 0.5,
    .thoughts = kThoughts,
    .hints = kHints,
    .solution = R"(
Forward is one product per linear layer, backward two. So forward is about a third of the step, and
running it again makes the step about a third longer; a little less, since the optimizer, the loss
and the loading of data do not run twice. The generator of this lesson also plays the program with
checkpointing: its step is {longer} % longer.

$ daydream whatif lesson11.ddtrace --opt checkpointing | head -8

Memory goes from {peak} MB to {peak_after} MB; daydream estimates this from the recorded shapes.
)",
    .surprise = R"(
The memory that becomes free is room for a larger batch. But look at the time for one example, not
at the step: twice the batch takes {wide} ms, hardly less than two steps of before (about {twice}
ms), for this GPU was busy all the time already; and {both} ms with checkpointing. That is more than
both cost one by one, since the larger batch is what runs forward again. Recomputation pays where
memory is what stops you: a model that does not fit otherwise, or a batch that is too small to keep
the GPU busy. `speed-up` in the table counts steps, and `throughput` examples: with twice the batch
{each} times as many are done in a second.

$ daydream whatif lesson11.ddtrace --opt 'checkpointing,batch(x2)' --no-interval | head -11
)",
};

}  // namespace daydream::examples
