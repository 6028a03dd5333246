// Words of a recorder that others ask for: what the CUPTI of a program does not tell, what the disk
// did not take.
#pragma once

#include <string_view>

namespace daydream {

// An entry of Provenance::software that begins so is no software: {"lacks event ids", what follows
// from it}. Kept there because converted and joined files keep what is there.
inline constexpr std::string_view kLacks = "lacks ";
// What an older CUPTI does not tell.
inline constexpr std::string_view kLackDriverCalls = "driver calls";
inline constexpr std::string_view kLackEventIds = "event ids";
inline constexpr std::string_view kLackDeviceWaits = "device synchronisation";

// What is counted when the disk did not take the events of a recording.
inline constexpr std::string_view kNotWritten = "events that could not be written";

// What is counted when a file ends before its end.
inline constexpr std::string_view kEndMissing = "end of file missing";

}  // namespace daydream
