#include "costmodel/device_fields.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

#include "proto/device.pb.h"

namespace daydream {
namespace {

namespace gp = google::protobuf;
namespace pb = device::v1;

using Member = std::variant<int DeviceSpec::*, double DeviceSpec::*, std::string DeviceSpec::*,
                            std::vector<std::string> DeviceSpec::*, DeviceMemory DeviceSpec::*>;

struct Field {
  std::string_view name;
  Member member;
  double least = 0, most = 0;  // of numbers
};

constexpr double kMany = 1e6;
// In the order of proto/device.proto. Limits only keep damage out: three orders above any GPU.
constexpr Field kFields[] = {
    {"name", &DeviceSpec::name},
    {"vendor", &DeviceSpec::vendor},
    {"compute_major", &DeviceSpec::compute_major, 0, 1000},
    {"compute_minor", &DeviceSpec::compute_minor, 0, 1000},
    {"multiprocessors", &DeviceSpec::multiprocessors, 1, kMany},
    {"fp32_cores_per_multiprocessor", &DeviceSpec::fp32_cores_per_multiprocessor, 1, kMany},
    {"base_clock_mhz", &DeviceSpec::base_clock_mhz, 1, kMany},
    {"boost_clock_mhz", &DeviceSpec::boost_clock_mhz, 1, kMany},
    {"fp32_tflops", &DeviceSpec::fp32_tflops, 1e-3, kMany},
    {"tf32_tflops", &DeviceSpec::tf32_tflops, 0, kMany},
    {"fp16_tflops", &DeviceSpec::fp16_tflops, 0, kMany},
    {"bf16_tflops", &DeviceSpec::bf16_tflops, 0, kMany},
    {"fp8_tflops", &DeviceSpec::fp8_tflops, 0, kMany},
    {"nvfp4_tflops", &DeviceSpec::nvfp4_tflops, 0, kMany},
    {"fp32_matrix_tflops", &DeviceSpec::fp32_matrix_tflops, 0, kMany},
    {"memory_gb_per_s", &DeviceSpec::memory_gb_per_s, 1e-3, kMany},
    {"memory_class", &DeviceSpec::memory},
    {"memory_gb", &DeviceSpec::memory_gb, 0, kMany},
    {"l2_mb", &DeviceSpec::l2_mb, 0, kMany},
    {"tdp_watts", &DeviceSpec::tdp_watts, 0, kMany},
    {"threads_per_multiprocessor", &DeviceSpec::threads_per_multiprocessor, 1, kMany},
    {"registers_per_multiprocessor", &DeviceSpec::registers_per_multiprocessor, 1, 1e9},
    {"shared_memory_kb_per_multiprocessor", &DeviceSpec::shared_memory_kb_per_multiprocessor, 0,
     kMany},
    {"nvlink_gb_per_s", &DeviceSpec::nvlink_gb_per_s, 0, kMany},
    {"pcie_gb_per_s", &DeviceSpec::pcie_gb_per_s, 0, kMany},
    {"name_words", &DeviceSpec::name_words},
    {"source", &DeviceSpec::source},
    {"unsure", &DeviceSpec::unsure},
    {"measured.fp32_gemm_tflops", &DeviceSpec::measured_fp32_gemm_tflops, 1e-3, kMany},
    {"measured.fp32_batched_gemm_tflops", &DeviceSpec::measured_fp32_batched_gemm_tflops, 1e-3,
     kMany},
    {"measured.bandwidth_share", &DeviceSpec::measured_bandwidth_share, 1e-3, 1},
    {"measured.source", &DeviceSpec::measured_source},
    {"measured.tensor_share", &DeviceSpec::measured_tensor_share, 1e-3, 1},
    {"measured.residuals", &DeviceSpec::measured_residuals},
};

constexpr std::pair<std::string_view, DeviceMemory> kMemories[] = {
    {"MEMORY_CLASS_HBM", DeviceMemory::kHbm},
    {"MEMORY_CLASS_GDDR_ECC", DeviceMemory::kGddrEcc},
    {"MEMORY_CLASS_GDDR", DeviceMemory::kGddr}};

std::string_view MemoryName(DeviceMemory memory) {
  for (const auto& [name, value] : kMemories) {
    if (value == memory) return name;
  }
  return {};
}

const Field* FindField(std::string_view name) {
  for (const Field& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Protobuf's parser reports the first thing that it does not understand.
class FirstProblem : public gp::io::ErrorCollector {
 public:
  void AddError(int line, gp::io::ColumnNumber column, const std::string& message) override {
    if (found_) return;
    found_ = true;
    line_ = static_cast<size_t>(std::max(line, 0)) + 1;
    column_ = static_cast<size_t>(std::max<int>(column, 0)) + 1;
    message_ = message;
  }
  absl::Status Tell(const ErrorAt& error) const {
    return error(line_, column_, 1,
                 {.code = "E0802",
                  .what = "this is no description of a device",
                  .why = message_,
                  .fix = "lines of `field: value`; the fields are in docs/cost-model.md"});
  }

 private:
  bool found_ = false;
  size_t line_ = 1, column_ = 1;
  std::string message_;
};

std::string ScalarText(const gp::Message& message, const gp::FieldDescriptor& field, int index) {
  const gp::Reflection& r = *message.GetReflection();
  switch (field.cpp_type()) {
    case gp::FieldDescriptor::CPPTYPE_INT32:
      return fmt::format("{}", r.GetInt32(message, &field));
    case gp::FieldDescriptor::CPPTYPE_DOUBLE:
      return fmt::format("{}", r.GetDouble(message, &field));
    case gp::FieldDescriptor::CPPTYPE_ENUM:
      return r.GetEnum(message, &field)->name();
    default:
      return field.is_repeated() ? r.GetRepeatedString(message, &field, index)
                                 : r.GetString(message, &field);
  }
}

void Collect(const gp::Message& message, const gp::TextFormat::ParseInfoTree* tree,
             const std::string& prefix, std::vector<GivenField>& fields) {
  const gp::Descriptor& type = *message.GetDescriptor();
  const gp::Reflection& r = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const gp::FieldDescriptor& field = *type.field(i);
    const int index = field.is_repeated() ? 0 : -1;
    const gp::TextFormat::ParseLocation at =
        tree != nullptr ? tree->GetLocation(&field, index) : gp::TextFormat::ParseLocation();
    if (at.line < 0) continue;  // not in the text; a field that is given as 0 is
    if (field.cpp_type() == gp::FieldDescriptor::CPPTYPE_MESSAGE) {
      Collect(r.GetMessage(message, &field), tree->GetTreeForNested(&field, index),
              field.name() + ".", fields);
      continue;
    }
    GivenField& given = fields.emplace_back();
    given.name = prefix + field.name();
    given.line = static_cast<size_t>(at.line) + 1;
    given.column = static_cast<size_t>(at.column) + 1;
    const int count = field.is_repeated() ? r.FieldSize(message, &field) : 1;
    for (int k = 0; k < count; ++k) given.values.push_back(ScalarText(message, field, k));
  }
}

absl::Status SetNumber(const GivenField& given, const Field& field, DeviceSpec& spec,
                       const ErrorAt& error) {
  auto refuse = [&](std::string why) {
    return error(given.line, given.column, given.name.size(),
                 {.code = "E0803",
                  .what = fmt::format("{}: '{}' is no value for it", given.name, given.values[0]),
                  .why = std::move(why),
                  .fix = "the units are in the names: MHz, TFLOPS, 10^9 bytes a second"});
  };
  const std::optional<double> value = Number(given.values[0]);
  if (!value) return refuse("a plain number is needed, without a unit");
  if (!(*value >= field.least && *value <= field.most)) {
    return refuse(fmt::format("it has to be from {} to {}", field.least, field.most));
  }
  if (const auto* member = std::get_if<double DeviceSpec::*>(&field.member)) {
    spec.** member = *value;
    return absl::OkStatus();
  }
  if (*value != static_cast<double>(static_cast<int>(*value))) {
    return refuse("a whole number is needed");
  }
  spec.*std::get<int DeviceSpec::*>(field.member) = static_cast<int>(*value);
  return absl::OkStatus();
}

absl::Status SetField(const GivenField& given, const Field& field, DeviceSpec& spec,
                      const ErrorAt& error) {
  if (const auto* list = std::get_if<std::vector<std::string> DeviceSpec::*>(&field.member)) {
    spec.** list = given.values;
    return absl::OkStatus();
  }
  if (given.values.size() != 1) {
    return error(given.line, given.column, given.name.size(),
                 {.code = "E0803", .what = fmt::format("{}: one value is needed", given.name)});
  }
  if (const auto* text = std::get_if<std::string DeviceSpec::*>(&field.member)) {
    spec.** text = given.values[0];
    return absl::OkStatus();
  }
  if (const auto* memory = std::get_if<DeviceMemory DeviceSpec::*>(&field.member)) {
    for (const auto& [name, value] : kMemories) {
      // "HBM" does as well as the name in the proto file.
      if (given.values[0] != name && given.values[0] != name.substr(13)) continue;
      spec.** memory = value;
      return absl::OkStatus();
    }
    return error(given.line, given.column, given.name.size(),
                 {.code = "E0803",
                  .what = fmt::format("memory_class: '{}' is not known", given.values[0]),
                  .fix = "HBM, GDDR_ECC or GDDR"});
  }
  return SetNumber(given, field, spec, error);
}

}  // namespace

absl::Status PlainError(size_t line, size_t column, size_t, Diagnostic d) {
  d.where = fmt::format("line {}, column {}", line, column);
  return MakeStatus(absl::StatusCode::kInvalidArgument, std::move(d));
}

std::vector<std::string_view> DeviceFieldNames() {
  std::vector<std::string_view> names;
  for (const Field& field : kFields) names.push_back(field.name);
  return names;
}

absl::StatusOr<std::vector<GivenField>> FieldsOfTextproto(std::string_view text,
                                                          const ErrorAt& error) {
  pb::DeviceSpec message;
  gp::TextFormat::Parser parser;
  gp::TextFormat::ParseInfoTree tree;
  FirstProblem problem;
  parser.RecordErrorsTo(&problem);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(4);
  if (!parser.ParseFromString(std::string(text), &message)) return problem.Tell(error);
  std::vector<GivenField> fields;
  Collect(message, &tree, "", fields);
  return fields;
}

absl::StatusOr<DeviceSpec> SpecOfFields(std::span<const GivenField> fields, const ErrorAt& error) {
  DeviceSpec spec;
  std::vector<std::string_view> seen;
  for (const GivenField& given : fields) {
    const Field* field = FindField(given.name);
    const bool twice = std::find(seen.begin(), seen.end(), given.name) != seen.end();
    if (field == nullptr || twice) {
      return error(given.line, given.column, given.name.size(),
                   {.code = "E0803",
                    .what = twice ? fmt::format("{} is given twice", given.name)
                                  : fmt::format("a device has no field '{}'", given.name),
                    .fix = "the fields are in docs/cost-model.md"});
    }
    seen.push_back(given.name);
    DD_RETURN_IF_ERROR(SetField(given, *field, spec, error));
  }
  return spec;
}

std::string DeviceTextproto(const DeviceSpec& spec) {
  std::string out, measured;
  for (const Field& field : kFields) {
    const bool nested = field.name.starts_with("measured.");
    std::string& to = nested ? measured : out;
    const std::string name =
        nested ? fmt::format("  {}", field.name.substr(9)) : std::string(field.name);
    auto quoted = [&](const std::string& text) {
      std::string safe;
      for (char c : text) {
        if (c == '"' || c == '\\') safe += '\\';
        safe += c == '\n' || c == '\r' ? ' ' : c;
      }
      to += fmt::format("{}: \"{}\"\n", name, safe);
    };
    if (const auto* list = std::get_if<std::vector<std::string> DeviceSpec::*>(&field.member)) {
      for (const std::string& text : spec.**list) quoted(text);
    } else if (const auto* text = std::get_if<std::string DeviceSpec::*>(&field.member)) {
      if (!(spec.**text).empty()) quoted(spec.**text);
    } else if (const auto* memory = std::get_if<DeviceMemory DeviceSpec::*>(&field.member)) {
      to += fmt::format("{}: {}\n", name, MemoryName(spec.**memory));
    } else if (const auto* number = std::get_if<double DeviceSpec::*>(&field.member)) {
      if (spec.**number != 0) to += fmt::format("{}: {}\n", name, spec.**number);
    } else {
      const int whole = spec.*std::get<int DeviceSpec::*>(field.member);
      if (whole != 0) to += fmt::format("{}: {}\n", name, whole);
    }
  }
  if (!measured.empty()) out += fmt::format("measured {{\n{}}}\n", measured);
  return out;
}

}  // namespace daydream
