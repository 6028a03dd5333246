// What ranges of collectives say of themselves where kernels have no arguments: until 2024,
// record_param_comms has sequence number, group and size among its values, and the "nccl:..."
// range inside of it the tensors. Some calls have none of it: there the range lies in a "c10d::"
// op, whose first tensor is what comes out.
#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

#include "trace/collective_group.h"
#include "trace/kineto/rows.h"

namespace daydream {
namespace {

constexpr size_t kMostListed = 32;

// The strings of a flat JSON list, without their quotes. Values with escapes are none of ours.
std::vector<std::string_view> StringsOf(std::string_view json) {
  std::vector<std::string_view> found;
  size_t at = 0;
  while (found.size() < kMostListed && (at = json.find('"', at)) != json.npos) {
    const size_t end = json.find('"', at + 1);
    if (end == json.npos) break;
    found.push_back(json.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return found;
}

int64_t NumberOr(std::string_view text, int64_t fallback) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return good && value >= 0 ? value : fallback;
}

// Elements of all tensors in "[[2048, 4, 4096], [7]]"; 0 when they are too many to count.
int64_t ElementsOfShapes(std::string_view shapes) {
  int64_t sum = 0, product = 1;
  bool any = false;
  for (size_t at = 0; at < shapes.size();) {
    const char c = shapes[at];
    if (c >= '0' && c <= '9') {
      int64_t value = 0;
      const auto [end, error] =
          std::from_chars(shapes.data() + at, shapes.data() + shapes.size(), value);
      if (error != std::errc() || __builtin_mul_overflow(product, value, &product)) return 0;
      any = true;
      at = static_cast<size_t>(end - shapes.data());
      continue;
    }
    if (c == ']' && any) {
      if (__builtin_add_overflow(sum, product, &sum)) return 0;
      product = 1, any = false;
    }
    ++at;
  }
  return sum;
}

}  // namespace

bool KinetoRows::DeferCollective(const KinetoArgs& args, const TraceBuilder::Event& row) {
  const std::string_view name = builder_.names().Get(row.name);
  const bool recorded = name == "record_param_comms";
  if ((!recorded && !name.starts_with("c10d::")) || args.collective.present()) return false;
  PendingCollective pending{.row = row, .recorded = recorded};
  CollectiveDetail& d = pending.detail;
  // In 2022 it said nothing of itself, and the range inside of it tells all that is known.
  std::vector<std::string_view> values;
  if (recorded && args.values.data() != nullptr) values = StringsOf(args.values);
  if (values.size() >= 4) {
    d.process_group = InternRaw(FormatCollectiveGroup(
        {.name = values[2], .members = {}, .sequence = NumberOr(values[1], -1)}));
    const int64_t size = NumberOr(values.back(), 0);
    d.group_size =
        static_cast<int32_t>(std::min<int64_t>(size, std::numeric_limits<int32_t>::max()));
  }
  pending.op = {
      .sequence = args.sequence == KinetoArgs::kAbsent ? -1 : args.sequence,
      .forward_thread = args.forward_thread == KinetoArgs::kAbsent ? -1 : args.forward_thread,
      .shapes = InternRaw(args.shapes),
      .types = InternRaw(args.types)};
  pending_collectives_.push_back(pending);
  return true;
}

void KinetoRows::NoteCollectiveRange(const KinetoArgs& args, const TraceBuilder::Event& row) {
  const std::string_view name = builder_.names().Get(row.name);
  if (!name.starts_with("nccl:") || args.shapes.data() == nullptr) return;
  const std::vector<std::string_view> types = StringsOf(args.types);
  collective_ranges_.push_back({.lane = row.lane,
                                .start = row.start,
                                .end = row.start + row.duration,
                                .name = builder_.names().Intern(name.substr(5)),
                                .dtype = types.empty() ? NameId() : InternRaw(types[0]),
                                .elements = ElementsOfShapes(args.shapes)});
}

// The first range that begins inside of the op tells what it does; without one it is no
// collective, but a wait.
void KinetoRows::FindRange(PendingCollective& p, std::vector<bool>& told) {
  const auto range = std::lower_bound(
      collective_ranges_.begin(), collective_ranges_.end(), std::tie(p.row.lane, p.row.start),
      [](const CollectiveRange& r, const auto& at) { return std::tie(r.lane, r.start) < at; });
  const auto place = static_cast<size_t>(range - collective_ranges_.begin());
  const Instant end = p.row.start + p.row.duration;
  if (place == told.size() || told[place]) return;
  if (range->lane != p.row.lane || range->end > end) return;
  told[place] = true;
  p.detail.name = range->name;
  p.detail.dtype = range->dtype;
  p.detail.elements_in = range->elements;
  if (!p.recorded && p.op.shapes.valid()) {
    const std::string_view shapes = builder_.names().Get(p.op.shapes);
    p.detail.elements_out = ElementsOfShapes(shapes.substr(0, shapes.find(']') + 1));
  }
  p.op.collective = builder_.AddCollective(p.detail);
}

void KinetoRows::FinishCollectives() {
  std::sort(collective_ranges_.begin(), collective_ranges_.end(),
            [](const CollectiveRange& a, const CollectiveRange& b) {
              return std::tie(a.lane, a.start, a.end) < std::tie(b.lane, b.start, b.end);
            });
  // Of a call that has both, record_param_comms tells more.
  std::vector<bool> told(collective_ranges_.size(), false);
  for (const bool recorded : {true, false}) {
    for (PendingCollective& p : pending_collectives_) {
      if (p.recorded == recorded) FindRange(p, told);
    }
  }
  for (PendingCollective& p : pending_collectives_) {
    if (p.op != OpDetail()) p.row.detail = builder_.AddOp(p.op);
    builder_.AddEvent(p.row);
  }
  pending_collectives_.clear();
}

}  // namespace daydream
