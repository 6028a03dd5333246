#include "tools/record/output_pattern.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>

namespace daydream {
namespace {

constexpr std::string_view kEnding = ".ddtrace";

absl::Status BadPattern(std::string_view text, std::string why) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("--output '{}': {}", text, why),
                     .fix = "%h host, %p process, %r rank, %n next free number, %q{VAR} "
                            "environment variable, %% a percent sign"});
}

std::string MachineName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// A slash in the value of a variable would name another folder.
std::string WithoutSlashes(std::string text) {
  for (char& c : text) {
    if (c == '/') c = '_';
  }
  return text;
}

// -1 when it is not a number.
int64_t Number(const char* text) {
  int64_t value = -1;
  if (text == nullptr) return -1;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() && *end == '\0' && value >= 0 ? value : -1;
}

std::string_view BaseName(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

absl::StatusOr<OutputPattern> OutputPattern::Parse(
    std::string_view text, const std::function<const char*(const char*)>& environment) {
  std::string_view rest = text;
  if (rest.ends_with(kEnding)) rest.remove_suffix(kEnding.size());
  if (BaseName(rest).empty()) return BadPattern(text, "this is no name of a file");
  OutputPattern pattern;
  std::string plain;
  while (!rest.empty()) {
    size_t percent = std::min(rest.find('%'), rest.size());
    plain += rest.substr(0, percent);
    rest.remove_prefix(percent);
    if (rest.empty()) break;
    if (rest.size() < 2) return BadPattern(text, "a single % at the end");
    char part = rest[1];
    rest.remove_prefix(2);
    if (part == '%') {
      plain += '%';
    } else if (part == 'h') {
      plain += MachineName();
    } else if (part == 'p' || part == 'r' || part == 'n') {
      pattern.pieces_.push_back({0, std::move(plain)});
      pattern.pieces_.push_back({part, ""});
      plain.clear();
    } else if (part == 'q') {
      size_t close = rest.find('}');
      if (!rest.starts_with('{') || close == std::string_view::npos) {
        return BadPattern(text, "%q needs a variable in braces");
      }
      std::string name(rest.substr(1, close - 1));
      rest.remove_prefix(close + 1);
      const char* value = environment(name.c_str());
      if (value == nullptr) return BadPattern(text, fmt::format("{} is not set", name));
      plain += WithoutSlashes(value);
    } else {
      return BadPattern(text, fmt::format("%{} is not known", part));
    }
  }
  pattern.pieces_.push_back({0, std::move(plain)});
  return pattern;
}

bool OutputPattern::Has(char part) const {
  for (const Piece& p : pieces_) {
    if (p.part == part) return true;
  }
  return false;
}

std::string OutputPattern::Stem(const OutputValues& values) const {
  std::string stem;
  for (const Piece& p : pieces_) {
    if (p.part == 'p') stem += fmt::format("{}", values.pid);
    if (p.part == 'r') stem += values.rank < 0 ? "-" : fmt::format("{}", values.rank);
    if (p.part == 'n') stem += fmt::format("{}", values.number);
    stem += p.text;
  }
  return stem;
}

std::string DefaultPattern(std::span<const std::string> command) {
  std::string_view name = command.empty() ? "" : BaseName(command[0]);
  for (const std::string& word : command) {
    std::string_view script = BaseName(word);
    if (!script.ends_with(".py") || script.size() == 3) continue;
    name = script.substr(0, script.size() - 3);
    break;
  }
  std::string pattern;
  for (char c : name) pattern += c == '%' ? std::string("%%") : std::string(1, c);
  return pattern + "-%n";
}

int64_t RankOf(const std::function<const char*(const char*)>& environment) {
  constexpr std::array<std::array<const char*, 2>, 4> kVariables = {{
      {"RANK", "WORLD_SIZE"},                            // torchrun
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},  // Open MPI
      {"PMI_RANK", "PMI_SIZE"},                          // MPICH
      {"SLURM_PROCID", "SLURM_NTASKS"},                  // Slurm
  }};
  for (const auto& [rank, size] : kVariables) {
    if (Number(environment(rank)) >= 0 && Number(environment(size)) > 1) {
      return Number(environment(rank));
    }
  }
  return -1;
}

}  // namespace daydream
