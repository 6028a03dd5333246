// Steps of a network of spiking neurons: many kernels that take a few microseconds each, so that
// the GPU waits for the host. Steps and populations are marked with NVTX, without daydream.
//
//   spiking_network [STEPS]
//
// Everything is a whole number, so the result does not depend on the order of atomic additions.
// Checks itself: spikes and potentials are those that the CPU computes.
#include <algorithm>
#include <string>

#include <nvtx3/nvToolsExt.h>

#include "example.h"

namespace {

constexpr int kPopulations = 12;
constexpr int kNeurons = 512;     // of a population
constexpr int kSynapses = 32;     // out of each neuron, into the next population
constexpr int kThreshold = 1 << 16;
constexpr int kRefractory = 3;    // steps after a spike without another
constexpr int kThreads = 128;
constexpr int kBlocks = kNeurons / kThreads;

struct Synapse {
  int target, weight;
};

// A sixteenth of the potential leaks away in each step. On both processors: division rounds
// towards zero everywhere.
__host__ __device__ int Leaked(int potential) { return potential - potential / 16; }

__global__ void Leak(int* potential) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  potential[i] = Leaked(potential[i]);
}

__global__ void AddInput(int* potential, int* input) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  potential[i] += input[i];
  input[i] = 0;
}

__global__ void Fire(int* potential, int* rest, int* spikes, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (rest[i] > 0) --rest[i];
  spikes[i] = rest[i] == 0 && potential[i] >= kThreshold;
  if (spikes[i] == 0) return;
  potential[i] = 0;
  rest[i] = kRefractory;
  atomicAdd(count, 1);
}

__global__ void Propagate(const int* spikes, const Synapse* synapses, int* next_input) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (spikes[i] == 0) return;
  for (int s = 0; s < kSynapses; ++s) {
    Synapse synapse = synapses[i * kSynapses + s];
    atomicAdd(&next_input[synapse.target], synapse.weight);
  }
}

// Current from outside, different in every step.
__host__ __device__ int Stimulus(int step, int neuron) {
  uint32_t mixed = static_cast<uint32_t>(step * 7919 + neuron) * 2654435761u;  // Knuth's hash
  return static_cast<int>(mixed >> 19);  // 13 bits
}

__global__ void Stimulate(int* input, int step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  input[i] += Stimulus(step, i);
}

std::vector<Synapse> RandomSynapses(uint32_t seed) {
  Random random(seed);
  std::vector<Synapse> synapses(kNeurons * kSynapses);
  for (Synapse& s : synapses) {
    s.target = static_cast<int>(random.Next() % kNeurons);
    s.weight = static_cast<int>(random.Next() % 4096) - 1024;  // a quarter inhibits
  }
  return synapses;
}

struct Population {
  explicit Population(uint32_t seed)
      : potential(kNeurons), input(kNeurons), rest(kNeurons), spikes(kNeurons), count(1),
        synapses(RandomSynapses(seed)) {}
  DeviceArray<int> potential, input, rest, spikes, count;
  DeviceArray<Synapse> synapses;
};

// The same, one neuron after the other.
struct CpuPopulation {
  explicit CpuPopulation(uint32_t seed)
      : potential(kNeurons), input(kNeurons), rest(kNeurons), synapses(RandomSynapses(seed)) {}

  void Step(std::vector<int>& next_input) {
    for (int i = 0; i < kNeurons; ++i) {
      potential[i] = Leaked(potential[i]) + input[i];
      input[i] = 0;
      if (rest[i] > 0) --rest[i];
      if (rest[i] > 0 || potential[i] < kThreshold) continue;
      potential[i] = 0;
      rest[i] = kRefractory;
      ++count;
      for (int s = 0; s < kSynapses; ++s) {
        const Synapse& synapse = synapses[i * kSynapses + s];
        next_input[synapse.target] += synapse.weight;
      }
    }
  }
  std::vector<int> potential, input, rest;
  std::vector<Synapse> synapses;
  int count = 0;
};

}  // namespace

int main(int argc, char** argv) {
  NeedGpu();
  const int steps = StepsFrom(argc, argv, 200);
  std::vector<Population*> network;
  std::vector<std::string> names;
  for (int p = 0; p < kPopulations; ++p) {
    network.push_back(new Population(p + 1));
    names.push_back("population " + std::to_string(p));
  }

  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA(("step " + std::to_string(step)).c_str());
    Stimulate<<<kBlocks, kThreads>>>(network[0]->input.data(), step);
    for (int p = 0; p < kPopulations; ++p) {
      nvtxRangePushA(names[p].c_str());
      Population& now = *network[p];
      // The spikes of the last population come back to the first in the next step.
      Population& next = *network[(p + 1) % kPopulations];
      Leak<<<kBlocks, kThreads>>>(now.potential.data());
      AddInput<<<kBlocks, kThreads>>>(now.potential.data(), now.input.data());
      Fire<<<kBlocks, kThreads>>>(now.potential.data(), now.rest.data(), now.spikes.data(),
                                  now.count.data());
      Propagate<<<kBlocks, kThreads>>>(now.spikes.data(), now.synapses.data(), next.input.data());
      nvtxRangePop();
    }
    CHECK_CUDA(cudaGetLastError());
    nvtxRangePop();
  }
  CHECK_CUDA(cudaDeviceSynchronize());

  std::vector<CpuPopulation> expected;
  for (int p = 0; p < kPopulations; ++p) expected.emplace_back(p + 1);
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kNeurons; ++i) expected[0].input[i] += Stimulus(step, i);
    for (int p = 0; p < kPopulations; ++p) {
      expected[p].Step(expected[(p + 1) % kPopulations].input);
    }
  }
  bool right = true;
  int spikes = 0;
  for (int p = 0; p < kPopulations; ++p) {
    right = right && network[p]->potential.Download() == expected[p].potential;
    right = right && network[p]->count.Download()[0] == expected[p].count;
    spikes += expected[p].count;
    delete network[p];
  }
  std::printf("%d spikes in %d steps of %d neurons\n", spikes, steps, kPopulations * kNeurons);
  return Verdict(right && (steps < 100 || spikes > 0), "spikes and potentials");
}
