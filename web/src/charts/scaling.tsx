// Speed-up against the number of workers, beside the ideal. Strong and weak scaling are apart.
import { scaleLinear } from "d3-scale";
import { familyClass, shapePath } from "../families";
import { compact, known, percent, ratio } from "../format";
import { append, extent, type Model } from "../model";
import type { Arm, ScalingPoint } from "../results";
import { mark } from "../tip";
import { ArmTip } from "../tips";
import { networkName } from "../words";
import { XAxis, YAxis } from "./axes";
import { Drawing, Figure } from "./figure";
import { dodge, shorten, textWidth } from "./labels";

interface Spot extends ScalingPoint {
  of: Arm;
  faster: number;
}

interface Series {
  name: string;
  spots: Spot[];
}

const mostNamed = 12;

/** Arms alike but for the number of workers are one line. */
function seriesOf(points: ScalingPoint[], model: Model): Series[] {
  const single = points.find((point) => point.workers === 1);
  const groups = new Map<string, Spot[]>();
  const networks = new Set(points.map((point) => model.arm.get(point.arm)).filter((arm) => arm && arm.workers > 1).map((arm) => arm && networkName(arm)));
  const seen = new Set<string>();
  for (const point of points) {
    const of = model.arm.get(point.arm);
    const rate = known(point.examples_per_s) && known(single?.examples_per_s) ? point.examples_per_s / single.examples_per_s : null;
    const faster = point.speedup ?? rate;
    if (!of || of.excluded || !known(faster) || seen.has(point.arm)) continue;
    seen.add(point.arm);
    const name = of.codec && of.codec !== "none" ? `${of.strategy} + ${of.codec}` : of.strategy;
    append(groups, networks.size > 1 && of.workers > 1 && networkName(of) ? `${name}, ${networkName(of)}` : name, { ...point, of, faster });
  }
  // One worker is where every line begins, whatever it is called.
  const origin = [...groups.values()].flat().find((spot) => spot.workers === 1 && spot.of.family === "single");
  return [...groups].filter(([, spots]) => spots.some((spot) => spot !== origin) || groups.size === 1)
    .map(([name, spots]) => ({
      name,
      spots: [...(origin && !spots.some((spot) => spot.workers === 1) ? [origin] : []), ...spots].sort((a, b) => a.workers - b.workers),
    }))
    .sort((a, b) => b.spots.length - a.spots.length);
}

export function ScalingChart({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const panels = [
    { key: "strong", title: "the same work, more workers", series: seriesOf(model.results.scaling.strong, model) },
    { key: "weak", title: "the same work for each worker", series: seriesOf(model.results.scaling.weak, model) },
  ].filter(({ series }) => new Set(series.flatMap(({ spots }) => spots.map((spot) => spot.workers))).size > 1);
  if (panels.length === 0) return null;

  const draw = (width: number) => {
    const stacked = width < 720 || panels.length === 1;
    const each = stacked ? Math.min(width, 640) : (width - 30) / 2;
    const names = (series: Series[]) => series.slice(0, mostNamed);
    const margin = Math.min(170, Math.max(40, ...panels.flatMap(({ series }) => names(series).map(({ name }) => textWidth(shorten(name, 22), 12)))) + 16);
    const [left, top, high] = [40, 40, 260];
    const block = top + high + 52;
    return (
      <Drawing width={width} height={stacked ? panels.length * block : block} label="Speed-up against the number of workers">
        {panels.map(({ key, title, series }, i) => {
          const x0 = (stacked ? 0 : i * (each + 30)) + left;
          const y0 = stacked ? i * block : 0;
          const right = x0 + each - left - margin;
          const spots = series.flatMap((one) => one.spots);
          const [, workers] = extent(spots.map((spot) => spot.workers));
          const most = Math.max(workers, extent(spots.map((spot) => spot.faster))[1]);
          const x = scaleLinear().domain([0, workers]).range([x0, right]);
          const y = scaleLinear().domain([0, most]).range([y0 + top + high, y0 + top]);
          const named = names(series);
          const ends = dodge(named.map((one) => y(one.spots.at(-1)?.faster ?? 0)), 14, y0 + top, y0 + top + high);
          return (
            <g key={key}>
              <text class="panel-title" x={x0 - left + 4} y={y0 + 16}>{key === "strong" ? "Strong" : "Weak"}: {title}</text>
              <YAxis scale={y} left={x0} right={right} count={5} format={(v) => `${compact(v)}x`} top={y0 + top} />
              <XAxis
                scale={Object.assign((v: number) => x(v), { ticks: () => [...new Set(spots.map((spot) => spot.workers))] })}
                left={x0} right={right} top={y0 + top} bottom={y0 + top + high} count={10} format={compact} label="workers" grid={false}
              />
              <line class="ideal" x1={x(0)} y1={y(0)} x2={x(workers)} y2={y(workers)} />
              <text class="context" x={x(workers * 0.62) - 8} y={y(workers * 0.62) - 4} text-anchor="end">ideal</text>
              {series.map((one, s) => (
                <g key={one.name} class={familyClass(one.spots.at(-1)?.of.family ?? "")} data-arm={one.spots.at(-1)?.arm}>
                  <polyline class="curve mean-line" points={one.spots.map((spot) => `${x(spot.workers)},${y(spot.faster)}`).join(" ")} />
                  {one.spots.map((spot) => (
                    <g
                      key={spot.arm} class={`mean ${familyClass(spot.of.family)}`} transform={`translate(${x(spot.workers)},${y(spot.faster)})`}
                      {...mark({
                        label: `${spot.of.name}: ${ratio(spot.faster)} with ${spot.workers} workers, ${percent(spot.faster / spot.workers)} of the ideal`,
                        arm: spot.arm, tip: () => <ArmTip arm={spot.of} model={model} />, open: () => openArm(spot.arm),
                      })}
                    >
                      <circle class="hit" data-hit r={11} />
                      <path d={shapePath(spot.of.family, 80)} />
                    </g>
                  ))}
                  {s < mostNamed && <text class="name" x={right + 12} y={ends[s]} dy="0.34em" font-size="12">{shorten(one.name, 22)}</text>}
                </g>
              ))}
            </g>
          );
        })}
      </Drawing>
    );
  };
  return (
    <Figure
      id="scaling" title="Scaling" draw={draw}
      lead="Measured speed-up beside the ideal, which is as many times faster as there are workers."
      sheet={() => ({
        header: ["kind", "name", "workers", "examples per second", "speedup", "efficiency"],
        rows: panels.flatMap(({ key, series }) => series.flatMap(({ spots }) => spots.map((spot) => [
          key, spot.of.name, spot.workers, spot.examples_per_s, spot.faster, spot.faster / spot.workers,
        ]))),
      })}
    />
  );
}
