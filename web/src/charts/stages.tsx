// Models that are cut into stages: what each stage does in a step, and what it sends.
import { useState } from "preact/hooks";
import { bytes, byteUnit, compact, count, known, percent, plural, significant } from "../format";
import { extent, type Model } from "../model";
import type { Arm, Pipeline, Stage } from "../results";
import { StackedBars, type Bar, type Row } from "./bars";

/** What a step is spent on. The last is what is left. */
const parts: [string, string, (stage: Stage) => number][] = [
  ["part-forward", "forward", (s) => s.forward_ms ?? 0],
  ["part-backward", "backward", (s) => s.backward_ms ?? 0],
  ["part-coding", "coding", (s) => s.coding_ms ?? 0],
  ["part-optimizer", "update", (s) => s.optimizer_ms ?? 0],
  ["part-waiting", "waiting for other stages", (s) => (s.waiting_forward_ms ?? 0) + (s.waiting_backward_ms ?? 0) + (s.sending_ms ?? 0)],
  ["part-exchange", "waiting for replicas and the step’s end", (s) => s.exchange_ms ?? 0],
  ["part-data", "rest", (s) => (s.data_ms ?? 0) + (s.other_ms ?? 0)],
];

const kinds: [string, string, (stage: Stage) => number][] = [
  ["kind-activations", "activations, forwards", (s) => s.bytes_forward ?? 0],
  ["kind-backward", "their gradients, backwards", (s) => s.bytes_backward ?? 0],
  ["kind-gradients", "gradients or parameters, to replicas", (s) => s.bytes_gradients ?? 0],
  ["kind-parameters", "tied tables", (s) => s.bytes_tied ?? 0],
];

const numbers: (keyof Stage)[] = [
  "ms", "forward_ms", "backward_ms", "coding_ms", "waiting_forward_ms", "waiting_backward_ms", "sending_ms", "exchange_ms", "optimizer_ms", "data_ms",
  "other_ms", "bubble", "bytes_forward", "bytes_backward", "bytes_gradients", "bytes_tied", "bits_forward", "bits_backward", "error_forward", "error_backward",
];

type StagedArm = Arm & { pipeline: Pipeline };

function rowsOf(arm: StagedArm, what: typeof parts, end: (stage: Stage) => string, say: (value: number) => string): Row<Bar>[] {
  return arm.pipeline.stages.map((stage, i) => {
    const segments = what.flatMap(([part, name, value]) => (value(stage) > 0 ? [{ part, name, value: value(stage) }] : []));
    const name = `stage ${i}, ${plural(stage.blocks, "block")}`;
    return {
      arm: { id: `${arm.id} stage ${i}`, name, family: arm.family },
      segments,
      end: end(stage),
      label: `${name} (${stage.ranks.length === 1 ? "rank" : "ranks"} ${stage.ranks.join(", ")}): ${segments.map((segment) => `${segment.name} ${say(segment.value)}`).join(", ") || "nothing"}`,
    };
  });
}

function legendOf(rows: Row<Bar>[], what: typeof parts) {
  return what.filter(([part]) => rows.some((row) => row.segments.some((segment) => segment.part === part))).map(([part, name]) => ({ part, name }));
}

function sheetOf(arm: StagedArm) {
  return {
    header: ["stage", "blocks", "ranks", ...numbers.map((name) => name.replaceAll("_", " "))],
    rows: arm.pipeline.stages.map((stage, i) => [i, stage.blocks, stage.ranks.join(" "), ...numbers.map((name) => stage[name] as number | null)]),
  };
}

/** "4.3 bits a value forwards (error 2 %), 8.1 backwards": over the run, the mean of the stages that send. */
function bitsWords({ stages }: Pipeline): string {
  const mean = (name: "bits_forward" | "bits_backward" | "error_forward" | "error_backward") => {
    const values = stages.map((stage) => stage[name]).filter(known);
    return values.length > 0 ? values.reduce((a, b) => a + b, 0) / values.length : null;
  };
  const [forward, backward] = [mean("bits_forward"), mean("bits_backward")];
  if (!known(forward) || !known(backward)) return "";
  const off = (error: number | null) => (known(error) && error > 0 ? ` (off by ${percent(error)})` : "");
  return ` Over the run a value took ${significant(forward, 2)} bits forwards${off(mean("error_forward"))} and ${significant(backward, 2)} backwards${off(mean("error_backward"))}.`;
}

export function StageCharts({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const arms = model.arms.filter((arm): arm is StagedArm => !!arm.pipeline && arm.pipeline.stages.length > 0);
  const [chosen, choose] = useState<string | null>(null);
  const arm = arms.find((each) => each.id === chosen) ?? arms.find((each) => each.id === model.results.advice.arm) ?? arms[0];
  if (!arm) return null;
  const { pipeline } = arm;
  const time = rowsOf(arm, parts, (stage) => `${significant(stage.ms)} ms, idle ${percent(stage.bubble)}`, (ms) => `${significant(ms, 2)} ms`);
  const total = (stage: Stage) => kinds.reduce((sum, [, , value]) => sum + value(stage), 0);
  const sent = rowsOf(arm, kinds, (stage) => bytes(total(stage)), (value) => bytes(value));
  const [, most] = extent(pipeline.stages.map(total));
  const [unit, unitName] = byteUnit(most);
  const chooser = arms.length > 1 ? (
    <label class="chooser">
      Stages of{" "}
      <select value={arm.id} onChange={(event) => choose(event.currentTarget.value)}>
        {arms.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}
      </select>
    </label>
  ) : <>{arm.name}. </>;
  return (
    <div class="pair">
      <StackedBars
        id="stages" title="What each stage does in a step" axis="ms per step" rows={time} legend={legendOf(time, parts)} model={model} openArm={openArm} many="stages"
        lead={<>{chooser} One bar for each stage{pipeline.replicas > 1 ? `, the mean of its ${plural(pipeline.replicas, "replica")}` : ""}. Idle is the share in which it neither computes nor codes.</>} format={compact}
        note={
          <p>
            {count(pipeline.micro_batches)} micro-batches a step, {pipeline.schedule}; activations: {pipeline.activation_codec === "none" ? "as they are" : pipeline.activation_codec}
            {pipeline.activation_codec !== "none" && (pipeline.coded_evaluations ? ", in evaluations too" : ", not in evaluations")}.{bitsWords(pipeline)}
          </p>
        }
        sheet={() => sheetOf(arm)}
      />
      <StackedBars
        id="stage-bytes" title="What each stage sends" axis={`${unitName} per worker and step`} rows={sent} unit={unit} format={compact} legend={legendOf(sent, kinds)} model={model} openArm={openArm} many="stages"
        lead="Bytes that a rank of the stage sends in a step, and to whom." sheet={() => sheetOf(arm)}
      />
    </div>
  );
}
