// Quality and loss over time and over examples: two panels side by side with one y axis. Seeds thin, the mean strong.
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { familyClass, familyOf } from "../families";
import { capital, compact, count, known, quality, seconds, significant } from "../format";
import { lineOf, meanLine, smoothed, type Line, type Model } from "../model";
import type { Arm, Measure, Run } from "../results";
import type { Cell } from "../save";
import { mark } from "../tip";
import { ArmTip } from "../tips";
import { leastSpan, padded, XAxis, YAxis } from "./axes";
import { Drawing, Figure } from "./figure";
import { dodge, fitted, textWidth } from "./labels";

type What = "quality" | "loss";
type Over = "seconds" | "examples";

const mostNamed = 10;
const mostFaint = 200;
const dashes = ["", "7 3", "2 3", "9 3 2 3", "4 2"];

function seriesOf(run: Run, what: What, over: Over): Line {
  return what === "quality" ? lineOf(run.evals?.[over], run.evals?.quality) : lineOf(run.curve?.[over], run.curve?.loss);
}

interface ArmLines {
  arm: Arm;
  dash: string;
  seeds: Record<Over, Line[]>;
  mean: Record<Over, Line>;
}

function linesOf(arms: Arm[], model: Model, what: What): ArmLines[] {
  const used = new Map<string, number>();
  return arms.flatMap((arm) => {
    const runs = model.runsOf(arm);
    const seeds = { seconds: runs.map((run) => seriesOf(run, what, "seconds")), examples: runs.map((run) => seriesOf(run, what, "examples")) };
    if (!seeds.examples.some((each) => each.x.length > 0)) return [];
    const strong = (lines: Line[]) => (what === "loss" ? smoothed(meanLine(lines)) : meanLine(lines));
    const nth = used.get(familyOf(arm.family)) ?? 0;
    used.set(familyOf(arm.family), nth + 1);
    return [{ arm, dash: dashes[nth % dashes.length] ?? "", seeds, mean: { seconds: strong(seeds.seconds), examples: strong(seeds.examples) } }];
  });
}

/** Every run begins badly, and the ends are what is compared: the axis leaves out the worst part, but no run's end. */
function rangeOf(lines: ArmLines[], goal: number | null, smallIsGood: boolean, measure: Measure | null): [number, number] {
  const seeds = lines.flatMap((each) => each.seeds.examples);
  const values = seeds.flatMap((each) => each.y).sort((a, b) => a - b);
  const ends = seeds.flatMap((each) => each.y.slice(-1));
  const quantile = (q: number) => values[Math.floor((values.length - 1) * q)] ?? 0;
  const cut = values.length > 3 * ends.length;
  const from = cut && !smallIsGood ? quantile(0.2) : quantile(0);
  const to = cut && smallIsGood ? quantile(0.85) : quantile(1);
  const inside = values.filter((v) => v >= from && v <= to);
  return padded([inside[0] ?? from, inside.at(-1) ?? to, ...ends, ...(goal === null ? [] : [goal])], 0.05, measure ? leastSpan(measure, ends) : 0);
}

export function CurveChart({ model, what, openArm }: { model: Model; what: What; openArm: (id: string) => void }) {
  const { measure, target } = model.results;
  const having = model.shown.filter((arm) => model.runsOf(arm).some((run) => (what === "quality" ? run.evals && model.onAxis(arm) : run.curve)));
  const all = linesOf(having.slice(0, mostNamed + mostFaint), model, what);
  // One evaluation at the end is no curve: the picture shows it.
  if (!all.some(({ seeds }) => seeds.examples.some((each) => each.x.length > 1))) return null;
  const named = all.slice(0, mostNamed);
  const rest = all.slice(mostNamed);
  const goal = what === "quality" && target && target.measure === measure.name ? target.value : null;
  const split = model.results.runs.find((run) => run.evals)?.evals?.split ?? measure.split;
  const title = what === "quality" ? `${capital(measure.label)} over time and over examples` : "Training loss over time and over examples";
  const down = what === "quality" && !measure.higher_is_better;
  const domain = rangeOf([...named, ...rest], goal, what === "loss" || down, what === "loss" ? null : measure);
  const reached = goal === null ? [] : named.filter(({ arm }) => known(arm.time_to_target?.estimate.mean));

  const draw = (width: number) => {
    const stacked = width < 720;
    const label = (arm: Arm) => fitted(arm.name, 190, 12);
    const margin = stacked ? 12 : Math.max(...named.map(({ arm }) => textWidth(label(arm), 12))) + 16;
    const left = 46;
    const panel = stacked ? width - left - margin : (width - left - margin - 36) / 2;
    const high = stacked ? 250 : 330;
    const top = 34;
    const bottom = top + high;
    const height = stacked ? 2 * (high + 84) : bottom + 44;
    const format = (v: number) => (what === "quality" && measure.percent ? compact(v * 100) : compact(v));

    const panelOf = (over: Over, x0: number, y0: number, names: boolean) => {
      const end = Math.max(...[...named, ...rest].flatMap(({ seeds }) => seeds[over].map((each) => each.x.at(-1) ?? 0)), 1e-9);
      const inMinutes = over === "seconds" && end > 300;
      const x = scaleLinear().domain([0, end]).range([x0, x0 + panel]);
      const inUnit = scaleLinear().domain([0, inMinutes ? end / 60 : end]).range([x0, x0 + panel]);
      const y = scaleLinear().domain(domain).range(down ? [y0 + top, y0 + bottom] : [y0 + bottom, y0 + top]);
      const path = line<[number, number]>((p) => x(p[0]), (p) => y(p[1]));
      const d = (l: Line) => path(l.x.map((v, i): [number, number] => [v, l.y[i] ?? 0])) ?? "";
      const ends = dodge(named.map(({ mean }) => y(mean[over].y.at(-1) ?? domain[0])), 14, y0 + top + 4, y0 + bottom - 4);
      const last = named.map(({ mean }) => ({ x: x(mean[over].x.at(-1) ?? 0), y: y(mean[over].y.at(-1) ?? 0) }));
      const clip = `url(#${what}-${over})`;
      return (
        <g key={over}>
          <YAxis scale={y} left={x0} right={x0 + panel} count={6} format={x0 === left ? format : () => ""} top={y0 + top} />
          <text class="panel-title" x={x0} y={y0 + 14}>{over === "seconds" ? "over time" : "over examples"}</text>
          <XAxis
            scale={inUnit} left={x0} right={x0 + panel} top={y0 + top} bottom={y0 + bottom} count={stacked ? 4 : 5} format={compact} grid={false}
            label={over === "examples" ? "examples" : inMinutes ? "minutes of training" : "seconds of training"}
          />
          <clipPath id={`${what}-${over}`}><rect x={x0} y={y0 + top} width={panel + 2} height={high} /></clipPath>
          {rest.map(({ arm, mean }) => <path clip-path={clip} key={arm.id} class="curve rest" d={d(mean[over])} data-arm={arm.id} />)}
          {goal !== null && (
            <>
              <line class="target" x1={x0} x2={x0 + panel} y1={y(goal)} y2={y(goal)} />
              <text class="context" x={x0 + 4} y={y(goal) - 5}>target {quality(goal, measure)}</text>
            </>
          )}
          {named.map(({ arm, seeds, mean, dash }, i) => (
            <g key={arm.id} class={familyClass(arm.family)} data-arm={arm.id}>
              {(seeds[over].length > 1 || what === "loss") && seeds[over].map((each, k) => <path key={k} class="curve seed-line" clip-path={clip} d={d(each)} />)}
              <path class="curve mean-line" clip-path={clip} d={d(mean[over])} stroke-dasharray={dash} />
              {what === "quality" && mean[over].x.length === 1 && <circle class="seed" cx={last[i]?.x} cy={last[i]?.y} r={3.5} />}
              {over === "seconds" && goal !== null && known(arm.time_to_target?.estimate.mean) && (
                <line class="target-tick" x1={x(arm.time_to_target.estimate.mean)} x2={x(arm.time_to_target.estimate.mean)} y1={y(goal) - 6} y2={y(goal) + 6} />
              )}
              {names && (
                <>
                  <line class="leader" x1={last[i]?.x} y1={last[i]?.y} x2={x0 + panel + 10} y2={ends[i]} />
                  <text class="name" x={x0 + panel + 12} y={ends[i]} dy="0.34em" font-size="12">{label(arm)}</text>
                </>
              )}
              <path
                class="curve-hit" data-hit clip-path={clip} d={d(mean[over])}
                {...mark({
                  label: `${arm.name}: ${what === "quality" ? `${measure.label} ${quality(mean[over].y.at(-1) ?? null, measure)}` : `loss ${significant(mean[over].y.at(-1) ?? null)}`} after ${over === "seconds" ? seconds(mean[over].x.at(-1) ?? null) : `${compact(mean[over].x.at(-1) ?? 0)} examples`}`,
                  arm: arm.id, tip: () => <ArmTip arm={arm} model={model} />, open: () => openArm(arm.id),
                })}
              />
            </g>
          ))}
        </g>
      );
    };
    return (
      <>
        <Drawing width={width} height={height} label={title}>
          {panelOf("seconds", left, 0, false)}
          {panelOf("examples", stacked ? left : left + panel + 36, stacked ? high + 84 : 0, !stacked)}
        </Drawing>
        {stacked && (
          <ul class="line-key">
            {named.map(({ arm, dash }) => (
              <li key={arm.id} class={familyClass(arm.family)}>
                <svg width="26" height="6" aria-hidden="true"><line class="curve mean-line" x1="0" x2="26" y1="3" y2="3" stroke-dasharray={dash} /></svg>
                {arm.name}
              </li>
            ))}
          </ul>
        )}
      </>
    );
  };

  const said = reached.map(({ arm }) => `${arm.name} after ${seconds(arm.time_to_target?.estimate.mean)}`);
  return (
    <Figure
      id={what === "quality" ? "quality-curves" : "loss-curves"} title={title} draw={draw} class="wide-chart"
      lead={what === "quality"
        ? `On the ${split} set${measure.percent ? ", in per cent" : ""}. Strong lines are means, thin ones seeds.`
        : "Strong lines are means over the seeds, smoothed; thin ones are the seeds as they were."}
      note={
        <>
          {domain[0] > 0 && <p>The axis does not start at zero, and the first steps may lie outside it.</p>}
          {said.length > 0 && <p>The target was reached by {said.slice(0, 6).join(", by ")}{said.length > 6 ? ` and ${said.length - 6} more` : ""}.</p>}
          {having.length > mostNamed && <p>Named are the {mostNamed} that matter most; {count(having.length - mostNamed)} more are grey{having.length > mostNamed + mostFaint ? ` (${mostFaint} of them drawn)` : ""}.</p>}
          {model.results.omitted.curves > 0 && <p>The curves of {model.results.omitted.curves} runs were left out to keep the page small.</p>}
        </>
      }
      sheet={() => {
        const rows: Cell[][] = [];
        for (const arm of having) {
          for (const run of model.runsOf(arm)) {
            const over = what === "quality" ? run.evals : run.curve;
            const ys = what === "quality" ? run.evals?.quality : run.curve?.loss;
            ys?.forEach((value, i) => rows.push([arm.name, run.seed, over?.examples[i] ?? null, over?.seconds[i] ?? null, value]));
          }
        }
        return { header: ["name", "seed", "examples", "seconds", what === "quality" ? measure.name || "quality" : "loss"], rows };
      }}
    />
  );
}
