// Where hosts and links go on the map. Regions stand on a ring, since nothing says where on earth they are.
import { known } from "../format";
import { append, extent } from "../model";
import type { NetworkLink, Num } from "../results";
import { textWidth } from "./labels";

export interface Host {
  name: string;
  region: string;
  /** Written into its dot: the stage that it holds, or how many workers sit there. */
  mark: string;
  /** Stages that it holds, from 0; empty: there is no placement. */
  stages: number[];
  words: string;
}

export interface Wire extends NetworkLink {
  /** What flows: "activations", "gradients"; empty: not told apart. */
  kind: string;
}

export interface Dot {
  host: number;
  x: number;
  y: number;
}

export interface Cluster {
  name: string;
  x: number;
  y: number;
  r: number;
  hosts: number[];
  /** Where its name stands, and how it is aligned. */
  label: { x: number; y: number; anchor: "start" | "middle" | "end" };
}

/** One line of the drawing: a link, or all links from one region to another. */
export interface Line {
  key: string;
  wires: Wire[];
  /** Of clusters where links are bundled, else of hosts. */
  from: number;
  to: number;
  bytes: Num;
  busy: Num;
  /** It stands for both directions. */
  both: boolean;
  path: string;
  middle: { x: number; y: number };
  /** Where it ends, and which way it points there, in degrees. */
  end: { x: number; y: number; angle: number };
}

export interface MapLayout {
  width: number;
  height: number;
  dot: number;
  dots: Dot[];
  clusters: Cluster[];
  bundled: boolean;
  lines: Line[];
  /** Links between hosts of one region, where links are bundled. */
  inside: Map<number, Wire[]>;
}

/** With more hosts than this, links are drawn from region to region. */
export const manyHosts = 16;

/** Or with more lines than this between regions. */
const mostLines = 24;

export function sum(values: Num[]): Num {
  const all = values.filter(known);
  return all.length === 0 ? null : all.reduce((a, b) => a + b, 0);
}

export function most(values: Num[]): Num {
  const all = values.filter(known);
  return all.length === 0 ? null : extent(all)[1];
}

/** Places of `count` dots within a circle, about the origin, one unit apart: rings about one in the middle. */
function packed(count: number): [number, number][] {
  if (count === 1) return [[0, 0]];
  const places: [number, number][] = count > 5 ? [[0, 0]] : [];
  for (let ring = 1; places.length < count; ++ring) {
    const left = count - places.length;
    const here = left <= 7.5 * ring ? left : 6 * ring; // rather a wider last ring than a lonely dot outside
    const r = Math.max(count > 5 ? ring : 0, 0.5 / Math.sin(Math.PI / Math.max(2, here)));
    for (let i = 0; i < here; ++i) {
      const angle = -Math.PI / 2 + (i * 2 * Math.PI) / here;
      places.push([r * Math.cos(angle), r * Math.sin(angle)]);
    }
  }
  return places;
}

/** A curve that keeps to its right, so that both directions are seen, and ends at the rims. */
function curve(a: { x: number; y: number; r: number }, b: { x: number; y: number; r: number }, straight: boolean): Pick<Line, "path" | "middle" | "end"> {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const far = Math.hypot(dx, dy) || 1;
  const bend = straight ? 0 : Math.min(40, far * 0.12);
  const [cx, cy] = [(a.x + b.x) / 2 - (dy / far) * bend, (a.y + b.y) / 2 + (dx / far) * bend];
  const towards = (p: { x: number; y: number; r: number }) => {
    const d = Math.hypot(cx - p.x, cy - p.y) || 1;
    return [p.x + ((cx - p.x) / d) * p.r, p.y + ((cy - p.y) / d) * p.r] as const;
  };
  const [x0, y0] = towards(a);
  const [x1, y1] = towards(b);
  return {
    path: `M${x0.toFixed(1)},${y0.toFixed(1)}Q${cx.toFixed(1)},${cy.toFixed(1)} ${x1.toFixed(1)},${y1.toFixed(1)}`,
    middle: { x: (x0 + 2 * cx + x1) / 4, y: (y0 + 2 * cy + y1) / 4 },
    end: { x: x1, y: y1, angle: (Math.atan2(y1 - cy, x1 - cx) * 180) / Math.PI },
  };
}

export function layMap(hosts: Host[], wires: Wire[], width: number): MapLayout {
  const regions = new Map<string, number[]>();
  hosts.forEach((host, i) => append(regions, host.region, i));
  // Of one region its hosts are the ring.
  const groups = regions.size > 1 ? [...regions] : hosts.map((host, i): [string, number[]] => [host.name, [i]]);
  const regionOf = (host: number) => hosts[host]?.region;
  const crossing = wires.filter((wire) => regionOf(wire.from) !== regionOf(wire.to)).length;
  const bundled = regions.size > 1 && regions.size < hosts.length && (hosts.length > manyHosts || crossing > mostLines);
  const crowded = regions.size === 1 && hosts.length > manyHosts; // then their numbers are names enough
  const narrow = width < 560;
  const dot = hosts.length > 40 ? (narrow ? 7 : 9) : narrow ? 9 : 12;
  const gap = dot * 2 + (bundled || hosts.length > manyHosts ? 4 : 14);
  const places = groups.map(([, members]) => packed(members.length));
  const rim = crowded ? 0 : 7;
  const radii = places.map((list) => Math.max(...list.map(([x, y]) => Math.hypot(x, y))) * gap + dot + rim);
  const widest = Math.max(...radii);
  const around = radii.reduce((all, r) => all + 2 * r + (crowded ? 5 : narrow ? 10 : 22), 0);
  const names = groups.map(([name]) => (crowded ? 0 : textWidth(name, 13, 600)));
  // Names to the left and right need their width, unless the drawing is narrow: then they stand above.
  const side = narrow ? 4 : Math.min(width * 0.2, Math.max(...names) + 10);
  const acrossMost = Math.max(40, width / 2 - widest - side);
  const wanted = Math.max(around / (2 * Math.PI), groups.length === 2 ? 130 : 110);
  const rx = Math.min(acrossMost, Math.max(crowded ? wanted : wanted * 1.25, narrow ? 0 : Math.min(290, width * 0.24)));
  const ry = groups.length === 2 ? 0 : Math.max(narrow ? wanted * 1.45 : wanted, Math.min(165, width * 0.15), 110);
  const cx = width / 2;

  const clusters = groups.map(([name, members], i): Cluster => {
    const angle = groups.length === 2 ? Math.PI * (1 - i) : -Math.PI / 2 + (i * 2 * Math.PI) / groups.length;
    const alone = groups.length === 1;
    const [x, y] = alone ? [cx, 0] : [cx + rx * Math.cos(angle), ry * Math.sin(angle)];
    const r = radii[i] ?? dot;
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    const sideways = !narrow && Math.abs(c) > 0.3;
    const label = sideways
      ? { x: x + Math.sign(c) * (r + 7), y, anchor: c > 0 ? ("start" as const) : ("end" as const) }
      : { x, y: s > 0.01 ? y + r + 14 : y - r - 10, anchor: "middle" as const };
    return { name: crowded ? "" : name, x, y, r, hosts: members, label };
  });
  if (crowded) clusters.push({ name: hosts[0]?.region ?? "", x: cx, y: 0, r: 0, hosts: [], label: { x: cx, y: 0, anchor: "middle" } });
  const [lowest, highest] = extent(clusters.flatMap(({ y, r, label }) => [y - r - 4, y + r + 4, label.y - 12, label.y + 12]));
  for (const cluster of clusters) {
    cluster.y -= lowest;
    cluster.label.y -= lowest;
  }
  const height = highest - lowest;
  // A name that leaves the drawing is moved back in.
  clusters.forEach(({ label, name }) => {
    const wide = textWidth(name, 13, 600);
    const left = label.anchor === "start" ? label.x : label.anchor === "end" ? label.x - wide : label.x - wide / 2;
    if (left < 2) label.x += 2 - left;
    if (left + wide > width - 2) label.x -= left + wide - width + 2;
  });

  const dots: Dot[] = [];
  clusters.forEach(({ x, y, hosts: members }, k) => members.forEach((host, i) => {
    const [px, py] = places[k]?.[i] ?? [0, 0];
    dots[host] = { host, x: x + px * gap, y: y + py * gap };
  }));

  const clusterOf = new Map(clusters.flatMap(({ hosts: members }, k) => members.map((host) => [host, k] as const)));
  const inside = new Map<number, Wire[]>();
  const lines = new Map<string, Line>();
  for (const wire of wires) {
    if (wire.from === wire.to || !dots[wire.from] || !dots[wire.to]) continue;
    const [a, b] = [clusterOf.get(wire.from) ?? 0, clusterOf.get(wire.to) ?? 0];
    if (bundled && a === b) {
      append(inside, a, wire);
      continue;
    }
    const ends = bundled ? [a, b] : [wire.from, wire.to];
    const both = wire.kind === "gradients"; // they go both ways, and alike
    const [from = 0, to = 0] = both ? ends.sort((one, other) => one - other) : ends;
    const key = `${from}-${to}-${wire.kind}`;
    const line = lines.get(key);
    if (line) {
      line.wires.push(wire);
      continue;
    }
    const at = (i: number) => (bundled ? clusters[i] : dots[i] && { ...dots[i], r: dot + 2 });
    const [start, end] = [at(from), at(to)];
    if (start && end) lines.set(key, { key, wires: [wire], from, to, bytes: null, busy: null, both, ...curve(start, end, both) });
  }
  for (const line of lines.values()) {
    line.bytes = sum(line.wires.map((wire) => wire.bytes));
    line.busy = most(line.wires.map((wire) => wire.busy));
  }
  return { width, height, dot, dots, clusters, bundled, lines: [...lines.values()], inside };
}
