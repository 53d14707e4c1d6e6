// The one picture: quality against speed-up. Every seed a dot, the mean larger, its interval a bar in both directions.
import { familyClass, shapePath } from "../families";
import { capital, compact, halfWidth, known, plural, quality, ratio } from "../format";
import type { Model } from "../model";
import type { Arm, Run } from "../results";
import type { Sheet } from "../save";
import { mark } from "../tip";
import { ArmTip, RunTip } from "../tips";
import { XAxis, YAxis } from "./axes";
import { Crowd } from "./crowd";
import { Drawing, Figure } from "./figure";
import { shorten } from "./labels";
import { layoutOf, manyArms, plotOf, type Layout, type Plot, type Spot } from "./layout";

interface Opens {
  openArm: (id: string) => void;
  openRun: (id: string) => void;
}

interface Drawn extends Opens {
  plot: Plot;
  layout: Layout;
  model: Model;
}

/** Tab stops at each seed only while that is no journey; the window of an arm lists them all. */
const mostDots = 30;

export function Picture({ model, openArm, openRun }: { model: Model } & Opens) {
  const plot = plotOf(model);
  if (!plot) return null;
  const { measure } = model.results;
  const better = measure.higher_is_better ? "Up and right is better" : `Up (a lower ${measure.label}) and right is better`;
  return (
    <Figure
      id="picture" class="picture" title={`${capital(measure.label)} against ${plot.bySpeedup ? "speed-up" : "examples per second"}`}
      lead={`Small dots are seeds, large marks their means, bars 95 % intervals. ${better}; the line joins what nothing else beats.`}
      note={<Notes plot={plot} model={model} openArm={openArm} />} sheet={() => sheetOf(model)}
      draw={(width) => {
        const drawn = { plot, layout: layoutOf(plot, model, width), model, openArm, openRun };
        return <><Plotted {...drawn} /><Key {...drawn} /></>;
      }}
    />
  );
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

function Plotted(drawn: Drawn) {
  const { plot, layout, model, openArm } = drawn;
  const { measure } = model.results;
  const { x, y, frame, narrow } = layout;
  const right = frame.x + frame.width;
  const bottom = frame.y + frame.height;
  const level = model.baseline?.quality?.mean;
  return (
    <Drawing width={layout.width} height={layout.height} label={`${measure.label} against speed-up, ${plural(plot.arms.length, "arm")}`}>
      <YAxis
        scale={y} left={frame.x} right={right} count={narrow ? 5 : 7} top={frame.y}
        format={(v) => compact(measure.percent ? v * 100 : v)}
        label={`${measure.label}${measure.percent ? ", %" : ""}, ${measure.split} set`}
      />
      <XAxis
        scale={x} left={frame.x} right={right} top={frame.y} bottom={bottom} count={narrow ? 5 : 8} grid={false}
        format={(v) => (plot.bySpeedup ? `${compact(v)}x` : compact(v))}
        label={plot.bySpeedup ? `speed-up over ${shorten(model.unit, 30)} →` : "examples per second →"}
      />
      {plot.bySpeedup && (
        <g class="context" aria-hidden="true">
          <line x1={x(1)} x2={x(1)} y1={frame.y} y2={bottom} />
          <text x={x(1) + 5} y={bottom - 7}>{shorten(model.unit, 30)}</text>
        </g>
      )}
      {known(level) && <line class="context-line" x1={frame.x} x2={right} y1={y(level)} y2={y(level)} />}
      {layout.fronts.map((front, i) => front.length > 1 && <polyline key={i} class="front" points={front.map((spot) => `${spot.x},${spot.y}`).join(" ")} />)}
      <Leaders layout={layout} />
      <Crowd plot={plot} layout={layout} model={model} openArm={openArm} />
      {layout.named.map((spot) => !spot.arm.excluded && <Seeds key={spot.arm.id} spot={spot} {...drawn} />)}
      {layout.named.map((spot) => <Mean key={spot.arm.id} spot={spot} {...drawn} />)}
      {layout.names.map(({ arm, text, weight, x: at, y: height }) => (
        <text
          key={arm.id} class={`name ${familyClass(arm.family)} ${arm.excluded ? "excluded" : ""}`} data-arm={arm.id} aria-hidden="true"
          font-weight={weight} x={at} y={height} dy="0.34em"
        >
          {text}
        </text>
      ))}
    </Drawing>
  );
}

/** Lines from points to the names that stand apart from them. */
function Leaders({ layout }: { layout: Layout }) {
  const spots = new Map(layout.named.map((spot) => [spot.arm.id, spot]));
  return (
    <>
      {layout.names.filter(({ led }) => led).map(({ key, x, y, width }) => {
        const spot = spots.get(key);
        if (!spot) return null;
        const end = x > spot.x ? x - 2 : x + width < spot.x ? x + width + 2 : spot.x;
        return <line key={key} class="leader" data-arm={key} x1={spot.x} y1={spot.y} x2={end} y2={y} />;
      })}
    </>
  );
}

function Seeds({ spot: { arm, x: cx, y: cy }, plot, layout: { x, y }, model, openRun }: Drawn & { spot: Spot }) {
  const { measure } = model.results;
  const s = plot.across(arm);
  const q = arm.quality;
  const stop = plot.arms.reduce((sum, each) => sum + each.runs.length, 0) <= mostDots;
  const dot = (run: Run, i: number) => {
    const [value, along] = [q?.values[i], s?.values[i]];
    if (!known(value) || !known(along)) return null;
    return (
      <circle
        key={run.id} class={`seed ${run.collapsed ? "collapsed" : ""}`} cx={x(along)} cy={y(value)} r={2.8}
        {...mark({
          label: `${arm.name}, seed ${run.seed ?? "unknown"}: ${quality(value, measure)}`, arm: arm.id, stop,
          tip: () => <RunTip run={run} arm={arm} model={model} />, open: () => openRun(run.id),
        })}
      />
    );
  };
  return (
    <g class={`arm ${familyClass(arm.family)}`} data-arm={arm.id}>
      {q && known(q.low) && known(q.high) && <line class="interval" x1={cx} x2={cx} y1={y(q.low)} y2={y(q.high)} />}
      {s && known(s.low) && known(s.high) && <line class="interval" x1={x(s.low)} x2={x(s.high)} y1={cy} y2={cy} />}
      {model.runsOf(arm).map(dot)}
    </g>
  );
}

function Mean({ spot: { arm, x, y }, plot, layout, model, openArm }: Drawn & { spot: Spot }) {
  const number = layout.nameless.findIndex((spot) => spot.arm === arm) + 1;
  return (
    <g
      class={`arm mean ${familyClass(arm.family)} ${arm.excluded ? "excluded" : ""}`} transform={`translate(${x},${y})`} data-point={arm.id}
      {...mark({
        label: describe(arm, plot, model), arm: arm.id,
        tip: () => <ArmTip arm={arm} model={model} />, open: () => openArm(arm.id),
      })}
    >
      <circle r={12} class="hit" data-hit />
      <path d={shapePath(arm.family, arm.id === model.results.advice.arm ? 190 : 110)} />
      {arm.excluded && <line class="strike" x1={-9} y1={6} x2={9} y2={-6} />}
      {number > 0 && <text class="number" aria-hidden="true" x={9} y={-7}>{number}</text>}
    </g>
  );
}

function describe(arm: Arm, plot: Plot, model: Model): string {
  const { measure } = model.results;
  const parts = [
    arm.name,
    `${measure.label} ${quality(arm.quality?.mean, measure)} ${halfWidth(arm.quality, measure)}`.trim(),
    plot.bySpeedup ? `speed-up ${ratio(arm.speedup?.mean)}` : "",
    plural(arm.runs.length, "seed"),
    arm.excluded ? "left out: it failed a check" : "",
  ];
  return parts.filter(Boolean).join(", ");
}

/** The names that found no place beside their points, by number. */
function Key({ layout, openArm }: Drawn) {
  if (layout.nameless.length === 0) return null;
  return (
    <ol class="key">
      {layout.nameless.map(({ arm }) => (
        <li key={arm.id}><button type="button" class="link" onClick={() => openArm(arm.id)}>{arm.name}</button></li>
      ))}
    </ol>
  );
}

const mostReasons = 6;

function Notes({ plot, model, openArm }: { plot: Plot; model: Model; openArm: (id: string) => void }) {
  const { measure } = model.results;
  const why = (arm: Arm) => arm.checks.find((check) => !check.ok && !check.differs_by_nature)?.text.replace(/\.$/, "") ?? "it failed a check";
  return (
    <>
      {(plot.y[0] > 0 || !measure.percent) && (
        <p>The axis of {measure.label} does not start at zero: small differences look large.{plot.log ? " Speed-up is on a logarithmic scale." : ""}</p>
      )}
      {plot.cut > 0 && <p>The {plot.cut === 1 ? "interval of one arm is" : `intervals of ${plural(plot.cut, "arm")} are`} wider than the picture: so few seeds say little.</p>}
      {plot.excluded.length > 0 && (
        <p>
          Struck through and left out of the front and the advice:{" "}
          {plot.excluded.slice(0, mostReasons).map((arm, i) => (
            <span key={arm.id}>
              {i > 0 && "; "}
              <button type="button" class="link" onClick={() => openArm(arm.id)}><s>{arm.name}</s></button> ({why(arm)})
            </span>
          ))}
          {plot.excluded.length > mostReasons && `; and ${plural(plot.excluded.length - mostReasons, "more", "more")}`}.
        </p>
      )}
      {plot.arms.length > manyArms && (
        <p>
          {plural(plot.arms.length, "arm")}: the front and what the sentence speaks of are named. The others are small dots, what failed a check
          is not drawn, and all are in the table.
        </p>
      )}
    </>
  );
}
