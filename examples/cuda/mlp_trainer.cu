// Trains a multi-layer perceptron: matrix products by cuBLAS, everything else in small kernels,
// plain gradient descent. Layers and steps are marked with daydream_mark.h.
//
//   mlp_trainer [STEPS]
//
// Checks itself: the weights after one step are those that the CPU computes, and the error falls.
#include <cmath>
#include <string>

#include <cublas_v2.h>

#include "example.h"
#include "tracer/daydream_mark.h"

namespace {

constexpr int kBatch = 128;
constexpr int kSizes[] = {64, 256, 256, 16};  // inputs, two hidden layers, outputs
constexpr int kLayers = 3;
constexpr float kRate = 0.05f;
constexpr int kThreads = 256;

#define CHECK_CUBLAS(call)                                                                 \
  do {                                                                                     \
    cublasStatus_t check_status = (call);                                                  \
    if (check_status != CUBLAS_STATUS_SUCCESS) {                                           \
      std::fprintf(stderr, "%s:%d: %s: cuBLAS error %d\n", __FILE__, __LINE__, #call,      \
                   static_cast<int>(check_status));                                        \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)

int Blocks(int n) { return (n + kThreads - 1) / kThreads; }

// All matrices are column-major; a column is one sample.
__global__ void AddBias(float* values, const float* bias, int rows, int n, bool relu) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = values[i] + bias[i % rows];
  values[i] = relu && value < 0 ? 0 : value;
}

// Gradient of the mean squared error.
__global__ void LossGradient(const float* output, const float* target, float* gradient, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) gradient[i] = 2 * (output[i] - target[i]) / n;
}

__global__ void ReluGradient(const float* output, float* gradient, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && output[i] <= 0) gradient[i] = 0;
}

// One thread sums one row, in the order of the samples.
__global__ void SumColumns(const float* gradient, float* bias_gradient, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int c = 0; c < columns; ++c) sum += gradient[c * rows + row];
  bias_gradient[row] = sum;
}

__global__ void Descend(float* weights, const float* gradient, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weights[i] -= kRate * gradient[i];
}

struct Weights {
  std::vector<float> matrix, bias;  // outputs x inputs; outputs
};

std::vector<Weights> InitialWeights() {
  Random random(7);
  std::vector<Weights> layers(kLayers);
  for (int l = 0; l < kLayers; ++l) {
    float range = std::sqrt(6.0f / kSizes[l]);
    layers[l].matrix.resize(kSizes[l] * kSizes[l + 1]);
    for (float& w : layers[l].matrix) w = random.Between(-range, range);
    layers[l].bias.assign(kSizes[l + 1], 0.01f);
  }
  return layers;
}

class Layer {
 public:
  Layer(cublasHandle_t blas, std::string name, int inputs, int outputs, bool relu,
        const Weights& weights)
      : blas_(blas), name_(std::move(name)), inputs_(inputs), outputs_(outputs), relu_(relu),
        matrix_(weights.matrix), bias_(weights.bias), output_(outputs * kBatch),
        matrix_gradient_(inputs * outputs), bias_gradient_(outputs),
        input_gradient_(inputs * kBatch) {}

  const DeviceArray<float>& Forward(const DeviceArray<float>& input) {
    daydream_begin(name_.c_str());
    const float one = 1, zero = 0;
    CHECK_CUBLAS(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, outputs_, kBatch, inputs_, &one,
                             matrix_.data(), outputs_, input.data(), inputs_, &zero,
                             output_.data(), outputs_));
    int n = outputs_ * kBatch;
    AddBias<<<Blocks(n), kThreads>>>(output_.data(), bias_.data(), outputs_, n, relu_);
    daydream_end();
    return output_;
  }

  // Takes the gradient of the output, which it changes, and returns that of the input.
  DeviceArray<float>& Backward(const DeviceArray<float>& input, DeviceArray<float>& gradient,
                               int step) {
    daydream_mark_text(DAYDREAM_BACKWARD_ENTER, name_.c_str(), step);
    const float one = 1, zero = 0;
    int n = outputs_ * kBatch;
    if (relu_) ReluGradient<<<Blocks(n), kThreads>>>(output_.data(), gradient.data(), n);
    CHECK_CUBLAS(cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_T, outputs_, inputs_, kBatch, &one,
                             gradient.data(), outputs_, input.data(), inputs_, &zero,
                             matrix_gradient_.data(), outputs_));
    SumColumns<<<Blocks(outputs_), kThreads>>>(gradient.data(), bias_gradient_.data(), outputs_,
                                               kBatch);
    CHECK_CUBLAS(cublasSgemm(blas_, CUBLAS_OP_T, CUBLAS_OP_N, inputs_, kBatch, outputs_, &one,
                             matrix_.data(), outputs_, gradient.data(), outputs_, &zero,
                             input_gradient_.data(), inputs_));
    daydream_mark_text(DAYDREAM_BACKWARD_EXIT, name_.c_str(), step);
    return input_gradient_;
  }

  void Update() {
    int n = inputs_ * outputs_;
    Descend<<<Blocks(n), kThreads>>>(matrix_.data(), matrix_gradient_.data(), n);
    Descend<<<Blocks(outputs_), kThreads>>>(bias_.data(), bias_gradient_.data(), outputs_);
  }

  Weights Download() const { return {matrix_.Download(), bias_.Download()}; }
  const DeviceArray<float>& output() const { return output_; }

 private:
  cublasHandle_t blas_;
  std::string name_;
  int inputs_, outputs_;
  bool relu_;
  DeviceArray<float> matrix_, bias_, output_, matrix_gradient_, bias_gradient_, input_gradient_;
};

// One step as the layers above do it, in double precision, by the definition of each formula.
void StepOnCpu(std::vector<Weights>& layers, const std::vector<float>& input,
               const std::vector<float>& target) {
  std::vector<std::vector<double>> values = {{input.begin(), input.end()}};
  for (int l = 0; l < kLayers; ++l) {
    int in = kSizes[l], out = kSizes[l + 1];
    std::vector<double> next(out * kBatch);
    for (int c = 0; c < kBatch; ++c) {
      for (int r = 0; r < out; ++r) {
        double sum = layers[l].bias[r];
        for (int k = 0; k < in; ++k) sum += layers[l].matrix[k * out + r] * values[l][c * in + k];
        next[c * out + r] = l + 1 < kLayers && sum < 0 ? 0 : sum;
      }
    }
    values.push_back(std::move(next));
  }
  std::vector<double> gradient(target.size());
  for (size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = 2 * (values[kLayers][i] - target[i]) / static_cast<double>(gradient.size());
  }
  for (int l = kLayers - 1; l >= 0; --l) {
    int in = kSizes[l], out = kSizes[l + 1];
    std::vector<double> before(in * kBatch);
    std::vector<double> matrix(layers[l].matrix.begin(), layers[l].matrix.end());
    for (int c = 0; c < kBatch; ++c) {
      for (int r = 0; r < out; ++r) {
        bool off = l + 1 < kLayers && values[l + 1][c * out + r] <= 0;
        double g = off ? 0 : gradient[c * out + r];
        layers[l].bias[r] -= static_cast<float>(kRate * g);
        for (int k = 0; k < in; ++k) {
          before[c * in + k] += matrix[k * out + r] * g;
          layers[l].matrix[k * out + r] -= static_cast<float>(kRate * g * values[l][c * in + k]);
        }
      }
    }
    gradient = std::move(before);
  }
}

// Largest difference between the two.
double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    most = std::fmax(most, std::fabs(static_cast<double>(a[i]) - b[i]));
  }
  return most;
}

double MeanSquaredError(const DeviceArray<float>& output, const std::vector<float>& target) {
  double sum = 0;
  std::vector<float> values = output.Download();
  for (size_t i = 0; i < values.size(); ++i) {
    sum += (static_cast<double>(values[i]) - target[i]) * (values[i] - target[i]);
  }
  return sum / static_cast<double>(values.size());
}

}  // namespace

int main(int argc, char** argv) {
  NeedGpu();
  const int steps = StepsFrom(argc, argv, 60);
  Random random(1);
  std::vector<float> host_input(kSizes[0] * kBatch), host_target(kSizes[kLayers] * kBatch);
  for (float& x : host_input) x = random.Between(-1, 1);
  for (int c = 0; c < kBatch; ++c) {
    for (int r = 0; r < kSizes[kLayers]; ++r) {
      host_target[c * kSizes[kLayers] + r] = std::sin(3 * host_input[c * kSizes[0] + r]);
    }
  }
  cublasHandle_t blas;
  CHECK_CUBLAS(cublasCreate(&blas));
  std::vector<Weights> weights = InitialWeights();
  std::vector<Layer*> layers;
  for (int l = 0; l < kLayers; ++l) {
    layers.push_back(new Layer(blas, "fc" + std::to_string(l + 1), kSizes[l], kSizes[l + 1],
                               l + 1 < kLayers, weights[l]));
  }
  DeviceArray<float> input(host_input), target(host_target);
  DeviceArray<float> loss_gradient(host_target.size());

  StepOnCpu(weights, host_input, host_target);
  double first_error = 0, wrong_by = 0;
  for (int step = 0; step < steps; ++step) {
    daydream_step(step);
    const DeviceArray<float>* x = &input;
    for (Layer* layer : layers) x = &layer->Forward(*x);
    int n = static_cast<int>(host_target.size());
    LossGradient<<<Blocks(n), kThreads>>>(x->data(), target.data(), loss_gradient.data(), n);
    DeviceArray<float>* gradient = &loss_gradient;
    for (int l = kLayers - 1; l >= 0; --l) {
      const DeviceArray<float>& before = l == 0 ? input : layers[l - 1]->output();
      gradient = &layers[l]->Backward(before, *gradient, step);
    }
    daydream_range("Optimizer.step#SGD.step");
    for (Layer* layer : layers) layer->Update();
    daydream_end_range();
    CHECK_CUDA(cudaGetLastError());
    if (step > 0) continue;
    first_error = MeanSquaredError(*x, host_target);
    for (int l = 0; l < kLayers; ++l) {
      Weights now = layers[l]->Download();
      wrong_by = std::fmax(wrong_by, Difference(now.matrix, weights[l].matrix));
      wrong_by = std::fmax(wrong_by, Difference(now.bias, weights[l].bias));
    }
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  double last_error = MeanSquaredError(layers.back()->output(), host_target);
  std::printf("error %.4f -> %.4f in %d steps; after the first, weights differ from the CPU's by "
              "%.2g at most\n",
              first_error, last_error, steps, wrong_by);
  for (Layer* layer : layers) delete layer;
  cublasDestroy(blas);
  // The largest update is 8e-3; rounding to single precision makes differences of about 1e-6.
  return Verdict(wrong_by < 2e-5 && (steps < 30 || last_error < 0.9 * first_error),
                 "the weights after one step, and the fall of the error");
}
