#include "trace/nsys/names.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace daydream {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view MemoryWord(int64_t kind) {
  constexpr std::string_view kWords[] = {"Pageable", "Pinned", "Device", "Array",
                                         "Managed",  "Device", "Managed"};
  return kind >= 0 && kind < std::ssize(kWords) ? kWords[kind] : "Unknown";
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Length of a cast such as "(int)" at `at` in front of a number, or 0.
size_t CastAt(std::string_view text, size_t at) {
  constexpr std::string_view kTypes[] = {"(int)",
                                         "(unsigned int)",
                                         "(long)",
                                         "(unsigned long)",
                                         "(short)",
                                         "(bool)",
                                         "(long long)",
                                         "(unsigned long long)",
                                         "(unsigned short)",
                                         "(char)",
                                         "(signed char)",
                                         "(unsigned char)"};
  for (std::string_view type : kTypes) {
    if (text.substr(at).starts_with(type)) return type.size();
  }
  return 0;
}

// What the demanglers of GCC and LLVM put behind or around a number of this type.
std::string Number(std::string_view cast, std::string_view digits) {
  if (cast == "(bool)") return digits == "0" ? "false" : "true";
  const std::string number(digits);
  if (cast == "(unsigned int)") return number + "u";
  if (cast == "(long)") return number + "l";
  if (cast == "(unsigned long)") return number + "ul";
  if (cast == "(long long)") return number + "ll";
  if (cast == "(unsigned long long)") return number + "ull";
  if (cast == "(int)") return number;
  return std::string(cast) + number;
}

}  // namespace

std::string_view NsysCallName(std::string_view name) {
  for (;;) {
    size_t end = name.size();
    while (end > 0 && IsDigit(name[end - 1])) --end;
    if (end < name.size() && name.substr(0, end).ends_with("_v")) {
      name = name.substr(0, end - 2);
    } else if (name.ends_with("_ptsz") || name.ends_with("_ptds")) {
      name.remove_suffix(5);
    } else {
      return name;
    }
  }
}

SyncKind NsysWaitOf(std::string_view call) {
  if (call == "cudaDeviceSynchronize" || call == "cudaThreadSynchronize" ||
      call == "cuCtxSynchronize") {
    return SyncKind::kContext;
  }
  if (call == "cudaStreamSynchronize" || call == "cuStreamSynchronize") return SyncKind::kStream;
  if (call == "cudaEventSynchronize" || call == "cuEventSynchronize") return SyncKind::kEvent;
  if (call == "cudaStreamWaitEvent" || call == "cuStreamWaitEvent") {
    return SyncKind::kStreamWaitEvent;
  }
  return SyncKind::kUnknown;
}

bool IsNsysQuery(std::string_view call) {
  return call == "cudaEventQuery" || call == "cuEventQuery" || call == "cudaStreamQuery" ||
         call == "cuStreamQuery";
}

std::string PlainKernelName(std::string_view nvidia) {
  std::string text;
  for (size_t i = 0; i < nvidia.size(); ++i) {
    const size_t cast = nvidia[i] == '(' ? CastAt(nvidia, i) : 0;
    size_t end = i + cast;
    if (cast > 0 && end < nvidia.size() && nvidia[end] == '-') ++end;
    const size_t digits = end;
    while (cast > 0 && end < nvidia.size() && IsDigit(nvidia[end])) ++end;
    if (cast > 0 && end > digits) {
      text += Number(nvidia.substr(i, cast), nvidia.substr(i + cast, end - i - cast));
      i = end - 1;
    } else {
      text += nvidia[i];
    }
  }
  ReplaceAll(text, "<unnamed>", "(anonymous namespace)");
  ReplaceAll(text, "operator ()", "operator()");
  ReplaceAll(text, " *", "*");
  ReplaceAll(text, " &", "&");
  // "[lambda() (instance 1)]" is the first lambda of its function.
  constexpr std::string_view kLambda = "[lambda(";
  for (size_t at = text.find(kLambda); at != std::string::npos; at = text.find(kLambda, at + 1)) {
    const size_t instance = text.find(") (instance ", at), close = text.find(")]", at);
    if (instance == std::string::npos || close == std::string::npos || close < instance) continue;
    const std::string arguments = text.substr(at + 1, instance - at);
    const std::string number = text.substr(instance + 12, close - instance - 12);
    text.replace(at, close + 2 - at, fmt::format("{{{}#{}}}", arguments, number));
  }
  return text;
}

std::string NsysCopyName(int64_t copy_kind, int64_t from, int64_t to) {
  constexpr std::string_view kDirections[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                              "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
  const bool known = copy_kind > 0 && copy_kind < std::ssize(kDirections);
  const bool memory = MemoryWord(from) != "Unknown" || MemoryWord(to) != "Unknown";
  std::string name = fmt::format("Memcpy {}", known ? kDirections[copy_kind] : "Unknown");
  if (memory) name += fmt::format(" ({} -> {})", MemoryWord(from), MemoryWord(to));
  return name;
}

std::string NsysSetName(int64_t memory_kind) {
  return fmt::format("Memset ({})", MemoryWord(memory_kind));
}

Memory NsysMemory(int64_t memory_kind) {
  switch (memory_kind) {
    case 0:
      return Memory::kPageable;
    case 1:
      return Memory::kPinned;
    case 2:
    case 5:
      return Memory::kDevice;
    case 3:
      return Memory::kArray;
    case 4:
    case 6:
      return Memory::kManaged;
    default:
      return Memory::kUnknown;
  }
}

}  // namespace daydream
