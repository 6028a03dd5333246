// The module daydream._daydream: what python/daydream/daydream is written on. Docstrings for people
// are there.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <thread>
#include <tuple>

#include "python/daydream/binding/bind_edit.h"
#include "python/daydream/binding/own_optimization.h"
#include "python/daydream/binding/raise.h"
#include "python/daydream/binding/recording.h"
#include "tools/diagnostics.h"
#include "tools/version.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace daydream {
namespace {

using Words = std::vector<std::string>;

// Raises a Ctrl-C that arrived since the last look, which ends the work. Looks twenty times a
// second at most, as the lock of the interpreter is not free, and in the thread that asked: others
// are never told.
Recording::Progress Interruptible() {
  return [asked = std::this_thread::get_id(), last = std::chrono::steady_clock::now()]() mutable {
    if (std::this_thread::get_id() != asked) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(50)) return;
    last = now;
    nb::gil_scoped_acquire python;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

// [(kind, code, text)] of what was said.
nb::list Said(const Messages& messages) {
  nb::list said;
  for (const auto& [severity, d] : messages) {
    const char* kind = severity == Severity::kNote ? "note" : "warning";
    said.append(nb::make_tuple(kind, d.code, FormatDiagnostic(d, severity, {})));
  }
  return said;
}

nb::tuple Load(const std::string& path, const Words& words) {
  Messages messages;
  auto loaded =
      WithoutPython([&] { return Recording::Load(path, words, Interruptible(), messages); });
  Recording recording = ValueOrRaise(std::move(loaded));
  return nb::make_tuple(nb::cast(std::move(recording)), Said(messages));
}

// A scenario: a text, and pairs of an OwnOptimization with its arguments as text.
using Given = std::vector<std::pair<std::string, std::string>>;
using Scenario = std::pair<std::string, std::vector<std::pair<const OwnOptimization*, Given>>>;

std::string AskWhatIf(const Recording& recording, const std::vector<Scenario>& scenarios,
                      const Words& words) {
  std::vector<ScenarioParts> parts;
  for (const auto& [spec, own] : scenarios) {
    parts.push_back({.spec = spec, .own = {}});
    for (const auto& [optimization, given] : own) {
      parts.back().own.push_back(ValueOrRaise(optimization->Apply(given)));
    }
  }
  return ValueOrRaise(
      WithoutPython([&] { return recording.WhatIf(parts, words, Interruptible()); }));
}

nb::tuple AskAdvise(const Recording& recording, const Words& words) {
  Messages messages;
  auto json = WithoutPython([&] { return recording.Advise(words, Interruptible(), messages); });
  return nb::make_tuple(ValueOrRaise(std::move(json)), Said(messages));
}

std::string AskRanks(const Recording& recording) {
  return ValueOrRaise(WithoutPython([&] { return recording.Ranks(); }));
}

std::string AskSummary(const Recording& recording, const std::string& by) {
  return ValueOrRaise(WithoutPython([&] { return recording.Summary(by); }));
}

std::string AskSweep(const Recording& recording, const Words& specs, const Words& words) {
  return ValueOrRaise(
      WithoutPython([&] { return recording.Sweep(specs, words, Interruptible()); }));
}

using Param = std::tuple<std::string, double, double, double>;

void MakeOwn(OwnOptimization* self, const std::string& name, const std::string& summary,
             const std::vector<Param>& params, nb::callable function) {
  std::vector<OwnParam> own;
  own.reserve(params.size());
  for (const auto& [param, value, low, high] : params) own.push_back({param, value, low, high});
  new (self) OwnOptimization(name, summary, std::move(own), std::move(function));
}

}  // namespace

NB_MODULE(_daydream, m) {
  // Python ends when it likes, and leaves what notebooks hold: no list of it on standard error.
  nb::set_leak_warnings(false);
  std::string version = ShortVersion();
  while (version.ends_with('\n')) version.pop_back();
  m.attr("version") = version;
  nb::class_<Recording>(m, "Recording")
      .def("whatif", &AskWhatIf, "scenarios"_a, "flags"_a)
      .def("advise", &AskAdvise, "flags"_a)
      .def("ranks", &AskRanks)
      .def("summary", &AskSummary, "by"_a)
      .def("sweep", &AskSweep, "specs"_a, "flags"_a);
  m.def("load", &Load, "path"_a, "flags"_a);
  nb::class_<OwnOptimization>(m, "OwnOptimization")
      .def("__init__", &MakeOwn, "name"_a, "summary"_a, "params"_a, "function"_a);
  BindEdit(m);
}

}  // namespace daydream
