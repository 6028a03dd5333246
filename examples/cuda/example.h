// What the three programs share: error checks, a fixed random sequence, arrays on the GPU, the
// end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

// Exit code for "cannot run here", as test drivers know it.
constexpr int kNoGpu = 77;

#define CHECK_CUDA(call)                                                 \
  do {                                                                   \
    cudaError_t check_error = (call);                                    \
    if (check_error != cudaSuccess) {                                    \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(check_error));                     \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

// Ends the program when there is no GPU.
inline void NeedGpu() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return;
  std::fprintf(stderr, "no GPU: %s\n", cudaGetErrorString(error));
  std::exit(kNoGpu);
}

// The number of steps from the command line.
inline int StepsFrom(int argc, char** argv, int otherwise) {
  int steps = argc > 1 ? std::atoi(argv[1]) : otherwise;
  return steps > 0 ? steps : otherwise;
}

// Numerical Recipes' 32-bit congruential generator: the same numbers everywhere.
class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed) {}
  uint32_t Next() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }  // 24 bits
  float Between(float low, float high) {
    return low + (high - low) * (static_cast<float>(Next()) * 0x1p-24f);
  }

 private:
  uint32_t state_;
};

// An array on the GPU.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    CHECK_CUDA(cudaMalloc(&data_, size * sizeof(T)));
    CHECK_CUDA(cudaMemset(data_, 0, size * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    CHECK_CUDA(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  std::vector<T> Download() const {
    std::vector<T> values(size_);
    CHECK_CUDA(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// Prints the verdict of the program's own check and returns its exit code.
inline int Verdict(bool right, const char* what) {
  std::printf("%s: %s\n", right ? "right" : "WRONG", what);
  return right ? 0 : 1;
}
