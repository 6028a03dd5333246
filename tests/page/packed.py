"""What `daydream report` packs into a page, unpacked again by code that shares nothing with the page's."""

import base64
import gzip
import json
import re


def blocks(page):
    """The JSON in a page, by id."""
    pattern = r'<script type="application/json" id="([a-z-]+)">(.*?)</script>'
    return {name: json.loads(text) for name, text in re.findall(pattern, page, re.S)}


def cut(name):
    """As the timelines have it: 200 characters, the middle left out of longer ones."""
    return name if len(name) <= 200 else name[:99] + "..." + name[-98:]


def unpacked(base64_text):
    return gzip.decompress(base64.b64decode(base64_text))


def slices_of(timeline):
    """[side, title, [(begin, end, name, tasks, cause)]] of every row, as report/html/timeline_block.h packs them."""
    data, text = iter(unpacked(timeline["data"])), json.loads(unpacked(timeline["text"]))

    def number():
        value, shift = 0, 0
        for byte in data:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
        raise AssertionError("the data ends in the middle of a number")

    def signed(code):
        return -(code + 1) // 2 if code % 2 else code // 2

    rows = []
    for side in timeline["sides"]:
        for row in side["rows"]:
            count = row["slices"]
            old = rows[row["like"]][2] if "like" in row else None
            places = [number() for _ in range(count)] if old is not None else [0] * count
            gaps, lengths, names, more, causes = ([number() for _ in range(count)] for _ in range(5))
            at, expected, found = 0, 0, []
            for i in range(count):
                pause, length, name = signed(gaps[i]), signed(lengths[i]), names[i]
                if places[i]:
                    was = expected + signed(places[i] - 1)
                    expected = was + 1
                    begin, end, named = old[was][:3]
                    pause += begin - (old[was - 1][1] if was else 0)
                    length += end - begin
                    name = name - 1 if name else named
                begin = at + pause
                at = begin + length
                found.append((begin, at, name, more[i] + 1, causes[i]))
            rows.append((side["name"].split(":")[0], row["title"], found))
    assert next(data, None) is None
    strings, named = text["strings"], text["names"][0]
    return [(side, title, [(b, e, strings[named[n]], t, c) for b, e, n, t, c in found])
            for side, title, found in rows]
