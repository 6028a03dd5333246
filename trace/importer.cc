#include "trace/importer.h"

#include <array>
#include <utility>

#include "base/text.h"

namespace daydream {
namespace {

constexpr const Importer* kImporters[] = {
#define IMPORTER(symbol) &symbol,
#include "trace/importers.def"
#undef IMPORTER
};

// Formats that are recognised only to say what to do about them.
struct UnsupportedFormat {
  std::string_view name;
  bool (*sniff)(std::string_view head);
  std::string_view fix;
};

constexpr UnsupportedFormat kUnsupported[] = {
    {"an SQLite file (Nsight Systems export)",
     [](std::string_view head) { return head.substr(0, 15) == "SQLite format 3"; },
     "record with the PyTorch profiler: prof.export_chrome_trace(\"trace.json.gz\")"},
    {"an Nsight Systems report (.nsys-rep)",
     [](std::string_view head) {
       return head.substr(0, 8) == std::string_view("NVIDIA\0\0", 8) ||
              head.substr(0, 9) == "QDSTRM_FI";
     },
     "record with the PyTorch profiler: prof.export_chrome_trace(\"trace.json.gz\")"},
    {"a PyTorch execution trace (Chakra schema)",
     [](std::string_view head) {
       return Contains(head, "\"schema\"") && Contains(head, "\"nodes\"") &&
              !Contains(head, "\"traceEvents\"");
     },
     "name the profiler's own trace of the same run: the file with \"traceEvents\""},
};

absl::Status UnsupportedError(const UnsupportedFormat& format, const std::string& name) {
  return MakeStatus(absl::StatusCode::kUnimplemented,
                    {.code = "E0204",
                     .what = fmt::format("this is {}, which is not supported yet", format.name),
                     .where = name,
                     .why = "no importer reads this format",
                     .fix = std::string(format.fix)});
}

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

absl::StatusOr<const Importer*> ChooseImporter(ByteSource& source, std::string_view from) {
  if (from != "auto") {
    if (const Importer* importer = FindImporter(from)) return importer;
    Diagnostic d = DiagnosticOf(UnknownFormatError(source.name()));
    d.what = fmt::format("there is no input format named '{}'", from);
    return MakeStatus(absl::StatusCode::kInvalidArgument, d);
  }
  DD_ASSIGN_OR_RETURN(std::string_view head, source.Peek());
  constexpr size_t kHeadBytes = 4096;
  head = head.substr(0, kHeadBytes);
  for (const UnsupportedFormat& format : kUnsupported) {
    if (format.sniff(head)) return UnsupportedError(format, source.name());
  }
  for (const Importer* importer : kImporters) {
    if (importer->sniff(head)) return importer;
  }
  return UnknownFormatError(source.name());
}

absl::StatusOr<std::shared_ptr<const Trace>> Import(ByteSource& source,
                                                    const ImportOptions& options,
                                                    std::string_view from) {
  DD_ASSIGN_OR_RETURN(const Importer* importer, ChooseImporter(source, from));
  TraceBuilder builder;
  Provenance& provenance = builder.provenance();
  provenance.importer = importer->name;
  provenance.format = importer->summary;
  provenance.source = source.name();
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

absl::StatusOr<std::shared_ptr<const Trace>> ImportFile(const std::string& path,
                                                        const ImportOptions& options,
                                                        std::string_view from) {
  DD_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenFile(path, options.max_text_bytes));
  return Import(*source, options, from);
}

absl::StatusOr<std::shared_ptr<const Trace>> ImportBytes(std::string_view bytes, std::string name,
                                                         const ImportOptions& options,
                                                         std::string_view from) {
  auto source = OpenBytes(bytes, std::move(name), options.max_text_bytes);
  return Import(*source, options, from);
}

}  // namespace daydream
