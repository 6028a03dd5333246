#include "graph/shared_queues.h"

#include <algorithm>
#include <cstdlib>

namespace daydream {
namespace {

constexpr double kHelps = 0.9;  // of the distance before
constexpr int64_t kPlacesOff = 8;

// Of one stream when each call returned.
std::vector<int64_t> InFlight(const StreamPlaces& stream, std::span<const LongCall> calls) {
  const auto until = [](const std::vector<Instant>& sorted, Instant t) {
    return std::upper_bound(sorted.begin(), sorted.end(), t) - sorted.begin();
  };
  std::vector<int64_t> in_flight;
  in_flight.reserve(calls.size());
  for (const LongCall& call : calls) {
    in_flight.push_back(until(stream.submitted, call.start) - until(stream.started, call.end));
  }
  return in_flight;
}

void Add(std::vector<int64_t>& sum, const std::vector<int64_t>& more) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

}  // namespace

std::vector<size_t> StreamsOfOneQueue(std::span<const StreamPlaces> streams,
                                      std::span<const size_t> blocked,
                                      std::span<const LongCall> calls, uint32_t depth) {
  if (streams.size() > kMostStreams || calls.empty()) return {};
  // A call returns when one place less than all is taken.
  const int64_t full = int64_t{depth} - 1;
  const auto distance = [&](const std::vector<int64_t>& in_flight) {
    int64_t sum = 0;
    for (int64_t n : in_flight) sum += std::min(std::abs(n - full), full);
    return sum;
  };
  std::vector<std::vector<int64_t>> of_stream;
  for (const StreamPlaces& stream : streams) of_stream.push_back(InFlight(stream, calls));
  std::vector<size_t> found(blocked.begin(), blocked.end());
  std::vector<bool> in(streams.size());
  std::vector<int64_t> together(calls.size());
  for (size_t s : found) {
    in[s] = true;
    Add(together, of_stream[s]);
  }
  while (true) {
    size_t nearest = streams.size();
    int64_t least = static_cast<int64_t>(kHelps * static_cast<double>(distance(together)));
    for (size_t s = 0; s < streams.size(); ++s) {
      if (in[s]) continue;
      std::vector<int64_t> with = together;
      Add(with, of_stream[s]);
      const int64_t now = distance(with);
      if (now < least) least = now, nearest = s;
    }
    if (nearest == streams.size()) break;
    in[nearest] = true;
    found.push_back(nearest);
    Add(together, of_stream[nearest]);
  }
  const auto near =
      std::ranges::count_if(together, [&](int64_t n) { return std::abs(n - full) <= kPlacesOff; });
  if (static_cast<size_t>(near) * 4 < calls.size() * 3) return {};
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace daydream
