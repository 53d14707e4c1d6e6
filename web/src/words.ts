// Sentences and names that several places of the page use.
import { compact, difference, halfWidth, known, plural, significant } from "./format";
import type { Arm, Measure, Num, Parts, Run } from "./results";

/** "−0.1 ± 0.4 points", and whether the seeds carry it. */
export function differenceWords(arm: Arm, measure: Measure): string {
  const d = arm.difference;
  if (!d || !known(d.mean)) return "";
  if (d.same) return "the same in every seed";
  const text = `${difference(d.mean, measure)} ${halfWidth(d, measure)}${measure.percent ? " points" : ""}`.trim();
  if (d.decided) return text;
  return known(d.seeds_needed) ? `${text}: undecided, ${plural(d.seeds_needed, "seed")} would tell` : `${text}: undecided`;
}

const flagNames: Record<string, string> = {
  busy: "busy machine",
  collapsed: "collapsed seed",
  "other-updates": "other number of updates",
  "other-batch": "other batch",
  "rate-at-edge": "rate at the edge of its grid",
  diverged: "diverged",
  failed: "failed run",
  "one-seed": "one seed only",
  superlinear: "more than linear",
  slower: "slower than one worker",
  "other-version": "made by another version",
  "side-by-side": "timed side by side",
  undecided: "undecided",
  twins: "two runs of one seed",
  damaged: "a run that cannot be read",
  foreign: "a folder that is no run",
  problems: "what could not be read",
  baseline: "what is compared with",
  "speed-baseline": "what speed-up means",
  "other-host": "another machine",
  "other-start": "other start",
  "ended-early": "ended early",
  "other-precision": "other precision",
  "not-tuned": "rates tuned in some arms only",
  target: "target",
  late: "network emulated late",
  simulated: "simulated, not measured",
  network: "network",
  "other-network": "another network",
  load: "load of the machine",
};

/** "worldwide ÷ 100" where rates were divided. */
export function networkName(of: { network_name: string | null; network_scale: Num }): string | null {
  if (!of.network_name) return null;
  return known(of.network_scale) && of.network_scale !== 1 ? `${of.network_name} ÷ ${compact(of.network_scale)}` : of.network_name;
}

/** "+4.1 %": predicted above measured. */
export function errorText(error: Num | undefined): string {
  if (!known(error)) return "–";
  const text = significant(error * 100, Math.abs(error) < 0.1 ? 2 : 3);
  return `${error > 0 ? "+" : ""}${text} %`;
}

export function flagName(code: string): string {
  return flagNames[code] ?? code.replaceAll("-", " ");
}

const checkNames: Record<string, string> = {
  examples: "examples",
  start: "start",
  evaluation: "evaluation set",
  data: "training data",
  machine: "machine",
  threads: "threads",
  batch: "batch",
  updates: "number of updates",
  selection: "how the model was chosen",
  trained: "whether it trained",
  network: "network",
};

export function checkName(code: string): string {
  return checkNames[code] ?? code.replaceAll("-", " ");
}

export const partNames: [keyof Parts, string][] = [
  ["data", "data"],
  ["forward", "forward"],
  ["backward", "backward"],
  ["compute", "compute"],
  ["exchange", "waiting for exchange"],
  ["optimizer", "optimizer"],
];

/** The parts of a step that do not overlap: compute stands for its parts where those are unknown. */
export function partsOf(parts: Parts | null): { part: string; name: string; ms: number }[] {
  if (!parts) return [];
  const split = known(parts.forward) || known(parts.backward);
  return partNames.flatMap(([part, name]) => {
    const ms = parts[part];
    if (!known(ms) || ms < 0 || (part === "compute" && split)) return [];
    return [{ part, name, ms }];
  });
}

const stateNames: Record<string, string> = {
  planned: "planned",
  running: "running",
  done: "done",
  diverged: "diverged",
  failed: "failed",
  killed: "killed",
  stopped: "stopped",
};

export function stateName(state: string): string {
  return stateNames[state] ?? state;
}

export function runName(run: Run, arm: Arm | undefined): string {
  const seed = known(run.seed) ? `seed ${run.seed}` : "unknown seed";
  const kind = run.kind === "tune" ? "tuning, " : run.kind === "phase" ? "phase, " : "";
  return `${arm?.name ?? run.folder}, ${kind}${seed}`;
}
