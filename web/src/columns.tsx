// The columns of the table: what differs first, then what was measured. A column that nobody fills is left out.
import type { ComponentChildren } from "preact";
import { bytes, count, difference, halfWidth, known, percent, qualityNumber, ratio, seconds, setting, settingName, significant } from "./format";
import type { Model } from "./model";
import type { Arm, Measure, Num, Run } from "./results";
import { errorText, flagName, networkName } from "./words";

export interface Column {
  key: string;
  head: string;
  unit?: string;
  number: boolean;
  /** Left out on phones and paper; the arm's own window has it. */
  minor?: boolean;
  sort: (arm: Arm) => Num | string;
  cell: (arm: Arm) => ComponentChildren;
  /** The same of one seed, where it has its own. */
  seed?: (run: Run, arm: Arm) => ComponentChildren;
}

/** Where the difference lies, drawn: a bar from low to high about zero. All rows share the scale. */
function Whisker({ arm, most }: { arm: Arm; most: number }) {
  const d = arm.difference;
  if (!d || !known(d.mean) || !(most > 0)) return null;
  const x = (value: number) => 30 + (Math.max(-most, Math.min(most, value)) / most) * 25;
  return (
    <svg class={`whisker ${d.decided ? (d.better ? "better" : "worse") : "open"}`} width="60" height="14" aria-hidden="true">
      <line class="zero" x1="30" x2="30" y1="1" y2="13" />
      {known(d.low) && known(d.high) && <line class="bar" x1={x(d.low)} x2={x(d.high)} y1="7" y2="7" />}
      <circle cx={x(d.mean)} cy="7" r="3" />
    </svg>
  );
}

function differenceColumn(model: Model, measure: Measure): Column {
  // One hopeless arm must not make points of all the others: its bar is cut off at the edge.
  const sizes = model.arms.flatMap(({ difference: d, excluded }) =>
    excluded || !d ? [] : [Math.max(...[d.mean, d.low, d.high].filter(known).map(Math.abs), 0)]).sort((a, b) => a - b);
  const most = Math.min(sizes.at(-1) ?? 0, 3 * (sizes[Math.floor(sizes.length / 2)] ?? 0));
  return {
    key: "difference", head: `against ${model.baseline?.workers === 1 ? "one worker" : (model.baseline?.name ?? "the baseline")}`,
    unit: measure.percent ? "points" : undefined, number: true, sort: (arm) => arm.difference?.mean ?? null,
    cell: (arm) => {
      const d = arm.difference;
      if (!d || !known(d.mean)) return arm.id === model.baseline?.id ? <span class="quiet">itself</span> : "–";
      if (d.same) return <span class="quiet">the same</span>;
      return (
        <span class="with-whisker">
          <Whisker arm={arm} most={most} />
          <span>
            {difference(d.mean, model.measureOf(arm))} <span class="quiet">{halfWidth(d, model.measureOf(arm))}</span>
            {!d.decided && <span class="quiet small">{known(d.seeds_needed) ? `undecided; ${count(d.seeds_needed)} seeds would tell` : "undecided"}</span>}
          </span>
        </span>
      );
    },
  };
}

/** Settings are written as text; numbers among them sort as numbers. */
function numberOf(value: unknown): number | null {
  if (typeof value !== "number" && (typeof value !== "string" || value.trim() === "")) return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** As many settings have a column; the arm's own window lists the others too. */
export const mostVarying = 5;

/** The settings that differ between arms. */
export function varying(model: Model): string[] {
  return model.results.varies.filter((name) => name !== "train.seed" && name !== "seed" && name !== "network.name" && name !== "network.scale");
}

export function columnsOf(model: Model): Column[] {
  const { measure } = model.results;
  const settings = varying(model).slice(0, mostVarying);
  const all: Column[] = [
    ...settings.map((name): Column => {
      const numeric = model.arms.every((arm) => numberOf(arm.settings[name]) !== null || arm.settings[name] === undefined);
      return {
        key: name, head: settingName(name), number: numeric,
        sort: (arm) => (arm.settings[name] === undefined ? null : numberOf(arm.settings[name]) ?? setting(arm.settings[name])),
        cell: (arm) => {
          const value = setting(arm.settings[name]);
          return value.length > 24 ? value : <span class="whole">{value}</span>;
        },
      };
    }),
    {
      key: "quality", head: measure.label, unit: measure.percent ? "%" : undefined, number: true, sort: (arm) => arm.quality?.mean ?? null,
      cell: (arm) => (
        <>
          {qualityNumber(arm.quality?.mean, model.measureOf(arm))} <span class="quiet">{halfWidth(arm.quality, model.measureOf(arm))}</span>
          {!model.onAxis(arm) && <span class="quiet small">{model.measureOf(arm).label}</span>}
        </>
      ),
      seed: (run, arm) => <>{qualityNumber(run.quality, model.measureOf(arm))}{run.collapsed && <span class="bad"> collapsed</span>}</>,
    },
    differenceColumn(model, measure),
    {
      key: "speedup", head: "speed-up", number: true, sort: (arm) => arm.speedup?.mean ?? null,
      cell: (arm) => <>{ratio(arm.speedup?.mean)} {known(arm.speedup?.low) && <span class="quiet small">{ratio(arm.speedup.low)} to {ratio(arm.speedup.high)}</span>}</>,
      seed: (run, arm) => ratio(arm.speedup?.values[arm.runs.indexOf(run.id)] ?? run.speedup),
    },
    { key: "efficiency", minor: true, head: "efficiency", number: true, sort: (arm) => arm.efficiency, cell: (arm) => percent(arm.efficiency) },
    {
      key: "at_time", minor: true, head: `${measure.label} at equal time`, unit: measure.percent ? "%" : undefined, number: true,
      sort: (arm) => arm.quality_at_time?.estimate.mean ?? null,
      cell: (arm) => <>{qualityNumber(arm.quality_at_time?.estimate.mean, model.measureOf(arm))} <span class="quiet">{halfWidth(arm.quality_at_time?.estimate, model.measureOf(arm))}</span></>,
    },
    {
      key: "target", head: "time to target", number: true, sort: (arm) => arm.time_to_target?.estimate.mean ?? null,
      cell: (arm) => {
        const t = arm.time_to_target;
        if (!t) return "–";
        return <>{t.reached > 0 ? seconds(t.estimate.mean) : "never"} {t.reached < t.of && <span class="quiet small">{t.reached} of {t.of} seeds</span>}</>;
      },
    },
    {
      key: "time", head: "training time", number: true, sort: (arm) => arm.train_seconds?.mean ?? null,
      cell: (arm) => seconds(arm.train_seconds?.mean), seed: (run) => seconds(run.train_seconds),
    },
    {
      key: "ms", minor: true, head: "ms per iteration", number: true, sort: (arm) => arm.ms?.mean ?? null,
      cell: (arm) => (
        <>
          {significant(arm.ms?.mean)}
          {known(arm.ms_p50) && known(arm.ms_p95) && <span class="quiet small">p50 {significant(arm.ms_p50)}, p95 {significant(arm.ms_p95)}</span>}
        </>
      ),
      seed: (run) => significant(run.ms),
    },
    {
      key: "network", minor: true, head: "network", number: false, sort: networkName,
      cell: (arm) => <span class="whole">{networkName(arm) ?? "–"}</span>,
    },
    {
      key: "predicted", minor: true, head: "predicted ms", number: true, sort: (arm) => arm.predicted?.ms ?? null,
      cell: (arm) => significant(arm.predicted?.ms), seed: (run) => significant(run.predicted?.ms),
    },
    {
      key: "error", minor: true, head: "error of it", number: true, sort: (arm) => (known(arm.predicted?.error) ? Math.abs(arm.predicted.error) : null),
      cell: (arm) => errorText(arm.predicted?.error), seed: (run) => errorText(run.predicted?.error),
    },
    {
      key: "rate", minor: true, head: "examples/s", number: true, sort: (arm) => arm.examples_per_s?.mean ?? null,
      cell: (arm) => significant(arm.examples_per_s?.mean), seed: (run) => significant(run.examples_per_s),
    },
    {
      key: "bytes", minor: true, head: "sent per step", number: true, sort: (arm) => arm.bytes?.per_step ?? null,
      cell: (arm) => bytes(arm.bytes?.per_step), seed: (run) => bytes(run.bytes_per_step),
    },
    {
      key: "memory", minor: true, head: "peak memory", number: true, sort: (arm) => arm.peak_memory,
      cell: (arm) => bytes(arm.peak_memory), seed: (run) => bytes(run.peak_memory),
    },
    {
      key: "price", minor: true, head: "price", unit: model.arms.find((arm) => arm.price)?.price?.currency, number: true,
      sort: (arm) => arm.price?.value ?? null, cell: (arm) => significant(arm.price?.value),
    },
    {
      key: "noise", minor: true, head: "noise scale", unit: "examples", number: true, sort: (arm) => arm.noise_scale,
      cell: (arm) => significant(arm.noise_scale, 2),
    },
    {
      key: "flags", head: "flags", number: false, sort: (arm) => (arm.excluded ? 100 : 0) + arm.flags.length,
      cell: (arm) => (arm.excluded || arm.flags.length > 0) && (
        <>
          {arm.excluded && <span class="flag bad whole">✗ left out</span>}
          {arm.flags.map((flag) => {
            const name = flagName(flag.code);
            return <span key={flag.code} class={`flag warn ${name.length > 36 ? "" : "whole"}`} title={flag.text}>⚠ {name}</span>;
          })}
        </>
      ),
    },
  ];
  return all.filter((column) => model.arms.some((arm) => {
    const value = column.sort(arm);
    return value !== null && value !== undefined && !(column.key === "flags" && value === 0);
  }));
}
