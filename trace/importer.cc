#include "trace/importer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trace/foreign/formats.h"
#include "trace/sqlite/database.h"

namespace daydream {
namespace {

constexpr const Importer* kImporters[] = {
#define IMPORTER(symbol) &symbol,
#include "trace/importers.def"
#undef IMPORTER
};

absl::Status UnknownFormatError(const std::string& name) {
  std::string known;
  for (const Importer* importer : kImporters) {
    if (!known.empty()) known += ", ";
    known += fmt::format("{} ({})", importer->name, importer->summary);
  }
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0203",
                     .what = "the format of this file is not known",
                     .where = name,
                     .why = fmt::format("known formats: {}", known),
                     .fix = "record with prof.export_chrome_trace(\"trace.json.gz\")"});
}

absl::Status NotThisFormatError(const Importer& importer, const std::string& name) {
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0203",
                     .what = fmt::format("this is no {}", importer.summary),
                     .where = name,
                     .why = fmt::format("--from {} was asked for", importer.name),
                     .fix = "leave --from away: the format is told from the content"});
}

bool HasTableOf(const SqliteFile& file, std::string_view beginning) {
  return std::ranges::any_of(file.tables(), [beginning](const std::string& table) {
    return table.starts_with(beginning);
  });
}

// What is known of SQLite files that others write, and why they are not read; empty when nothing
// is.
std::pair<std::string_view, std::string_view> KnownTables(const SqliteFile& file) {
  if (file.Has("StringTable") && HasTableOf(file, "CUPTI_ACTIVITY_KIND_")) {
    return {"this is a database of nvprof, which is not read",
            "Nsight Systems took the place of nvprof and nvvp"};
  }
  // Old versions tell nothing of the export, and tables without rows are not written.
  if (file.Has("StringIds") &&
      (file.Has("META_DATA_EXPORT") || file.Has("EXPORT_META_DATA") || file.Has("ThreadNames") ||
       file.Has("OSRT_API") || HasTableOf(file, "TARGET_INFO_"))) {
    return {"this export of Nsight Systems has neither GPU work nor CUDA calls",
            "CUDA was not traced, or nothing used a GPU"};
  }
  return {};
}

// Names of tables say which program wrote a file; what is in them is nobody's business.
absl::Status UnknownTablesError(const SqliteFile& file) {
  constexpr size_t kShown = 4;
  if (const auto [known, why] = KnownTables(file); !known.empty()) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      {.code = "E0203",
                       .what = std::string(known),
                       .where = file.name(),
                       .why = std::string(why),
                       .fix = "nsys profile --trace=cuda,nvtx --output run PROGRAM, then nsys "
                              "export --type sqlite run.nsys-rep"});
  }
  std::string tables;
  size_t shown = 0;
  for (const std::string& table : file.tables()) {
    if (shown++ == kShown) break;
    tables += fmt::format("{}{}", tables.empty() ? "" : ", ", table);
  }
  if (file.tables().size() > kShown) {
    tables += fmt::format(" and {} others", file.tables().size() - kShown);
  }
  return MakeStatus(
      absl::StatusCode::kInvalidArgument,
      {.code = "E0203",
       .what = file.tables().empty() ? "this SQLite file has no tables"
                                     : "this SQLite file is no trace that is known",
       .where = file.name(),
       .why = file.tables().empty() ? "the export stopped before it wrote anything"
                                    : fmt::format("its tables are {}", tables),
       .fix = "export the report: nsys export --type sqlite --output NAME.sqlite NAME.nsys-rep"});
}

// A file that another importer knows by its first bytes, and this one does not.
bool IsOfAnother(const Importer& importer, std::string_view head) {
  const auto knows = [head](const Importer* i) { return i->sniff != nullptr && i->sniff(head); };
  return !knows(&importer) && std::ranges::any_of(kImporters, knows);
}

absl::StatusOr<const Importer*> ChooseImporter(ByteSource& source, std::string_view from,
                                               const std::string& path) {
  DD_ASSIGN_OR_RETURN(std::string_view head, source.Peek());
  constexpr size_t kHeadBytes = 4096, kForeignBytes = 65536;
  const std::string_view beginning = head.substr(0, kForeignBytes);
  head = head.substr(0, kHeadBytes);
  if (from != "auto") {
    const Importer* importer = FindImporter(from);
    const bool other = importer != nullptr && (importer->import == nullptr || IsSqlite(head) ||
                                               IsOfAnother(*importer, head));
    if (other) return NotThisFormatError(*importer, source.name());
    if (importer != nullptr) return importer;
    Diagnostic d = DiagnosticOf(UnknownFormatError(source.name()));
    d.what = fmt::format("there is no input format named '{}'", from);
    return MakeStatus(absl::StatusCode::kInvalidArgument, d);
  }
  if (const ForeignFormat* format = FindForeign(beginning)) {
    return ForeignError(*format, beginning, source.name(), path);
  }
  for (const Importer* importer : kImporters) {
    if (importer->sniff != nullptr && importer->sniff(head)) return importer;
  }
  return UnknownFormatError(source.name());
}

// What the tables of an SQLite file say about who wrote it.
absl::StatusOr<const Importer*> ChooseByTables(const SqliteFile& file, std::string_view from) {
  for (const Importer* importer : kImporters) {
    const bool wanted = from == "auto" || from == importer->name;
    if (wanted && importer->sniff_tables != nullptr && importer->sniff_tables(file)) {
      return importer;
    }
  }
  const Importer* wanted = from == "auto" ? nullptr : FindImporter(from);
  if (wanted != nullptr && ChooseByTables(file, "auto").ok()) {
    return NotThisFormatError(*wanted, file.name());
  }
  return UnknownTablesError(file);
}

void BeginProvenance(const Importer& importer, const std::string& source, TraceBuilder& builder) {
  Provenance& provenance = builder.provenance();
  provenance.importer = importer.name;
  provenance.format = importer.summary;
  provenance.source = source;
}

absl::StatusOr<std::shared_ptr<const Trace>> ImportSqlite(ByteSource& source,
                                                          const ImportOptions& options,
                                                          std::string_view from) {
  DD_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteFile> file, SqliteFile::Open(source));
  DD_ASSIGN_OR_RETURN(const Importer* importer, ChooseByTables(*file, from));
  TraceBuilder builder;
  BeginProvenance(*importer, source.name(), builder);
  DD_RETURN_IF_ERROR(importer->import_tables(*file, options, builder));
  return builder.Build();
}

absl::StatusOr<std::shared_ptr<const Trace>> Import(ByteSource& source,
                                                    const ImportOptions& options,
                                                    std::string_view from,
                                                    const std::string& path) {
  DD_ASSIGN_OR_RETURN(std::string_view head, source.Peek());
  const Importer* named = from == "auto" ? nullptr : FindImporter(from);
  const bool tables = named == nullptr ? from == "auto" : named->import_tables != nullptr;
  if (tables && IsSqlite(head)) return ImportSqlite(source, options, from);
  DD_ASSIGN_OR_RETURN(const Importer* importer, ChooseImporter(source, from, path));
  TraceBuilder builder;
  BeginProvenance(*importer, source.name(), builder);
  DD_RETURN_IF_ERROR(importer->import(source, options, builder));
  return builder.Build();
}

}  // namespace

std::span<const Importer* const> Importers() { return kImporters; }

const Importer* FindImporter(std::string_view name) {
  for (const Importer* importer : kImporters) {
    if (importer->name == name) return importer;
  }
  return nullptr;
}

RecorderFacts AdviceFor(std::string_view importer) {
  const Importer* found = FindImporter(importer);
  RecorderFacts advice = found != nullptr ? found->recorder : kKineto.recorder;
  for (std::string_view* text : {&advice.both, &advice.later, &advice.waits}) {
    if (text->empty()) *text = advice.record;
  }
  return advice;
}

absl::StatusOr<std::shared_ptr<const Trace>> ImportFile(const std::string& path,
                                                        const ImportOptions& options,
                                                        std::string_view from) {
  DD_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenFile(path, options.max_text_bytes));
  return Import(*source, options, from, path == "-" ? "FILE" : path);
}

absl::StatusOr<std::shared_ptr<const Trace>> ImportBytes(std::string_view bytes, std::string name,
                                                         const ImportOptions& options,
                                                         std::string_view from) {
  auto source = OpenBytes(bytes, std::move(name), options.max_text_bytes);
  return Import(*source, options, from, source->name());
}

}  // namespace daydream
