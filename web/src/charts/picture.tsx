// The one picture: quality against speed-up. Every seed a dot, the mean larger, its interval a bar in both directions.
import { scaleLinear, scaleLog } from "d3-scale";
import { useRef } from "preact/hooks";
import { familyClass, shapePath } from "../families";
import { capital, compact, halfWidth, known, plural, quality, ratio } from "../format";
import { extent, reach, type Model } from "../model";
import { mark, showTip } from "../tip";
import type { Arm, Estimate, Num, Run } from "../results";
import type { Sheet } from "../save";
import { ArmTip, RunTip } from "../tips";
import { leastSpan, padded, XAxis, YAxis } from "./axes";
import { Drawing, Figure } from "./figure";
import { placeLabels, shorten, textWidth, type Box } from "./labels";

interface Opens {
  openArm: (id: string) => void;
  openRun: (id: string) => void;
}

/** Above this many arms only those that matter are named and stopped at; all are drawn, and all are in the table. */
const manyArms = 60;

/** Tab stops at each seed only while that is no journey; the window of an arm lists them all. */
const mostDots = 30;

type Across = (arm: Arm) => Estimate | null;

interface Spot {
  arm: Arm;
  x: number;
  y: number;
}

function sheetOf(model: Model): Sheet {
  const { measure } = model.results;
  const rows = model.arms.flatMap((arm) =>
    model.runsOf(arm).map((run, i) => [
      arm.name, arm.family, run.seed, arm.speedup?.values[i] ?? run.speedup, run.quality ?? null,
      arm.excluded ? "left out" : "", arm.pareto ? "yes" : "",
    ]));
  return { header: ["name", "family", "seed", "speedup", measure.name || "quality", "excluded", "pareto"], rows };
}

function describe(arm: Arm, model: Model, measureX: string): string {
  const { measure } = model.results;
  const parts = [
    arm.name,
    `${measure.label} ${quality(arm.quality?.mean, measure)} ${halfWidth(arm.quality, measure)}`,
    measureX === "speedup" ? `speed-up ${ratio(arm.speedup?.mean)}` : "",
    plural(arm.runs.length, "seed"),
    arm.excluded ? "left out: it failed a check" : "",
  ];
  return parts.filter(Boolean).join(", ");
}

function Bar({ x1, x2, y1, y2 }: { x1: number; x2: number; y1: number; y2: number }) {
  return <line class="interval" x1={x1} x2={x2} y1={y1} y2={y2} />;
}

/** Says what lies under the pointer where there are too many points for each to be an element. */
function Finder({ spots, frame, model, openArm }: { spots: Spot[]; frame: Box; model: Model; openArm: (id: string) => void }) {
  const probe = useRef<SVGCircleElement>(null);
  const nearest = (event: MouseEvent): Spot | null => {
    const area = (event.currentTarget as SVGRectElement).getBoundingClientRect();
    const [px, py] = [event.clientX - area.left + frame.x, event.clientY - area.top + frame.y];
    let [best, least] = [null as Spot | null, 12 * 12];
    for (const spot of spots) {
      const far = (spot.x - px) ** 2 + (spot.y - py) ** 2;
      if (far < least) [best, least] = [spot, far];
    }
    return best;
  };
  const move = (event: MouseEvent) => {
    const spot = nearest(event);
    if (!spot || !probe.current) return showTip(null);
    probe.current.setAttribute("cx", String(spot.x));
    probe.current.setAttribute("cy", String(spot.y));
    showTip({ at: probe.current, content: <ArmTip arm={spot.arm} model={model} /> });
  };
  const open = (event: MouseEvent) => {
    const spot = nearest(event);
    if (spot) openArm(spot.arm.id);
  };
  return (
    <g data-hit aria-hidden="true">
      <circle ref={probe} class="hit" r={4} cx={frame.x} cy={frame.y} />
      <rect class="hit" {...frame} onMouseMove={move} onMouseLeave={() => showTip(null)} onClick={open} />
    </g>
  );
}

export function Picture({ model, openArm, openRun }: { model: Model } & Opens) {
  const { measure } = model.results;
  const bySpeedup = model.arms.some((arm) => known(arm.speedup?.mean));
  const across: Across = bySpeedup ? (arm) => arm.speedup : (arm) => arm.examples_per_s;
  const plotted = model.arms.filter((arm) => known(arm.quality?.mean) && known(across(arm)?.mean));
  const included = plotted.filter((arm) => !arm.excluded);
  if (plotted.length === 0) return null;

  const base = included.length > 0 ? included : plotted;
  const ys = base.flatMap((arm) => reach(arm.quality));
  const values = base.flatMap((arm) => reach(across(arm))).filter((x) => x > 0);
  const [least, most] = extent(values);
  const log = most / least > 14;
  const left = plotted.filter((arm) => arm.excluded);
  const dots = included.reduce((sum, arm) => sum + arm.runs.length, 0);

  const draw = (width: number) => {
    const narrow = width < 520;
    const height = Math.round(Math.max(340, Math.min(540, width * 0.66)));
    const m = { top: 34, right: 14, bottom: 46, left: narrow ? 40 : 50 };
    const frame: Box = {
      x: m.left, y: m.top, width: width - m.left - m.right, height: height - m.top - m.bottom,
    };
    const right = width - m.right;
    const bottom = height - m.bottom;
    const x = log
      ? scaleLog().domain([Math.min(least, 1) * 0.8, most * 1.25]).range([m.left, right]).clamp(true)
      : scaleLinear().domain([0, Math.max(most, bySpeedup ? 1 : 0) * (narrow ? 1.18 : 1.12)]).range([m.left, right]).clamp(true);
    const [low, high] = padded(ys, 0.12, leastSpan(measure, ys));
    const y = scaleLinear().domain([measure.percent ? Math.max(0, low) : low, measure.percent ? Math.min(1, high) : high])
      .range(measure.higher_is_better ? [bottom, m.top] : [m.top, bottom]).clamp(true);

    const spots: Spot[] = plotted.map((arm) => ({ arm, x: x(across(arm)?.mean ?? 0), y: y(arm.quality?.mean ?? 0) }));
    const front = spots.filter(({ arm }) => arm.pareto && !arm.excluded).sort((a, b) => a.x - b.x);
    const important = new Set([model.results.advice.arm, ...model.results.advice.rivals, model.results.baseline]);
    const weight = ({ arm }: Spot) => (arm.id === model.results.advice.arm ? -1 : important.has(arm.id) ? 0 : arm.pareto ? 1 : arm.excluded ? 3 : 2);
    const many = spots.length > manyArms;
    const named = spots.filter((spot) => !many || weight(spot) < 2).sort((a, b) => weight(a) - weight(b)).slice(0, manyArms);
    const namedArms = new Set(named.map(({ arm }) => arm.id));

    const beyond = (arm: Arm) => {
      const [q, s] = [arm.quality?.mean ?? 0, across(arm)?.mean ?? 0];
      const [x0, x1] = x.domain() as [number, number];
      const [y0, y1] = y.domain() as [number, number];
      return q < y0 || q > y1 || s < x0 || s > x1;
    };
    // What failed a check must not stretch the scale: it stands at the edge and says so.
    const nameOf = (arm: Arm) => shorten(arm.name, narrow ? 22 : 34) + (arm.excluded && beyond(arm) ? " (off the scale)" : "");
    const weightOf = (arm: Arm) => (arm.id === model.results.advice.arm ? 700 : 400);
    const taken: Box[] = (many ? named : spots).map((spot) => ({ x: spot.x - 8, y: spot.y - 8, width: 16, height: 16 }));
    for (const { arm, x: cx, y: cy } of many ? [] : spots.filter(({ arm }) => !arm.excluded)) {
      const [q, s] = [arm.quality, across(arm)];
      if (q && known(q.low) && known(q.high)) {
        const ends = [y(q.low), y(q.high)];
        taken.push({ x: cx - 1, y: Math.min(...ends), width: 2, height: Math.abs((ends[0] ?? 0) - (ends[1] ?? 0)) });
      }
      if (s && known(s.low) && known(s.high)) taken.push({ x: x(s.low), y: cy - 1, width: x(s.high) - x(s.low), height: 2 });
    }
    if (!many) {
      for (const { arm } of spots) {
        arm.quality?.values.forEach((value, i) => {
          const along = across(arm)?.values[i];
          if (known(value) && known(along)) taken.push({ x: x(along) - 3, y: y(value) - 3, width: 6, height: 6 });
        });
      }
    }
    const one = bySpeedup ? x(1) : NaN;
    const unitWidth = textWidth(model.unit, 12);
    if (bySpeedup) taken.push({ x: one + 2, y: bottom - 18, width: unitWidth + 6, height: 16 });
    const placed = placeLabels(
      named.map(({ arm, x: cx, y: cy }) => ({ key: arm.id, x: cx, y: cy, width: textWidth(nameOf(arm), 13, weightOf(arm)) })),
      taken, frame, (key) => (narrow && key !== model.results.advice.arm ? 32 : 150));
    const nameless = named.filter(({ arm }) => !placed.some((place) => place.key === arm.id));
    const number = new Map(nameless.map(({ arm }, i) => [arm.id, i + 1]));
    const dot = (arm: Arm, run: Run | undefined, value: Num, along: Num, i: number) => {
      if (!known(value) || !known(along)) return null;
      return (
        <circle
          key={`${arm.id}/${i}`} class={`seed ${run?.collapsed ? "collapsed" : ""}`} cx={x(along)} cy={y(value)} r={2.8}
          {...(run ? mark({
            label: `${arm.name}, seed ${run.seed ?? "unknown"}: ${quality(value, measure)}`, arm: arm.id, stop: dots <= mostDots,
            tip: () => <RunTip run={run} arm={arm} model={model} />, open: () => openRun(run.id),
          }) : {})}
        />
      );
    };

    // Thousands of points are two paths for each family, of means and of seeds: a point is a line of no length with a
    // round end. The pointer finds the nearest.
    const quiet = spots.filter(({ arm }) => !namedArms.has(arm.id));
    const at = (px: number, py: number) => `M${px.toFixed(1)},${py.toFixed(1)}h0`;
    const dust = () => {
      const paths = new Map<string, { means: string; seeds: string }>();
      for (const { arm, x: px, y: py } of quiet.filter((spot) => !spot.arm.excluded)) {
        const path = paths.get(arm.family) ?? { means: "", seeds: "" };
        paths.set(arm.family, path);
        path.means += at(px, py);
        arm.quality?.values.forEach((value, i) => {
          const along = across(arm)?.values[i];
          if (known(value) && known(along)) path.seeds += at(x(along), y(value));
        });
      }
      return [...paths];
    };

    return (
      <>
        <Drawing width={width} height={height} label={`${measure.label} against speed-up, ${plural(plotted.length, "arm")}`}>
          <YAxis
            scale={y} left={m.left} right={right} count={narrow ? 5 : 7} top={m.top}
            format={(v) => compact(measure.percent ? v * 100 : v)}
            label={`${measure.label}${measure.percent ? ", %" : ""}, ${measure.split} set`}
          />
          <XAxis
            scale={x} left={m.left} right={right} top={m.top} bottom={bottom} count={narrow ? 5 : 8}
            format={(v) => (bySpeedup ? `${compact(v)}x` : compact(v))}
            label={bySpeedup ? `speed-up over ${shorten(model.unit, 30)} →` : "examples per second →"} grid={false}
          />
          {bySpeedup && (
            <g class="context" aria-hidden="true">
              <line x1={one} x2={one} y1={m.top} y2={bottom} />
              <text x={one + 5} y={bottom - 7}>{model.unit}</text>
            </g>
          )}
          {known(model.baseline?.quality?.mean) && (
            <line class="context-line" x1={m.left} x2={right} y1={y(model.baseline.quality.mean)} y2={y(model.baseline.quality.mean)} />
          )}
          {front.length > 1 && <polyline class="front" points={front.map((spot) => `${spot.x},${spot.y}`).join(" ")} />}
          {placed.filter((place) => place.led).map((place) => {
            const spot = named.find(({ arm }) => arm.id === place.key);
            if (!spot) return null;
            const w = textWidth(nameOf(spot.arm), 13, weightOf(spot.arm));
            const near = place.x > spot.x ? place.x - 2 : place.x + w < spot.x ? place.x + w + 2 : spot.x;
            return <line key={place.key} class="leader" data-arm={place.key} x1={spot.x} y1={spot.y} x2={near} y2={place.y} />;
          })}
          {dust().map(([family, { means, seeds }]) => (
            <g key={family} class={familyClass(family)}>
              <path class="dust seeds" d={seeds} />
              <path class="dust" d={means} />
            </g>
          ))}
          {quiet.length > 0 && <Finder spots={quiet} frame={frame} model={model} openArm={openArm} />}
          {named.map(({ arm, x: cx, y: cy }) => {
            const s = across(arm);
            const q = arm.quality;
            if (arm.excluded) return null;
            return (
              <g key={arm.id} class={`arm ${familyClass(arm.family)}`} data-arm={arm.id}>
                {q && known(q.low) && known(q.high) && <Bar x1={cx} x2={cx} y1={y(q.low)} y2={y(q.high)} />}
                {s && known(s.low) && known(s.high) && <Bar x1={x(s.low)} x2={x(s.high)} y1={cy} y2={cy} />}
                {model.runsOf(arm).map((run, i) => dot(arm, run, q?.values[i] ?? null, s?.values[i] ?? null, i))}
              </g>
            );
          })}
          {named.map(({ arm, x: cx, y: cy }) => {
            const size = arm.id === model.results.advice.arm ? 190 : 110;
            return (
              <g
                key={arm.id} class={`arm mean ${familyClass(arm.family)} ${arm.excluded ? "excluded" : ""}`}
                transform={`translate(${cx},${cy})`} data-point={arm.id}
                {...mark({
                  label: describe(arm, model, bySpeedup ? "speedup" : "rate"), arm: arm.id,
                  tip: () => <ArmTip arm={arm} model={model} />, open: () => openArm(arm.id),
                })}
              >
                <circle r={12} class="hit" data-hit />
                <path d={shapePath(arm.family, size)} />
                {arm.excluded && <line class="strike" x1={-9} y1={6} x2={9} y2={-6} />}
                {number.has(arm.id) && <text class="number" aria-hidden="true" x={9} y={-7}>{number.get(arm.id)}</text>}
              </g>
            );
          })}
          {placed.map((place) => {
            const arm = model.arm.get(place.key);
            if (!arm) return null;
            return (
              <text
                key={place.key} class={`name ${familyClass(arm.family)} ${arm.excluded ? "excluded" : ""}`} data-arm={arm.id} aria-hidden="true"
                font-weight={weightOf(arm)} x={place.x} y={place.y} dy="0.34em"
              >
                {nameOf(arm)}
              </text>
            );
          })}
        </Drawing>
        {nameless.length > 0 && (
          <ol class="key">
            {nameless.map(({ arm }) => (
              <li key={arm.id}><button type="button" class="link" onClick={() => openArm(arm.id)}>{arm.name}</button></li>
            ))}
          </ol>
        )}
      </>
    );
  };

  const [axisLow] = padded(ys, 0.12, leastSpan(measure, ys));
  const startsAbove = !measure.percent || axisLow > 0;
  const note = (
    <>
      {startsAbove && <p>The axis of {measure.label} does not start at zero: small differences look large.{log ? " Speed-up is on a logarithmic scale." : ""}</p>}
      {left.length > 0 && (
        <p>
          Struck through and left out of the front and the advice:{" "}
          {left.slice(0, 6).map((arm, i) => (
            <>
              {i > 0 && "; "}
              <button type="button" class="link" onClick={() => openArm(arm.id)}><s>{arm.name}</s></button>
              {" "}({arm.checks.find((check) => !check.ok && !check.differs_by_nature)?.text.replace(/\.$/, "") ?? "it failed a check"})
            </>
          ))}
          {left.length > 6 && `; and ${left.length - 6} more`}.
        </p>
      )}
      {plotted.length > manyArms && (
        <p>{plural(plotted.length, "arm")}: the front and what the sentence speaks of are named; the others are small marks, and all are in the table.</p>
      )}
    </>
  );
  return (
    <Figure
      id="picture" title={bySpeedup ? `${capital(measure.label)} against speed-up` : `${capital(measure.label)} against examples per second`}
      lead={
        <>Small dots are seeds, large marks their means, bars 95 % intervals. {measure.higher_is_better ? "Up and right is better" : "Up (a lower " + measure.label + ") and right is better"}; the line joins what nothing else beats.</>
      }
      note={note} sheet={() => sheetOf(model)} draw={draw} class="picture"
    />
  );
}
