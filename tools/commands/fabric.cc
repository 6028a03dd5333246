// daydream fabric: networks, and what collectives take on them.
#include <charconv>
#include <cmath>
#include <functional>

#include "costmodel/network/collective_time.h"
#include "costmodel/network/fabric_text.h"
#include "costmodel/network/sweep.h"
#include "costmodel/surface_lines.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "report/text/log_plot.h"
#include "report/text/table.h"
#include "tools/command.h"
#include "transforms/core/source_text.h"
#include "transforms/parallel/fabric_choice.h"

namespace daydream {
namespace {

constexpr size_t kMostSweepBytes = 64 << 20;
constexpr std::string_view kCollectives[] = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "sendrecv"};

absl::Status BadFlag(std::string_view flag, std::string_view value, std::string_view fix) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0104",
                     .what = fmt::format("{} {} is no value for it", flag, value),
                     .fix = std::string(fix)});
}

// 0 when the flag is not given.
absl::StatusOr<int> Count(const Args& args, std::string_view flag) {
  if (!args.Has(flag)) return 0;
  const std::string_view text = args.Get(flag);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc() && end == text.data() + text.size();
  if (!good || value < 1 || value > 1 << 20) return BadFlag(flag, text, "a number from 1");
  return value;
}

absl::StatusOr<std::vector<double>> Sizes(const Args& args) {
  std::vector<double> sizes;
  for (const std::string& list : args.All("--at")) {
    for (std::string_view text : SplitAt(list, ',')) {
      double bytes = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
      const bool good = error == std::errc() && end == text.data() + text.size();
      if (!good || !(bytes > 0 && bytes <= 1e18)) {
        return BadFlag("--at", text, "bytes, with commas between: --at 1048576,33554432");
      }
      sizes.push_back(bytes);
    }
  }
  return sizes;
}

std::string SizeText(double bytes) { return FormatBytes(static_cast<uint64_t>(bytes)); }
std::string MicrosText(double us) { return FormatTime(Duration::FromDouble(us * 1e3)); }

struct Fitted {
  Fabric fabric;  // with one curve, that of the sweep
  CollectiveShape shape;
  Sweep sweep;
  CurveError of_fit, left_out;
  const FabricCurve& curve() const {
    const FabricLevel& level = fabric.levels.back();
    return level.all_reduce.empty() ? level.other[0] : level.all_reduce[0];
  }
};

std::string FileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == path.npos ? path : path.substr(slash + 1));
}

absl::StatusOr<Fitted> Fit(const std::string& path, const Args& args) {
  DD_ASSIGN_OR_RETURN(
      const std::string text,
      ReadTextFile(path, kMostSweepBytes, {.code = "E0201", .what = "the sweep cannot be read"}));
  Fitted fitted;
  DD_ASSIGN_OR_RETURN(fitted.sweep, ReadSweep(text, path));
  const Sweep& sweep = fitted.sweep;
  CollectiveShape& shape = fitted.shape;
  DD_ASSIGN_OR_RETURN(shape.ranks, Count(args, "--ranks"));
  DD_ASSIGN_OR_RETURN(shape.nodes, Count(args, "--nodes"));
  if (shape.ranks == 0) shape.ranks = sweep.ranks;
  if (shape.nodes == 0) shape.nodes = std::max(1, sweep.nodes);
  shape.kind = args.Has("--collective") ? CollectiveNamed(args.Get("--collective")) : sweep.kind;
  const auto refuse = [&](std::string what, std::string why = {}) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0104",
                       .what = std::move(what),
                       .where = path,
                       .why = std::move(why),
                       .fix = "--collective all_reduce --ranks 16 --nodes 2"});
  };
  if (shape.kind == CollectiveKind::kUnknown || shape.ranks == 0) {
    return refuse("the file does not say what was measured on how many ranks");
  }
  if (shape.ranks == 1) return refuse("one rank sends nothing", "its times are those of copies");
  if (shape.nodes > shape.ranks) {
    return refuse(
        fmt::format("{} cannot be on {}", Plural(shape.ranks, "rank"), Plural(shape.nodes, "node")),
        "each node has one of them or more");
  }
  FabricCurve curve{.ranks = shape.ranks, .nodes = shape.nodes};
  curve.time = FitSizeCurve(sweep.points);
  if (curve.time.points.size() < 2) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0822",
                       .what = "a fit needs at least two sizes",
                       .where = path,
                       .fix = "a sweep: `all_reduce_perf -b 1K -e 8G -f 2`"});
  }
  fitted.of_fit = ErrorOfFit(curve.time);
  fitted.left_out = ErrorLeftOut(curve.time);
  curve.error = fitted.left_out.sizes > 0 ? fitted.left_out.mean : fitted.of_fit.mean;
  curve.error_p95 = fitted.left_out.sizes > 0 ? fitted.left_out.p95 : fitted.of_fit.p95;
  const double slope = curve.time.us_per_byte;
  curve.bus_gbps = slope > 0 ? BusFactor(shape.kind, shape.ranks) / (slope * 1e3) : 0;
  curve.source = fmt::format("fitted to {}", FileName(path));
  curve.from_bytes = curve.time.points.front().bytes;
  curve.to_bytes = curve.time.points.back().bytes;
  FabricLevel level{.name = shape.nodes > 1 ? "nodes" : "node"};
  if (shape.nodes > 1) {
    // Nothing was measured inside of a node: no rate.
    fitted.fabric.levels.push_back(
        {.name = "GPUs of a node", .size = (shape.ranks + shape.nodes - 1) / shape.nodes});
  } else {
    level.size = shape.ranks;
  }
  const bool reduce = shape.kind == CollectiveKind::kAllReduce;
  (reduce ? level.all_reduce : level.other).push_back(std::move(curve));
  fitted.fabric.levels.push_back(std::move(level));
  fitted.fabric.name = FileName(path).substr(0, FileName(path).find('.'));
  fitted.fabric.source = fmt::format("daydream fabric fit {}", FileName(path));
  return fitted;
}

std::string FitJson(const Fitted& f, const std::vector<double>& at) {
  JsonWriter json;
  const FabricCurve& c = f.curve();
  json.BeginObject().Key("schema").String("daydream.fabric_fit/1");
  json.Key("collective").String(CollectiveName(f.shape.kind));
  json.Key("ranks").Int(f.shape.ranks).Key("nodes").Int(f.shape.nodes);
  json.Key("sizes").UInt(c.time.points.size());
  json.Key("a_us").Rounded(c.time.a_us, 6).Key("g_us").Double(c.time.g_us);
  json.Key("bus_GBps").Rounded(c.bus_gbps, 6);
  auto error = [&](std::string_view name, const CurveError& e) {
    json.Key(name).BeginInlineObject().Key("sizes").UInt(e.sizes);
    for (const auto& [key, value] : {std::pair("mean", e.mean), {"p95", e.p95}, {"max", e.most}}) {
      json.Key(key);
      e.sizes > 0 ? json.Rounded(100 * value, 3) : json.Null();
    }
    json.EndObject();
  };
  error("fit_error_pct", f.of_fit), error("left_out_error_pct", f.left_out);
  json.Key("rows_skipped").UInt(f.sweep.skipped).Key("rows_wrong").UInt(f.sweep.wrong);
  json.Key("points").BeginArray();
  for (double bytes : at) {
    json.BeginInlineObject().Key("bytes").Double(bytes);
    json.Key("us").Rounded(c.time.At(bytes), 3).EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

Table PointTable(const Fitted& f, const std::vector<double>& at) {
  Table table({{"bytes"}, {"us"}, {"bus GB/s"}});
  const double factor = BusFactor(f.shape.kind, f.shape.ranks);
  for (double bytes : at) {
    const double us = f.curve().time.At(bytes);
    table.AddRow({fmt::format("{:.0f}", bytes), fmt::format("{:.2f}", us),
                  fmt::format("{:.2f}", bytes * factor / us * 1e-3)});
  }
  return table;
}

using TimeOfBytes = std::function<double(double bytes)>;

std::string Picture(const TimeOfBytes& time, std::string name, double low, double high,
                    std::span<const SizePoint> measured) {
  PlotSeries line{'.', std::move(name), {}}, points{'o', "measured", {}};
  for (int i = 0; i <= 120; ++i) {
    const double bytes = low * std::pow(high / low, i / 120.0);
    line.points.emplace_back(bytes, time(bytes));
  }
  for (const SizePoint& p : measured) points.points.emplace_back(p.bytes, p.us);
  std::vector<PlotSeries> series = {std::move(line)};
  if (!points.points.empty()) series.push_back(std::move(points));
  return LogPlot(series, {.x = "bytes", .y = "time", .x_text = SizeText, .y_text = MicrosText});
}

std::string ErrorText(const CurveError& e) {
  return fmt::format("{:.1f} % in the mean, {:.1f} % p95, {:.1f} % at most ({} sizes)",
                     100 * e.mean, 100 * e.p95, 100 * e.most, e.sizes);
}

std::string FitScreen(const Fitted& f, const std::vector<double>& at, const Session& session) {
  const FabricCurve& c = f.curve();
  std::string text = fmt::format(
      "{} on {} ranks, {}: {} sizes\n\n  t = {:.4g} us + {:.4g} us sqrt(bytes) + bytes "
      "x {:.4g} / {:.4g} GB/s\n\n",
      CollectiveName(f.shape.kind), f.shape.ranks, Plural(f.shape.nodes, "node"),
      c.time.points.size(), c.time.a_us, c.time.g_us, BusFactor(f.shape.kind, f.shape.ranks),
      c.bus_gbps);
  text += fmt::format("  off by     {}\n", ErrorText(f.of_fit));
  if (f.left_out.sizes > 0) {
    text +=
        fmt::format("  left out   {}: every second size, from the others\n", ErrorText(f.left_out));
  }
  if (f.sweep.skipped > 0) {
    text += fmt::format(
        "  left out   {} row{} whose time is none, the first in line {}: the curve lacks {}\n",
        f.sweep.skipped, f.sweep.skipped == 1 ? "" : "s", f.sweep.skipped_line,
        f.sweep.skipped == 1 ? "its size" : "their sizes");
  }
  if (f.sweep.wrong > 0) {
    text += fmt::format("  left out   {} with wrong results, says nccl-tests\n",
                        Plural(f.sweep.wrong, "row"));
  }
  text += "\n" + Picture([&](double bytes) { return c.time.Smooth(bytes); }, "model",
                         c.time.points.front().bytes, c.time.points.back().bytes, c.time.points);
  if (!at.empty()) text += "\n" + PointTable(f, at).Text(session.table_style());
  return text;
}

absl::StatusOr<Exit> RunFit(const std::string& path, const Args& args, Session& session) {
  session.Progress(fmt::format("fitting {}", path));
  DD_ASSIGN_OR_RETURN(const Fitted fitted, Fit(path, args));
  DD_ASSIGN_OR_RETURN(const std::vector<double> at, Sizes(args));
  const FabricCurve& curve = fitted.curve();
  const auto beyond =
      std::count_if(at.begin(), at.end(), [&](double bytes) { return !curve.Covers(bytes); });
  if (beyond > 0) {
    session.Note(
        fmt::format("{} of --at beyond what was measured, {} to {}: of the fit alone, its "
                    "error is not known",
                    Plural(static_cast<size_t>(beyond), "size"), SizeText(curve.from_bytes),
                    SizeText(curve.to_bytes)));
  }
  if (args.Has("--save")) {
    DD_RETURN_IF_ERROR(WriteFile(std::string(args.Get("--save")), TextOfFabric(fitted.fabric),
                                 args.Has("--force-overwrite")));
  }
  DD_RETURN_IF_ERROR(
      session.WriteResult(args, {.table = [&] { return FitScreen(fitted, at, session); },
                                 .json = [&] { return FitJson(fitted, at); },
                                 .csv = [&] { return PointTable(fitted, at).Csv(); },
                                 .markdown = [&] { return PointTable(fitted, at).Markdown(); }}));
  return Exit::kOk;
}

const FabricCurve* MainCurve(const FabricLevel& level) {
  if (!level.all_reduce.empty()) return &level.all_reduce.back();
  return level.other.empty() ? nullptr : &level.other.back();
}

Table ListTable() {
  Table table({{"fabric", Align::kLeft},
               {"GPUs a node"},
               {"collective", Align::kLeft},
               {"ranks"},
               {"nodes"},
               {"small us"},
               {"bus GB/s"},
               {"error %"},
               {"also called", Align::kLeft, 1}});
  for (const Fabric& fabric : Fabrics()) {
    const FabricLevel& level = fabric.levels.back();
    const FabricCurve* c = MainCurve(level);
    if (c == nullptr) continue;
    std::string aliases;
    for (const std::string& a : fabric.aliases) aliases += (aliases.empty() ? "" : ", ") + a;
    table.AddRow({fabric.name, std::to_string(fabric.NodeSize()),
                  level.all_reduce.empty() ? "all_gather" : "all_reduce", std::to_string(c->ranks),
                  std::to_string(c->nodes), fmt::format("{:.0f}", c->time.a_us),
                  fmt::format("{:.1f}", c->bus_gbps),
                  c->error > 0 ? fmt::format("{:.1f}", 100 * c->error) : "not measured", aliases});
  }
  return table;
}

// Of a time that is derived from others nobody knows it.
void WriteError(JsonWriter& json, double error) {
  json.Key("error_pct");
  if (error > 0) {
    json.Rounded(100 * error, 3);
  } else {
    json.Null();
  }
}

std::string ListJson() {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.fabrics/1").Key("fabrics").BeginArray();
  for (const Fabric& fabric : Fabrics()) {
    json.BeginObject().Key("name").String(fabric.name).Key("also").BeginInlineArray();
    for (const std::string& a : fabric.aliases) json.String(a);
    json.EndArray().Key("node_size").Int(fabric.NodeSize()).Key("levels").BeginArray();
    for (const FabricLevel& level : fabric.levels) {
      json.BeginObject().Key("name").String(level.name).Key("size").Int(level.size);
      json.Key("curves").BeginArray();
      for (const auto* curves : {&level.all_reduce, &level.other}) {
        for (const FabricCurve& c : *curves) {
          json.BeginInlineObject().Key("collective");
          json.String(curves == &level.all_reduce ? "all_reduce" : "all_gather");
          json.Key("ranks").Int(c.ranks).Key("nodes").Int(c.nodes).Key("a_us").Double(c.time.a_us);
          json.Key("g_us").Double(c.time.g_us).Key("bus_GBps").Double(c.bus_gbps);
          WriteError(json, c.error);
          json.Key("source").String(c.source).EndObject();
        }
      }
      json.EndArray().EndObject();
    }
    json.EndArray().EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

absl::StatusOr<Exit> RunList(const Args& args, Session& session) {
  const Table table = ListTable();
  DD_RETURN_IF_ERROR(session.WriteResult(
      args, {.table =
                 [&] {
                   return table.Text(session.table_style()) +
                          "\n  small us: an empty message; bus GB/s: long messages, as nccl-tests "
                          "counts them;\n  error: of the fit to the sweep that it rests on\n";
                 },
             .json = ListJson,
             .csv = [&] { return table.Csv(); },
             .markdown = [&] { return table.Markdown(); }}));
  return Exit::kOk;
}

absl::StatusOr<Table> TimesTable(const Fabric& fabric, const CollectiveShape& asked,
                                 const std::vector<double>& at) {
  Table table({{"bytes"}, {"us"}, {"bus GB/s"}, {"from", Align::kLeft}});
  for (double bytes : at) {
    CollectiveShape shape = asked;
    shape.bytes = bytes;
    DD_ASSIGN_OR_RETURN(const CollectiveTime time, TimeOfCollective(fabric, shape));
    table.AddRow({fmt::format("{:.0f}", bytes), fmt::format("{:.2f}", time.us),
                  fmt::format("{:.2f}", time.bus_gbps), time.explained + time.beyond});
  }
  return table;
}

absl::StatusOr<std::string> TimesJson(const Fabric& fabric, const CollectiveShape& asked,
                                      const std::vector<double>& at) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.fabric_times/1").Key("fabric");
  json.String(fabric.name).Key("collective").String(CollectiveName(asked.kind));
  json.Key("ranks").Int(asked.ranks);
  if (!fabric.asked.empty()) json.Key("asked").String(fabric.asked);
  json.Key("points").BeginArray();
  for (double bytes : at) {
    CollectiveShape shape = asked;
    shape.bytes = bytes;
    DD_ASSIGN_OR_RETURN(const CollectiveTime time, TimeOfCollective(fabric, shape));
    json.BeginInlineObject().Key("bytes").Double(bytes).Key("us").Rounded(time.us, 3);
    json.Key("bus_GBps").Rounded(time.bus_gbps, 3).Key("source");
    json.String(TimeSourceName(time.source));
    WriteError(json, time.error);
    json.Key("from").String(time.explained + time.beyond).EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

// Of what was asked for, over the sizes asked for or those that are usual.
std::string PictureOf(const Fabric& fabric, CollectiveShape shape, std::span<const double> at) {
  const bool reduce = shape.kind == CollectiveKind::kAllReduce;
  const int node = fabric.NodeSize();
  if (shape.nodes == 0) shape.nodes = (shape.ranks + node - 1) / node;
  std::vector<SizePoint> measured;
  for (const FabricLevel& level : fabric.levels) {
    for (const FabricCurve& c : reduce ? level.all_reduce : level.other) {
      const bool same = c.ranks == shape.ranks && c.nodes == shape.nodes;
      if (same && (reduce || shape.kind == CollectiveKind::kAllGather)) measured = c.time.points;
    }
  }
  const auto time = [&](double bytes) {
    shape.bytes = bytes;
    const auto t = TimeOfCollective(fabric, shape);
    return t.ok() ? t->us : 0;
  };
  const double low = std::min(1024.0, *std::min_element(at.begin(), at.end()));
  const double high = std::max(0x1p30, *std::max_element(at.begin(), at.end()));
  return Picture(time,
                 fmt::format("{} on {}", CollectiveName(shape.kind), Plural(shape.ranks, "rank")),
                 low, high, measured);
}

absl::StatusOr<Exit> RunShow(const std::string& name, const Args& args, Session& session) {
  DD_ASSIGN_OR_RETURN(const Fabric fabric, ChooseFabric(name));
  if (args.Has("--text")) {
    DD_RETURN_IF_ERROR(session.WriteResult(args, TextOfFabric(fabric)));
    return Exit::kOk;
  }
  const FabricLevel& level = fabric.levels.back();
  const FabricCurve* curve = MainCurve(level);
  CollectiveShape shape{.kind = level.all_reduce.empty() && !level.other.empty()
                                    ? CollectiveKind::kAllGather
                                    : CollectiveKind::kAllReduce};
  if (args.Has("--collective")) shape.kind = CollectiveNamed(args.Get("--collective"));
  DD_ASSIGN_OR_RETURN(shape.ranks, Count(args, "--ranks"));
  DD_ASSIGN_OR_RETURN(shape.nodes, Count(args, "--nodes"));
  if (shape.ranks == 0) shape.ranks = curve != nullptr ? curve->ranks : 2 * fabric.NodeSize();
  DD_ASSIGN_OR_RETURN(std::vector<double> at, Sizes(args));
  if (at.empty()) at = {1 << 10, 1 << 15, 1 << 20, 1 << 25, 1 << 28, 1 << 30};
  session.Progress(fmt::format("timing {}", Plural(at.size(), "size")));
  DD_ASSIGN_OR_RETURN(const Table table, TimesTable(fabric, shape, at));
  DD_ASSIGN_OR_RETURN(std::string json, TimesJson(fabric, shape, at));
  auto screen = [&] {
    std::string text = fmt::format("{}: {} on {}\n\n", Printable(fabric.Title()),
                                   CollectiveName(shape.kind), Plural(shape.ranks, "rank")) +
                       table.Text(session.table_style()) + "\n";
    if (shape.ranks > 1) text += PictureOf(fabric, shape, at) + "\n";
    for (const FabricLevel& l : fabric.levels) {
      if (!l.HasRate()) {
        text += fmt::format("  {}: no rate: what stays in it has no time\n", Printable(l.name));
      }
      for (const auto* curves : {&l.all_reduce, &l.other}) {
        for (const FabricCurve& c : *curves)
          text += fmt::format("  {}: {}\n", Printable(l.name), Printable(c.source));
      }
    }
    text += fmt::format("  {}: {}\n", Printable(fabric.name), Printable(fabric.source));
    return text;
  };
  DD_RETURN_IF_ERROR(session.WriteResult(args, {.table = screen,
                                                .json = [&] { return json; },
                                                .csv = [&] { return table.Csv(); },
                                                .markdown = [&] { return table.Markdown(); }}));
  return Exit::kOk;
}

absl::StatusOr<Exit> RunFabric(const Args& args, Session& session) {
  const std::vector<std::string>& words = args.positional();
  if (words[0] == "list" && words.size() == 1) return RunList(args, session);
  if (words[0] == "show" && words.size() == 2) return RunShow(words[1], args, session);
  if (words[0] == "fit" && words.size() == 2) return RunFit(words[1], args, session);
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0107",
       .what = words[0] == "show"   ? "which fabric? `show` takes one name"
               : words[0] == "fit"  ? "which sweep? `fit` takes one file"
               : words[0] == "list" ? "`list` takes no name"
                                    : fmt::format("fabric does not know '{}'", words[0]),
       .fix = "daydream fabric list | show NAME | fit SWEEP.txt"});
}

constexpr Flag kFabricFlags[] = {
    {.name = "--collective",
     .value = "NAME",
     .help = "what was measured, or is asked for",
     .choices = kCollectives},
    {.name = "--ranks", .value = "N", .help = "GPUs that take part"},
    {.name = "--nodes", .value = "N", .help = "machines that they are in"},
    {.name = "--at",
     .value = "BYTES",
     .help = "times of these sizes, with commas between",
     .repeats = true},
    {.name = "--save", .value = "FILE", .help = "with fit: write a fabric for --fabric FILE"},
    {.name = "--text", .help = "with show: as a text to change and give to --fabric"},
};

}  // namespace

const Command kFabricCommand = {
    .name = "fabric",
    .summary = "networks, and how long collectives take on them",
    .usage = "list | show NAME [--ranks N] [--at BYTES,...] | fit SWEEP.txt [--save FILE]",
    .details =
        R"(list: the built-in networks. show: times of one, as nccl-tests counts bytes, where they
come from, and a picture. fit: reads a sweep as nccl-tests or rccl-tests prints it, fits
t = a + g sqrt(bytes) + bytes / rate, bends it to the measured sizes, and says what it is
off by. docs/ranks.md has an example of each.)",
    .examples =
        "daydream fabric list\n"
        "daydream fabric show efa3200 --ranks 64 --at 33554432\n"
        "daydream fabric fit all_reduce.txt --ranks 16 --nodes 2 --save mine.fabric",
    .flags = kFabricFlags,
    .takes = {.result = true, .times = false, .least = 1, .most = 2},
    .run = RunFabric,
};

}  // namespace daydream
