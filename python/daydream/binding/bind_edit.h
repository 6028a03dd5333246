// The class Edit of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace daydream {

void BindEdit(nanobind::module_& m);

}  // namespace daydream
