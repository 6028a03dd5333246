// What the script of the page is given: JSON of this program, as the headers of report/html/ and tools/output/
// say. No part of the page: `tsc` checks the script against it (tests/page/types_test.py).

type Interval = [number, number] | null;
type ResourceName = "gpu" | "cpu" | "comm" | "data";

interface Cause { what: string; opt: string; delta_ns: number; gpu_ns: number; host_ns: number; }
interface MemoryChange { what: string; bytes: number; estimate: boolean; at_most: boolean; }
interface Failure { code: string; what: string; why?: string; fix?: string; }

interface Explanation { text: string; next_limiter: {what: string; path_ns: number} | null; }

/** A prediction; one that failed has `error` and nulls. */
interface Scenario {
  name: string; opts: string[]; step_ms: number | null; step_ns: number | null; steps_ms?: number[];
  interval_ms: Interval; speedup: number | null; speedup_interval: Interval; bound: boolean;
  confidence: string | null; confidence_why: string; causes: Cause[]; explanation: Explanation | null;
  bound_by: Record<ResourceName, number> | null; memory: MemoryChange[]; memory_change_bytes: number | null;
  peak_memory_bytes: number | null; peak_memory_estimate: boolean; left_out: string[]; unchecked_pct: number | null; steps_per_s: number | null; samples_per_s: number | null; notes: string[];
  warnings: string[]; conditions: string[]; error?: Failure;
}

interface Finding { kind: string; text: string; where: string; fix: string; }

interface WhatIf {
  trace: {file: string; format: string; synthetic: boolean; events: number; input_events: number; device: string;
          step_method: string; steps_left_out: {step: string; why: string}[]};
  steps: number; main: number | null; scenarios: Scenario[]; findings: Finding[]; warnings: string[];
  replay: {measured_ms: number; simulated_ms: number; error_pct: number | null;
           per_step: {step?: string; measured_ns: number; simulated_ns: number}[]; median_ms: number; quartiles_ms: [number, number];
           recording_cost?: {text: string};
           checks?: {worst_pct: number; worst: string; repeated: {worst_step: string; worst_error_pct: number} | null}};
  memory: {source: string} | null;
  measured?: {file: string; scenario: string; step_ms: number; error_pct: number; inside_interval: boolean; misses: any[]};
}

interface RankAccount {
  rank: number; own_step_ms: number; span_ms: number; own_cycle_ms: number; wait_ms: number; transfer_ms: number; exposed_comm_ms: number;
  compute_ms: number; host_ms: number; last: number;
}
interface JointScenario {
  name: string; opts: string[]; step_ms: number | null; step_ns?: number; window_ms: number; step_is: string; step_bound_by: string;
  speedup: number | null; interval_ms: Interval; bound: boolean; ranks_changed?: number; error?: Failure; per_rank: RankAccount[]; waits: {who: number; for: number | null; ms: number}[];
}
interface Joint {
  ranks: {recorded: number[]; check: {duration_error_pct: number; span_error_pct: number; ghosts: number}};
  scenarios: JointScenario[]; main: number | null; findings: Finding[];
}

interface TimelineRow { title: string; slices: number; like?: number; }
interface TimelineData {
  unit_ns: number; merged_below_ns: number; slices: number; causes: {what: string; opt: string; slices: number}[]; text: string;
  sides: {name: string; description: string; windows: [number, number, number][]; rows: TimelineRow[]}[]; data: string;
  // Unpacked from `text`.
  strings?: string[]; classes?: string[]; names?: [number, number, number, number][];
}
/** A row of slices, unpacked; times in units. */
interface Row {
  side: number; title: string; slices: number; begin: Float64Array; end: Float64Array; name: Uint32Array;
  tasks: Uint32Array; cause: Uint32Array; old: Row | null; was: Int32Array; y?: number;
}
interface Slice { row: Row; i: number; }

/** A column of a table: `of` a row, shown by `show`. */
interface Column { title: string; of: (row: any) => any; show?: (value: any, row: any) => string; text?: boolean; }

interface PlotAxis { low: number; high: number; name: string; show: (value: number) => string; log?: boolean; }
interface LabelBox { x: number; y: number; w: number; h: number; }

interface Window { daydreamTimeline: TimelineView; }
declare class DecompressionStream { constructor(format: string); readable: any; writable: any; }
