// Where everything of the picture goes: scales, points, and names that do not overlap.
import { scaleLinear, scaleLog } from "d3-scale";
import { known } from "../format";
import { extent, type Model } from "../model";
import type { Arm, Estimate } from "../results";
import { networkName } from "../words";
import { leastSpan, padded, type Scale } from "./axes";
import { placeLabels, shorten, textWidth, type Box, type Placed } from "./labels";

/** Above this many arms only those that matter are named and stopped at; all are drawn, and all are in the table. */
export const manyArms = 60;

type Range = [number, number];

/** What is plotted against what, whatever the width. */
export interface Plot {
  /** Without a speed-up, examples per second. */
  bySpeedup: boolean;
  across: (arm: Arm) => Estimate | null;
  arms: Arm[];
  excluded: Arm[];
  x: Range;
  y: Range;
  log: boolean;
  /** Arms whose interval is wider than the picture. */
  cut: number;
}

function points(estimate: Estimate | null): number[] {
  return estimate ? [...estimate.values, estimate.mean].filter(known) : [];
}

function interval(estimate: Estimate | null): number[] {
  return estimate ? [estimate.low, estimate.high].filter(known) : [];
}

/** Every point lies inside. Intervals may widen the range, but not so much that the points become one: of two seeds an
 * interval is often many times as wide as their distance. */
function rangeOf(dots: number[], intervals: number[], least: number): Range {
  const [low, high] = padded(dots, 0.12, least);
  const room = (high - low) * 0.5;
  const [lowest, highest] = extent(intervals);
  return [Math.min(low, Math.max(lowest, low - room)), Math.max(high, Math.min(highest, high + room))];
}

export function plotOf(model: Model): Plot | null {
  const { measure } = model.results;
  const bySpeedup = model.arms.some((arm) => known(arm.speedup?.mean));
  const across = bySpeedup ? (arm: Arm) => arm.speedup : (arm: Arm) => arm.examples_per_s;
  const arms = model.arms.filter((arm) => model.onAxis(arm) && known(arm.quality?.mean) && known(across(arm)?.mean));
  if (arms.length === 0) return null;
  const honest = arms.filter((arm) => !arm.excluded);
  const base = honest.length > 0 ? honest : arms; // what failed a check must not stretch the scale

  const ys = base.flatMap((arm) => points(arm.quality));
  const [low, high] = rangeOf(ys, base.flatMap((arm) => interval(arm.quality)), leastSpan(measure, ys));
  const y: Range = measure.percent ? [Math.max(0, low), Math.min(1, high)] : [low, high];
  const xs = base.flatMap((arm) => points(across(arm))).filter((each) => each > 0);
  const [least, most] = extent(xs);
  const log = most / least > 14;
  const right = Math.max(rangeOf(xs, base.flatMap((arm) => interval(across(arm))), 0)[1], bySpeedup ? 1.1 : 0);
  const x: Range = log ? [Math.min(least, 1) * 0.8, most * 1.25] : [0, right];
  const outside = ([from, to]: Range, values: number[]) => values.some((each) => each < from || each > to);
  const cut = base.filter((arm) => outside(y, interval(arm.quality)) || outside(x, interval(across(arm)))).length;
  return { bySpeedup, across, arms, excluded: arms.filter((arm) => arm.excluded), x, y, log, cut };
}

export interface Spot {
  arm: Arm;
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  narrow: boolean;
  frame: Box;
  x: Scale;
  y: Scale;
  /** What nothing else beats, from left to right; on each network its own. */
  fronts: Spot[][];
  /** Drawn in full, the most important first. */
  named: Spot[];
  /** The rest of many. */
  quiet: Spot[];
  names: (Placed & { arm: Arm; text: string; width: number; weight: number })[];
  /** Named ones that found no place for their name: they have a number. */
  nameless: Spot[];
}

const margin = { top: 34, right: 14, bottom: 46 };

export function layoutOf(plot: Plot, model: Model, width: number): Layout {
  const { measure, advice, baseline } = model.results;
  const narrow = width < 520;
  const left = narrow ? 40 : 50;
  const height = Math.round(Math.max(340, Math.min(540, width * 0.66)));
  const frame: Box = { x: left, y: margin.top, width: width - left - margin.right, height: height - margin.top - margin.bottom };
  const right = frame.x + frame.width;
  const bottom = frame.y + frame.height;
  const x = (plot.log ? scaleLog() : scaleLinear()).domain(plot.x).range([left, right]).clamp(true);
  const y = scaleLinear().domain(plot.y).range(measure.higher_is_better ? [bottom, frame.y] : [frame.y, bottom]).clamp(true);

  const spots = plot.arms.map((arm): Spot => ({ arm, x: x(plot.across(arm)?.mean ?? 0), y: y(arm.quality?.mean ?? 0) }));
  const spokenOf = new Set([...advice.rivals, baseline]);
  const rank = ({ arm }: Spot) => (arm.id === advice.arm ? 0 : spokenOf.has(arm.id) ? 1 : arm.pareto ? 2 : arm.excluded ? 4 : 3);
  const many = spots.length > manyArms;
  const named = spots.filter((spot) => !many || rank(spot) < 3).sort((a, b) => rank(a) - rank(b)).slice(0, manyArms);
  const inNamed = new Set(named);

  const off = ({ arm }: Spot) => {
    const [q, s] = [arm.quality?.mean ?? 0, plot.across(arm)?.mean ?? 0];
    return q < plot.y[0] || q > plot.y[1] || s < plot.x[0] || s > plot.x[1];
  };
  const wanted = named.map((spot) => {
    const text = shorten(spot.arm.name, narrow ? 22 : 34) + (spot.arm.excluded && off(spot) ? " (off the scale)" : "");
    const weight = spot.arm.id === advice.arm ? 700 : 400;
    return { ...spot, key: spot.arm.id, text, weight, width: textWidth(text, 13, weight) };
  });
  const taken = named.flatMap((spot) => boxesOf(spot, plot, x, y, !many));
  if (plot.bySpeedup) taken.push({ x: x(1) + 2, y: bottom - 18, width: textWidth(model.unit, 12) + 6, height: 16 });
  const placed = placeLabels(wanted, taken, frame, (key) => (narrow && key !== advice.arm ? 32 : 150));
  const byKey = new Map(wanted.map((each) => [each.key, each]));
  const names = placed.flatMap((place) => {
    const of = byKey.get(place.key);
    return of ? [{ ...place, arm: of.arm, text: of.text, width: of.width, weight: of.weight }] : [];
  });
  const hasName = new Set(names.map(({ key }) => key));
  return {
    width, height, narrow, frame, x, y, named, names,
    fronts: frontsOf(spots),
    quiet: spots.filter((spot) => !inNamed.has(spot)),
    nameless: named.filter(({ arm }) => !hasName.has(arm.id)),
  };
}

function frontsOf(spots: Spot[]): Spot[][] {
  const front = spots.filter(({ arm }) => arm.pareto && !arm.excluded).sort((a, b) => a.x - b.x);
  const networks = [...new Set(front.filter(({ arm }) => arm.workers > 1).map(({ arm }) => networkName(arm)))];
  if (networks.length < 2) return [front];
  return networks.map((name) => front.filter(({ arm }) => arm.workers === 1 || networkName(arm) === name));
}

/** What of an arm a name must not cover. */
function boxesOf({ arm, x: cx, y: cy }: Spot, plot: Plot, x: Scale, y: Scale, all: boolean): Box[] {
  const boxes: Box[] = [{ x: cx - 8, y: cy - 8, width: 16, height: 16 }];
  if (!all || arm.excluded) return boxes;
  const s = plot.across(arm);
  const q = arm.quality;
  if (q && known(q.low) && known(q.high)) {
    const [top, bottom] = extent([y(q.low), y(q.high)]);
    boxes.push({ x: cx - 1, y: top, width: 2, height: bottom - top });
  }
  if (s && known(s.low) && known(s.high)) boxes.push({ x: x(s.low), y: cy - 1, width: x(s.high) - x(s.low), height: 2 });
  q?.values.forEach((value, i) => {
    const along = s?.values[i];
    if (known(value) && known(along)) boxes.push({ x: x(along) - 3, y: y(value) - 3, width: 6, height: 6 });
  });
  return boxes;
}
