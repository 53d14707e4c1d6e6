// results.json, as the program writes it (docs/formats/results.md). Numbers are raw; null means unknown.

export type Num = number | null;

/** The values of an arm's runs, in the order of `Arm.runs`, and their mean with a 95 % interval. */
export interface Estimate {
  values: Num[];
  mean: Num;
  sd: Num;
  low: Num;
  high: Num;
  n: number;
}

export type Family = "single" | "synchronous" | "local" | "asynchronous" | "compressed" | "pipeline" | "control";
export type State = "planned" | "running" | "done" | "diverged" | "failed" | "killed" | "stopped";

export interface Check {
  code: string;
  ok: boolean;
  text: string;
  differs_by_nature: boolean;
  /** False: nothing was recorded that could be compared. */
  known?: boolean;
}

export interface Flag {
  code: string;
  text: string;
}

export interface Note extends Flag {
  severity: "warning" | "info";
}

export interface Difference {
  mean: Num;
  low: Num;
  high: Num;
  sd: Num;
  n: number;
  decided: boolean;
  /** The runs are bit for bit the same: there is nothing to decide. */
  same?: boolean;
  better: boolean | null;
  seeds_needed: Num;
  against: string;
}

export interface Parts {
  data: Num;
  forward: Num;
  backward: Num;
  compute: Num;
  exchange: Num;
  optimizer: Num;
  hidden: Num;
}

export interface Bytes {
  per_step: Num;
  gradients: Num;
  parameters: Num;
  activations: Num;
  control: Num;
  total_gib: Num;
}

export type Settings = Record<string, unknown>;

export interface Arm {
  id: string;
  name: string;
  family: Family;
  strategy: string;
  codec: string;
  workers: number;
  axes: Record<string, string>;
  settings: Settings;
  state: State;
  runs: string[];
  /** That of its task, where tasks differ. */
  measure?: Measure;
  checks: Check[];
  excluded: boolean;
  flags: Flag[];
  quality: Estimate | null;
  difference: Difference | null;
  quality_at_time: { seconds: Num; estimate: Estimate } | null;
  time_to_target: { estimate: Estimate; reached: number; of: number } | null;
  speedup: Estimate | null;
  /** The arm whose speed is 1. */
  speed_against?: string | null;
  efficiency: Num;
  words: string;
  ms: Estimate | null;
  ms_p50: Num;
  ms_p95: Num;
  parts: Parts | null;
  examples_per_s: Estimate | null;
  train_seconds: Estimate | null;
  seconds_per_epoch: Num;
  examples: Num;
  updates: Num;
  global_batch: Num;
  bytes: Bytes | null;
  bandwidth: { algorithm_gbit: Num; bus_gbit: Num; link_gbit: Num; utilisation: Num } | null;
  peak_memory: Num;
  noise_scale: Num;
  staleness: number[] | null;
  outside_load: Num;
  worker_spread: { low: Num; high: Num } | null;
  price: { value: Num; currency: string } | null;
  pareto: boolean;
  tuning: { best: Num; edge: "low" | "high" | null; values: { value: Num; mean: Num }[] } | null;
}

export interface Progress {
  step: Num;
  of: Num;
  seconds_left: Num;
  losses_by_worker: Num[] | null;
  updates_by_worker: Num[] | null;
  bytes_per_s: Num;
}

export interface Run {
  id: string;
  arm: string;
  seed: Num;
  kind: "row" | "control" | "phase" | "tune";
  folder: string;
  state: State;
  message: string | null;
  settings: Settings;
  quality: Num;
  loss: Num;
  speedup: Num;
  ms: Num;
  examples_per_s: Num;
  train_seconds: Num;
  examples: Num;
  steps: Num;
  bytes_per_step: Num;
  outside_load: Num;
  peak_memory: Num;
  collapsed: boolean;
  reused: boolean;
  parts: Parts | null;
  command: string;
  host: string;
  cpu: string;
  cores: Num;
  threads: Num;
  date: string;
  version: string;
  commit: string;
  start_hash: string;
  data_hash: string;
  curve: { examples: Num[]; seconds: Num[]; loss: Num[] } | null;
  evals: { examples: Num[]; seconds: Num[]; quality: Num[]; split: string } | null;
  progress: Progress | null;
}

export interface Measure {
  name: string;
  label: string;
  percent: boolean;
  higher_is_better: boolean;
  split: string;
}

export interface ScalingPoint {
  arm: string;
  workers: number;
  examples_per_s: Num;
  speedup: Num;
}

export interface Advice {
  verdict: "best" | "undecided" | "none" | "nothing";
  sentence: string;
  paragraph: string;
  arm: string | null;
  rivals: string[];
}

export interface Results {
  format: string;
  title: string;
  file: string;
  made: string;
  program: { version: string; commit: string };
  state: "running" | "finished" | "stopped";
  measure: Measure;
  target: { measure: string; value: number } | null;
  baseline: string | null;
  advice: Advice;
  notes: Note[];
  common: Settings;
  varies: string[];
  arms: Arm[];
  runs: Run[];
  scaling: { strong: ScalingPoint[]; weak: ScalingPoint[] };
  omitted: { curves: number };
}

export const emptyMeasure: Measure = { name: "", label: "quality", percent: false, higher_is_better: true, split: "test" };
const emptyAdvice: Advice = { verdict: "nothing", sentence: "", paragraph: "", arm: null, rivals: [] };

/** Fills in what an older or half-finished file leaves out, so that the rest of the page need not ask. */
export function complete(raw: unknown): Results | null {
  if (typeof raw !== "object" || raw === null) return null;
  const given = raw as Partial<Results>;
  if (!String(given.format ?? "").startsWith("syncopate-results-")) return null;
  const arms = (given.arms ?? []).map((arm) => ({
    ...arm,
    runs: arm.runs ?? [],
    checks: arm.checks ?? [],
    flags: arm.flags ?? [],
    settings: arm.settings ?? {},
    axes: arm.axes ?? {},
    words: arm.words ?? "",
  }));
  return {
    format: given.format ?? "",
    title: given.title ?? "",
    file: given.file ?? "",
    made: given.made ?? "",
    program: given.program ?? { version: "", commit: "" },
    state: given.state ?? "finished",
    measure: { ...emptyMeasure, ...given.measure },
    target: given.target ?? null,
    baseline: given.baseline ?? null,
    advice: { ...emptyAdvice, ...given.advice },
    notes: given.notes ?? [],
    common: given.common ?? {},
    varies: given.varies ?? [],
    arms,
    runs: (given.runs ?? []).map((run) => ({ ...run, settings: run.settings ?? {} })),
    scaling: { strong: given.scaling?.strong ?? [], weak: given.scaling?.weak ?? [] },
    omitted: given.omitted ?? { curves: 0 },
  };
}
