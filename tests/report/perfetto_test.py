"""What Perfetto itself reads of `daydream export --to perfetto`.

Arguments: the program, the folder of the sources. The definitions of the format come from the
package `perfetto` of PyPI; SQL needs trace_processor, which that package fetches at its first use,
or a trace_processor_shell on PATH. What is not there is skipped, saying so; the exit code is then 77.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
RANK = os.path.join(SOURCE, "examples", "two-ranks-synthetic", "rank0.json")

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
except ImportError:
    print("skipped: no package perfetto (pip install perfetto)")
    sys.exit(77)


def trace_processor(trace):
    """A TraceProcessor, or None where there is no program for it."""
    shell = shutil.which("trace_processor_shell")
    try:
        return TraceProcessor(trace=trace, config=TraceProcessorConfig(bin_path=shell))
    except Exception as error:  # whatever a machine without a network makes of a download
        print("no trace_processor:", str(error).split("\n")[0][:200])
        return None


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

    @classmethod
    def tearDownClass(cls):
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
        self.assertEqual(list(sides.values()), ["before: replayed", "after: amp"])
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

    def test_sql_finds_slices_and_counters(self):
        processor = trace_processor(self.path)
        if processor is None:
            self.skipTest("no trace_processor")
        with processor:
            ask = lambda sql: [vars(row) for row in processor.query(sql)]
            (row,) = ask("select count(*) as n, sum(dur) as ns from slice where name like '%nccl%'")
            self.assertGreater(row["n"], 0)
            self.assertGreater(row["ns"], 0)
            (row,) = ask("select count(*) as n from flow")
            self.assertGreater(row["n"], 0)
            names = [row["name"] for row in ask("select name from counter_track order by name")]
            self.assertEqual(names.count("GPU 0 busy"), 2)
            busy = "counter_track.name = 'GPU 0 busy'"
            join = "from counter join counter_track on counter.track_id = counter_track.id"
            (row,) = ask("select max(value) as most, min(value) as least %s where %s" % (join, busy))
            self.assertEqual((row["most"], row["least"]), (1, 0))


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
