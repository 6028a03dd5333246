"""The picture of growth.py's rows: a panel for each axis, both scales in powers of ten."""

import math

PANELS = [
    ("events", "CPU time by events of a recording"),
    ("lanes", "by streams, of 240,000 events"),
    ("scenarios", "by scenarios of a sweep, of 100,000 events"),
    ("ranks", "by ranks: recorded ones, and one scaled to them"),
]
SAME_PANEL = {"scaled": "ranks"}
COLOURS = {
    "light": dict(text="#1c2128", grid="#d8dde3", lines=["#2763a5", "#2c8a4b", "#c4462f", "#7d4fa8"]),
    "dark": dict(text="#e6eaf0", grid="#3a424d", lines=["#6fa8e8", "#63c184", "#ee8372", "#bb93e0"]),
}
# Of COLOURS: the same question has the same one in each panel.
LINE = {"import": 0, "whatif": 1, "whatif --opt amp,fuse": 2, "advise": 3, "sweep": 0, "sweep --no-interval": 2}
LINE |= {"ranks": 0, "whatif of the folder": 1, "scale": 2}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 380, 250, 46, 34, 26, 44  # of a panel, and what is around its lines


def decades(values):
    return math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)


def power(exponent):
    if 0 <= exponent < 6:
        return f"{10**exponent:,}"
    if exponent >= 6:
        return f"{10 ** (exponent - 6)} M"
    return f"{10.0**exponent:g}"


def text(x, y, words, colour, anchor="middle", weight="400"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">{words}</text>'


def panel(rows, title, left, top, colours):
    """Lines of one axis, named beneath the title in their colours."""
    rows = [r for r in rows if r["cpu_s"]]
    names = list(dict.fromkeys(r["what"] for r in rows))
    (x0, x1), (y0, y1) = decades([r["count"] for r in rows]), decades([r["cpu_s"] for r in rows])
    x1, y1 = max(x1, x0 + 1), max(y1, y0 + 1)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(count, seconds):
        across = (math.log10(count) - x0) / (x1 - x0)
        up = (math.log10(seconds) - y0) / (y1 - y0)
        return left + LEFT + across * wide, top + TOP + (1 - up) * high

    out = [text(left + LEFT, top + 14, title, colours["text"], "start", "600")]
    for x in range(x0, x1 + 1):
        at, bottom = place(10**x, 10**y0)
        out.append(f'<path d="M{at:.1f} {top + TOP}V{bottom:.1f}" stroke="{colours["grid"]}"/>')
        out.append(text(at, bottom + 15, power(x), colours["text"]))
    for y in range(y0, y1 + 1):
        right, at = place(10**x1, 10**y)
        out.append(f'<path d="M{left + LEFT} {at:.1f}H{right:.1f}" stroke="{colours["grid"]}"/>')
        out.append(text(left + LEFT - 6, at + 4, f"{power(y)} s", colours["text"], "end"))
    along = left + LEFT
    for name in names:
        colour = colours["lines"][LINE[name]]
        points = [place(r["count"], r["cpu_s"]) for r in rows if r["what"] == name]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        out.append(text(along, top + HEIGHT - 10, name, colour, "start", "600"))
        along += 6.3 * len(name) + 12
    return out


def picture(rows, theme):
    colours = COLOURS[theme]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {2 * HEIGHT}" width="{2 * WIDTH}" '
        f'height="{2 * HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="11">',
        "<title>CPU time of questions by events, streams, scenarios and ranks</title>",
    ]
    for i, (axis, title) in enumerate(PANELS):
        of_axis = [r for r in rows if SAME_PANEL.get(r["axis"], r["axis"]) == axis]
        out += panel(of_axis, title, i % 2 * WIDTH, i // 2 * HEIGHT, colours)
    return "\n".join([*out, "</svg>"]) + "\n"
