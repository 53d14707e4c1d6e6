// What the page computes from the results: who is shown, in which order, and mean curves.
import { known } from "./format";
import { emptyMeasure, type Arm, type Measure, type Num, type Results, type Run } from "./results";

export interface Model {
  results: Results;
  arms: Arm[];
  arm: Map<string, Arm>;
  run: Map<string, Run>;
  runsOf: (arm: Arm) => Run[];
  baseline: Arm | null;
  /** What an arm is judged by; of a run that belongs to no arm, a plain number. */
  measureOf: (arm: Arm | undefined) => Measure;
  /** Whether it can stand on the axis of the others. */
  onAxis: (arm: Arm) => boolean;
  /** Arms that passed their checks and have a figure, the winner and its rivals first. */
  shown: Arm[];
  /** What a speed-up of 1 is: "one worker", or the baseline's name. */
  unit: string;
}

export function modelOf(results: Results): Model {
  const arm = new Map(results.arms.map((each) => [each.id, each]));
  const run = new Map(results.runs.map((each) => [each.id, each]));
  const baseline = (results.baseline !== null && arm.get(results.baseline)) || null;
  const speedOne = arm.get(results.arms.find((each) => each.speed_against)?.speed_against ?? "") ?? baseline;
  const first = new Set([results.advice.arm, ...results.advice.rivals, results.baseline]);
  const rank = (each: Arm) => (first.has(each.id) ? 0 : each.pareto ? 1 : 2);
  const shown = results.arms
    .filter((each) => !each.excluded && (each.ms !== null || each.quality !== null || each.state === "running"))
    .sort((a, b) => rank(a) - rank(b) || (b.speedup?.mean ?? 0) - (a.speedup?.mean ?? 0));
  const measureOf = (each: Arm | undefined) => (each === undefined ? emptyMeasure : (each.measure?.name ? each.measure : results.measure));
  return {
    results,
    measureOf,
    onAxis: (each) => measureOf(each).name === results.measure.name,
    arms: results.arms,
    arm,
    run,
    runsOf: (each) => each.runs.flatMap((id) => run.get(id) ?? []),
    baseline,
    shown,
    unit: speedOne === null || speedOne.workers === 1 ? "one worker" : speedOne.name,
  };
}

/** What is shown, fastest first. */
export function bySpeed(model: Model): Arm[] {
  return [...model.shown].sort((a, b) => (b.speedup?.mean ?? 0) - (a.speedup?.mean ?? 0));
}

/** The least and the greatest; of thousands, where Math.min(...values) would overflow the stack. */
export function extent(values: Iterable<number>): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

/** Adds to the list that a map keeps under a key. */
export function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

export interface Line {
  x: number[];
  y: number[];
}

/** The points of which both numbers are known, by rising x. */
export function lineOf(xs: Num[] | undefined, ys: Num[] | undefined): Line {
  const line: Line = { x: [], y: [] };
  for (let i = 0; i < Math.min(xs?.length ?? 0, ys?.length ?? 0); ++i) {
    const x = xs?.[i];
    const y = ys?.[i];
    if (known(x) && known(y) && x >= (line.x.at(-1) ?? -Infinity)) {
      line.x.push(x);
      line.y.push(y);
    }
  }
  return line;
}

function at(line: Line, x: number): number {
  const above = line.x.findIndex((each) => each >= x);
  if (above <= 0) return line.y[Math.max(above, 0)] ?? NaN;
  const [x0, x1] = [line.x[above - 1] ?? 0, line.x[above] ?? 0];
  const [y0, y1] = [line.y[above - 1] ?? 0, line.y[above] ?? 0];
  return x1 === x0 ? y1 : y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

/** The mean over seeds, only where every one of them has been: a mean of fewer would jump where one ends. */
export function meanLine(lines: Line[], points = 80): Line {
  const full = lines.filter((line) => line.x.length > 0);
  const first = full[0];
  if (!first) return { x: [], y: [] };
  if (full.length === 1) return first;
  const alike = full.every((line) => line.x.length === first.x.length && line.x.every((x, i) => x === first.x[i]));
  const from = Math.max(...full.map((line) => line.x[0] ?? 0));
  const to = Math.min(...full.map((line) => line.x.at(-1) ?? 0));
  const x = alike
    ? first.x
    : Array.from({ length: points }, (_, i) => from + ((to - from) * i) / (points - 1)).filter((v) => v <= to);
  return { x, y: x.map((v) => full.reduce((sum, line) => sum + at(line, v), 0) / full.length) };
}

/** A running mean about each point; its window is a twelfth of the line, and half as wide at the ends. */
export function smoothed(line: Line): Line {
  const half = Math.floor(line.y.length / 24);
  const sums = [0];
  for (const value of line.y) sums.push((sums.at(-1) ?? 0) + value);
  return {
    x: line.x,
    y: line.y.map((_, i) => {
      const from = Math.max(0, i - half);
      const to = Math.min(line.y.length, i + half + 1);
      return ((sums[to] ?? 0) - (sums[from] ?? 0)) / (to - from);
    }),
  };
}
