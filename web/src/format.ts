// Numbers for people: two to three significant digits, a true minus sign, units that fit.
import type { Measure, Num } from "./results";

const missing = "–";

export function known(x: Num | undefined): x is number {
  return typeof x === "number" && Number.isFinite(x);
}

function minus(text: string): string {
  return text.replace("-", "−");
}

function fixed(x: number, decimals: number): string {
  const text = x.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return minus(/^-[0.]+$/.test(text) ? text.slice(1) : text);
}

export function significant(x: Num | undefined, digits = 3): string {
  if (!known(x)) return missing;
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-4) return minus(x.toExponential(digits > 2 ? 1 : 0));
  const decimals = Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(size))));
  return fixed(x, decimals);
}

export function count(x: Num | undefined): string {
  return known(x) ? fixed(Math.round(x), 0) : missing;
}

export function ratio(x: Num | undefined): string {
  return known(x) ? `${fixed(x, Math.abs(x) < 10 ? 2 : Math.abs(x) < 100 ? 1 : 0)}x` : missing;
}

export function percent(x: Num | undefined): string {
  return known(x) ? `${fixed(x * 100, 0)} %` : missing;
}

/** A quality without its unit: 91.3 of "91.3 %". */
export function qualityNumber(x: Num | undefined, measure: Measure): string {
  if (!known(x)) return missing;
  return measure.percent ? fixed(x * 100, 1) : significant(x, 3);
}

export function quality(x: Num | undefined, measure: Measure): string {
  return known(x) && measure.percent ? `${qualityNumber(x, measure)} %` : qualityNumber(x, measure);
}

export function difference(x: Num | undefined, measure: Measure): string {
  if (!known(x)) return missing;
  const text = measure.percent ? fixed(x * 100, 1) : significant(x, 2);
  return x > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

/** Half the width of an interval, in the unit of `quality`. */
export function halfWidth(of: { low: Num; high: Num } | null | undefined, measure: Measure): string {
  if (!of || !known(of.low) || !known(of.high)) return "";
  const half = (of.high - of.low) / 2;
  return `± ${measure.percent ? fixed(half * 100, 1) : significant(half, 2)}`;
}

export function seconds(x: Num | undefined): string {
  if (!known(x)) return missing;
  if (x < 1) return `${significant(x * 1000, 2)} ms`;
  if (x < 100) return `${significant(x, 2)} s`;
  if (x < 5400) return `${significant(x / 60, 2)} min`;
  if (x < 172800) return `${significant(x / 3600, 2)} h`;
  return `${significant(x / 86400, 2)} days`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** The unit in which a number of bytes reads best, and its name. */
export function byteUnit(x: number): [number, string] {
  const unit = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log2(Math.abs(x)) / 10)));
  return [1024 ** unit, units[unit] ?? "B"];
}

export function bytes(x: Num | undefined): string {
  if (!known(x)) return missing;
  if (x === 0) return "0";
  const [unit, name] = byteUnit(x);
  return `${significant(x / unit, 3)} ${name}`;
}

/** The short form on an axis: 12k, 1.5M. */
export function compact(x: number): string {
  const size = Math.abs(x);
  const [unit, letter] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
  return significant(x / unit, 3).replace(/\.0+$|(\.\d*?)0+$/, "$1") + letter;
}

export function ago(ms: number): string {
  const s = Math.round(ms / 1000);
  return s < 90 ? `${s} s ago` : `${Math.round(s / 60)} min ago`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A setting's value as text, however the file spells it. */
export function setting(value: unknown): string {
  if (value === null || value === undefined) return missing;
  if (value === "") return "(empty)";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

/** Settings are known by their last word where that is clear: strategy.every is "every". */
export function settingName(dotted: string): string {
  const [room, ...rest] = dotted.split(".");
  const last = rest.join(".");
  if (last === "name" || last === "") return room ?? dotted;
  return last.replaceAll("_", " ");
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
