// What the fake CUPTI shall do wrong, read once from the environment variable FAKE_CUPTI:
// items with ";" between them.
//
//   FUNCTION=CODE             every call of cuptiFUNCTION returns CODE ("Subscribe_v2=39"; a name
//                             that ends in * stands for all that begin so, "*=999" for all)
//   FUNCTION:N=CODE           ... when its first number (kind, cbid, attribute, flag) is N
//   FUNCTION:N#COUNT=CODE     ... the first COUNT times
//   FUNCTION:N@SKIP=CODE      ... but not the first SKIP times
//   version=N                 what cuptiGetVersion says (default: that of the CUDA it is a fake of)
//   subscriber=NAME           another tool has subscribed: Subscribe fails with 39 and this name
//   drop=N                    each N-th record is dropped and counted
//   no_time=N                 each N-th GPU record has start = end = 0
//   foreign_record=N          each N-th record is followed by one of a kind that nobody knows
//   bad_record=N              ... by one that GetNextRecord cannot step over
//   command_buffer_full=N     each N-th record is followed by OVERHEAD with allocated data
//   fatal_after=N             after N API calls a fatal error, and CUPTI is finalized
//   slow_flush_ms=N           FlushAll takes so long; hang_forced=1: a forced one never returns
//   slow_enable_ms=N          Enable takes so long
//   fork_in=FUNCTION          each call forks a child that ends at once, as the driver does
//   hang_subscribe=1          Subscribe never returns, and says so on stdout
//   check_zero=1              aborts when a buffer that should be zero is not
//   call_cost_us=N            a recorded call takes the program so much longer
//   work_cost_us=N            ... and recorded GPU work
//   say_state=1               says on stderr at exit() how many kinds and callbacks are on
//   log=1                     each function that is called for the first time is named on stderr
//   lose_in_flight=1          GPU work that runs when its kind is disabled is lost, uncounted
//   withhold=1                buffers of GPU work come when none of it runs, or by a forced flush
//   graphs_need_kind=1        no kernels of CUDA graphs that were made while they were not recorded
//   timestamp=realtime        cuptiGetTimestamp does not follow the clock that was registered
#pragma once

#include <cstdint>
#include <string>

namespace daydream {

// The code that FAKE_CUPTI gives for this call, or 0.
int FaultCode(const char* function, int64_t number = -1);
// The value of an item that is not a function, or `otherwise`.
int64_t FaultNumber(const char* name, int64_t otherwise = 0);
std::string FaultText(const char* name);

}  // namespace daydream
