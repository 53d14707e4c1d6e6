// Where the time of an iteration goes.
import { compact, count, known, significant } from "../format";
import { bySpeed, type Model } from "../model";
import { partNames, partsOf } from "../words";
import { StackedBars, type Row } from "./bars";

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
      end: `${significant(total)} ms`,
      label: `${arm.name}: ${significant(total)} ms per iteration: ${said}${hidden > 0 ? `, and ${significant(hidden, 2)} ms of exchange hidden behind compute` : ""}`,
    }];
  });
  if (rows.length === 0) return null;
  const used = partNames.filter(([part]) => rows.some((row) => row.segments.some((s) => s.part === `part-${part}` && s.value > 0)));
  const legend = used.map(([part, name]) => ({ part: `part-${part}`, name }));
  if (rows.some((row) => (row.outline ?? 0) > 0)) legend.push({ part: "hidden-part", name: "exchange hidden behind compute" });
  const batches = [...new Set(rows.map((row) => row.arm.global_batch).filter(known))].sort((a, b) => a - b);
  return (
    <StackedBars
      id="time" title="Where the time goes" axis="ms per iteration" rows={rows} legend={legend} model={model} openArm={openArm}
      lead="One iteration, in milliseconds." format={compact}
      note={batches.length > 1 && (
        <p>An update takes {batches.slice(0, 4).map((each) => count(each)).join(", ").replace(/, ([^,]*)$/, " or $1")} examples, depending on the arm: compare examples per second between those, not iterations.</p>
      )}
      sheet={() => ({
        header: ["name", "examples per update", ...partNames.map(([part]) => `${part} ms`), "hidden ms"],
        rows: rows.map(({ arm }) => [arm.name, arm.global_batch ?? null, ...partNames.map(([part]) => arm.parts?.[part] ?? null), arm.parts?.hidden ?? null]),
      })}
    />
  );
}
