#include "report/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace daydream {

void ForEachParallel(size_t count, unsigned jobs, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  auto worker = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(jobs, count); ++i) threads.emplace_back(worker);
  worker();
  for (std::thread& t : threads) t.join();
}

}  // namespace daydream
