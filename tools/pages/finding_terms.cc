// What the findings of report/questions/findings.h mean and what to do about them.
#include "tools/pages/topics.h"

namespace daydream {
namespace {

// In the order of FindingKind; the last of them has no name of its own to explain.
constexpr Term kFindings[] = {
    {"planned",
     R"(The trace is a plan: its times follow from durations and dependencies that somebody wrote
down. Nothing was measured, so there is nothing to check the replay against.)"},
    {"one_rank",
     R"(Of a folder with the ranks of one run this command looks at one, as it was recorded: its
waits for the others are part of its step. whatif, advise, sweep, scale and ranks play all of
them together, and the step of the run can be another: it is said first, where the files are
small enough to be read twice (16 MB in all). --rank R looks at another one.)"},
    {"no_step",
     R"(Most of the recorded time happens once in a training (a compiler, a library that loads),
and what remains is no step. Nothing is predicted. Record later, after a warm-up.)"},
    {"one_time",
     R"(Work inside of the recorded steps that happens once in a training: a compiler, a library
that loads, a first allocation. It is taken out before anything is predicted, for it is no
part of the step that repeats; the text says how long a step is with it and without.
Record later, after ten or twenty steps of warm-up.)"},
    {"cut_step",
     R"(The recording does not hold a whole step: the GPU was still busy with earlier work when it
began. The length of the step is in doubt by what the text says. Record five steps or more,
with marks around each.)"},
    {"library_search",
     R"(Some convolutions launch many more kernels than others: under
torch.backends.cudnn.benchmark the library tries its algorithms at the first call of each
shape, and never again. Record later.)"},
    {"partial_gpu",
     R"(GPU work was recorded in a part of the window only, because the recording of it began late,
its buffers were full, or its rows in the file are damaged. Outside of that part the GPU is not
idle, it is unknown.)"},
    {"long_call",
     R"(One piece of host work takes more than half of a step. Either it happens once and does not
belong into the recording, or the program waits for something that no row tells. daydream
summary --by host shows what it is.)"},
    {"unequal_steps",
     R"(Recorded steps differ by more than a tenth. Where one kind of work explains it, the text
names it. Predictions are of the mean step; a mean of unequal steps needs more of them.
Look for another finding that gives the reason: a stall in one step makes steps unequal,
too.)"},
    {"other_steps",
     R"(A long recording is asked of some of its steps, which stand for all: the text says which,
and what they and all take on average. Where that differs by more than 3 %, other steps are longer
or shorter, something that happens once may be among them, and the finding is about
predictions. --steps all asks every step.)"},
    {"op_stalls",
     R"(Operators whose own work takes microseconds take milliseconds here and there, and that is a
fifth of the recording or more. Something else had the core: other processes, more threads
than cores, garbage collection. A recording on a quiet host is shorter by it, so it
is taken out before anything is predicted: no option may claim it. Of a rank of several it
stays, as a wait of a fixed length: the other ranks waited, too. What lets the GPU run ahead
(graphs, aot) hides such waits, and may gain by them what a quiet host would not.)"},
    {"longer_in_some_steps",
     R"(Calls, operators or pauses of the program take far longer in some steps than the same work
does in others. Whether that goes on in a longer run nobody knows, so the step is as long as
recorded, and no option saves any of it. Where the GPU had nothing to do meanwhile for a tenth of
the recording, all confidence is low. If it happens once, record later; where it was recorded
in one step only, it is taken out.)"},
    {"replay",
     R"(The unchanged graph, played, is not the recording: some check of it is off by more than
3 %. Predictions may be off by as much. Choose steps that are alike with --steps, or record
more of them. See also: replay check.)"},
    {"unrecorded",
     R"(GPU work that the recording does not hold, and a gap tells of: a CUDA graph was launched
whose kernels were not recorded, and nothing else runs until its stream goes on. The time
of the gap is taken for it, which is a guess, and no option changes it. Where it is a
fifth of the step or more, all confidence is low.)"},
    {"pause",
     R"(Nothing at all was recorded for a second or more, or one piece of GPU work is longer than
all others ten times over, or a kernel takes half of a step and a hundred times what those of
its name do. Either the program paused or a time in the file is wrong.
--steps takes the steps without it.)"},
    {"units",
     R"(Half of the launches take less than 600 ns (of CUDA: 1.2 us) or more than a millisecond on
the host. Wherever one was recorded it took some microseconds, so the file's times look as if
they were written in another unit: Kineto's JSON is in microseconds. All confidence is low.)"},
    {"too_fast",
     R"(A fifth of the GPU time or more is in kernels that would be faster than the data sheet of
their GPU allows for the shapes of their operators. The shapes are of another run (--shapes
of another batch size), the times are in another unit, or the GPU is not the one named. Or a
fifth of the time of copies is in such as are faster than the GPU's link to the host, or than
its memory: their sizes are not of this run. All confidence is low.)"},
    {"other_gpu",
     R"(What the file says of the GPU is not that of the GPU that ran the kernels: another number of
multiprocessors, kernels built for a later architecture, calls of another maker, memory or clocks
of another variant, or a name that contradicts the numbers beside it. Limits, other GPUs and
number formats are then judged by the wrong data sheet; all confidence is low. Use the file as
it was recorded. Or the GPU is one that is not known here ("RTX 3090 Ti" is another card than an
RTX 3090) and was taken for one with as many multiprocessors: then another GPU is predicted with
low confidence, unless gpu(..., from=NAME) says which card it was.)"},
    {"memory",
     R"(The recorded allocations add up to more memory than the GPU has. Either sizes or the
properties of the GPU are not of this recording; what is said of memory is wrong.)"},
    {"marks",
     R"(GPU work lies outside of the marks of steps, as much as a step holds: marks are missing, or
each ends long before its step does. A step may then hold several iterations. The text says
what was made of it; record again with a mark around every step. Or marks cut through the work: a
quarter of them begin in the middle of an operator, or a tenth of the backward pass belongs to the
forward pass of an earlier step. Then a step is made of parts of two, its length is in doubt, and
all confidence is low.)"},
    {"no_operators",
     R"(Several threads launch GPU work and no operator was recorded. Which thread waits for which
is then unknown, as of the backward pass that autograd runs on a thread of its own: what
lies between their calls stays as long as it was, on a faster GPU, too. Or operators were
recorded, and no launch lies within one, as where calls have the ids of another thread: then
layers and passes have no GPU work. All confidence is low.)"},
    {"lost",
     R"(A hundredth or more of the recorded events could not be read, or were lost while
recording, or a tenth of the kernels have no name, or all of many operators the same one. What they
did is missing in every step, or not known, and all confidence is low. daydream info lists lost
ones with the reason. Record again, for fewer steps where the recorder lost them.)"},
    {"no_time",
     R"(A tenth or more of the GPU operations or of the launches take 0 ns, which none does, or all
operators begin at once: the file is damaged, or its recorder failed. Where it is half of
the GPU operations, nothing is predicted (E0607). Record again.)"},
    {"twice",
     R"(GPU operations of one name, stream, begin and end: the file was merged or written twice.
They count twice. Use the file as it was recorded.)"},
    {"wrong_launch",
     R"(Kernels whose correlation id belongs to a call that copies or waits, or that has launched
another kernel: ids are mixed up, as where two processes are merged into one file. What
waits for what is then wrong. Use the file of each process. Or a tenth of the kernels of operators
that work element by element multiply matrices by their names: names or ids are mixed up.)"},
    {"no_launches",
     R"(GPU work whose launching call was not recorded. It keeps its place in its stream; what the
host does cannot move it, so options for the host say nothing about it.)"},
    {"queue",
     R"(Launches return late when the launch queue of their stream is full: as soon as an operation
far ahead of theirs starts. These returned late, too, but nothing that was recorded started then.
Operations of that stream were lost, or the clock of the GPU is off against that of the host.
Their waits stay as work of the host, so a faster GPU seems to bring less than it would.)"},
    {"no_waits",
     R"(No row says when the host stood still for the GPU. Predictions are about the GPU's side
alone: a host that really waits for a kernel is taken for one that works.)"},
    {"not_told",
     R"(The recording was made with an older CUPTI, which does not tell something that this program
does: which record of a CUDA event a wait is for (before CUDA 12.8), calls of the driver that
launch kernels, or cudaDeviceSynchronize (CUDA 13.0 before Update 1). What stands in its place
is in the text. Record with the CUPTI of a newer CUDA where the answer hangs on it.)"},
    {"unexplained",
     R"(The GPU begins some work later than every rule says, and nothing in the recording tells
why: another program, a stream that was not recorded, clocks. Predictions keep these
delays as they are.)"},
    {"clocks",
     R"(The clocks of host and GPU disagree. Where what cannot be tells by how much (operations that
begin before the calls that launched them, or end after the calls that waited for them), the
GPU's times are taken to be so much later or earlier, and predictions are of that. Else gaps
between them are wrong by as much: some work begins before its call, or all that could have
begun at once begins a millisecond or more behind.)"},
    {"allocator",
     R"(In every step memory is given back to the driver and taken again (cudaFree, cudaMalloc),
which makes the host wait. PyTorch keeps memory for itself as long as there is room, so
the GPU is nearly full. expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF or a smaller
batch helps.)"},
    {"copies",
     R"(Copies from the host to the GPU take half of a step or more. Where they bring what is the
same in every step (weights that are kept on the host), the GPU can keep it. Otherwise
prefetch on a stream of its own hides them behind work: daydream explain pin-memory.)"},
    {"loader",
     R"(The step waits for its loader workers: processes that make the batches, and whose work is
in no trace. They hand over batches at a rate of their own, which no option but a faster
loader changes, so a GPU or host that is done sooner only waits longer. More workers, or
cheaper reading and decoding.)"},
    {"waits_for_ranks",
     R"(Communication takes longer than the transfer of its bytes: the rest is waiting for another
rank that is late. The text says how much per step, in the mean of the steps. One trace
cannot say who is late. Record all ranks and give their folder: daydream ranks DIR.)"},
    {"other",
     "What building the graph warns of, in its own words. Nothing else is known about it."},
};

}  // namespace

std::span<const Term> FindingTerms() { return kFindings; }

}  // namespace daydream
