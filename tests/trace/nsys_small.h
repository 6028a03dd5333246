// A small Nsight Systems export, as SQL: two steps of one process on one GPU.
#pragma once

#include <string>

namespace daydream {

// Global ids of process 7 and its thread 8 on the first machine.
inline constexpr const char* kNsysPid = "117440512";
inline constexpr const char* kNsysTid = "117440520";

// `version` is EXPORT_SCHEMA_VERSION; empty: the file does not say.
inline std::string NsysTables(const std::string& version) {
  std::string sql = R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT,
  correlationId INT, nameId INT, returnValue INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT,
  streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName INT,
  mangledName INT, registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT,
  blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT, graphNodeId INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT,
  streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT, srcKind INT,
  dstKind INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId INT,
  contextId INT, streamId INT, correlationId INT, globalPid INT, syncType INT, eventId INT,
  eventSyncId INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INT, contextId INT, streamId INT,
  correlationId INT, globalPid INT, eventId INT, eventSyncId INT);
CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT,
  textId INT, domainId INT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'secret-host-name');
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_ptsz_v7000'),
  (3, 'cudaDeviceSynchronize_v3020'), (4, '_Z4axpyIfEvPT_i'), (5, 'axpy'),
  (6, 'void axpy<float>(T1 *, int)'), (7, 'ncclAllReduce'), (8, 'cudaEventQuery_v3020'),
  (9, 'cudaStreamSynchronize_v3020'), (10, 'cudaEventRecord_v3020'),
  (11, 'cudaStreamWaitEvent_v3020'), (12, 'TOKEN=another-secret');
)";
  if (!version.empty()) {
    sql +=
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '" +
        version + "'), ('EXPORT_USER', 'secret-user');";
  }
  return sql;
}

// A call of the thread: `name` is a row of StringIds.
inline std::string NsysCall(int start, int end, int correlation, int name) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(start) + "," +
         std::to_string(end) + ",1," + kNsysTid + "," + std::to_string(correlation) + "," +
         std::to_string(name) + ",0);";
}

inline std::string NsysKernel(int start, int end, int correlation, int stream = 7) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + "," +
         std::to_string(end) + ",0,1," + std::to_string(stream) + "," +
         std::to_string(correlation) + "," + kNsysPid + ",6,5,4,32,10,1,1,256,1,1,1024,48,NULL);";
}

inline std::string NsysWait(int start, int end, int correlation, int type, long long stream,
                            long long event = 4294967295, long long event_sync = 4294967295) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (" + std::to_string(start) + "," +
         std::to_string(end) + ",0,1," + std::to_string(stream) + "," +
         std::to_string(correlation) + "," + kNsysPid + "," + std::to_string(type) + "," +
         std::to_string(event) + "," + std::to_string(event_sync) + ");";
}

// eventType 59 is a range of a thread.
inline std::string NsysRange(int start, int end, const std::string& text, int type = 59) {
  return "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + "," + std::to_string(end) +
         "," + std::to_string(type) + ",'" + text + "'," + kNsysTid + ",NULL,0);";
}

inline std::string SmallNsys(const std::string& version = "3.16.1") {
  std::string sql = NsysTables(version);
  for (int step = 0; step < 3; ++step) {
    const int t = 1000 + step * 1000, id = 1 + step * 10;
    sql += NsysRange(t, t + 900, "iteration " + std::to_string(step));
    sql += NsysRange(t + 10, t + 200, "encoder.layer0");
    sql += NsysRange(t + 20, t + 190,
                     "aten::linear, seq = " + std::to_string(step) +
                         ", op_id = " + std::to_string(id) +
                         ", sizes = [[8, 16], []], input_op_ids = [(0,-1), (0,0)]");
    sql += NsysCall(t + 30, t + 40, id, 1) + NsysKernel(t + 50, t + 400, id);
    sql += NsysRange(t + 300, t + 350,
                     "aten::relu, op_id = " + std::to_string(id + 1) +
                         ", sizes = [[8, 16]], input_op_ids = [(" + std::to_string(id) + ",0)]");
    sql +=
        NsysCall(t + 500, t + 600, id + 2, 3) + NsysWait(t + 500, t + 600, id + 2, 1, 4294967295);
  }
  return sql;
}

}  // namespace daydream
