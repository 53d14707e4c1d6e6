// What `advise` predicted, row by row, and what ran of it.
import { useState } from "preact/hooks";
import { bytes, known, plural, significant } from "./format";
import type { Model } from "./model";
import { Shape } from "./shape";
import { errorText } from "./words";

const fewRows = 20;

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
                <th scope="row"><span class="row-name"><Shape family={row.family} />{row.name}{row === best && <b class="whole"> ✓ fastest</b>}</span></th>
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
