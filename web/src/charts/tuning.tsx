// How each arm's learning rate was chosen: small multiples on one scale, so that an untuned rate shows.
import { scaleLinear, scaleLog } from "d3-scale";
import { familyClass } from "../families";
import { capital, known, quality, qualityNumber, significant } from "../format";
import { extent, type Model } from "../model";
import { mark } from "../tip";
import { padded } from "./axes";
import { Drawing, Figure } from "./figure";
import { fitted } from "./labels";

const mostPanels = 24;

export function TuningChart({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const { measure } = model.results;
  const tuned = model.arms.flatMap((arm) => {
    const points = (arm.tuning?.values ?? []).filter((each): each is { value: number; mean: number } => known(each.value) && known(each.mean) && each.value > 0)
      .sort((a, b) => a.value - b.value);
    return arm.tuning && !arm.excluded && points.length > 1 ? [{ arm, points, tuning: arm.tuning }] : [];
  });
  if (tuned.length === 0) return null;
  const all = tuned.flatMap(({ points }) => points);
  const rates = extent(all.map(({ value }) => value));
  const scores = padded(all.map(({ mean }) => mean), 0.1);

  const draw = (width: number) => {
    const columns = Math.max(2, Math.floor(width / 200));
    const cell = width / columns;
    const high = 140;
    const shown = tuned.slice(0, mostPanels);
    return (
      <Drawing width={width} height={Math.ceil(shown.length / columns) * high} label="Quality against learning rate, by arm">
        {shown.map(({ arm, points, tuning }, i) => {
          const [x0, y0] = [(i % columns) * cell, Math.floor(i / columns) * high];
          const x = scaleLog().domain(rates).range([x0 + 14, x0 + cell - 40]);
          const y = scaleLinear().domain(scores).range(measure.higher_is_better ? [y0 + high - 38, y0 + 38] : [y0 + 38, y0 + high - 38]);
          const best = points.find(({ value }) => value === tuning.best);
          const words = `${arm.name}: best rate ${significant(tuning.best)}, ${quality(best?.mean, measure)}${tuning.edge ? `, the ${tuning.edge === "low" ? "lowest" : "highest"} that was tried` : ""}`;
          return (
            <g
              key={arm.id} class={`bar-row ${familyClass(arm.family)}`}
              {...mark({ label: words, arm: arm.id, tip: () => <p>{words}</p>, open: () => openArm(arm.id) })}
            >
              <rect class="row-hit" data-hit x={x0} y={y0} width={cell - 8} height={high - 6} />
              <text class="name" aria-hidden="true" x={x0 + 8} y={y0 + 13} font-size="12">{fitted(arm.name, cell - 24, 12)}</text>
              <line class="grid" x1={x0 + 8} x2={x0 + cell - 30} y1={y0 + high - 28} y2={y0 + high - 28} />
              <polyline class="curve mean-line" points={points.map(({ value, mean }) => `${x(value)},${y(mean)}`).join(" ")} />
              {points.map(({ value, mean }) => <circle key={value} class="seed" cx={x(value)} cy={y(mean)} r={2.5} />)}
              {best && (
                <g class={`mean ${tuning.edge ? "edge" : ""}`} transform={`translate(${x(best.value)},${y(best.mean)})`}>
                  <path d="M-5,0a5,5,0,1,0,10,0a5,5,0,1,0,-10,0" />
                  <text class="context" aria-hidden="true" x={8} y={-4}>{qualityNumber(best.mean, measure)}</text>
                </g>
              )}
              <text class="context" aria-hidden="true" x={best ? x(best.value) : x0 + 14} y={y0 + high - 14} text-anchor="middle">
                {significant(tuning.best, 2)}{tuning.edge ? " ⚠ edge" : ""}
              </text>
            </g>
          );
        })}
      </Drawing>
    );
  };
  return (
    <Figure
      id="tuning" title="How the learning rates were chosen" draw={draw} class="wide-chart"
      lead={`${capital(measure.label)} on the validation set against the learning rate (logarithmic). A best rate at the edge of its grid may not be the best.`}
      note={tuned.length > mostPanels && <p>The CSV has the other {tuned.length - mostPanels} arms.</p>}
      sheet={() => ({
        header: ["name", "learning rate", measure.name || "quality", "chosen", "edge"],
        rows: tuned.flatMap(({ arm, points, tuning }) => points.map(({ value, mean }) => [arm.name, value, mean, value === tuning.best ? "yes" : "", value === tuning.best ? (tuning.edge ?? "") : ""])),
      })}
    />
  );
}
