// One hue and one shape for each family, so that neither colour nor form alone carries the meaning.
import {
  symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye,
  type SymbolType,
} from "d3-shape";
import type { Family } from "./results";

export const families: Record<Family, { label: string; shape: SymbolType }> = {
  single: { label: "one worker", shape: symbolStar },
  synchronous: { label: "synchronous", shape: symbolCircle },
  local: { label: "local", shape: symbolSquare },
  asynchronous: { label: "asynchronous", shape: symbolTriangle },
  compressed: { label: "compressed", shape: symbolDiamond },
  pipeline: { label: "pipeline", shape: symbolCross },
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
