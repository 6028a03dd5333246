// The network at another speed: all of it, the links inside of nodes, or those between them.
#pragma once

#include <string_view>

#include "base/status.h"
#include "costmodel/network/fabric.h"
#include "transforms/core/editor.h"
#include "transforms/core/params.h"

namespace daydream {

// `level=` and `fabric=` of what changes the speed of the network.
inline constexpr ParamSpec kLevelParam = {
    .name = "level",
    .unit = Unit::kText,
    .help =
        "which level of the fabric, by its name (`daydream fabric show NAME --text`); without: "
        "all of the network",
    .source = "chosen by the user"};
inline constexpr ParamSpec kLevelFabricParam = {
    .name = "fabric",
    .unit = Unit::kText,
    .help = "with level=: what joins the ranks; without: as ddp(...) was told",
    .source = "chosen by the user"};

// So many times the rate, and so many times the latency. Where the fabric is known, by `fabric` or
// by what joined the ranks, each transfer changes as the fabric says after against before, on one
// level or on all; else by the part that grows with its bytes and the part that does not
// (TransfersBySize()). Waits stay. E0825 when `level` is given and no fabric is known, or it has no
// such level. O(tasks + edges).
absl::Status ChangeSpeed(Editor& edit, const Params& params, double rate, double latency);

// All collectives on this fabric, as they would be had the ranks been joined by it: GPUs are shared
// as on that one. `nodes` 0: as few as they fit on. E0823 when it is too small. O(tasks + edges).
absl::Status ChangeNetwork(Editor& edit, const Fabric& fabric, int nodes);

}  // namespace daydream
