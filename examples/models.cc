#include "examples/models.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "examples/framework.h"
#include "examples/op.h"

namespace daydream::examples {
namespace {

constexpr int kFirstStep = 10;
constexpr int kSteps = 6;  // the first one is left out of averages by every reader

// One batch from a DataLoader without workers: read, decoded and stacked by this thread.
void LoadBatch(Framework& framework, int64_t decode_ns) {
  Machine::Span load(framework.machine(), EventKind::kAnnotation,
                     "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  framework.machine().Work(decode_ns);
  Op stack(framework, "aten::stack", {{{}, "TensorList"}, Scalar()});
  Op cat(framework, "aten::cat", {{{}, "TensorList"}, Scalar()}, -1, decode_ns / 8);
}

// The loop that most training scripts have. `forward` ends with the loss.
template <class Load, class Forward, class Update, class End>
void Train(Framework& framework, int steps, std::string_view optimizer, Load load, Forward forward,
           Update update, End end) {
  Machine& machine = framework.machine();
  for (int step = kFirstStep; step < kFirstStep + steps; ++step) {
    Machine::Span mark(machine, EventKind::kAnnotation, fmt::format("ProfilerStep#{}", step));
    load();
    {
      Machine::Span span(machine, EventKind::kAnnotation,
                         fmt::format("Optimizer.zero_grad#{0}.zero_grad", optimizer));
      machine.Work(60000);
    }
    framework.BeginForward();
    forward();
    framework.Backward();
    {
      Machine::Span span(machine, EventKind::kAnnotation,
                         fmt::format("Optimizer.step#{0}.step", optimizer));
      machine.Work(100000);
      update();
    }
    end();
    machine.Work(30000);
  }
}

Shape ConvolutionNorm(Framework& f, const std::string& key, const Shape& x, int64_t out,
                      int64_t size, int64_t stride) {
  Shape y;
  {
    Framework::Module module(f, "Conv2d", key + ".conv");
    y = f.Conv2d(x, out, size, stride, size / 2, key != "stem");
  }
  Framework::Module module(f, "BatchNorm2d", key + ".bn");
  return f.BatchNorm(y);
}

void Activate(Framework& f, const std::string& key, const Shape& x) {
  Framework::Module module(f, "ReLU", key + ".relu");
  f.Relu(x);
}

// 1x1, 3x3 and 1x1 convolutions beside an identity, or beside a 1x1 convolution where the shape
// changes (He et al. 2015, table 1).
Shape Bottleneck(Framework& f, const std::string& key, const Shape& x, int64_t width,
                 int64_t stride) {
  Framework::Module module(f, "Bottleneck", key);
  Shape y = ConvolutionNorm(f, key + ".1", x, width, 1, 1);
  Activate(f, key, y);
  y = ConvolutionNorm(f, key + ".2", y, width, 3, stride);
  Activate(f, key, y);
  y = ConvolutionNorm(f, key + ".3", y, 4 * width, 1, 1);
  if (x != y) {
    Framework::Module down(f, "Sequential", key + ".down");
    ConvolutionNorm(f, key + ".down", x, 4 * width, 1, stride);
  }
  f.Add(y, true);
  Activate(f, key, y);
  return y;
}

void ResNet50Forward(Framework& f, int64_t batch) {
  Shape logits;
  {
    Framework::Module resnet(f, "ResNet", "resnet");
    Shape x = ConvolutionNorm(f, "stem", {batch, 3, 224, 224}, 64, 7, 2);
    Activate(f, "stem", x);
    {
      Framework::Module pool(f, "MaxPool2d", "pool");
      x = f.MaxPool(x);
    }
    constexpr std::array<int, 4> kBlocks{3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage) {
      Framework::Module layer(f, "Sequential", fmt::format("layer{}", stage + 1));
      for (int block = 0; block < kBlocks[static_cast<size_t>(stage)]; ++block) {
        x = Bottleneck(f, fmt::format("layer{}.{}", stage + 1, block), x, int64_t{64} << stage,
                       stage > 0 && block == 0 ? 2 : 1);
      }
    }
    {
      Framework::Module pool(f, "AdaptiveAvgPool2d", "avgpool");
      x = f.GlobalAveragePool(x);
    }
    x = f.View("aten::flatten", x, {batch, 2048});
    Framework::Module fc(f, "Linear", "fc");
    logits = f.Linear(x, 1000);
  }
  Framework::Module loss(f, "CrossEntropyLoss", "loss");
  f.CrossEntropy(logits);
}

absl::StatusOr<std::shared_ptr<const Trace>> MakeResNet50() {
  constexpr int64_t kBatch = 32;
  Machine machine;
  Framework f(machine);
  Train(
      f, kSteps, "SGD",
      [&] {
        LoadBatch(f, 22'000'000);
        f.ToGpu({kBatch, 3, 224, 224}, "float", 4);
        f.ToGpu({kBatch}, "long int", 8);
      },
      [&] { ResNet50Forward(f, kBatch); }, [&] { f.SgdStep(); }, [&] { f.Item(); });
  return machine.Finish("resnet50", "ResNet-50, batch 32, fp32, SGD with momentum");
}

Shape Attention(Framework& f, const std::string& key, const Shape& x, const TransformerSize& size) {
  Framework::Module module(f, "SelfAttention", key);
  int64_t b = size.batch * size.heads, t = size.length, d = size.width / size.heads;
  Shape qkv;
  {
    Framework::Module linear(f, "Linear", key + ".qkv");
    qkv = f.Linear(x, 3 * size.width);
  }
  for (int i = 0; i < 3; ++i) f.View("aten::transpose", qkv, {b, t, d});
  Shape scores = f.Bmm({b, t, d}, {b, d, t});
  Shape y = f.Bmm(f.Softmax(scores), {b, t, d});
  y = f.View("aten::reshape", y, x);
  Framework::Module linear(f, "Linear", key + ".out");
  return f.Linear(y, size.width);
}

void EncoderLayer(Framework& f, const std::string& key, const Shape& x,
                  const TransformerSize& size) {
  Framework::Module block(f, "EncoderLayer", key);
  Attention(f, key + ".attention", x, size);
  f.Add(x, false);
  {
    Framework::Module norm(f, "LayerNorm", key + ".norm1");
    f.LayerNorm(x);
  }
  Shape hidden;
  {
    Framework::Module linear(f, "Linear", key + ".up");
    hidden = f.Linear(x, 4 * size.width);
  }
  {
    Framework::Module gelu(f, "GELU", key + ".gelu");
    f.Gelu(hidden);
  }
  {
    Framework::Module linear(f, "Linear", key + ".down");
    f.Linear(hidden, size.width);
  }
  f.Add(x, false);
  Framework::Module norm(f, "LayerNorm", key + ".norm2");
  f.LayerNorm(x);
}

void TransformerForward(Framework& f, const TransformerSize& size, bool recompute = false) {
  Shape x{size.batch, size.length, size.width}, logits;
  {
    Framework::Module model(f, "TransformerClassifier", "model");
    for (int i = 0; i < size.layers; ++i) {
      const std::string key = fmt::format("layer{}", i);
      EncoderLayer(f, key, x, size);
      if (recompute) f.RunAgainInBackward([&f, key, x, size] { EncoderLayer(f, key, x, size); });
    }
    x = f.View("aten::select", x, {size.batch, size.width});
    Framework::Module head(f, "Linear", "head");
    logits = f.Linear(x, size.classes);
  }
  Framework::Module loss(f, "CrossEntropyLoss", "loss");
  f.CrossEntropy(logits);
}

// A batch that worker processes have made is only taken over.
void TakeBatch(Framework& framework) {
  Machine::Span load(framework.machine(), EventKind::kAnnotation,
                     "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
  framework.machine().Work(100'000);
}

absl::StatusOr<std::shared_ptr<const Trace>> MakeTransformer() {
  auto played = PlayTransformer("launch-bound", {});
  if (!played.ok()) return played.status();
  return played->trace;
}

constexpr Model kModels[] = {
    {"resnet50", "ResNet-50, batch 32, fp32 without TF32, SGD, a loader without workers",
     &MakeResNet50},
    {"launch-bound", "a small transformer whose kernels are shorter than their launches",
     &MakeTransformer},
};

}  // namespace

std::span<const Model> Models() { return kModels; }

void StepClock::EndStep(const Machine& machine) {
  const int64_t host = machine.host_ns();
  ends_.push_back({std::max(host, machine.gpu_end_ns()), host, machine.gpu_busy_ns()});
}

void StepClock::Fill(Played& played) const {
  const double steps = 1e6 * static_cast<double>(ends_.size() - 1);
  const End &first = ends_.front(), &last = ends_.back();
  played.step_ms = static_cast<double>(last.any - first.any) / steps;
  played.host_ms = static_cast<double>(last.host - first.host) / steps;
  played.gpu_ms = static_cast<double>(last.busy - first.busy) / steps;
}

absl::StatusOr<Played> PlayTransformer(std::string_view name, const TransformerProgram& program) {
  const TransformerSize& size = program.size;
  Machine machine(program.machine);
  Framework f(machine);
  f.set_amp(program.amp);
  StepClock clock;
  Train(
      f, program.steps, program.adam ? "Adam" : "SGD",
      [&] {
        if (program.workers) {
          TakeBatch(f);
        } else {
          LoadBatch(f, program.decode_ns);
        }
        const Shape images{program.image_bytes / 4};
        if (program.image_bytes > 0) f.ToGpu(images, "float", 4, program.pinned);
        f.ToGpu({size.batch, size.length, size.width}, "float", 4, program.pinned);
        f.ToGpu({size.batch}, "long int", 8, program.pinned);
      },
      [&] { TransformerForward(f, size, program.recompute); },
      [&] {
        if (program.adam) {
          f.AdamStep();
        } else {
          f.SgdStep();
        }
      },
      [&] {
        if (program.item) f.Item();
        clock.EndStep(machine);
      });
  Played played;
  clock.Fill(played);
  auto trace =
      machine.Finish(name,
                     fmt::format("{}-layer transformer, batch {}, width {}, fp32, {}", size.layers,
                                 size.batch, size.width, program.adam ? "Adam" : "SGD"),
                     name.starts_with("lesson") ? "daydream tour" : "examples/make_synthetic");
  if (!trace.ok()) return trace.status();
  played.trace = *std::move(trace);
  return played;
}

}  // namespace daydream::examples
