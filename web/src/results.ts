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

export type Family = "single" | "synchronous" | "local" | "asynchronous" | "compressed" | "pipeline" | "simulated" | "control";
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

/** One direction between two hosts, by their numbers. */
export interface NetworkLink {
  from: number;
  to: number;
  latency_ms: Num;
  gbit: Num;
  /** Per step, headers included. */
  bytes: Num;
  /** Share of the time in which it sent. */
  busy: Num;
}

export interface Network {
  name: string;
  scale: Num;
  how: string;
  congestion_control: string;
  late_ms_p99: Num;
  trustworthy: boolean;
  hosts: { name: string; region: string }[];
  /** The host of each rank. */
  seats: number[];
  /** Those that carried something. */
  links: NetworkLink[];
}

/** One stage of a pipeline: per step, means over its replicas. Bytes are those that a rank sends. */
export interface Stage {
  ranks: number[];
  blocks: number;
  ms: Num;
  forward_ms: Num;
  backward_ms: Num;
  coding_ms: Num;
  waiting_forward_ms: Num;
  waiting_backward_ms: Num;
  sending_ms: Num;
  exchange_ms: Num;
  optimizer_ms: Num;
  data_ms: Num;
  other_ms: Num;
  /** Share of the step in which it neither computed nor coded. */
  bubble: Num;
  bytes_forward: Num;
  bytes_backward: Num;
  bytes_gradients: Num;
  bytes_tied: Num;
  bits_forward: Num;
  bits_backward: Num;
  error_forward: Num;
  error_backward: Num;
}

export interface Pipeline {
  replicas: number;
  schedule: string;
  micro_batches: number;
  cut: string;
  activation_codec: string;
  coded_evaluations: boolean;
  stages: Stage[];
}

export interface Predicted {
  ms: Num;
  compute_ms: Num;
  exchange_ms: Num;
  hidden_ms: Num;
  bytes_per_step: Num;
  from: string;
  error: Num;
}

export interface PredictionStep {
  ms: Num;
  compute_ms: Num;
  exchange_ms: Num;
  hidden_ms: Num;
}

export interface PredictionPoint {
  series: string;
  name: string;
  family: string;
  network: string | null;
  arm: string | null;
  predicted: PredictionStep;
  measured: PredictionStep;
  error: Num;
  /** Why it does not count. */
  why_not: string | null;
}

export interface PredictionErrors {
  series: string;
  n: number;
  left_out: number;
  within_10: number;
  within_20: number;
  median: Num;
  p90: Num;
  text: string;
}

/** What `plan --out` wrote (docs/formats/placement.md); anything may be missing but the stages. */
export interface Placement {
  file: string;
  stages: number[][];
  network?: string;
  scale?: Num;
  cost_s?: Num;
  data_parallel_s?: Num;
  pipeline_s?: Num;
  compute_s?: Num;
  random_s?: Num;
  region_blind_s?: Num;
  hosts?: unknown;
  devices?: unknown;
  layers?: unknown;
  links?: unknown;
}

export interface AdviceRow {
  name: string;
  family: string;
  workers: Num;
  predicted: PredictionStep & { examples_per_s?: Num; bytes_per_step?: Num; memory?: unknown; price_epoch?: Num };
  measured: (PredictionStep & { examples_per_s?: Num; bytes_per_step?: Num }) | null;
  error: Num;
  /** Why it could not be run. */
  failed?: string;
  worth_it?: boolean;
  why?: string;
}

export interface AdviceCheck {
  network?: string;
  scale?: Num;
  task?: string;
  model?: string;
  global_batch?: Num;
  rows: AdviceRow[];
  best?: Num;
}

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
  network: Network | null;
  network_name: string | null;
  network_scale: Num;
  predicted: Predicted | null;
  /** Null, or missing in results of earlier versions: every worker holds the whole model. */
  pipeline?: Pipeline | null;
  simulated: boolean;
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
  network_name: string | null;
  network_scale: Num;
  predicted: Predicted | null;
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
  predictions: { points: PredictionPoint[]; errors: PredictionErrors[] };
  placements: Placement[];
  advice_check: AdviceCheck | null;
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
    network: arm.network?.hosts?.length ? { ...arm.network, seats: arm.network.seats ?? [], links: arm.network.links ?? [] } : null,
    network_name: arm.network_name ?? arm.network?.name ?? null,
    network_scale: arm.network_scale ?? arm.network?.scale ?? null,
    predicted: arm.predicted ?? null,
    simulated: arm.simulated ?? false,
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
    predictions: { points: given.predictions?.points ?? [], errors: given.predictions?.errors ?? [] },
    placements: given.placements ?? [],
    advice_check: given.advice_check?.rows ? given.advice_check : null,
    omitted: given.omitted ?? { curves: 0 },
  };
}
