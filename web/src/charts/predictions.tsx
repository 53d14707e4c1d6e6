// Predicted against measured time of an iteration: on the diagonal they agree.
import { scaleLog } from "d3-scale";
import { familyClass, shapePath } from "../families";
import { compact, known, plural, significant } from "../format";
import { extent, type Model } from "../model";
import type { PredictionErrors, PredictionPoint } from "../results";
import type { Sheet } from "../save";
import { mark } from "../tip";
import { errorText } from "../words";
import { XAxis, YAxis, type Scale } from "./axes";
import { Drawing, Figure, SheetTable, Swatches } from "./figure";
import { placeLabels, shorten, textWidth, type Box } from "./labels";

const seriesNames: Record<string, string> = {
  advice: "By advise, before the runs",
  simulated: "By simulate",
  run: "By each run at its end",
};

/** Below this a picture says less than its numbers. */
const fewPoints = 3;
const mostNamed = 24;

interface Panel {
  series: string;
  points: PredictionPoint[];
}

function panelsOf(points: PredictionPoint[]): Panel[] {
  return ["advice", "simulated", "run"].map((series) => ({
    series,
    points: points.filter((point) => point.series === series && known(point.predicted.ms) && known(point.measured.ms) && point.predicted.ms > 0 && point.measured.ms > 0),
  })).filter((panel) => panel.points.length > 0);
}

function sheetOf(points: PredictionPoint[]): Sheet {
  return {
    header: ["predicted by", "name", "network", "predicted ms", "measured ms", "error %", "predicted compute ms", "measured compute ms", "predicted exchange ms", "measured exchange ms", "does not count because"],
    rows: points.map((point) => [
      point.series, point.name, point.network, point.predicted.ms, point.measured.ms, known(point.error) ? point.error * 100 : null,
      point.predicted.compute_ms, point.measured.compute_ms, point.predicted.exchange_ms, point.measured.exchange_ms, point.why_not,
    ]),
  };
}

function PointTip({ point }: { point: PredictionPoint }) {
  const part = (name: string, predicted: number | null, measured: number | null) =>
    known(predicted) || known(measured) ? <tr><th scope="row">{name}</th><td>{significant(predicted)}</td><td>{significant(measured)}</td></tr> : null;
  return (
    <>
      <p><b>{point.name}</b>{point.network && ` on ${point.network}`}</p>
      <table class="tip-table">
        <thead><tr><th scope="col">ms</th><th scope="col">predicted</th><th scope="col">measured</th></tr></thead>
        <tbody>
          {part("iteration", point.predicted.ms, point.measured.ms)}
          {part("compute", point.predicted.compute_ms, point.measured.compute_ms)}
          {part("exchange waited for", point.predicted.exchange_ms, point.measured.exchange_ms)}
          {part("exchange hidden", point.predicted.hidden_ms, point.measured.hidden_ms)}
        </tbody>
      </table>
      <p>{errorText(point.error)}{point.why_not && `; does not count: ${point.why_not}`}</p>
    </>
  );
}

/** Where predicted and measured differ by no more than a share. */
function band(share: number, low: number, high: number, x: (v: number) => number, y: (v: number) => number): string {
  // Straight on logarithmic axes; the clip keeps it in the frame.
  const corner = (v: number, by: number) => `${x(v).toFixed(1)},${y(v * by).toFixed(1)}`;
  return [corner(low, 1 + share), corner(high, 1 + share), corner(high, 1 - share), corner(low, 1 - share)].join(" ");
}

/** Ticks at 1, 2 and 5 times powers of ten, over many powers at these alone. */
function marked(scale: ReturnType<typeof scaleLog<number, number>>): Scale {
  const [low = 1, high = 10] = scale.domain();
  const powers = Math.log10(high / low);
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const digit of powers > 3 ? [1] : powers > 2 ? [1, 3] : [1, 2, 5]) {
      const tick = digit * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return Object.assign((value: number) => scale(value), { ticks: () => ticks });
}

function Scatter({ panel, x0, y0, size, domain, model, openArm }: {
  panel: Panel; x0: number; y0: number; size: number; domain: [number, number]; model: Model; openArm: (id: string) => void;
}) {
  const [left, top, bottom, right] = [x0 + 48, y0 + 44, y0 + size - 46, x0 + size - 8];
  const x = scaleLog().domain(domain).range([left, right]);
  const y = scaleLog().domain(domain).range([bottom, top]);
  const spots = panel.points.map((point, i) => ({ point, key: String(i), x: x(point.measured.ms ?? 1), y: y(point.predicted.ms ?? 1) }));
  const worst = [...spots].sort((a, b) => Math.abs(b.point.error ?? 0) - Math.abs(a.point.error ?? 0));
  const wanted = worst.slice(0, mostNamed).map((spot) => {
    const off = known(spot.point.error) && Math.abs(spot.point.error) > 0.1 ? ` ${errorText(spot.point.error)}` : "";
    const text = shorten(spot.point.name, size < 380 ? 20 : 30) + off;
    return { ...spot, text, width: textWidth(text, 12) };
  });
  const taken: Box[] = spots.map((spot) => ({ x: spot.x - 7, y: spot.y - 7, width: 14, height: 14 }));
  taken.push({ x: right - 96, y: top, width: 96, height: 30 });
  const names = placeLabels(wanted, taken, { x: left, y: top, width: right - left, height: bottom - top }, () => 62);
  const textOf = new Map(wanted.map((each) => [each.key, each]));
  const clip = `clip-${panel.series}`;
  return (
    <g>
      <text class="panel-title" x={x0 + 4} y={y0 + 16}>{seriesNames[panel.series] ?? panel.series}</text>
      <defs><clipPath id={clip}><rect x={left} y={top} width={right - left} height={bottom - top} /></clipPath></defs>
      <g clip-path={`url(#${clip})`} aria-hidden="true">
        <polygon class="band-20" points={band(0.2, domain[0], domain[1], x, y)} />
        <polygon class="band-10" points={band(0.1, domain[0], domain[1], x, y)} />
        <line class="ideal" x1={x(domain[0])} y1={y(domain[0])} x2={x(domain[1])} y2={y(domain[1])} />
      </g>
      <YAxis scale={marked(y)} left={left} right={right} count={20} format={compact} top={top} />
      <XAxis scale={marked(x)} left={left} right={right} top={top} bottom={bottom} count={20} format={compact} label="measured ms per iteration" />
      <text class="axis-name context" x={x0 + 4} y={y0 + 34}>predicted ms per iteration</text>
      {names.filter(({ led }) => led).map((place) => {
        const of = textOf.get(place.key);
        if (!of) return null;
        const end = place.x > of.x ? place.x - 2 : place.x + of.width < of.x ? place.x + of.width + 2 : of.x;
        return <line key={place.key} class="leader" x1={of.x} y1={of.y} x2={end} y2={place.y} />;
      })}
      {spots.map(({ point, key, x: px, y: py }) => {
        const arm = point.arm !== null ? model.arm.get(point.arm) : undefined;
        return (
          <g
            key={key} class={`mean ${familyClass(point.family)} ${point.why_not ? "excluded" : ""}`} transform={`translate(${px.toFixed(1)},${py.toFixed(1)})`} data-prediction={panel.series}
            {...mark({
              label: `${point.name}: predicted ${significant(point.predicted.ms)} ms, measured ${significant(point.measured.ms)} ms, ${errorText(point.error)}${point.why_not ? `, does not count: ${point.why_not}` : ""}`,
              arm: arm?.id, open: arm && (() => openArm(arm.id)), tip: () => <PointTip point={point} />,
            })}
          >
            <circle class="hit" data-hit r={10} />
            <path d={shapePath(point.family, 80)} />
            {point.why_not && <line class="strike" x1={-8} y1={5} x2={8} y2={-5} />}
          </g>
        );
      })}
      {names.map((place) => {
        const of = textOf.get(place.key);
        return of && <text key={place.key} class={`name ${familyClass(of.point.why_not ? "control" : of.point.family)}`} aria-hidden="true" x={place.x} y={place.y} dy="0.34em" style={{ fontSize: "12px" }}>{of.text}</text>;
      })}
    </g>
  );
}

function Words({ errors }: { errors: PredictionErrors[] }) {
  return <>{errors.map((each) => <p key={each.series}>{each.text}</p>)}</>;
}

export function PredictionChart({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const { points, errors } = model.results.predictions;
  const panels = panelsOf(points);
  const drawn = panels.flatMap((panel) => panel.points);
  if (drawn.length === 0) return null;
  const title = "Predicted against measured";
  if (drawn.length < fewPoints) {
    return (
      <section class="chart" id="predictions" aria-labelledby="predictions-title">
        <h2 id="predictions-title">{title}</h2>
        <Words errors={errors} />
        <SheetTable sheet={sheetOf(drawn)} label={`The numbers of “${title}”`} />
      </section>
    );
  }
  const [low, high] = extent(drawn.flatMap((point) => [point.predicted.ms ?? 1, point.measured.ms ?? 1]));
  const air = Math.max(1.25, (high / low) ** 0.08);
  const domain: [number, number] = [low / air, high * air];
  const draw = (width: number) => {
    const columns = width < 760 ? 1 : Math.min(panels.length, width < 1080 ? 2 : 3);
    const size = Math.min((width - (columns - 1) * 20) / columns, panels.length === 1 ? 560 : 460);
    const high = panels.length === 1 ? Math.min(size, 480) : size;
    const rows = Math.ceil(panels.length / columns);
    return (
      <Drawing width={width} height={rows * high} label="Predicted against measured time of an iteration">
        {panels.map((panel, i) => (
          <Scatter
            key={panel.series} panel={panel} size={high} x0={(i % columns) * (high + 20)} y0={Math.floor(i / columns) * high}
            domain={domain} model={model} openArm={openArm}
          />
        ))}
      </Drawing>
    );
  };
  const left = drawn.filter((point) => point.why_not);
  return (
    <Figure
      id="predictions" title={title} draw={draw} sheet={() => sheetOf(drawn)}
      lead={
        <>
          On the dashed line they agree; above it the prediction was too slow. Both axes are logarithmic.
          <Swatches items={[{ part: "band-10", name: "off by at most 10 %" }, { part: "band-20", name: "by at most 20 %" }]} />
        </>
      }
      note={<><Words errors={errors} />{left.length > 0 && <p>Struck through: {plural(left.length, "point")} that {left.length === 1 ? "does" : "do"} not count ({[...new Set(left.map((point) => point.why_not))].slice(0, 3).join("; ")}).</p>}</>}
    />
  );
}
