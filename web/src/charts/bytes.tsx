// What a worker sends in a step, by what it carries, and how much of the link that uses.
import { bytes, byteUnit, compact, known, percent, qualityNumber, significant } from "../format";
import { bySpeed, extent, type Model } from "../model";
import type { Arm, Bytes } from "../results";
import { StackedBars, type Row } from "./bars";

const kinds: [keyof Bytes, string][] = [
  ["gradients", "gradients"],
  ["parameters", "parameters"],
  ["activations", "activations"],
  ["control", "control"],
];

function total(arm: Arm): number | null {
  return known(arm.bytes?.total_gib) ? arm.bytes.total_gib * 1024 ** 3 : null;
}

/** What a point of quality cost in bytes of all workers. Only of per cent: of others a point means nothing. */
function perPoint(arm: Arm, model: Model): number | null {
  const all = total(arm);
  const mean = arm.quality?.mean;
  return all !== null && known(mean) && mean > 0 && model.results.measure.percent ? all / (mean * 100) : null;
}

export function BytesChart({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const { measure } = model.results;
  const rows = bySpeed(model).flatMap((arm): Row[] => {
    const sent = arm.bytes;
    if (!sent || !known(sent.per_step) || (sent.per_step === 0 && arm.workers === 1)) return [];
    const named = kinds.flatMap(([kind, name]) => {
      const value = sent[kind];
      return known(value) && value > 0 ? [{ part: `kind-${kind}`, name, value }] : [];
    });
    const segments = named.length > 0 ? named : [{ part: "kind-all", name: "not told apart", value: sent.per_step }];
    const use = arm.bandwidth?.utilisation;
    const point = perPoint(arm, model);
    const end = [bytes(sent.per_step), known(use) ? `${percent(use)} of the link` : ""].filter(Boolean).join(", ");
    return [{
      arm, segments, end,
      label: `${arm.name}: each worker sends ${bytes(sent.per_step)} per step${point === null ? "" : `, ${bytes(point)} for a point of ${measure.label}`}${known(use) ? `, ${percent(use)} of the link's rate` : ""}`,
    }];
  });
  if (rows.length === 0 || rows.every((row) => row.segments.every((segment) => segment.value === 0))) return null;
  const used = kinds.filter(([kind]) => rows.some((row) => row.segments.some((segment) => segment.part === `kind-${kind}`)));
  const legend = used.map(([kind, name]) => ({ part: `kind-${kind}`, name }));
  if (rows.some((row) => row.segments.some((segment) => segment.part === "kind-all" && segment.value > 0))) legend.push({ part: "kind-all", name: "not told apart" });
  const dear = rows.map(({ arm }) => ({ arm, point: perPoint(arm, model) })).filter((each): each is { arm: Arm; point: number } => each.point !== null && each.point > 0)
    .sort((a, b) => a.point - b.point);
  const [cheap, costly] = [dear[0], dear.at(-1)];
  const [, most] = extent(rows.map(({ arm }) => arm.bytes?.per_step ?? 0));
  const [unit, unitName] = byteUnit(most);
  const link = rows.map(({ arm }) => arm.bandwidth?.link_gbit).find(known);
  return (
    <StackedBars
      id="bytes" title="What is sent" axis={`${unitName} per worker and step`} rows={rows} unit={unit} format={compact} model={model} openArm={openArm}
      lead="Bytes that each worker sends in a step, by what they carry." legend={legend}
      note={
        <>
          {cheap && costly && cheap !== costly && (
            <p>A point of {measure.label} cost {bytes(cheap.point)} under {cheap.arm.name} ({qualityNumber(cheap.arm.quality?.mean, measure)} % in the end) and {bytes(costly.point)} under {costly.arm.name} ({qualityNumber(costly.arm.quality?.mean, measure)} %).</p>
          )}
          {known(link) && <p>The link’s rate is {significant(link, 2)} Gbit/s; its share is the bus bandwidth, as nccl-tests define it, while something was sent.</p>}
        </>
      }
      sheet={() => ({
        header: ["name", "bytes per step", ...kinds.map(([kind]) => kind), "bytes of all workers", "bytes per point", "algorithm Gbit/s", "bus Gbit/s", "link Gbit/s", "utilisation"],
        rows: rows.map(({ arm }) => [
          arm.name, arm.bytes?.per_step ?? null, ...kinds.map(([kind]) => arm.bytes?.[kind] ?? null), total(arm), perPoint(arm, model),
          arm.bandwidth?.algorithm_gbit ?? null, arm.bandwidth?.bus_gbit ?? null, arm.bandwidth?.link_gbit ?? null, arm.bandwidth?.utilisation ?? null,
        ]),
      })}
    />
  );
}
