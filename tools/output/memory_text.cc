#include "tools/output/memory_text.h"

#include <algorithm>
#include <cmath>

#include "report/text/format.h"
#include "tools/output/describe.h"
#include "tools/output/prediction_text.h"

namespace daydream {
namespace {

// Changes below this share of the largest are not printed.
constexpr double kSmallestShare = 0.01;

std::string Bytes(double bytes) { return FormatBytes(static_cast<uint64_t>(std::llround(bytes))); }

std::string Capacity(uint64_t bytes) { return bytes == 0 ? "" : " of " + FormatBytes(bytes); }

// More than there is: the number, or the GPU that it is held against, is wrong.
std::string Impossible(const MemoryProfile& m) {
  if (m.capacity == 0 || m.peak <= static_cast<double>(m.capacity)) return "";
  return fmt::format("that cannot be: {}",
                     m.estimate() ? "the estimate counts too much, or shapes of another run"
                                  : "another GPU's description, or memory of the host is lent");
}

std::string Marked(double bytes, bool estimate) { return (estimate ? "~" : "") + Bytes(bytes); }

// What an estimate consists of.
std::string Parts(const MemoryProfile& m) {
  std::string text;
  auto part = [&](double bytes, std::string_view what) {
    if (bytes <= 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, Bytes(bytes));
  };
  part(m.parameters, "parameters");
  part(m.gradients, "gradients");
  part(m.optimizer_state, "optimizer state");
  part(m.activations, "kept for backward");
  return text;
}

// What an estimate could not see.
std::string Missing(const MemoryProfile& m) {
  std::string text;
  auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (m.ops_without_shapes > 0) {
    add(fmt::format("{} of {} ops without shapes", m.ops_without_shapes, m.ops));
  }
  if (m.ops_not_known > 0) {
    add(fmt::format("{} {}", m.ops_not_known,
                    m.ops_not_known == 1 ? "op of another kind" : "ops of other kinds"));
  }
  if (m.trains && !m.optimizer_known) add("the optimizer's state");
  return text;
}

void WriteBytes(std::string_view key, double bytes, JsonWriter& json) {
  json.Key(key).Int(std::llround(bytes));
}

}  // namespace

std::string PeakText(const MemoryProfile& before, const PeakAfter& peak) {
  if (peak.unknown) return "not known";
  // At least what was, plus at most something: no limit.
  if (peak.at_most && before.at_least) return Marked(peak.peak, true);
  if (peak.at_most) return "<= " + Marked(peak.peak, peak.estimate);
  return (before.at_least ? ">= " : "") + Marked(peak.peak, peak.estimate);
}

std::string MemoryText(const MemoryProfile& m, std::string_view importer) {
  const auto lead = [](std::string_view label, std::string_view text) {
    return Paragraph(label, text, kLeadLabel);
  };
  constexpr std::string_view kLabel = "peak memory";
  constexpr std::string_view kOfCallsAlone[] = {"nsys", "rocprof", "rocpd", "rpd"};
  if (!m.known()) {
    const std::string_view why =
        importer == "xplane" ? "XPlane does not tell what was allocated"
        : std::ranges::find(kOfCallsAlone, importer) != std::end(kOfCallsAlone)
            ? "--memory FILE takes a memory snapshot of PyTorch of the same run"
            : "record with profile_memory=True or record_shapes=True";
    return lead(kLabel, fmt::format("not known: {}", why));
  }
  std::string text = fmt::format("{}{}{}", m.at_least ? "at least " : "",
                                 Marked(m.peak, m.estimate()), Capacity(m.capacity));
  if (m.estimate()) {
    const std::string missing = Missing(m);
    return lead(kLabel, text + ", an estimate from shapes") + lead("", Parts(m)) +
           (missing.empty() ? "" : lead("", "not in it: " + missing)) + lead("", Impossible(m));
  }
  text += m.at_least ? ", without what was allocated before the recording" : ", as recorded";
  if (m.reserved > 0) text += fmt::format("; {} reserved", Bytes(m.reserved));
  const double shapes = m.parameters + m.gradients + m.optimizer_state + m.activations;
  const bool compares = m.trains && shapes > 0 && !m.at_least;
  return lead(kLabel, text) +
         (compares ? lead("", fmt::format("by shapes ~{} ({})", Bytes(shapes),
                                          FormatSignedPercent(shapes / m.peak - 1)))
                   : "") +
         lead("", Impossible(m));
}

std::string MemoryLine(const MemoryProfile& memory, const Prediction& p) {
  if (!p.peak.has_value()) return "";
  std::string text = fmt::format("{}{} -> {}{}{}", memory.at_least ? ">= " : "",
                                 Marked(memory.peak, memory.estimate()), PeakText(memory, *p.peak),
                                 Capacity(p.peak->capacity),
                                 memory.at_least ? " (without what was allocated earlier)" : "");
  std::vector<MemoryChange> changes = p.changes.memory;
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return std::llabs(a.bytes) > std::llabs(b.bytes);
  });
  std::string unknown;
  for (const MemoryChange& m : changes) {
    if (m.unknown) unknown += (unknown.empty() ? "" : ", ") + Printable(m.what);
  }
  if (!unknown.empty()) text += fmt::format(": this trace does not tell {}", unknown);
  std::string_view before = unknown.empty() ? ":" : ";";
  for (const MemoryChange& m : changes) {
    const double share = 1.0 * std::llabs(m.bytes) / std::max(1LL, std::llabs(changes[0].bytes));
    if (share < kSmallestShare) break;
    text += fmt::format("{} {} {}", before, Printable(m.what), SignedBytes(m.bytes));
    before = ",";
  }
  if (!p.peak->fits()) text += p.peak->at_most ? "; that may not fit" : "; that does not fit";
  return Paragraph("  peak memory ", text, 4);
}

void WriteMemoryProfile(const MemoryProfile& m, JsonWriter& json) {
  if (!m.known()) {
    json.Null();
    return;
  }
  json.BeginObject().Key("source").String(m.estimate() ? "shapes" : "allocations");
  json.Key("estimate").Bool(m.estimate()).Key("at_least").Bool(m.at_least);
  WriteBytes("peak_bytes", m.peak, json);
  WriteBytes("in_step_bytes", m.in_step, json);
  WriteBytes("reserved_bytes", m.reserved, json);
  json.Key("capacity_bytes").UInt(m.capacity);
  WriteBytes("parameters_bytes", m.parameters, json);
  WriteBytes("gradients_bytes", m.gradients, json);
  WriteBytes("optimizer_state_bytes", m.optimizer_state, json);
  WriteBytes("activations_bytes", m.activations, json);
  json.Key("optimizer_known").Bool(m.optimizer_known);
  json.Key("forward_ops").UInt(m.ops).Key("without_shapes").UInt(m.ops_without_shapes);
  json.Key("of_other_kinds").UInt(m.ops_not_known).EndObject();
}

void WriteMemoryChange(const Prediction& p, JsonWriter& json) {
  json.Key("memory").BeginArray();
  for (const MemoryChange& m : p.changes.memory) {
    json.BeginInlineObject().Key("what").String(m.what).Key("bytes");
    if (m.unknown) {
      json.Null();
    } else {
      json.Int(m.bytes);
    }
    json.Key("estimate").Bool(m.estimate).Key("at_most").Bool(m.at_most).EndObject();
  }
  json.EndArray();
  json.Key("memory_change_bytes");
  if (p.memory_change.has_value() && p.error.ok()) {
    json.Int(*p.memory_change);
  } else {
    json.Null();
  }
  json.Key("peak_memory_bytes");
  if (p.peak.has_value() && !p.peak->unknown) {
    json.Int(std::llround(p.peak->peak));
  } else {
    json.Null();
  }
  json.Key("peak_memory_estimate").Bool(p.peak.has_value() && p.peak->estimate);
  json.Key("peak_memory_at_most").Bool(p.peak.has_value() && p.peak->at_most);
}

}  // namespace daydream
