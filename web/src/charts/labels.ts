// Writes names beside points so that no two texts overlap, and none hides a point.

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Wanted {
  key: string;
  x: number;
  y: number;
  width: number;
}

export interface Placed {
  key: string;
  /** The left end of the text and its middle height. */
  x: number;
  y: number;
  /** Far enough from its point that a line must join them. */
  led: boolean;
}

export const lineHeight = 16;

function overlap(a: Box, b: Box): number {
  const x = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const y = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
  return x > 0 && y > 0 ? x * y : 0;
}

/** Places to try, nearest first: both sides, above and below, then ever further out. */
function* places(point: Wanted, furthest: number): Generator<Placed> {
  const { key, x, y, width } = point;
  yield { key, x: x + 11, y, led: false };
  yield { key, x: x - 11 - width, y, led: false };
  yield { key, x: x - width / 2, y: y - 17, led: false };
  yield { key, x: x - width / 2, y: y + 18, led: false };
  for (const far of [20, 32, 46, 62, 80, 100, 125, 150].filter((each) => each <= furthest)) {
    for (const angle of [-0.6, 0.6, -1.1, 1.1, -2.5, 2.5, -2, 2, 0, Math.PI]) {
      const [dx, dy] = [Math.cos(angle) * far, Math.sin(angle) * far];
      yield { key, x: dx >= 0 ? x + dx + 4 : x + dx - 4 - width, y: y + dy, led: true };
    }
  }
}

/** The places of those that fit into `frame`, in the order given; what finds none is left out. */
export function placeLabels(wanted: Wanted[], taken: Box[], frame: Box, furthest: (key: string) => number): Placed[] {
  const busy = [...taken];
  const placed: Placed[] = [];
  for (const point of wanted) {
    for (const place of places(point, furthest(point.key))) {
      const box = { x: place.x - 2, y: place.y - lineHeight / 2, width: point.width + 4, height: lineHeight };
      const inside = box.x >= frame.x && box.y >= frame.y && box.x + box.width <= frame.x + frame.width &&
        box.y + box.height <= frame.y + frame.height;
      if (!inside || busy.some((other) => overlap(box, other) > 0)) continue;
      busy.push(box);
      placed.push(place);
      break;
    }
  }
  return placed;
}

let canvas: CanvasRenderingContext2D | null = null;

export function textWidth(text: string, size = 13, weight = 400): number {
  canvas ??= document.createElement("canvas").getContext("2d");
  if (!canvas) return text.length * size * 0.6;
  canvas.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return canvas.measureText(text).width;
}

export function shorten(text: string, longest: number): string {
  const letters = [...text];
  return letters.length <= longest ? text : `${letters.slice(0, longest - 1).join("")}…`;
}

/** As much of the text as fits into a width. */
export function fitted(text: string, width: number, size = 13, weight = 400): string {
  const full = textWidth(text, size, weight);
  return full <= width ? text : shorten(text, Math.max(4, Math.floor(([...text].length * width) / full) - 1));
}

/** Moves labels in one column apart: as near to their wish as order and height allow. */
export function dodge(wishes: number[], gap: number, top: number, bottom: number): number[] {
  const order = wishes.map((_, i) => i).sort((a, b) => (wishes[a] ?? 0) - (wishes[b] ?? 0));
  const out = [...wishes];
  let last = top - gap;
  for (const i of order) last = out[i] = Math.max(out[i] ?? 0, last + gap);
  let next = bottom + gap;
  for (const i of order.reverse()) next = out[i] = Math.min(out[i] ?? 0, next - gap);
  return out;
}
