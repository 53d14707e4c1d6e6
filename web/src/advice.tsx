// What `advise` predicted, row by row, and what ran of it.
import { useState } from "preact/hooks";
import { StackedBars, type Bar, type Row, type Segment } from "./charts/bars";
import { familyOf } from "./families";
import { bytes, compact, known, plural, significant } from "./format";
import type { Model } from "./model";
import type { AdviceRow, PredictionStep } from "./results";
import { Shape } from "./shape";
import { errorText } from "./words";

const fewRows = 20;

function segments(step: PredictionStep): Segment[] {
  return [
    { part: "part-compute", name: "compute", value: step.compute_ms ?? 0 },
    { part: "part-exchange", name: "waiting for exchange", value: step.exchange_ms ?? 0 },
  ];
}

/** Bars of what was predicted, and below them what was measured. Slow ones would make points of the others. */
export function AdviceBars({ model }: { model: Model }) {
  const advice = model.results.advice_check;
  const rows = (advice?.rows ?? []).filter((row) => known(row.predicted.ms) && known(row.predicted.compute_ms) && known(row.predicted.exchange_ms));
  const fastest = rows[0]?.predicted.ms ?? 0;
  const near = rows.filter((row) => row.measured || (row.predicted.ms ?? 0) <= 20 * fastest);
  if (near.length < 2) return null;
  const label = (row: AdviceRow) =>
    `${row.name}: predicted ${significant(row.predicted.ms)} ms${row.measured ? `, measured ${significant(row.measured.ms)} ms (${errorText(row.error)})` : ""}`;
  const bars = near.map((row, i): Row<Bar> => ({
    arm: { id: `advice-${i}`, name: row.name, family: familyOf(row.family) },
    segments: segments(row.predicted), beside: row.measured ? segments(row.measured) : undefined, label: label(row),
    end: `${significant(row.predicted.ms)} ms${row.measured ? `, measured ${significant(row.measured.ms)}` : ""}`,
  }));
  return (
    <StackedBars
      id="advice-time" title="Where the time of a step would go" axis="ms per iteration, predicted" rows={bars} format={compact} model={model} openArm={() => {}}
      many="rows" lead="By prediction, the fastest first."
      legend={[
        ...segments({ ms: 0, compute_ms: 0, exchange_ms: 0, hidden_ms: 0 }),
        ...(near.some((row) => row.measured) ? [{ part: "part-compute beside", name: "below a bar: the same, measured" }] : []),
      ]}
      note={near.length < rows.length && <p>{plural(rows.length - near.length, "row")} left out, more than twenty times as slow as the fastest and not measured: the table has them.</p>}
      sheet={() => ({
        header: ["name", "predicted ms", "predicted compute ms", "predicted exchange ms", "measured ms", "measured compute ms", "measured exchange ms"],
        rows: near.map((row) => [
          row.name, row.predicted.ms, row.predicted.compute_ms, row.predicted.exchange_ms,
          row.measured?.ms ?? null, row.measured?.compute_ms ?? null, row.measured?.exchange_ms ?? null,
        ]),
      })}
    />
  );
}

export function AdviceTable({ model }: { model: Model }) {
  const [all, setAll] = useState(false);
  const advice = model.results.advice_check;
  if (!advice || advice.rows.length === 0) return null;
  const best = known(advice.best) ? advice.rows[advice.best] : undefined;
  const measured = advice.rows.some((row) => row.measured);
  const rows = all ? advice.rows : advice.rows.slice(0, fewRows);
  const about = [
    [advice.task, advice.model].filter(Boolean).join(" with "),
    advice.network ? `on ${advice.network}${known(advice.scale) && advice.scale !== 1 ? ` ÷ ${advice.scale}` : ""}` : "",
    known(advice.global_batch) ? `${advice.global_batch} examples in an update` : "",
  ].filter(Boolean).join(", ");
  return (
    <section class="wide" aria-labelledby="advice-title" id="advice">
      <h2 id="advice-title">What was predicted for this network</h2>
      <p class="lead">{about && `${about}. `}Speed alone: what a rhythm or a codec costs in quality only runs can tell.</p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Predictions, which scroll sideways">
        <table class="sheet advice">
          <thead>
            <tr>
              <th scope="col">name</th><th scope="col" class="number">predicted ms</th><th scope="col" class="number">compute</th><th scope="col" class="number">exchange</th>
              <th scope="col" class="number">examples/s</th><th scope="col" class="number">sent per step</th>
              {measured && <><th scope="col" class="number">measured ms</th><th scope="col" class="number">error</th></>}
              <th scope="col">worth it</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i} class={row === best ? "best" : ""}>
                <th scope="row"><span class="row-name"><Shape family={row.family} /><span>{row.name}{row === best && <b class="whole"> ✓ fastest</b>}</span></span></th>
                <td class="number">{significant(row.predicted.ms)}</td>
                <td class="number">{significant(row.predicted.compute_ms)}</td>
                <td class="number">{significant(row.predicted.exchange_ms)}</td>
                <td class="number">{significant(row.predicted.examples_per_s)}</td>
                <td class="number">{bytes(row.predicted.bytes_per_step)}</td>
                {measured && <><td class="number">{significant(row.measured?.ms)}</td><td class="number">{errorText(row.error)}</td></>}
                <td>{row.worth_it === false ? "✗ " : row.worth_it ? "✓ " : ""}{row.why ?? ""}{row.failed && <span class="bad"> could not be run: {row.failed}</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {advice.rows.length > fewRows && (
        <p><button type="button" class="link" aria-expanded={all} onClick={() => setAll(!all)}>{all ? `Only the first ${fewRows}` : `Show all ${plural(advice.rows.length, "row")}`}</button></p>
      )}
    </section>
  );
}
