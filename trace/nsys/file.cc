#include "trace/nsys/file.h"

#include <charconv>

#include "trace/demangle.h"
#include "trace/json/text.h"
#include "trace/nsys/names.h"

namespace daydream {
namespace {

// Times beyond +-2^61 ns (73 years) are damage; sums of two of them cannot overflow.
constexpr int64_t kLatestNs = int64_t{1} << 61;

std::pair<int, int> SchemaOf(SqliteFile& db) {
  for (std::string_view table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    const std::string text = db.Find(table, "value", "name", "EXPORT_SCHEMA_VERSION");
    if (text.empty()) continue;
    std::pair<int, int> version;
    const char* end = text.data() + text.size();
    const auto major = std::from_chars(text.data(), end, version.first);
    if (major.ptr != end) std::from_chars(major.ptr + 1, end, version.second);
    return version;
  }
  return {0, 0};
}

std::string Clean(std::string_view text) {
  std::string clean;
  CleanText(text, false, &clean);
  return clean;
}

}  // namespace

NsysFile::NsysFile(SqliteFile& db, const ImportOptions& options, TraceBuilder& builder)
    : db(db), builder(builder), lanes(builder), schema(SchemaOf(db)), options_(options) {
  has_key_ = db.HasKey("StringIds", "id");
  if (has_key_) return;
  SqliteRows rows(db, "StringIds", {"id", "value"});
  while (rows.Next()) all_strings_.try_emplace(rows.Int(0, -1), rows.Text(1));
}

std::string NsysFile::RawText(int64_t id) {
  if (has_key_) return db.FindByKey("StringIds", "value", "id", id);
  const auto it = all_strings_.find(id);
  return it == all_strings_.end() ? "" : it->second;
}

NameId NsysFile::Text(int64_t id) {
  auto [it, fresh] = texts_.try_emplace(id, NameId());
  if (fresh) it->second = builder.names().Intern(Clean(RawText(id)));
  return it->second;
}

NameId NsysFile::CallName(int64_t id) {
  auto [it, fresh] = calls_.try_emplace(id, NameId());
  if (fresh) {
    const std::string text = RawText(id);
    it->second = builder.names().Intern(text.empty() ? "unnamed call" : Clean(NsysCallName(text)));
  }
  return it->second;
}

NameId NsysFile::KernelName(int64_t mangled, int64_t demangled, int64_t plain) {
  constexpr size_t kAnyLength = size_t{1} << 20;
  auto* known = mangled >= 0 ? &mangled_ : demangled >= 0 ? &demangled_ : &plain_;
  const int64_t id = mangled >= 0 ? mangled : demangled >= 0 ? demangled : plain;
  auto [it, fresh] = known->try_emplace(id, NameId());
  if (!fresh) return it->second;
  std::string text = RawText(id);
  if (mangled >= 0 && !text.empty()) {
    text = Demangle(text, kAnyLength);
  } else {
    if (text.empty() && demangled >= 0) text = RawText(demangled);
    if (text.empty() && plain >= 0) text = RawText(plain);
    text = PlainKernelName(text);
  }
  it->second = builder.names().Intern(text.empty() ? "unnamed kernel" : Clean(text));
  return it->second;
}

void NsysFile::Skip(std::string_view what, std::string_view reason, bool loss) {
  builder.Count(what, reason, loss);
}

bool NsysFile::Times(const SqliteRows& rows, int start, int end, TraceBuilder::Event& event) {
  constexpr int64_t kMissing = INT64_MIN;
  const int64_t from = rows.Int(start, kMissing), to = rows.Int(end, kMissing);
  const bool in_range =
      from >= -kLatestNs && from <= kLatestNs && to >= -kLatestNs && to <= kLatestNs;
  if (in_range && to >= from) {
    event.start = Instant{from};
    event.duration = Duration{to - from};
    return true;
  }
  ++malformed_;
  Skip("rows without a usable time", "start or end is missing, out of range or reversed", true);
  return false;
}

absl::Status NsysFile::SkipTable(std::string_view table, std::string_view what,
                                 std::string_view reason) {
  DD_ASSIGN_OR_RETURN(const uint64_t rows, db.Rows(table));
  rows_ += rows;
  builder.Count(what, reason, false, rows);
  return absl::OkStatus();
}

absl::Status NsysFile::Finish() {
  builder.provenance().input_events = rows_;
  const double share =
      rows_ == 0 ? 0 : static_cast<double>(malformed_) / static_cast<double>(rows_);
  if (malformed_ == 0 || (!options_.strict && share <= options_.max_malformed)) {
    return absl::OkStatus();
  }
  return MakeStatus(absl::StatusCode::kDataLoss,
                    {.code = "E0210",
                     .what = fmt::format("{} of {} rows have no usable time", malformed_, rows_),
                     .where = db.name(),
                     .why = "start or end is missing, out of range or reversed",
                     .fix = "export the report again, or accept the loss with --max-errors 100%"});
}

}  // namespace daydream
