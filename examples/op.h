// One recorded operator: a span with its inputs, as the profiler writes them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "examples/framework.h"

namespace daydream::examples {

// An input of an operator: its shape (empty for everything that is no tensor) and type.
struct Input {
  Shape shape;
  std::string_view type;
};
inline Input Tensor(Shape shape) { return {std::move(shape), "float"}; }
inline Input Scalar() { return {{}, "Scalar"}; }
inline Input List() { return {{}, "ScalarList"}; }
inline Input None() { return {{}, ""}; }

class Op {
 public:
  // `work_ns` is the host time between the start of the operator and whatever it does next.
  Op(Framework& framework, std::string_view name, std::initializer_list<Input> inputs,
     int64_t sequence = -1, int64_t work_ns = 2500);

 private:
  Framework& framework_;
  OpDetail detail_;
  Machine::Span span_;
};

// Memory for an output: no kernel, only host time.
void Empty(Framework& framework);

}  // namespace daydream::examples
