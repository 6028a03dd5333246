// What the importer of .ddtrace counts, and where in the file.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "trace/trace_builder.h"

namespace daydream {

inline constexpr std::string_view kDdtraceDamage = "part of the file is damaged or missing";

inline uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  return a + b < a ? std::numeric_limits<uint64_t>::max() : a + b;
}

class DdtraceCounts {
 public:
  explicit DdtraceCounts(TraceBuilder& builder) : builder_(builder) {}

  // Later counts happened at this place of the file; -1 = not known.
  void SetOffset(int64_t offset) { offset_ = offset; }
  // An input that is wrong in itself.
  void Malformed(std::string_view what, std::string_view reason, uint64_t n, bool is_event) {
    if (n == 0) return;
    malformed_ = SaturatingAdd(malformed_, n);
    Add(what, reason, true, n, is_event);
  }
  // Inputs that do not become rows.
  void Input(std::string_view what, std::string_view reason, bool loss, uint64_t n = 1) {
    if (n > 0) Add(what, reason, loss, n, true);
  }
  // Anything else that is worth a line; no part of the number of inputs.
  void Note(std::string_view what, std::string_view reason, bool loss, uint64_t n = 1) {
    if (n > 0) Add(what, reason, loss, n, false);
  }
  void CountNotRows(uint64_t n) { not_rows_ = SaturatingAdd(not_rows_, n); }

  uint64_t malformed() const { return malformed_; }
  // Inputs that were counted instead of becoming rows.
  uint64_t not_rows() const { return not_rows_; }

 private:
  void Add(std::string_view what, std::string_view reason, bool loss, uint64_t n, bool is_event) {
    builder_.Count(what, reason, loss, n, offset_, is_event);
    if (is_event) CountNotRows(n);
  }

  TraceBuilder& builder_;
  int64_t offset_ = -1;
  uint64_t malformed_ = 0, not_rows_ = 0;
};

}  // namespace daydream
