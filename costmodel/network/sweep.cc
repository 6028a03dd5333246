#include "costmodel/network/sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace daydream {
namespace {

constexpr std::string_view kTypes[] = {
    "int8",     "uint8", "char",     "int32",    "int",     "uint32", "int64",
    "uint64",   "half",  "float16",  "float",    "float32", "double", "float64",
    "bfloat16", "bf16",  "fp8_e4m3", "fp8_e5m2", "f8e4m3",  "f8e5m2", "fp8"};

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while (true) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == line.npos) return words;
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

std::optional<double> NumberOf(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> WholeNumber(std::string_view word) {
  const bool digits = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
  return digits ? NumberOf(word) : std::nullopt;
}

// Where "size count type" stands; npos: nowhere.
size_t RowBegin(const std::vector<std::string_view>& words) {
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    const bool type =
        std::find(std::begin(kTypes), std::end(kTypes), words[i + 2]) != std::end(kTypes);
    if (type && WholeNumber(words[i]) && WholeNumber(words[i + 1])) return i;
  }
  return std::string_view::npos;
}

// The time out of place: with `bytes` it gives the bandwidth that stands behind it, which is
// printed with two digits. The operation and the root, which not all versions print, may stand
// before it; what fits further on is the time in place.
size_t TimeAt(const std::vector<std::string_view>& words, size_t from, double bytes) {
  constexpr size_t kBefore = 2;
  for (size_t i = from; i <= from + kBefore && i + 2 < words.size(); ++i) {
    const auto us = NumberOf(words[i]), rate = NumberOf(words[i + 1]), bus = NumberOf(words[i + 2]);
    if (!us || !rate || !bus || !(*us > 0) || !(*rate >= 0) || !(*bus >= 0)) continue;
    const double expected = bytes / *us * 1e-3;
    if (std::abs(expected - *rate) <= 0.0051 + 0.02 * expected) return i;
  }
  return std::string_view::npos;
}

// "#  Rank  3 Group  0 Pid  12 on  node-1 device  3 ...": the ranks, and the hosts that they are
// on.
struct Members {
  size_t ranks = 0;
  std::set<std::string, std::less<>> hosts;
};

void NoteMember(const std::vector<std::string_view>& words, Members& members) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "Rank" || !WholeNumber(words[i + 1])) continue;
    const auto on = std::find(words.begin(), words.end(), "on");
    if (on == words.end() || on + 1 == words.end()) return;
    ++members.ranks;
    members.hosts.insert(std::string(on[1]));
    return;
  }
}

}  // namespace

absl::StatusOr<Sweep> ReadSweep(std::string_view text, std::string_view where) {
  Sweep sweep;
  Members members;
  size_t at = 0, lines = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++lines;
    const std::vector<std::string_view> words = WordsOf(line);
    const size_t begin = RowBegin(words);
    if (begin == std::string_view::npos) {
      NoteMember(words, members);
      if (sweep.kind == CollectiveKind::kUnknown && ContainsAny(line, {"_perf", "test starting"})) {
        sweep.kind = CollectiveNamed(line);
      }
      continue;
    }
    const double bytes = *WholeNumber(words[begin]);
    if (bytes == 0) continue;  // nccl-tests prints sizes below one element as 0
    const size_t time = TimeAt(words, begin + 3, bytes);
    if (time == std::string_view::npos) {
      if (sweep.skipped++ == 0) sweep.skipped_line = lines;
      continue;
    }
    if (time + 3 < words.size() && NumberOf(words[time + 3]).value_or(0) > 0.5) {
      ++sweep.wrong;
    } else {
      sweep.points.push_back({bytes, *NumberOf(words[time])});
    }
  }
  if (sweep.points.empty()) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0822",
         .what = "no row of nccl-tests is in this file",
         .where = std::string(where),
         .why = fmt::format("{} lines, {} of them begin like a row, {} rows have wrong results",
                            lines, sweep.skipped, sweep.wrong),
         .fix = "the output as `all_reduce_perf -b 1K -e 8G -f 2` prints it"});
  }
  sweep.ranks = static_cast<int>(std::min<size_t>(members.ranks, 1 << 20));
  sweep.nodes = static_cast<int>(members.hosts.size());
  return sweep;
}

}  // namespace daydream
