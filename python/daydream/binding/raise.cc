#include "python/daydream/binding/raise.h"

#include "tools/diagnostics.h"

namespace nb = nanobind;

namespace daydream {

void Raise(const absl::Status& status) {
  const Diagnostic d = DiagnosticOf(status);
  nb::object type = nb::module_::import_("daydream.errors").attr("Error");
  nb::dict fields;
  auto set = [&](const char* key, const std::string& text) {
    fields[key] = nb::str(text.data(), text.size());
  };
  set("code", d.code), set("what", d.what), set("where", d.where), set("why", d.why);
  set("effect", d.effect), set("fix", d.fix);
  set("text", FormatDiagnostic(d, Severity::kError, {}));
  fields["exit_code"] = static_cast<int>(ExitOf(status));
  nb::object error = type(**fields);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace daydream
