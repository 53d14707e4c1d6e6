// One hue and one shape for each family, so that neither colour nor form alone carries the meaning.
import {
  symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye,
  type SymbolType,
} from "d3-shape";
import type { Family } from "./results";

const hexagon: SymbolType = {
  draw(context, size) {
    const r = Math.sqrt(size / 2.6);
    for (let i = 0; i < 6; ++i) {
      const [x, y] = [r * Math.cos((i * Math.PI) / 3), r * Math.sin((i * Math.PI) / 3)];
      if (i === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    context.closePath();
  },
};

export const families: Record<Family, { label: string; shape: SymbolType }> = {
  single: { label: "one worker", shape: symbolStar },
  synchronous: { label: "synchronous", shape: symbolCircle },
  local: { label: "local", shape: symbolSquare },
  asynchronous: { label: "asynchronous", shape: symbolTriangle },
  compressed: { label: "compressed", shape: symbolDiamond },
  pipeline: { label: "pipeline", shape: symbolCross },
  simulated: { label: "simulated", shape: hexagon },
  control: { label: "control", shape: symbolWye },
};

export function familyOf(name: string): Family {
  return name in families ? (name as Family) : "control";
}

export function shapePath(family: string, size: number): string {
  return symbol(families[familyOf(family)].shape, size)() ?? "";
}

/** A class name, for the colour. */
export function familyClass(family: string): string {
  return `family-${familyOf(family)}`;
}
