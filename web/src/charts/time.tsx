// Where the time of an iteration goes.
import { compact, count, known, significant } from "../format";
import { bySpeed, type Model } from "../model";
import type { Arm } from "../results";
import { errorText, partNames, partsOf } from "../words";
import { StackedBars, type Row, type Segment } from "./bars";

/** A prediction knows compute as one part. */
function expected(arm: Arm): Segment[] | undefined {
  const { compute_ms, exchange_ms } = arm.predicted ?? {};
  if (!known(compute_ms) || !known(exchange_ms)) return undefined;
  return [{ part: "part-compute", name: "compute", value: compute_ms }, { part: "part-exchange", name: "waiting for exchange", value: exchange_ms }];
}

export function TimeChart({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const rows = bySpeed(model).flatMap((arm): Row[] => {
    const parts = partsOf(arm.parts);
    if (parts.length === 0) return [];
    const total = parts.reduce((sum, { ms }) => sum + ms, 0);
    const hidden = arm.parts?.hidden ?? 0;
    const said = parts.map(({ name, ms }) => `${name} ${significant(ms, 2)} ms`).join(", ");
    return [{
      arm,
      segments: parts.map(({ part, name, ms }) => ({ part: `part-${part}`, name, value: ms })),
      outline: hidden,
      beside: expected(arm),
      end: `${significant(total)} ms${known(arm.predicted?.ms) ? `, predicted ${significant(arm.predicted.ms)}` : ""}`,
      label: `${arm.name}: ${significant(total)} ms per iteration: ${said}${hidden > 0 ? `, and ${significant(hidden, 2)} ms of exchange hidden behind compute` : ""}${known(arm.predicted?.ms) ? `; predicted ${significant(arm.predicted.ms)} ms (${errorText(arm.predicted.error)})` : ""}`,
    }];
  });
  if (rows.length === 0) return null;
  const used = partNames.filter(([part]) => rows.some((row) => row.segments.some((s) => s.part === `part-${part}` && s.value > 0)));
  const legend = used.map(([part, name]) => ({ part: `part-${part}`, name }));
  if (rows.some((row) => (row.outline ?? 0) > 0)) legend.push({ part: "hidden-part", name: "exchange hidden behind compute" });
  if (rows.some((row) => row.beside)) legend.push({ part: "part-compute beside", name: "below each bar: predicted compute and exchange" });
  const batches = [...new Set(rows.map((row) => row.arm.global_batch).filter(known))].sort((a, b) => a - b);
  return (
    <StackedBars
      id="time" title="Where the time goes" axis="ms per iteration" rows={rows} legend={legend} model={model} openArm={openArm}
      lead="One iteration, in milliseconds." format={compact}
      note={batches.length > 1 && (
        <p>An update takes {batches.slice(0, 4).map((each) => count(each)).join(", ").replace(/, ([^,]*)$/, " or $1")} examples, depending on the arm: compare examples per second between those, not iterations.</p>
      )}
      sheet={() => ({
        header: ["name", "examples per update", ...partNames.map(([part]) => `${part} ms`), "hidden ms", "predicted ms", "predicted compute ms", "predicted exchange ms"],
        rows: rows.map(({ arm }) => [
          arm.name, arm.global_batch ?? null, ...partNames.map(([part]) => arm.parts?.[part] ?? null), arm.parts?.hidden ?? null,
          arm.predicted?.ms ?? null, arm.predicted?.compute_ms ?? null, arm.predicted?.exchange_ms ?? null,
        ]),
      })}
    />
  );
}
