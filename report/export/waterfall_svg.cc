#include "report/export/waterfall_svg.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "report/text/escape.h"
#include "report/text/format.h"

namespace daydream {
namespace {

constexpr size_t kMostCauses = 8;
constexpr double kSmallestCause = 0.02;  // of the largest
constexpr size_t kLongestLabel = 46;     // characters that fit
constexpr int kLeft = 310, kRight = 650, kWidth = 760, kRowHeight = 28;

// The colours of report/html/style.css.
struct Palette {
  std::string_view text, quiet, plain, strong, good, bad;
};
constexpr Palette kPalettes[] = {
    {"#1c2128", "#59636e", "#a3abb6", "#2f6fbd", "#2c8a4b", "#c4462f"},
    {"#e4e8ed", "#9aa4b0", "#5f6a77", "#5b9bea", "#4fb06d", "#ec775f"}};
static_assert(std::size(kPalettes) == static_cast<size_t>(Theme::kDark) + 1);

struct WaterfallRow {
  std::string label, value;
  std::string_view colour;
  Duration from, to;
  bool strong = false;
};

std::vector<Waterfall::Cause> LargestCauses(const Waterfall& w) {
  std::vector<Waterfall::Cause> causes = w.causes;
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) {
    return std::llabs(a.delta.ns) > std::llabs(b.delta.ns);
  });
  size_t shown = 0;
  while (shown < causes.size() && shown < kMostCauses &&
         std::abs(causes[shown].delta.us()) >= kSmallestCause * std::abs(causes[0].delta.us())) {
    ++shown;
  }
  Waterfall::Cause rest{fmt::format("{} smaller causes", causes.size() - shown), {}};
  for (size_t i = shown; i < causes.size(); ++i) rest.delta += causes[i].delta;
  const bool others = shown < causes.size();
  causes.resize(shown);
  if (others) causes.push_back(rest);
  return causes;
}

std::vector<WaterfallRow> WaterfallRows(const Waterfall& w, const Palette& colours) {
  const TimeUnit unit = UnitFor(w.before);
  std::vector<WaterfallRow> rows = {
      {"as recorded", FormatTime(w.before, unit), colours.plain, {}, w.before, true}};
  Duration at = w.before;
  for (const Waterfall::Cause& c : LargestCauses(w)) {
    rows.push_back({c.what, FormatChange(c.delta, unit),
                    c.delta.ns > 0 ? colours.bad : colours.good, at, at + c.delta});
    at += c.delta;
  }
  rows.push_back({w.name,
                  (w.bound ? ">= " : "") + FormatTime(w.after, unit),
                  colours.strong,
                  {},
                  w.after,
                  true});
  return rows;
}

}  // namespace

std::string WaterfallSvg(const Waterfall& w, Theme theme) {
  const Palette& colours = kPalettes[static_cast<size_t>(theme)];
  const std::vector<WaterfallRow> rows = WaterfallRows(w, colours);
  Duration longest = w.high.value_or(w.after);
  for (const WaterfallRow& r : rows) longest = std::max({longest, r.from, r.to});
  const auto x = [&](Duration d) {
    const double share = d.seconds() / std::max(longest.seconds(), 1e-12);
    return kLeft + std::max(0.0, share) * (kRight - kLeft);
  };
  const int height = kRowHeight * static_cast<int>(rows.size()) + 8;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" "
      "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{2} to {3} "
      "with "
      "{4}: where the time goes</title>\n",
      kWidth, height, FormatTime(w.before), FormatTime(w.after), HtmlText(w.name));
  int y = 4;
  for (const WaterfallRow& r : rows) {
    const double begin = x(std::min(r.from, r.to)), end = x(std::max(r.from, r.to));
    const std::string_view weight = r.strong ? " font-weight=\"600\"" : "";
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\"{}>{}</text>\n"
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"20\" rx=\"2\" fill=\"{}\"/>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\"{}>{}</text>\n",
        kLeft - 12, y + 15, colours.text, weight, HtmlText(CutMiddle(r.label, kLongestLabel)),
        begin, y, std::max(end - begin, 1.0), r.colour, kWidth - 6, y + 15, colours.text, weight,
        r.value);
    y += kRowHeight;
  }
  if (w.low.has_value() && w.high.has_value()) {
    const int middle = y - kRowHeight + 10;
    const double low = x(*w.low), high = x(*w.high);
    out += fmt::format(
        "<path d=\"M{0:.1f} {2}H{1:.1f}M{0:.1f} {3}V{4}M{1:.1f} {3}V{4}\" stroke=\"{5}\" "
        "stroke-width=\"1.5\" fill=\"none\"/>\n",
        low, high, middle, middle - 5, middle + 5, colours.text);
  }
  return out + "</svg>\n";
}

}  // namespace daydream
