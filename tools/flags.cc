#include "tools/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace daydream {
namespace {

// Insertions, deletions, replacements and swaps of neighbours, each counting one (optimal string
// alignment).
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t best = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      cost[i][j] = swapped ? std::min(best, cost[i - 2][j - 2] + 1) : best;
    }
  }
  return cost[a.size()][b.size()];
}

// One line of input with carets under the part that is wrong.
std::string Excerpt(std::span<const std::string> words, size_t wrong, std::string_view remark) {
  std::string line, carets;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) line += ' ';
    if (i == wrong) carets = std::string(line.size(), ' ') + std::string(words[i].size(), '^');
    line += words[i];
  }
  return fmt::format("{}\n{}{}", line, carets, remark);
}

absl::Status UnknownFlag(std::span<const Flag* const> flags, std::span<const std::string> words,
                         size_t at, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Flag* f : flags) known.push_back(f->name);
  std::string_view nearest = Nearest(name, known);
  std::string remark = nearest.empty() ? "" : fmt::format(" did you mean {}?", nearest);
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0101",
                     .what = fmt::format("unknown flag {}", name),
                     .where = Excerpt(words, at, remark),
                     .fix = "--help lists the flags of this command"});
}

absl::Status BadValue(std::string what, std::span<const std::string> words, size_t at,
                      std::string fix) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, {.code = "E0104",
                                                         .what = std::move(what),
                                                         .where = Excerpt(words, at, ""),
                                                         .fix = std::move(fix)});
}

// "1.5%", ".5", "-1": what stands behind a flag whose number may be left out.
bool BeginsANumber(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  if (word.starts_with('.')) word.remove_prefix(1);
  return !word.empty() && word[0] >= '0' && word[0] <= '9';
}

// The parser's place in the words.
struct Reader {
  std::span<const Flag* const> flags;
  std::span<const std::string> words;
  size_t at = 0;
  std::map<std::string, std::vector<std::string>, std::less<>>* values;

  absl::Status Take(const Flag& flag, size_t place, std::string value) {
    if (value.empty() && !flag.value.empty()) {
      return BadValue(fmt::format("{} has an empty value", flag.name), words, place,
                      fmt::format("{} {}", flag.name, flag.value));
    }
    if (!flag.choices.empty() && (flag.unoffered.empty() || value != flag.unoffered) &&
        std::find(flag.choices.begin(), flag.choices.end(), value) == flag.choices.end()) {
      return BadValue(
          fmt::format("{} cannot be '{}'{}", flag.name, value, DidYouMean(value, flag.choices)),
          words, place, fmt::format("{} {}", flag.name, OrList(flag.choices)));
    }
    (*values)[std::string(flag.name)].push_back(std::move(value));
    return absl::OkStatus();
  }

  // The next word as the value of `flag`.
  absl::Status TakeNext(const Flag& flag) {
    size_t place = at - 1;
    if (flag.value.starts_with('[') && (at == words.size() || !BeginsANumber(words[at]))) {
      return absl::OkStatus();
    }
    // The next flag is no value: it would be lost without a word.
    if (at == words.size() || words[at].starts_with("--")) {
      return BadValue(fmt::format("{} needs a value", flag.name), words, place,
                      fmt::format("{} {}", flag.name, flag.value));
    }
    std::string value = words[at++];
    return Take(flag, at - 1, std::move(value));
  }

  absl::Status Long(const std::string& word) {
    size_t place = at - 1, equals = word.find('=');
    std::string name = word.substr(0, equals);
    auto is_it = [&](const Flag* f) { return f->name == name; };
    auto it = std::find_if(flags.begin(), flags.end(), is_it);
    if (it == flags.end()) return UnknownFlag(flags, words, place, name);
    const Flag& flag = **it;
    if (flag.value.empty()) {
      if (equals == std::string::npos) return Take(flag, place, "");
      return BadValue(fmt::format("{} takes no value", name), words, place, name);
    }
    if (equals == std::string::npos) return TakeNext(flag);
    return Take(flag, place, word.substr(equals + 1));
  }

  absl::Status Letters(const std::string& word) {
    size_t place = at - 1;
    for (size_t i = 1; i < word.size(); ++i) {
      auto is_it = [&](const Flag* f) { return f->letter == word[i]; };
      auto it = std::find_if(flags.begin(), flags.end(), is_it);
      if (it == flags.end()) return UnknownFlag(flags, words, place, std::string("-") + word[i]);
      if ((*it)->value.empty()) {
        DD_RETURN_IF_ERROR(Take(**it, place, ""));
        continue;
      }
      if (i + 1 == word.size()) return TakeNext(**it);
      return Take(**it, place, word.substr(i + 1));
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::string_view Args::Get(std::string_view flag) const {
  auto given = values_.find(flag);
  if (given != values_.end()) return given->second.back();
  auto fallback = fallbacks_.find(flag);
  return fallback == fallbacks_.end() ? std::string_view() : fallback->second;
}

std::vector<std::string> Args::All(std::string_view flag) const {
  auto given = values_.find(flag);
  return given == values_.end() ? std::vector<std::string>() : given->second;
}

absl::StatusOr<Args> ParseArgs(std::span<const Flag* const> flags,
                               std::span<const std::string> words, FlagsEnd end) {
  Args args;
  for (const Flag* f : flags) {
    if (!f->fallback.empty()) args.fallbacks_[std::string(f->name)] = std::string(f->fallback);
  }
  Reader reader{flags, words, 0, &args.values_};
  bool ended = false;
  while (reader.at < words.size()) {
    const std::string& word = words[reader.at++];
    if (!ended && word == "--") {
      ended = true;
    } else if (ended || word.size() < 2 || word[0] != '-') {
      args.positional_.push_back(word);
      ended = ended || end == FlagsEnd::kAtFirstWord;
    } else {
      DD_RETURN_IF_ERROR(word[1] == '-' ? reader.Long(word) : reader.Letters(word));
    }
  }
  for (const Flag* f : flags) {
    if (!f->repeats && !f->value.empty() && args.All(f->name).size() > 1) {
      return MakeStatus(absl::StatusCode::kInvalidArgument,
                        {.code = "E0104",
                         .what = fmt::format("{} is given more than once", f->name),
                         .fix = "keep one of them"});
    }
  }
  return args;
}

std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = word.size() <= 3 ? 2 : 3;
  for (std::string_view c : candidates) {
    // Dashes in front are not part of the word.
    size_t dashes = std::min(word.find_first_not_of('-'), word.size());
    bool both = c.substr(0, dashes) == word.substr(0, dashes);
    size_t length = word.size() > c.size() ? word.size() - c.size() : c.size() - word.size();
    if (!both || length >= best_distance) continue;
    size_t distance = EditDistance(word, c);
    if (distance < best_distance) {
      best_distance = distance;
      best = c;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

std::optional<double> PlainNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string OrList(std::span<const std::string_view> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace daydream
