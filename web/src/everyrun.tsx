// Every run, one by one: paged, and its card made only when it is opened.
import { useState } from "preact/hooks";
import { plural, quality, seconds } from "./format";
import type { Model } from "./model";
import { RunCard } from "./run";
import { Shape } from "./shape";
import { Pager } from "./table";
import { runName, stateName } from "./words";

const pageSize = 20;

export function EveryRun({ model }: { model: Model }) {
  const [page, setPage] = useState(0);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const { runs } = model.results;
  if (runs.length === 0) return null;
  const pages = Math.ceil(runs.length / pageSize);
  const at = Math.min(page, pages - 1);
  const toggled = (id: string, isOpen: boolean) => {
    const next = new Set(open);
    if (isOpen) next.add(id);
    else next.delete(id);
    setOpen(next);
  };
  return (
    <section class="wide" aria-labelledby="runs-title">
      <h2 id="runs-title">Every run</h2>
      <p class="lead">{plural(runs.length, "run")}: settings, where each was made, and the command that repeats it.</p>
      <div class="runs">
        {runs.slice(at * pageSize, (at + 1) * pageSize).map((run) => (
          <details key={run.id} open={open.has(run.id)} onToggle={(event) => toggled(run.id, event.currentTarget.open)}>
            <summary>
              <Shape family={model.arm.get(run.arm)?.family ?? "control"} />
              <span class="grow">{runName(run, model.arm.get(run.arm))}</span>
              <span class="number">{run.state === "done" ? `${quality(run.quality, model.measureOf(model.arm.get(run.arm)))}, ${seconds(run.train_seconds)}` : stateName(run.state)}</span>
            </summary>
            {open.has(run.id) && <RunCard run={run} arm={model.arm.get(run.arm)} model={model} />}
          </details>
        ))}
      </div>
      {pages > 1 && <Pager at={at} pages={pages} turn={setPage} />}
    </section>
  );
}
