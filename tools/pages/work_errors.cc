// What goes wrong with good input: recording, models and replay, sweeps, GPUs and networks.
#include "tools/pages/topics.h"

namespace daydream {
namespace {

constexpr ErrorPage kWorkErrors[] = {
    {"E0501", "another tool is to record this command already",
     "CUDA lets one profiler into a process at a time, and CUDA_INJECTION64_PATH or\n"
     "NVTX_INJECTION64_PATH names one (Nsight Systems and Compute set them, and so does `daydream\n"
     "trace`). Nothing was run. End the other tool or unset the variable; a trace of the PyTorch\n"
     "profiler can be read directly. A tool that only shows when the program runs (the PyTorch\n"
     "profiler as a daemon) is named by the recorder on standard error, and the program goes on\n"
     "without GPU records."},
    {"E0502", "there is no GPU that a program could use",
     "Recording needs an NVIDIA GPU and its driver; nothing was run. The message tells which part\n"
     "is missing: the driver's library (libcuda.so.1), a driver that starts, or a visible GPU\n"
     "(CUDA_VISIBLE_DEVICES hides them). In a container the GPU must be passed in (--gpus all).\n"
     "`daydream doctor` looks at each. All other commands need no GPU."},
    {"E0503", "this build of daydream has no recorder",
     R"(The recorder is built when the headers of the CUDA Toolkit (with CUPTI) are there; no GPU
and no driver are needed for that. Install the toolkit and configure again. An installed
daydream looks for lib/daydream/libdaydream_inject.so beside its bin folder.)"},
    {"E0504", "there is no such command",
     R"(The command of `daydream trace` is neither a file nor found in the folders of PATH. The exit
code is 127, as in a shell. Flags of daydream stand before the command.)"},
    {"E0505", "the command cannot be executed",
     R"(The file is there but may not or cannot be executed; the message has the system's reason.
The exit code is 126, as in a shell.)"},
    {"E0506", "a folder of driver stubs is in LD_LIBRARY_PATH",
     "As warning W0506: the folder `stubs` of a CUDA Toolkit holds a libcuda.so to link with. A\n"
     "program that loads it instead of the driver finds no GPU, and CUPTI does not work. daydream\n"
     "never changes LD_LIBRARY_PATH."},
    {"E0507", "no GPU work was recorded",
     R"(As warning W0507: the command ended, but there is nothing to look at. Either no process used
CUDA; or the program ended before the steps to record (fewer steps than --warmup); or CUPTI
refused, which the recorder says on standard error; or the recorder did not get in: a program
with special rights (setuid) ignores the variables by which it does. `--capture-range none`
records everything from the start.)"},
    {"E0508", "a recording could not be read or named",
     R"(As warning W0508: a file could not be read back, or not moved to its name because another
file took it meanwhile or the disk refused. Nothing is deleted: the recording stays in the
folder that the message names (NAME.session), and every command reads it there. The same folder
is left when daydream itself was killed.)"},
    {"E0509", "a recording is not complete",
     R"(As warning W0509: the recorder or CUPTI dropped events and counted them, or the process
ended without notice (killed, crashed), which costs what happened since the last write,
0.1 s unless --flush says otherwise. A slow disk, too little memory or very many small
kernels make it drop events. Record fewer steps, or CUDA graphs as a whole (--cuda-graph
graph).)"},
    {"E0601", "the optimization found nothing to change",
     R"(Nothing in this trace matches what the optimization works on, or it has the new values
already, for example `fuse` where every optimizer is fused. That is an answer too; it is
not printed as 1.00x so that a misspelt selection does not look like one. A combination is
predicted without its parts that find nothing, with warning W0601; the exit code is 4
either way, unless --allow-no-effect is given. The other warnings W0601 come from building
the graph and says what weakens every prediction from this trace.)"},
    {"E0602", "the replay check failed",
     R"(Asked of the unchanged graph is whether its replay takes the time that was measured, how
much shorter it is without delays that no rule explains, whether each step takes as long by
itself and with the lags of the other steps, and whether typical lags put it off by half.
Predictions would be off by the worst answer: above --max-replay-error (10 %) there is none,
and no table of summary; above 3 % you get W0602. Of steps it is the mean that is asked about,
as predictions are. A single step that is off by more than 10 % is named in the heading and in
W0602, and no prediction is of more than medium confidence. Causes are steps that differ (choose
with --steps), a recording that lost events, or behaviour that the rules do not cover.)"},
    {"E0603", "the answer is weakened",
     "As warning W0603: an optimization found something in the trace that its model does not\n"
     "cover, and the confidence is low; or something has to hold in the program for the answer\n"
     "to be right, which only its author can tell (conditions in JSON). The text says what."},
    {"E0604", "a gate of --fail-if held",
     "The condition that was to fail the command is true. The exit code is 5."},
    {"E0605", "the optimization must be told more",
     "A parameter has no default because the trace cannot tell it, for example how many loader\n"
     "workers the recorded run had. The message says which one to give. Where workers never kept\n"
     "a step waiting, how long they need is not in the trace, and fewer cannot be judged."},
    {"E0606", "there is nothing to learn from this measurement",
     "--learn keeps what a prediction was off by, so that --learned can correct later ones. That\n"
     "makes sense only for a prediction (not a limit) that was measured on the GPU it was\n"
     "predicted for, by the same program, in a recording of its own: three times as long as\n"
     "predicted, or a third of it, is another program."},
    {"E0607", "the recording holds no step",
     R"(CUDA was started inside of the only recorded step, or next to all of it is one-time work: a
compiler, modules that are loaded, memory that is reserved; or no marks say where a step
begins, and most of the window lies outside of operators. What remains is no step that comes
again; nor are steps of 0 ns, or GPU work half of which takes 0 ns. So nothing is told.
Record after warm-up: torch.profiler.schedule(wait=5, warmup=3, active=5), or trace --warmup
10.)"},
    {"E0615", "the recorded batch is not known",
     "batch(512) needs to know how many examples a recorded step has. It is told by the shapes of\n"
     "ops (record_shapes=True of the PyTorch profiler): of convolutions, embeddings of sequences\n"
     "and losses. Others begin with tokens as often. Without them say it:\n"
     "batch(512,recorded=32) or --samples 32, or ask for a multiple: batch(x4)."},
    {"E0616", "this is no size",
     R"(A size is a count (512) or a factor on what was recorded (x4, 4x, x0.5). Factors of more
than a million, batches of less than one example, and models without layers, are refused; so is a
second size for layers that the same scenario repeats already.)"},
    {"E0617", "this makes too large a graph",
     R"(Passes and layers that are repeated are played task by task. More than ten million tasks are
refused; the time of one more shows with few repetitions already. So are changes that make the
durations of all tasks add up to more than 36 years.)"},
    {"E0618", "there is no such family of layers",
     "layers repeats layers whose names differ by a number: layers.0, layers.1, or\n"
     "DecoderLayer_0, DecoderLayer_1. The message lists those of this trace."},
    {"E0621", "the step without the profiler cannot be that",
     "--true-step is what the step takes when nobody records it: not longer than recorded, nor\n"
     "much shorter than without any host time. Measure many steps of the same program and GPU."},
    {"E0625", "there is no backward pass",
     R"(Optimizations that trade time for memory act on what the forward pass keeps for the backward
pass. Inference keeps nothing. Record steps of training.)"},
    {"E0626", "forward and backward work cannot be joined",
     R"(To know when the backward pass needs what a layer kept, its kernels must be told to belong
to that layer: by modules (daydream trace) or by autograd's sequence numbers, which the
PyTorch profiler writes with the ops of the CPU (ProfilerActivity.CPU).)"},
    {"E0627", "there are no shapes",
     "What is kept for backward is told from the shapes of ops: profile(record_shapes=True, ...).\n"
     "The peak of memory also follows from allocations (profile_memory=True)."},
    {"E0628", "an optimization makes work wait for itself",
     R"(What it adds has to come behind work that comes behind it. In a recording of one run that
cannot be. The message names the circle: calls, the GPU work that they launch, and what
waits for it. Look them up in a timeline (daydream export TRACE --to perfetto). Where one is on
a thread or stream that the program does not run it on, the recording mixes them up, which
no check of the recording alone can tell. Where all are right, it is our mistake: the
other optimizations can be predicted meanwhile.)"},
    {"E0701", "bad range of a sweep",
     "A value of --opt that is a range or a list cannot be used: it runs backwards, never ends,\n"
     "mixes units, or gives more than 100,000 scenarios. Ranges are 1..8, 1..16*2 and\n"
     "10GB/s..25GB/s+5GB/s, lists {bf16,fp16}."},
    {"E0702", "the journal belongs to another sweep",
     R"(The file of --journal was begun with another trace, other optimizations, flags or values,
with another content of a file that takes part (the description of a GPU, a file of options), or
by another build of the program. The message names what changed. The rows do not answer this
question, and stay in the file. To go on with them, ask as before, with the files as they were;
else name another journal, or remove this one.)"},
    {"E0703", "a journal cannot be used",
     R"(The file is no journal of a sweep, or of another version of the program; it is damaged
before its last line (each line ends in a checksum, which for rows is of the lines above them,
too); it cannot be written, or another process is writing it; or the sweep reads a pipe, which no
journal can know again. The message names the file and the line. A row that was changed can be
deleted: it is made again. A last line that was cut off is no damage: it is dropped, and that row
is made again.)"},
    {"E0704", "bad shard",
     "--shard I/N does every N-th scenario, beginning with the I-th; I is between 1 and N."},
    {"E0705", "journals do not make a whole",
     R"(`sweep merge` got journals of different sweeps, or two different values of one row: then
nothing is written. When only rows are missing, the result holds the others and the exit code
is 4: run the missing shards with the same journals and merge again.)"},
    {"E0706", "ranks without MPI",
     R"(The program was started by mpirun or srun as one of several ranks, but does not know MPI, so
every rank would do all the work. Where the MPI headers were there when it was built, there is
a program daydream-mpi beside it; --shard I/N works without.)"},
    {"E0707", "the ranks are not about to do the same",
     R"(Each rank of `mpirun daydream-mpi sweep` reads the files of its own host. Before any work
they compare what their rows hang on: the program with its version, the content of the trace and
of all other files, and the flags. The message names the rank and the host that differs, or that
could not begin, and why. Nothing was written.)"},
    {"E0708", "a file was changed while the sweep ran",
     R"(The description of a GPU or another file that a scenario names is another one than when the
sweep began, so rows before and after it would not belong together. A journal keeps those from
before.)"},
    {"E0710", "bad --budget",
     R"(A budget of `advise` is 'effort<=20 lines', risk=WORD (only options whose risks are this) or
'risk!=WORD' (none whose risks hold this). A word, number, variable or command to change
counts as a line; options that name no number of lines are over every budget of lines. The
members of the best set count together. `daydream advise` shows both columns.)"},
    {"E0711", "options cannot be ranked by this",
     "`advise` ranks by the step, or by the time for as many examples as recorded: --objective\n"
     "throughput, or cost, which is the same on one machine. What a step draws is in no trace and\n"
     "is not modelled, and prices of other GPUs are not known."},
    {"E0712", "bad --pareto",
     "--pareto takes step, memory, or both with a comma: rows that no other one beats in them."},
    {"E0801", "this GPU is not known",
     R"(A GPU is named as in costmodel/devices/ (the message lists the names; letter case, spaces
and dashes do not matter, and the first words are enough: H100), or by the path of a file
that describes one and ends in .yaml, .yml, .json or .textproto. docs/cost-model.md has
the fields of such a file.)"},
    {"E0802", "this is no description of a device",
     "A file that describes a GPU has lines of `field: value` in YAML, JSON or the protobuf text\n"
     "format. The message shows where reading ended."},
    {"E0803", "a field of a device is not right",
     R"(There is no such field, it is given twice, or its value is no plain number within its range.
Units are in the names of the fields: MHz, TFLOPS, 10^9 bytes a second; peaks are dense.)"},
    {"E0804", "the description of a device is not enough",
     "name, multiprocessors, memory_gb_per_s and the fp32 rate (fp32_tflops, or units and clock)\n"
     "have to be there; everything else is filled in by rules that the result lists."},
    {"E0805", "the table of measured operations cannot be read",
     R"(`daydream calibrate` reads a CSV table: a first line with the names of the columns (op and
us have to be there), then a line for each operation. The message shows the place;
`daydream calibrate --help` lists operations and columns.)"},
    {"E0806", "there is nothing to calibrate with",
     R"(No measured operation tells a rate: convolutions have no absolute model, operations of a few
microseconds are not made of their work, and a format that the GPU lacks has no rate.)"},
    {"E0810", "the GPU of the recording is not known, or from= names another",
     R"(Times on another GPU, or on a share of one, are ratios: what the cost model says of the new
situation against the recorded one. So the recorded GPU has to be one of those whose data
sheet is known here. daydream info shows what was recorded; traces without properties of the
device say nothing about it, nor do names that are not known: an RTX 3090 Ti is no RTX 3090.
Then name it: gpu(H100, from=V100-SXM2-32GB).)"},
    {"E0812", "these two programs cannot be put on one GPU",
     "Both have to be recorded on the same kind of GPU, for their kernels keep their times; and\n"
     "both need GPU work whose steps can be repeated. With --opt colocate(OTHER) the trace looked\n"
     "at needs at least two steps; daydream colocate repeats one."},
    {"E0813", "no shapes can be taken from this file",
     R"(--shapes takes a PyTorch execution trace (torch.profiler.ExecutionTraceObserver, the
format that Chakra builds on) of the same program. Ops are matched by name and by their
order. A profile may hold more iterations than the execution trace, or fewer, but then it
holds all ops so many times more often: where less than 80 % of the nodes agree on that
number, the file is of another program, and nothing is taken. W0813 warns where less than
95 % do, or less than half of the profile's ops got shapes. A profile with shapes of its own
takes nothing from it. Two runs of one program with other batch sizes have the same ops: that
the shapes are of this run is up to you.)"},
    {"E0814", "a step cannot be repeated by itself",
     R"(daydream colocate plays the typical step of each program over and over. Where that takes
more than 10 % more or less than the step was recorded to take (work between steps, a
loader that runs ahead, steps that overlap), the repeated program is not the recorded one,
and nothing is predicted from it.)"},
    {"E0815", "the sizes of the gradients are not known",
     R"(Data parallelism exchanges gradients, and how many bytes these have is read from the shapes
of torch::autograd::AccumulateGrad. Record a training step with
torch.profiler.profile(record_shapes=True); an inference trace has no gradients. In the trace
of one rank of several the collectives are timed anew for another number of ranks: that
needs their sizes, and is refused where most of their time is of collectives without one.)"},
    {"E0820", "this fabric is not known",
     R"(A fabric is named as in `daydream fabric list` (letter case and dashes do not matter), or by
the path of a text file that describes one and ends in .textproto, .fabric or .txt.
`daydream fabric show NAME --text` prints one to begin from.)"},
    {"E0821", "the description of a fabric is not right",
     R"(A text file for --fabric holds `fabric { name: ... level { ... } }` in the protobuf text
format, as `daydream fabric show nvlink4 --text` prints it. The message shows the place, or
the number that is missing or out of its range.)"},
    {"E0822", "no row of nccl-tests is in this file",
     R"(`daydream fabric fit` reads what all_reduce_perf and its sisters print: a row has a size, a
count, a type, a time and the bandwidth that follows from them. Two sizes are the least.)"},
    {"E0823", "the fabric has no level for so many ranks",
     R"(A built-in fabric like nvlink4 is one node. More ranks than fit in a node need a fabric with
a level of nodes: `daydream fabric list` shows them, --fabric FILE describes another.)"},
    {"E0824", "no exchange of gradients in this trace",
     R"(fp16-compress, dgc, powersgd, local-sgd, blueconnect and p3 change how ranks exchange
gradients: collectives of a known size that are launched where autograd hands a parameter its
gradient, as DistributedDataParallel does. A trace of one GPU gets them from ddp(RANKS,
fabric=NAME) in the same scenario.)"},
    {"E0825", "the levels of the network are not known",
     R"(blueconnect splits an all-reduce by the levels of the network (the GPUs of a node, then
nodes), so it needs a fabric: blueconnect(fabric=NAME), or ddp(RANKS, fabric=NAME) beside it.
level= of bandwidth and latency names one of these levels.)"},
    {"E0826", "the next step is not in this trace",
     R"(What p3 gains is that the forward pass of the next step begins while gradients of the last
layers are still on their way. A recording of one step has no next one: record two or more.)"},
    {"E0901", "internal error",
     R"(A transform left the graph in a state that is not allowed. This is a mistake in daydream,
not in your trace; please report the command line and, if you may, the trace.)"},
};

}  // namespace

std::span<const ErrorPage> WorkErrorPages() { return kWorkErrors; }

}  // namespace daydream
