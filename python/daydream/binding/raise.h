// Errors of the library as exceptions of Python: daydream.Error, with the code and the text that
// the command prints.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/status.h"

namespace daydream {

// REQUIRES: the interpreter's lock is held, as everywhere that calls Python.
[[noreturn]] void Raise(const absl::Status& status);

template <class T>
T ValueOrRaise(absl::StatusOr<T> value) {
  if (!value.ok()) Raise(value.status());
  return *std::move(value);
}

// What `work` returns, which calls nothing of Python: other threads of the program go on meanwhile.
template <class Work>
auto WithoutPython(Work work) {
  nanobind::gil_scoped_release released;
  return work();
}

}  // namespace daydream
