// Few ticks, a light grid, and the unit in words.
import { extent } from "../model";
import type { Measure } from "../results";

export interface Scale {
  (x: number): number;
  ticks: (count: number) => number[];
}

interface XProps {
  scale: Scale;
  top: number;
  bottom: number;
  count: number;
  format: (x: number) => string;
  label?: string;
  grid?: boolean;
  left: number;
  right: number;
}

/** On a logarithmic scale d3 gives far more ticks than asked for. */
function thin(values: number[], count: number): number[] {
  const every = Math.ceil(values.length / (count + 2));
  return every <= 1 ? values : values.filter((_, i) => i % every === 0);
}

export function XAxis({ scale, top, bottom, count, format, label, grid = true, left, right }: XProps) {
  return (
    <g class="axis" aria-hidden="true">
      {thin(scale.ticks(count), count).map((tick) => (
        <g key={tick} transform={`translate(${scale(tick)},0)`}>
          {grid && <line class="grid" y1={top} y2={bottom} />}
          <text y={bottom + 16} text-anchor="middle">{format(tick)}</text>
        </g>
      ))}
      {label && <text class="axis-label" x={right} y={bottom + 34} text-anchor="end">{label}</text>}
      <line class="base" x1={left} x2={right} y1={bottom} y2={bottom} />
    </g>
  );
}

interface YProps {
  scale: Scale;
  left: number;
  right: number;
  count: number;
  format: (y: number) => string;
  label?: string;
  top: number;
}

export function YAxis({ scale, left, right, count, format, label, top }: YProps) {
  return (
    <g class="axis" aria-hidden="true">
      {thin(scale.ticks(count), count).map((tick) => (
        <g key={tick} transform={`translate(0,${scale(tick)})`}>
          <line class="grid" x1={left} x2={right} />
          <text x={left - 6} dy="0.32em" text-anchor="end">{format(tick)}</text>
        </g>
      ))}
      {label && <text class="axis-label" x={left - 6} y={top - 10} text-anchor="start" dx={-left + 10}>{label}</text>}
    </g>
  );
}

/** The extent of the values with a little air, and at least as wide as `least`. */
export function padded(values: number[], air = 0.08, least = 0): [number, number] {
  if (values.length === 0) return [0, 1];
  const [low, high] = extent(values);
  const wide = Math.max(high - low, least, Math.abs(high) * 1e-6, 1e-9);
  const [middle, half] = [(low + high) / 2, wide * (0.5 + air)];
  return [middle - half, middle + half];
}

/** Fractions of a point are rarely worth a look: an axis of quality spans at least this much. */
export function leastSpan(measure: Measure, values: number[]): number {
  return measure.percent ? 0.02 : 0.02 * Math.max(0, extent(values.map(Math.abs))[1]);
}
