#include "tools/record/doctor.h"
#include "report/text/format.h"
#include "report/text/json_writer.h"
#include "tools/command.h"

namespace daydream {
namespace {

constexpr std::string_view kDoctorFormats[] = {"table", "json"};
constexpr Flag kDoctorFlags[] = {
    {.name = "--format",
     .value = "FORMAT",
     .help = "table or json",
     .fallback = "table",
     .choices = kDoctorFormats},
};

std::string_view Word(Fitness health) {
  switch (health) {
    case Fitness::kFailure:
      return "fail";
    case Fitness::kWarning:
      return "warn";
    case Fitness::kOk:
      break;
  }
  return "ok";
}

std::string DoctorAsText(const std::vector<Check>& checks) {
  std::string out;
  for (const Check& c : checks) {
    out += fmt::format("  {:<5} {:<11} {}\n", Word(c.health), c.about, Printable(c.text));
    if (!c.fix.empty()) out += fmt::format("        {:<11} {}\n", "  fix", Printable(c.fix));
  }
  return out;
}

std::string DoctorAsJson(const std::vector<Check>& checks, bool can_record) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("daydream.doctor/1");
  json.Key("can_record").Bool(can_record).Key("checks").BeginArray();
  for (const Check& c : checks) {
    json.BeginInlineObject().Key("check").String(c.about).Key("health").String(Word(c.health));
    json.Key("text").String(c.text);
    if (!c.fix.empty()) json.Key("fix").String(c.fix);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

absl::StatusOr<Exit> RunDoctor(const Args& args, Session& session) {
  session.Progress("looking");
  std::vector<Check> checks = Examine(CurrentEnvironment());
  bool can_record = true;
  for (const Check& c : checks) can_record = can_record && c.health != Fitness::kFailure;
  bool json = args.Get("--format") == "json";
  std::string text = json ? DoctorAsJson(checks, can_record)
                          : DoctorAsText(checks) + (can_record ? "recording can work here\n"
                                                               : "recording cannot work here\n");
  DD_RETURN_IF_ERROR(session.WriteResult(args, text));
  return can_record ? Exit::kOk : Exit::kNoDevice;
}

}  // namespace

const Command kDoctorCommand = {
    .name = "doctor",
    .summary = "whether recording can work here, and what to do if not",
    .usage = "[--format json]",
    .details =
        "Looks at the driver, the GPUs, CUPTI and its version, other profilers, permissions,\n"
        "containers, Python with PyTorch, and the disk. Changes nothing and records nothing. The\n"
        "exit code is 0 when nothing stands in the way, 6 when something does.",
    .examples = "daydream doctor\ndaydream doctor --format json",
    .flags = kDoctorFlags,
    .run = RunDoctor,
};

}  // namespace daydream
