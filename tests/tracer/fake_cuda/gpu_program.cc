// A program that uses the (fake) GPU as its arguments say, one after the other, and ends as the
// last one says. With a real driver it needs only "init" to be given first, too.
//
//   launch_ex=N     cuLaunchKernelEx, as Triton
//   init            cuInit, a context, a stream      launch=N, rlaunch=N  kernels: driver, runtime
//   train=SxN       S steps of N kernels in two layers, each with a synchronize
//   host=US         from here on the host works so long before each launch of train
//   threads=TxN     T threads launch N kernels each  graph=N         a graph of N kernels, launched
//   pipeline=N      two streams, N events and waits  copies=N        copies and sets
//   alloc=N         allocations and frees            step=N, begin=X, end, range=X, end_range
//   capture, captured   what lies between is captured    replay=N    launches of the captured graph
//   texts=N         ranges with N different texts
//   sync, reset, profiler_start, profiler_stop, finish (the recorder), sleep=MS, pause
//   endless=FILE    launches until it is killed; writes the time of each launch to FILE
//   print=X         a line on stdout                 handle_term     own handler for SIGTERM: exit
//   fork=A,B,...    a child does these, and is waited for; fork_thread=A,B: forked by a thread
//   fork_die=N      a child waits, and is killed by signal N
//   storm=TxN       T threads launch 5000 kernels each while N children are forked and exit
//   load=PATH       dlopen;  load_storm=PATH  a thread loads PATH0.so, PATH1.so, ...;  end_storm
//   inject          as if the driver opened the recorder's door once more
//   queries=N       event queries and getters
//   limit_file=N    no file may become larger than N bytes
//   resident        prints the most memory that was in use, "resident N", in kB
//   exec            a new image goes on with the rest of the arguments
//   exit=N, _exit=N, quick_exit=N, return=N, throw, abort, segv, raise=N
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_runtime_api.h>

#include "tests/tracer/fake_cuda/fake_cuda.h"
#include "tracer/daydream_mark.h"

namespace daydream {
namespace {

constexpr size_t kMaxLaunches = 1 << 20;  // that `endless` notes down

std::vector<std::string> g_rest;  // arguments not done yet
char** g_argv;
int g_return = 0;

CUstream g_stream;

CUfunction Kernel(const char* name) {
  static thread_local std::map<std::string, CUfunction> functions;
  CUfunction& f = functions[name];
  if (f == nullptr) cuModuleGetFunction(&f, nullptr, name);
  return f;
}

void Launch(const char* name, CUstream stream) {
  cuLaunchKernel(Kernel(name), 8, 1, 1, 128, 1, 1, 0, stream, nullptr, nullptr);
}

void LaunchMany(int64_t n) {
  for (int64_t i = 0; i < n; ++i) Launch("axpy", g_stream);
}

std::pair<int64_t, int64_t> Pair(const std::string& text) {
  return {atoll(text.c_str()), atoll(text.c_str() + text.find('x') + 1)};
}

void Init(const std::string&) {
  CUcontext context;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  cuStreamCreate(&g_stream, CU_STREAM_NON_BLOCKING);
}

int64_t g_host_ns = 0;

void Host(const std::string& text) { g_host_ns = atoll(text.c_str()) * 1000; }

void LaunchAfterWork(const char* name) {
  for (const int64_t until = FakeNow() + g_host_ns; g_host_ns > 0 && FakeNow() < until;) {
  }
  Launch(name, g_stream);
}

void Train(const std::string& text) {
  auto [steps, kernels] = Pair(text);
  for (int64_t i = 0; i < steps; ++i) {
    daydream_step(i);
    daydream_begin("net.first");
    for (int64_t k = 0; k < kernels / 2; ++k) LaunchAfterWork("first");
    daydream_end();
    daydream_begin("net.second");
    for (int64_t k = kernels / 2; k < kernels; ++k) LaunchAfterWork("second");
    daydream_end();
    cuStreamSynchronize(g_stream);
  }
}

void Threads(const std::string& text) {
  auto [threads, launches] = Pair(text);
  std::vector<std::thread> all;
  for (int64_t t = 0; t < threads; ++t) {
    all.emplace_back([n = launches] {
      CUstream stream;
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      for (int64_t i = 0; i < n; ++i) Launch("axpy", stream);
      cuStreamSynchronize(stream);
    });
  }
  for (std::thread& t : all) t.join();
}

void Graph(const std::string& text) {
  CUgraph graph;
  CUgraphExec exec;
  cuGraphCreate(&graph, 0);
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = Kernel("in_graph");
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  for (int64_t i = 0; i < atoll(text.c_str()); ++i) {
    CUgraphNode node;
    cuGraphAddKernelNode(&node, graph, nullptr, 0, &params);
  }
  cuGraphInstantiate(&exec, graph, 0);
  cuGraphLaunch(exec, g_stream);
  cuStreamSynchronize(g_stream);
}

CUgraphExec g_captured;

void Capture(const std::string&) { cuStreamBeginCapture(g_stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }

void Captured(const std::string&) {
  CUgraph graph = nullptr;
  if (cuStreamEndCapture(g_stream, &graph) != CUDA_SUCCESS) _exit(94);
  cuGraphInstantiate(&g_captured, graph, 0);
}

void Replay(const std::string& text) {
  for (int64_t i = 0; i < atoll(text.c_str()); ++i) cuGraphLaunch(g_captured, g_stream);
  cuStreamSynchronize(g_stream);
}

void Pipeline(const std::string& text) {
  CUstream other;
  CUevent event;
  cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
  cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  for (int64_t i = 0; i < atoll(text.c_str()); ++i) {
    Launch("producer", g_stream);
    cuEventRecord(event, g_stream);
    cuStreamWaitEvent(other, event, 0);
    Launch("consumer", other);
  }
  cuEventRecord(event, other);
  cuEventSynchronize(event);
}

void Copies(const std::string& text) {
  static char host[4096];
  for (int64_t i = 0; i < atoll(text.c_str()); ++i) {
    cuMemcpyHtoDAsync(0, host, sizeof host, g_stream);
    cuMemsetD8Async(0, 0, sizeof host, g_stream);
    cuMemcpyDtoHAsync(host, 0, sizeof host, g_stream);
  }
  cuStreamSynchronize(g_stream);
}

void Allocations(const std::string& text) {
  for (int64_t i = 0; i < atoll(text.c_str()); ++i) {
    CUdeviceptr p;
    cuMemAlloc(&p, 4096);
    cuMemFree(p);
  }
}

// The i-th number in the file is the time when launch i had returned.
void Endless(const std::string& path) {
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ftruncate(fd, kMaxLaunches * sizeof(int64_t)) != 0) _exit(98);
  void* map =
      mmap(nullptr, kMaxLaunches * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  auto* times = static_cast<volatile int64_t*>(map);
  puts("ready");
  fflush(stdout);
  for (size_t i = 0; i < kMaxLaunches; ++i) {
    Launch("axpy", g_stream);
    times[i] = FakeNow();
    usleep(20);
  }
}

void Do(const std::string& argument);

void Fork(const std::string& arguments) {
  pid_t child = fork();
  if (child != 0) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) _exit(97);
    return;
  }
  std::string_view rest = arguments;
  while (!rest.empty()) {
    std::string one(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    Do(one);
  }
  exit(g_return);
}

void ForkAndKill(const std::string& text) {
  int runs[2];
  if (pipe(runs) != 0) _exit(92);
  pid_t child = fork();
  if (child == 0) {
    if (write(runs[1], "", 1) != 1) _exit(91);
    for (;;) pause();
  }
#ifdef __SANITIZE_THREAD__
  // Its runtime puts a signal off to the next call that blocks and drops it if the handler is gone
  // by then, as after a fork.
  char byte;
  if (read(runs[0], &byte, 1) != 1) _exit(90);
#endif
  close(runs[0]);
  close(runs[1]);
  kill(child, atoi(text.c_str()));
  int status = 0;
  waitpid(child, &status, 0);
  printf("child ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

void Storm(const std::string& text) {
  auto [threads, forks] = Pair(text);
  std::thread launching(Threads, std::to_string(threads) + "x5000");
  for (int64_t i = 0; i < forks; ++i) Fork(i % 2 == 0 ? "exit=0" : "_exit=0");
  launching.join();
}

std::thread g_loader;

void LoadStorm(const std::string& path) {
  constexpr int kMost = 1000;
  g_loader = std::thread([path] {
    for (int i = 0; i < kMost; ++i) {
      if (dlopen((path + std::to_string(i) + ".so").c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
        return;
      }
    }
  });
}

void InjectAgain(const std::string&) {
  void* library = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW | RTLD_GLOBAL);
  auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize() != 1) _exit(95);
}

void Queries(const std::string& text) {
  CUevent event;
  cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  for (int64_t i = 0; i < atoll(text.c_str()); ++i) {
    int device = 0;
    cuEventQuery(event);
    cudaGetDevice(&device);
  }
}

void LimitFile(const std::string& text) {
  rlimit limit{static_cast<rlim_t>(atoll(text.c_str())), RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &limit);
}

void Resident(const std::string&) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  printf("resident %ld\n", usage.ru_maxrss);
}

void Exec(const std::string&) {
  std::vector<char*> argv = {g_argv[0]};
  for (std::string& argument : g_rest) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  _exit(96);
}

using Action = void (*)(const std::string&);

const std::map<std::string, Action>& Work() {
  static const std::map<std::string, Action> actions = {
      {"init", Init},
      {"train", Train},
      {"host", Host},
      {"threads", Threads},
      {"graph", Graph},
      {"capture", Capture},
      {"captured", Captured},
      {"replay", Replay},
      {"pipeline", Pipeline},
      {"copies", Copies},
      {"alloc", Allocations},
      {"endless", Endless},
      {"launch", [](const std::string& x) { LaunchMany(atoll(x.c_str())); }},
      {"rlaunch",
       [](const std::string& x) {
         for (int64_t i = 0; i < atoll(x.c_str()); ++i) {
           cudaLaunchKernel(Kernel("axpy"), dim3(8), dim3(128), nullptr, 0, g_stream);
         }
       }},
      {"launch_ex",
       [](const std::string& x) {
         CUlaunchConfig config{};
         config.gridDimX = config.gridDimY = config.gridDimZ = 1;
         config.blockDimX = config.blockDimY = config.blockDimZ = 1;
         config.hStream = g_stream;
         for (int64_t i = 0; i < atoll(x.c_str()); ++i) {
           cuLaunchKernelEx(&config, Kernel("triton"), nullptr, nullptr);
         }
       }},
      {"sync", [](const std::string&) { cuCtxSynchronize(); }},
      {"reset", [](const std::string&) { cudaDeviceReset(); }},
      {"profiler_start", [](const std::string&) { cuProfilerStart(); }},
      {"profiler_stop", [](const std::string&) { cuProfilerStop(); }},
      {"texts",
       [](const std::string& x) {
         for (int64_t i = 0; i < atoll(x.c_str()); ++i) {
           daydream_range(("text " + std::to_string(i)).c_str());
           daydream_end_range();
         }
       }},
      {"step", [](const std::string& x) { daydream_step(atoll(x.c_str())); }},
      {"begin", [](const std::string& x) { daydream_begin(x.c_str()); }},
      {"end", [](const std::string&) { daydream_end(); }},
      {"range", [](const std::string& x) { daydream_range(x.c_str()); }},
      {"end_range", [](const std::string&) { daydream_end_range(); }},
  };
  return actions;
}

const std::map<std::string, Action>& Ends() {
  static const std::map<std::string, Action> actions = {
      {"finish",
       [](const std::string&) {
         if (const daydream_recorder* r = daydream_find_recorder()) r->finish();
       }},
      {"sleep",
       [](const std::string& x) {
         // A signal whose handler returns does not shorten it.
         for (int64_t end = FakeNow() + atoll(x.c_str()) * 1'000'000; FakeNow() < end;) {
           usleep(1000);
         }
       }},
      {"pause",
       [](const std::string&) {
         for (;;) pause();
       }},
      {"print",
       [](const std::string& x) {
         puts(x.c_str());
         fflush(stdout);
       }},
      {"handle_term", [](const std::string&) { signal(SIGTERM, [](int) { exit(3); }); }},
      {"fork", Fork},
      {"fork_thread", [](const std::string& x) { std::thread(Fork, x).join(); }},
      {"fork_die", ForkAndKill},
      {"storm", Storm},
      {"load",
       [](const std::string& x) {
         if (dlopen(x.c_str(), RTLD_NOW) == nullptr) _exit(93);
       }},
      {"load_storm", LoadStorm},
      {"end_storm", [](const std::string&) { g_loader.join(); }},
      {"inject", InjectAgain},
      {"queries", Queries},
      {"limit_file", LimitFile},
      {"resident", Resident},
      {"exec", Exec},
      {"exit", [](const std::string& x) { exit(atoi(x.c_str())); }},
      {"_exit", [](const std::string& x) { _exit(atoi(x.c_str())); }},
      {"quick_exit", [](const std::string& x) { quick_exit(atoi(x.c_str())); }},
      {"return", [](const std::string& x) { g_return = atoi(x.c_str()); }},
      {"throw", [](const std::string&) { throw std::runtime_error("as told"); }},
      {"abort", [](const std::string&) { abort(); }},
      {"segv", [](const std::string&) { raise(SIGSEGV); }},
      {"raise", [](const std::string& x) { raise(atoi(x.c_str())); }},
  };
  return actions;
}

void Do(const std::string& argument) {
  size_t equals = argument.find('=');
  std::string name = argument.substr(0, equals);
  std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
  for (const auto* actions : {&Work(), &Ends()}) {
    if (auto found = actions->find(name); found != actions->end()) return found->second(value);
  }
  fprintf(stderr, "gpu_program: unknown argument %s\n", argument.c_str());
  _exit(99);
}

}  // namespace
}  // namespace daydream

int main(int argc, char** argv) {
  // A thread's first call that blocks makes what the thread sanitizer of GCC 12 keeps signals in,
  // and one that comes just then is lost: here there is none yet.
  usleep(1);
  daydream::g_argv = argv;
  daydream::g_rest.assign(argv + 1, argv + argc);
  while (!daydream::g_rest.empty()) {
    std::string argument = daydream::g_rest.front();
    daydream::g_rest.erase(daydream::g_rest.begin());
    daydream::Do(argument);
  }
  return daydream::g_return;
}
