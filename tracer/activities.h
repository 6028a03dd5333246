// Which activity CUPTI records, and switching it on and off.
#pragma once

#include <cupti.h>

#include <string>
#include <vector>

#include "tracer/cupti_api.h"
#include "tracer/options.h"

namespace daydream::tracer {

// What CUPTI calls.
struct CuptiHooks {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc clock = nullptr;
  CUpti_CallbackFunc callback = nullptr;
};

// Something that this CUPTI does not tell, in the words of `info`, and what follows.
struct Lack {
  std::string what, effect;
};

class Activities {
 public:
  // Subscribes, sets the clock and what must be set before there is a context, registers the
  // buffers, and enables what shall be recorded (only facts about devices, contexts and streams
  // unless `on`). To be called once in a process: registering the clock twice corrupts times.
  // Returns "" or why nothing can be recorded; CUPTI must not be called again then.
  std::string Start(const CuptiApi& api, const Options& options, const CuptiHooks& hooks, bool on);

  // Switches the recording of calls on or off, and that of GPU work on; SwitchWorkOff() does the
  // rest when the work of the last calls has run. Not thread-safe, and slow: to be called at the
  // boundaries of a window only. After Switch(true), refused_again() says whether CUPTI now refuses
  // what it recorded before.
  void Switch(bool on);
  void SwitchWorkOff();
  // GPU work alone, for CUDA graphs that are made while the window is closed.
  void SwitchWorkOn();
  bool work_on() const { return work_on_; }
  // Nothing shall be recorded any more: CUPTI records no facts, and calls us after a fatal error
  // only.
  void Detach();
  CUptiResult refused_again() const { return refused_again_; }

  // Names as in CUPTI's headers, without their prefix: what is recorded, and what CUPTI refused.
  const std::vector<std::string>& kinds() const { return kinds_; }
  const std::vector<std::string>& refused() const { return refused_; }
  std::vector<Lack> Lacks() const;
  // The first reason for a refusal.
  CUptiResult refusal() const { return refusal_; }
  // False: times are CUPTI's own, since it did not take our clock.
  bool uses_our_clock() const { return uses_our_clock_; }
  // The same for thread ids (gettid).
  bool uses_our_threads() const { return uses_our_threads_; }

 private:
  std::string Subscribe(const CuptiHooks& hooks);
  std::string Explain(CUptiResult result) const;
  void SetAttributes();
  CUptiResult EnableOrShrink(CUpti_ActivityKind kind);
  enum class Group : uint8_t { kFacts, kCalls, kWork };
  struct Kind;
  static const Kind kKinds[];
  static const Kind kAllDriverCalls;
  void SetKind(const Kind& kind, bool on);
  void SwitchWork(bool on);
  void EnableKinds();
  void EnableCalls(bool on);
  void EnableCallbacks(bool on);

  const CuptiApi* api_ = nullptr;
  const Options* options_ = nullptr;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::vector<std::string> kinds_, refused_;
  CUptiResult refusal_ = CUPTI_SUCCESS, refused_again_ = CUPTI_SUCCESS;
  bool uses_our_clock_ = false, uses_our_threads_ = false, first_time_ = true;
  bool records_work_ = false;  // some kind of call or work was not refused
  bool work_on_ = false;
};

}  // namespace daydream::tracer
