"""What notebooks show: a small table, and bars as SVG, without scripts."""

import html

_MOST_ROWS = 50
_CAUSES = 8


def _table(head, rows):
    def line(cells, tag):
        return "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, cell, tag) for cell in cells)

    body = "".join(line(row, "td") for row in rows)
    return "<table><thead>%s</thead><tbody>%s</tbody></table>" % (line(head, "th"), body)


def _text(value):
    return html.escape("" if value is None else str(value))


def _number(value, form="%.1f"):
    return "" if value is None else form % value


def _bars(rows, label):
    """One bar for each (name, value, from, to, low, high, colour) on one axis that begins at 0."""
    most = max([max(to, high or 0) for _, _, _, to, _, high, _ in rows] + [1e-9])
    x, width, height = 330, 380, 22
    out = []
    for i, (name, value, start, end, low, high, colour) in enumerate(rows):
        y = i * height
        short = name if len(name) <= 48 else name[:47] + "…"
        out.append(
            '<text x="%d" y="%d" text-anchor="end" font-size="12" fill="currentColor">%s</text>'
            % (x - 8, y + 15, html.escape(short))
        )
        out.append(
            '<text x="%d" y="%d" font-size="12" fill="currentColor">%s</text>'
            % (x + width + 8, y + 15, html.escape(value))
        )
        left, right = x + width * start / most, x + width * end / most
        out.append(
            '<rect x="%.1f" y="%d" width="%.1f" height="14" fill="%s"><title>%s</title></rect>'
            % (left, y + 4, max(right - left, 1), colour, html.escape(name))
        )
        if low is not None:
            a, b = x + width * low / most, x + width * high / most
            out.append(
                '<path d="M%.1f %d H%.1f M%.1f %d v8 M%.1f %d v8" stroke="currentColor"/>'
                % (a, y + 11, b, a, y + 7, b, y + 7)
            )
    return (
        '<svg role="img" aria-label="%s" width="100%%" style="max-width:%dpx" viewBox="0 0 %d %d" '
        'font-family="sans-serif">%s</svg>'
        % (html.escape(label), x + width + 90, x + width + 90, height * len(rows), "".join(out))
    )


def whatif_html(result):
    rows, bars = [], []
    for i, s in enumerate(result.scenarios):
        if s["step_ms"] is None:
            rows.append([_text(s["name"]), _text(s["error"]["what"]), "", "", ""])
            continue
        low, high = s["interval_ms"] or (None, None)
        between = "" if low is None else "%.1f - %.1f ms" % (low, high)
        limit = "&lt;= " if s["bound"] else ""
        rows.append(
            [
                _text(s["name"]),
                _number(s["step_ms"], "%.1f ms"),
                between,
                limit + _number(s["speedup"], "%.2fx"),
                _text(s.get("confidence")),
            ]
        )
        colour = "#8a8f98" if i == 0 else "#2f6fde"
        bars.append((s["name"], "%.1f ms" % s["step_ms"], 0, s["step_ms"], low, high, colour))
    out = _table(["scenario", "step time", "90 % interval", "speed-up", "confidence"], rows)
    out += _bars(bars, "step time of each scenario")
    if result.causes:
        out += "<p>%s: where the time goes</p>" % _text(result.main["name"])
        out += _bars(_waterfall(result), "causes of " + result.main["name"])
    return out


def _waterfall(result):
    at = result.baseline_ms
    rows = [("baseline", "%.1f ms" % at, 0, at, None, None, "#8a8f98")]
    causes = [c for c in result.causes if c["delta_ms"] != 0]
    causes.sort(key=lambda c: -abs(c["delta_ms"]))
    rest = sum(c["delta_ms"] for c in causes[_CAUSES:])
    steps = [(c["what"], c["delta_ms"]) for c in causes[:_CAUSES]]
    if len(causes) > _CAUSES:
        steps.append(("[%d others]" % (len(causes) - _CAUSES), rest))
    for what, delta in steps:
        colour = "#2e9e5b" if delta <= 0 else "#d2552d"
        ends = min(at, at + delta), max(at, at + delta)
        rows.append((what, "%+.2f ms" % delta, *ends, None, None, colour))
        at += delta
    name, step = result.main["name"], result.step_ms
    rows.append((name, "%.1f ms" % step, 0, step, None, None, "#2f6fde"))
    return rows


def frame_html(frame):
    rows = frame.rows()
    cells = [map(_text, row.values()) for row in rows[:_MOST_ROWS]]
    out = _table([_text(name) for name in frame], cells)
    more = len(rows) - _MOST_ROWS
    return out + ("<p>and %d more rows</p>" % more if more > 0 else "")


def trace_html(trace):
    error = trace.replay_error_pct
    facts = [
        ("file", trace.path),
        ("device", trace.device or "not named"),
        ("steps that count", trace.steps),
        ("ranks, played together", len(trace.facts.get("ranks", {}).get("recorded", []))),
        ("step", "%.1f ms" % trace.step_ms),
        ("replay check", "no step" if error is None else "%+.1f %%" % error),
    ]
    facts = [fact for fact in facts if fact[1] not in (None, 0)]
    facts += [("finding", finding["text"]) for finding in trace.findings]
    return _table(["", ""], [[_text(a), _text(b)] for a, b in facts])
