// What calls that submit work take when nothing is in their way. For the rules of the launch queue.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace daydream {

constexpr size_t kLeastBlockedCalls = 20;  // so many slow ones tell that a queue was full
constexpr uint32_t kMostLostPlaces = 64;   // operations of one stream, of its last 1000
constexpr uint32_t kDeepInFlight = 512;    // so many in flight may have filled it

class QuickCalls {
 public:
  explicit QuickCalls(const Builder& b);  // O(calls)

  // What calls of that name usually take: the first quartile of their durations. Good enough to
  // tell slow calls. 0 for calls that neither submit work nor record events.
  Duration Usual(const HostCall& call) const { return usual_[call.name.index()]; }
  const std::vector<Duration>& by_name() const { return usual_; }  // by NameId

  // More than calls take that do nothing but submit, or many times what is usual. One of both may
  // be so by chance, or because of what such calls do; a call that waited for long is both.
  bool IsLong(const HostCall& call) const { return call.duration() > Duration::Us(30); }
  bool IsSlow(const HostCall& call) const { return call.duration() > Usual(call) * 4; }

 private:
  std::vector<Duration> usual_;
};

// Rule Q5: work from before the window that filled a queue.
void AddBacklog(Builder& b, const QuickCalls& quick);

}  // namespace daydream
