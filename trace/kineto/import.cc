// PyTorch profiler JSON (Kineto, Chrome trace format), read as a stream: a window moves over the
// text, events are taken out of it one at a time, and damage is skipped up to the next event.
#include <algorithm>
#include <utility>

#include "trace/importer.h"
#include "trace/json/window.h"
#include "trace/kineto/event.h"
#include "trace/kineto/header.h"
#include "trace/kineto/rows.h"

namespace daydream {
namespace {

// An event, or a header value that is of use, longer than this is taken for damage. Real events
// stay below 100 KB (call stacks, process groups of large jobs).
constexpr size_t kMaxValueBytes = size_t{4} << 20;
// A share of malformed events means nothing on a handful of events.
constexpr uint64_t kFewMalformed = 10;

class KinetoReader {
 public:
  KinetoReader(ByteSource& source, const ImportOptions& options, TraceBuilder& builder)
      : source_(source), options_(options), builder_(builder), window_(source), rows_(builder) {}

  absl::Status Read();

 private:
  absl::Status ReadTop();
  absl::Status ReadMember(std::string_view key);
  absl::Status ReadEvents();
  absl::Status ReadEvent();
  absl::Status Unreadable(std::string_view why);
  absl::Status CheckShare(bool final) const;
  absl::Status MalformedError(std::string_view why, int64_t offset) const;
  absl::Status Finish();
  bool NextCharacter();
  void NoticeSecondDocument();
  bool SkipTopValue();
  bool SkipLongString();
  bool FindEvent();
  bool Refill();

  ByteSource& source_;
  const ImportOptions& options_;
  TraceBuilder& builder_;
  JsonWindow window_;
  KinetoRows rows_;
  KinetoEvent event_;
  JsonKeys keys_;
  bool saw_events_ = false;  // an array of events, even an empty one
  bool complete_ = false;    // the text ended where it should
  uint64_t cut_off_ = 0;     // events at the end of the text that miss their end
  int64_t wasted_ = 0;       // bytes looked at again because of damage
  std::string last_why_ = "its text is damaged";
};

bool KinetoReader::Refill() {
  if (options_.progress) options_.progress(source_.consumed(), source_.total());
  return window_.Refill();
}

// Moves to the next character that is not blank. False at the end of the text.
bool KinetoReader::NextCharacter() {
  for (;;) {
    window_.p = SkipBlanks(window_.p);
    if (window_.p < window_.end()) return true;
    if (!Refill()) return false;
  }
}

// Moves behind a string of any length.
bool KinetoReader::SkipLongString() {
  ++window_.p;
  for (bool escaped = false;;) {
    for (; window_.p < window_.end(); ++window_.p) {
      if (!escaped && *window_.p == '"') {
        ++window_.p;
        return true;
      }
      escaped = !escaped && *window_.p == '\\';
    }
    if (!Refill()) return false;
  }
}

// Moves behind a value of any size without keeping it.
bool KinetoReader::SkipTopValue() {
  if (*window_.p == '"') return SkipLongString();
  if (*window_.p == '{' || *window_.p == '[') {
    JsonSkipper skipper;
    for (;;) {
      const char* behind = skipper.Skip(window_.p, window_.end());
      window_.p = behind != nullptr ? behind : window_.end();
      if (behind != nullptr) return true;
      if (!Refill()) return false;
    }
  }
  for (;;) {
    while (window_.p < window_.end() && *window_.p != ',' && *window_.p != '}') ++window_.p;
    if (window_.p < window_.end()) return true;
    if (!Refill()) return false;
  }
}

// Moves to what looks like the next event: a brace after a comma or bracket, and a key of an
// event in it. False when the text ends before one.
bool KinetoReader::FindEvent() {
  constexpr std::string_view kKeys[] = {"\"ph\"",  "\"name\"", "\"cat\"",
                                        "\"pid\"", "\"tid\"",  "\"ts\""};
  constexpr ptrdiff_t kLookAhead = 64;
  char before = '\0';
  for (;;) {
    bool last = false;
    while (window_.end() - window_.p < kLookAhead && !last) last = !Refill();
    const char* stop = last ? window_.end() : window_.end() - kLookAhead + 1;
    for (const char* p = window_.p; p < stop; ++p) {
      if (*p == '{' && (before == ',' || before == '[')) {
        const char* key = SkipBlanks(p + 1);
        std::string_view text(key,
                              static_cast<size_t>(std::max<ptrdiff_t>(window_.end() - key, 0)));
        for (std::string_view k : kKeys) {
          if (text.substr(0, k.size()) == k) {
            wasted_ += p - window_.p;
            window_.p = p;
            return true;
          }
        }
      }
      if (static_cast<unsigned char>(*p) > ' ') before = *p;
    }
    wasted_ += stop - window_.p;
    window_.p = stop;
    if (last) return false;
  }
}

absl::Status KinetoReader::MalformedError(std::string_view why, int64_t offset) const {
  uint64_t percent = rows_.events() == 0 ? 100 : rows_.malformed() * 100 / rows_.events();
  std::string what = options_.strict ? "an event of this trace is malformed"
                                     : fmt::format("{} of the first {} events ({} %) are malformed",
                                                   rows_.malformed(), rows_.events(), percent);
  return MakeStatus(absl::StatusCode::kInvalidArgument,
                    {.code = "E0210",
                     .what = std::move(what),
                     .where = fmt::format("{}, byte {}", source_.name(), offset),
                     .why = std::string(why),
                     .effect = "a prediction from what is left would not be reliable",
                     .fix = "record the trace again, or allow it: --max-errors 100%"});
}

absl::Status KinetoReader::CheckShare(bool final) const {
  auto malformed = static_cast<double>(rows_.malformed());
  auto events = static_cast<double>(rows_.events());
  if (final) {
    if (options_.max_malformed > 0 && rows_.malformed() <= kFewMalformed) return absl::OkStatus();
    if (malformed <= options_.max_malformed * events) return absl::OkStatus();
    return MalformedError(last_why_, 0);
  }
  // On the way: only what cannot turn out well, so that garbage does not take long.
  constexpr double kHopeless = 1000;
  constexpr int64_t kFreeBytes = int64_t{64} << 20;
  bool hopeless = malformed > kHopeless && malformed > 0.5 * events && options_.max_malformed < 0.5;
  bool endless = wasted_ > 8 * window_.Offset(window_.p) + kFreeBytes;
  return hopeless || endless ? MalformedError(last_why_, window_.Offset(window_.p))
                             : absl::OkStatus();
}

// Counts the event at the window's position as damaged and moves to the next one.
absl::Status KinetoReader::Unreadable(std::string_view why) {
  int64_t offset = window_.Offset(window_.p);
  rows_.AddUnreadable(offset);
  last_why_ = why;
  if (options_.strict) return MalformedError(why, offset);
  ++window_.p;
  FindEvent();
  return CheckShare(false);
}

absl::Status KinetoReader::ReadEvent() {
  for (;;) {
    const char* p = window_.p;
    auto room = static_cast<size_t>(window_.end() - p);
    ParseResult result = ParseKinetoEvent(&p, p + std::min(room, kMaxValueBytes), &event_, &keys_);
    if (result == ParseResult::kOk) {
      std::string_view why;
      int64_t offset = window_.Offset(window_.p);
      window_.p = p;
      if (rows_.Add(event_, offset, &why)) return absl::OkStatus();
      last_why_ = why;
      return options_.strict ? MalformedError(why, offset) : CheckShare(false);
    }
    if (result == ParseResult::kMalformed) return Unreadable("its text is damaged");
    wasted_ += static_cast<int64_t>(std::min(room, kMaxValueBytes));
    if (room >= kMaxValueBytes) return Unreadable("it does not end within 4 MiB");
    // Grow by more than one chunk at a time, so that long events are not read over and over.
    bool more = Refill();
    while (more && static_cast<size_t>(window_.end() - window_.p) < 2 * room &&
           static_cast<size_t>(window_.end() - window_.p) < kMaxValueBytes) {
      if (!Refill()) break;
    }
    if (more) continue;
    // The text ends inside this event, unless a stray quote made it swallow those behind it.
    const int64_t offset = window_.Offset(window_.p);
    ++window_.p;
    bool another = FindEvent();
    if (!another) {
      ++cut_off_;
      return absl::OkStatus();
    }
    rows_.AddUnreadable(offset);
    if (options_.strict) return MalformedError(last_why_, offset);
    return CheckShare(false);
  }
}

absl::Status KinetoReader::ReadEvents() {
  saw_events_ = true;
  ++window_.p;  // the bracket
  while (NextCharacter()) {
    char c = *window_.p;
    if (c == ',') {
      ++window_.p;
    } else if (c == ']') {
      ++window_.p;
      return absl::OkStatus();
    } else if (c == '{') {
      DD_RETURN_IF_ERROR(ReadEvent());
    } else {
      DD_RETURN_IF_ERROR(Unreadable("there is something between events"));
    }
  }
  return absl::OkStatus();
}

absl::Status KinetoReader::ReadMember(std::string_view key) {
  if (key == "traceEvents" && *window_.p == '[') return ReadEvents();
  if (!IsKinetoHeaderKey(key)) {
    SkipTopValue();
    return absl::OkStatus();
  }
  for (;;) {
    const char* behind = SkipJsonValue(window_.p, window_.end());
    // A scalar at the very end of the window may go on.
    if (behind != nullptr && behind < window_.end()) {
      ReadKinetoHeader(key, {window_.p, static_cast<size_t>(behind - window_.p)}, builder_);
      window_.p = behind;
      return absl::OkStatus();
    }
    bool large = static_cast<size_t>(window_.end() - window_.p) >= kMaxValueBytes;
    if (large || !Refill()) {
      SkipTopValue();
      return absl::OkStatus();
    }
  }
}

absl::Status KinetoReader::ReadTop() {
  if (!NextCharacter()) return absl::OkStatus();
  if (window_.end() - window_.p >= 3 && std::string_view(window_.p, 3) == "\xef\xbb\xbf") {
    window_.p += 3;  // byte order mark
    if (!NextCharacter()) return absl::OkStatus();
  }
  if (*window_.p == '[') {
    DD_RETURN_IF_ERROR(ReadEvents());
    complete_ = true;  // the closing bracket is optional in this form
    return absl::OkStatus();
  }
  ++window_.p;  // the brace
  std::string key;
  while (NextCharacter()) {
    if (*window_.p == '}') {
      complete_ = true;
      return absl::OkStatus();
    }
    if (*window_.p != '"') {
      ++window_.p;
      continue;
    }
    constexpr ptrdiff_t kMaxKeyBytes = 4096;
    bool more = true;
    while (window_.end() - window_.p < kMaxKeyBytes && more) more = Refill();
    bool plain = true;
    const char* close = FindStringEnd(window_.p + 1, window_.end(), &plain);
    if (close == nullptr) {
      if (!SkipLongString()) return absl::OkStatus();
      continue;
    }
    key.assign(window_.p + 1, close);
    window_.p = close + 1;
    if (!NextCharacter() || *window_.p != ':') continue;
    ++window_.p;
    if (!NextCharacter()) return absl::OkStatus();
    DD_RETURN_IF_ERROR(ReadMember(key));
  }
  return absl::OkStatus();
}

absl::Status KinetoReader::Finish() {
  const absl::Status& failure = window_.failure();
  bool ends_early = !failure.ok() && DiagnosticOf(failure).code == "E0205";
  if (!failure.ok() && (!ends_early || options_.strict || rows_.events() == 0)) return failure;
  if (!saw_events_ && !complete_) {
    return MakeStatus(absl::StatusCode::kDataLoss,
                      {.code = "E0211",
                       .what = "there are no events in this file",
                       .where = source_.name(),
                       .why = "it is JSON that ends before any \"traceEvents\"",
                       .fix = "copy it again, or end the profiler before the program exits"});
  }
  if (!saw_events_ || rows_.events() + cut_off_ == 0) {
    return MakeStatus(
        absl::StatusCode::kInvalidArgument,
        {.code = "E0211",
         .what = "there are no events in this file",
         .where = source_.name(),
         .why = saw_events_ ? "its list of events is empty" : "it is JSON without \"traceEvents\"",
         .fix = "record with prof.export_chrome_trace(\"trace.json.gz\")"});
  }
  DD_RETURN_IF_ERROR(CheckShare(true));
  rows_.Finish();
  if (ends_early || !complete_ || cut_off_ > 0) {
    if (options_.strict) return MalformedError("the file ends early", window_.Offset(window_.p));
    builder_.Count("end of file missing", "the file was cut off: later events are missing", true, 1,
                   window_.Offset(window_.p), false);
  }
  if (cut_off_ > 0) {
    builder_.Count("events cut off", "the file ends inside the event", true, cut_off_);
  }
  builder_.provenance().input_events = rows_.events() + cut_off_;
  return absl::OkStatus();
}

// Two files in one, as after `cat`.
void KinetoReader::NoticeSecondDocument() {
  if (!complete_ || !window_.failure().ok()) return;
  if (window_.p < window_.end() && (*window_.p == '}' || *window_.p == ']')) ++window_.p;
  if (!NextCharacter() || (*window_.p != '{' && *window_.p != '[')) return;
  builder_.Count("documents behind the first", "files that were joined: only the first one is read",
                 true, 1, window_.Offset(window_.p), /*count_as_event=*/false);
}

absl::Status KinetoReader::Read() {
  Refill();
  if (window_.p != nullptr) DD_RETURN_IF_ERROR(ReadTop());
  DD_RETURN_IF_ERROR(Finish());
  NoticeSecondDocument();
  return absl::OkStatus();
}

bool SniffKineto(std::string_view head) {
  if (head.substr(0, 3) == "\xef\xbb\xbf") head.remove_prefix(3);
  size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  head.remove_prefix(first);
  if (head[0] != '{' && head[0] != '[') return false;
  size_t inner = head.find_first_not_of(" \t\r\n", 1);
  if (inner == std::string_view::npos) return true;
  return head[0] == '{' ? head[inner] == '"' || head[inner] == '}'
                        : head[inner] == '{' || head[inner] == ']';
}

absl::Status ImportKineto(ByteSource& source, const ImportOptions& options, TraceBuilder& builder) {
  return KinetoReader(source, options, builder).Read();
}

}  // namespace

constexpr std::string_view kKinetoBoth =
    "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], ...)";

const Importer kKineto = {
    .name = "kineto",
    .summary = "PyTorch profiler JSON",
    .sniff = SniffKineto,
    .import = ImportKineto,
    .recorder = {.writer = "PyTorch profiler, JSON",
                 .record =
                     "profile(activities=[CPU, CUDA], record_shapes=True, profile_memory=True)",
                 .answers = "everything",
                 .both = kKinetoBoth,
                 .later = "record after warm-up: "
                          "profile(schedule=torch.profiler.schedule(wait=5, warmup=3, active=5))",
                 .waits = kKinetoBoth},
};

}  // namespace daydream
