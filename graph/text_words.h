// The words of the text form (docs/graph-text.md): kinds, phases, rules and times. Internal to
// graph/.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace daydream {

template <class E>
struct Word {
  E value;
  std::string_view text;
};

inline constexpr Word<TaskKind> kTaskKinds[] = {{TaskKind::kHost, "host"},
                                                {TaskKind::kCall, "call"},
                                                {TaskKind::kWait, "wait"},
                                                {TaskKind::kKernel, "kernel"},
                                                {TaskKind::kMemcpy, "memcpy"},
                                                {TaskKind::kMemset, "memset"},
                                                {TaskKind::kCollective, "collective"},
                                                {TaskKind::kDelay, "delay"},
                                                {TaskKind::kData, "data"}};
inline constexpr Word<Phase> kPhases[] = {
    {Phase::kNone, "none"},           {Phase::kForward, "forward"}, {Phase::kBackward, "backward"},
    {Phase::kOptimizer, "optimizer"}, {Phase::kData, "data"},       {Phase::kComm, "comm"}};
inline constexpr Word<Rule> kRules[] = {
    {Rule::kLaunch, "launch"},       {Rule::kEventWait, "eventwait"},
    {Rule::kHostWait, "hostwait"},   {Rule::kHandOff, "handoff"},
    {Rule::kQueue, "queue"},         {Rule::kCollective, "collective"},
    {Rule::kTransform, "transform"}, {Rule::kLaneOrder, "laneorder"}};
inline constexpr Word<LaneKind> kLaneKinds[] = {
    {LaneKind::kThread, "thread"}, {LaneKind::kStream, "stream"}, {LaneKind::kChannel, "channel"}};
inline constexpr Word<EventKind> kScopeKinds[] = {
    {EventKind::kOp, "op"}, {EventKind::kAnnotation, "annotation"}, {EventKind::kFrame, "frame"}};
inline constexpr Word<Memory> kMemories[] = {
    {Memory::kUnknown, "unknown"}, {Memory::kPageable, "pageable"}, {Memory::kPinned, "pinned"},
    {Memory::kDevice, "device"},   {Memory::kManaged, "managed"},   {Memory::kArray, "array"}};

template <class E, size_t n>
std::optional<E> FindWord(const Word<E> (&words)[n], std::string_view text) {
  for (const Word<E>& w : words) {
    if (w.text == text) return w.value;
  }
  return std::nullopt;
}

template <class E, size_t n>
std::string_view WordOf(const Word<E> (&words)[n], E value) {
  for (const Word<E>& w : words) {
    if (w.value == value) return w.text;
  }
  return words[0].text;
}

// "5us", "-1.5ms", "+2ns", "0": a whole number of nanoseconds, less than 2^60 of them.
std::optional<Duration> ParseTime(std::string_view text);
// The shortest of these forms that is exact: "1500ns" is "1.5us".
std::string FormatTime(Duration d);

// What a lane's name says about its device and stream: "gpu0.7" is stream 7 of device 0.
struct StreamName {
  int32_t device = -1;
  int64_t number = 0;
};
StreamName ParseStreamName(std::string_view name);

}  // namespace daydream
