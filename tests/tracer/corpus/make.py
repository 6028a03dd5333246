#!/usr/bin/env python3
"""Makes the buffers of activity records in this folder: one of each kind, as each CUPTI lays them out.

    make.py FOLDER    # with the unpacked packages nvidia-cuda-cupti-cu12 and nvidia-cuda-cupti

How far it is from one record to the next is asked of the library itself
(cuptiActivityGetNextRecord, which needs no GPU and no driver); where fields lie was read off the
headers of CUPTI 12.1 to 13.4. They keep their places; an older record is one cut off. The format is
that of tracer/raw_dump.h.
"""

import ctypes
import glob
import os
import signal
import struct
import subprocess
import sys

# kind, then (offset, format of struct, value, first CUPTI version that has it).
TEXTS = {0x1000: b"_Z3addPf", 0x2000: b"NVIDIA H100"}
T = 5_000_000
RECORDS = [
    (8, [(16, "Q", 85 << 30, 0), (32, "I", 32, 0), (44, "I", 132, 0), (52, "I", 64, 0),
         (104, "I", 9, 0), (112, "I", 1, 0), (136, "Q", 0x2000, 0)]),
    (9, [(4, "I", 2, 0), (8, "I", 1, 0), (14, "H", 7, 0)]),
    (37, [(4, "I", 2, 0), (8, "I", 8, 0), (12, "i", -3, 0), (16, "I", 2, 0)]),
    (10, [(6, "H", 64, 0), (16, "Q", T + 100, 0), (24, "Q", T + 350, 0), (40, "I", 1, 0),
          (44, "I", 2, 0), (48, "I", 7, 0), (52, "III", (10, 11, 12), 0),
          (64, "III", (32, 4, 2), 0), (76, "I", 1000, 0), (80, "I", 24, 0), (92, "I", 99, 0),
          (104, "Q", 0x1000, 0), (144, "Q", 0x100000002, 0), (156, "I", 4, 0),
          (176, "III", (2, 1, 1), 0)]),
    (1, [(4, "BBBB", (1, 1, 3, 0), 0), (8, "Q", 1 << 33, 0), (16, "QQ", (T + 400, T + 500), 0),
         (32, "III", (1, 2, 8), 0), (44, "I", 100, 0)]),
    (22, [(4, "B", 10, 0), (5, "BB", (3, 3), 0), (8, "Q", 77, 0), (16, "QQ", (T + 510, T + 520), 0),
          (32, "III", (1, 2, 8), 0), (44, "I", 1, 0), (52, "I", 3, 0), (60, "I", 101, 0)]),
    (2, [(8, "Q", 4096, 0), (16, "QQ", (T + 530, T + 540), 0), (32, "III", (1, 2, 7), 0),
         (44, "I", 102, 0), (50, "H", 3, 0)]),
    (5, [(4, "I", 211, 0), (8, "QQ", (T + 1, T + 6), 0), (24, "II", (7, 7), 0), (32, "I", 99, 0)]),
    (4, [(4, "I", 277, 0), (8, "QQ", (T + 7, T + 9), 0), (24, "II", (7, 8), 0),
         (32, "II", (107, 700), 0)]),
    (38, [(4, "I", 2, 0), (8, "QQ", (T + 600, T + 610), 0), (24, "I", 104, 0),
          (28, "III", (2, 8, 5), 0), (40, "Q", 1 << 40, 26), (48, "I", 0, 26)]),
    (36, [(4, "IIII", (105, 2, 7, 5), 0), (24, "I", 1, 26), (40, "Q", 123456, 130000),
          (48, "Q", 1 << 40, 26)]),
    (51, [(4, "I", 106, 0), (8, "QQ", (T + 700, T + 800), 0), (24, "IIII", (1, 4, 2, 7), 0)]),
    # "command buffer full": the CUPTI that has them hands over data to be freed, here none.
    (17, [(4, "II", (6 << 16, 2), 0), (12, "II", (7, 7), 0), (24, "QQ", (T + 810, T + 820), 0)]),
]  # fmt: skip


def fill(library):
    """The version of the CUPTI and the bytes of the buffer."""
    cupti = ctypes.CDLL(library)
    version = ctypes.c_uint32()
    if cupti.cuptiGetVersion(ctypes.byref(version)) != 0:
        return None
    out = b""
    for kind, fields in RECORDS:
        size = stride(cupti, kind)
        record = bytearray(size)
        struct.pack_into("<I", record, 0, kind)
        for offset, form, value, since in fields:
            if version.value >= since:
                values = value if isinstance(value, tuple) else (value,)
                struct.pack_into("<" + form, record, offset, *values)
        out += bytes(record)
    buffer = (ctypes.c_uint8 * len(out)).from_buffer_copy(out)
    record, walked = ctypes.c_void_p(0), 0
    while cupti.cuptiActivityGetNextRecord(buffer, ctypes.c_size_t(len(out)),
                                           ctypes.byref(record)) == 0:  # fmt: skip
        walked += 1
    assert walked == len(RECORDS), walked
    return version.value, out


def stride(cupti, kind):
    """From a record of a kind to the next. The library looks at nothing but kinds."""
    buffer = (ctypes.c_uint8 * 4096)()
    for offset in range(0, 4096, 8):
        struct.pack_into("<I", buffer, offset, kind)
    record, places = ctypes.c_void_p(0), []
    for _ in range(2):
        assert cupti.cuptiActivityGetNextRecord(buffer, ctypes.c_size_t(4096),
                                                ctypes.byref(record)) == 0  # fmt: skip
        places.append(record.value)
    return places[1] - places[0]


def block(kind, payload):
    return struct.pack("<IIQ", kind, 0, len(payload)) + payload


def main(folder):
    if os.path.isfile(folder):  # one library, in a process of its own
        made = fill(folder)
        if made is None:
            return print(folder, "says nothing without a driver (13.3 to 13.5 are so)")
        version, buffer = made
        texts = b"".join(struct.pack("<QQ", at, len(t)) + t for at, t in TEXTS.items())
        bytes_ = b"DDCUPTI1" + struct.pack("<II", version, 0) + block(1, texts) + block(2, buffer)
        place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "%d.cuptibuf" % version)
        with open(place, "wb") as file:
            file.write(bytes_)
        print(place, len(bytes_))
        return
    for library in sorted(glob.glob(folder + "/**/libcupti.so.1[0-9]", recursive=True)):
        done = subprocess.run([sys.executable, os.path.abspath(__file__), library])
        if done.returncode == -signal.SIGSEGV:
            print(library, "falls without a driver (13.2 is so)")
        elif done.returncode != 0:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main(sys.argv[1])
