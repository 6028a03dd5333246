// Why a replay that is not right may not be.
#pragma once

#include <string_view>

#include "report/predict/what_if.h"

namespace daydream {

// Of the check that ReplayCheck::worst() is about: what may be so where that fails.
std::string_view WhyItFails(const ReplayCheck& check);

}  // namespace daydream
