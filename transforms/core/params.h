// Parameters of transforms, as data: what each is called, its unit, range, default and source.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace daydream {

enum class Unit : uint8_t {
  kNone,       // a count
  kFactor,     // "x2", "2x", "2"
  kShare,      // "40%", "0.4"
  kDuration,   // "12us"; value in ns
  kBytes,      // "64MiB"; value in bytes
  kBandwidth,  // "25GB/s", "100Gbps"; value in bytes per second
  kFlops,      // "12GFLOP"; value in floating-point operations
  kFlopRate,   // "312TFLOP/s", "312TFLOPS"; value in operations per second
  kText,       // a word out of `choices`, or free text when choices is empty
};

struct ParamSpec {
  std::string_view name;
  Unit unit = Unit::kNone;
  double fallback = 0;                             // value when not given, in the unit above
  double low = fallback, high = fallback;          // range of plausible values, for intervals
  double min = 0, max = 0;                         // range of accepted values
  std::string_view text_fallback = {};             // kText
  std::span<const std::string_view> choices = {};  // kText
  std::string_view help;
  std::string_view source;  // where the numbers come from; mandatory
  bool required = false;
  bool whole = false;  // fractions are refused
};

// One value with its unit checked: "24GB/s" for kBandwidth is 24e9. Bits and bytes differ; a bare
// number is refused where both make sense. InvalidArgument says what was expected.
absl::StatusOr<double> ParseValue(std::string_view text, Unit unit);
std::string FormatValue(double value, Unit unit);
// The same for messages about values that were computed: four digits, and words for what is no
// number of its unit.
std::string RoundedValue(double value, Unit unit);

// A number whose suffix says what it is: "24GB/s" is 24e9 of kBandwidth, "4" is 4 of kNone.
struct Quantity {
  double value = 0;
  Unit unit = Unit::kNone;
};
absl::StatusOr<Quantity> ParseQuantity(std::string_view text);
// "time", "bytes", "bandwidth", ...: the unit as a word.
std::string_view UnitName(Unit unit);

// Names of parameters that somebody asked for.
using AskedParams = std::set<std::string, std::less<>>;

// Checked values for one application of a transform.
class Params {
 public:
  double operator[](std::string_view name) const;      // REQUIRES: declared and not kText
  std::string_view text(std::string_view name) const;  // REQUIRES: declared kText
  bool given(std::string_view name) const;             // written by the user
  // "amp(dtype=bf16)", canonical: declared order, only what was given.
  const std::string& spelled() const { return spelled_; }
  // From here on, whoever asks for a parameter puts its name into `asked`, as all copies do.
  void NoteIn(AskedParams* asked) { asked_ = asked; }

 private:
  void Note(std::string_view name) const {
    if (asked_ != nullptr && !asked_->contains(name)) asked_->emplace(name);
  }

  friend absl::StatusOr<Params> BindParams(std::string_view, std::span<const ParamSpec>,
                                           std::span<const std::pair<std::string, std::string>>);
  std::map<std::string, double, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> texts_;
  std::map<std::string, bool, std::less<>> given_;
  std::string spelled_;
  AskedParams* asked_ = nullptr;
};

// Binds arguments (name may be empty = next positional) to `specs`. Unknown names get a
// "did you mean"; values out of range name the range.
absl::StatusOr<Params> BindParams(std::string_view transform, std::span<const ParamSpec> specs,
                                  std::span<const std::pair<std::string, std::string>> args);

}  // namespace daydream
