// What goes on now: progress of each run, the speed of each worker, what the links carry.
import { useEffect, useRef, useState } from "preact/hooks";
import { ago, bytes, count, known, percent, plural, seconds, significant } from "./format";
import type { LiveState } from "./live";
import type { Model } from "./model";
import type { Num, Run } from "./results";
import { runName } from "./words";

const mostRunning = 8;

/** Updates per second of each worker between the last two events. */
function useWorkerRates(run: Run): Num[] | null {
  const last = useRef<{ at: number; updates: Num[] } | null>(null);
  const rates = useRef<Num[] | null>(null);
  const updates = run.progress?.updates_by_worker ?? null;
  const key = updates?.join() ?? "";
  useEffect(() => {
    if (!updates) return;
    const now = performance.now();
    const before = last.current;
    if (before && now - before.at > 200) {
      rates.current = updates.map((each, i) => {
        const was = before.updates[i];
        return known(each) && known(was) ? ((each - was) * 1000) / (now - before.at) : null;
      });
    }
    last.current = { at: now, updates };
  }, [key]);
  return rates.current;
}

function Workers({ run }: { run: Run }) {
  const rates = useWorkerRates(run);
  const updates = run.progress?.updates_by_worker;
  const losses = run.progress?.losses_by_worker;
  const workers = Math.max(updates?.length ?? 0, losses?.length ?? 0);
  if (workers === 0) return null;
  const most = Math.max(1, ...(updates ?? []).filter(known));
  return (
    <table class="workers">
      <thead><tr><th scope="col">worker</th>{updates && <th scope="col">updates</th>}{updates && <th scope="col" class="number">per s</th>}{losses && <th scope="col" class="number">loss</th>}</tr></thead>
      <tbody>
        {Array.from({ length: workers }, (_, i) => (
          <tr key={i}>
            <th scope="row">{i}</th>
            {updates && <td><meter min={0} max={most} value={updates[i] ?? 0} /> {count(updates[i])}</td>}
            {updates && <td class="number">{significant(rates?.[i] ?? null, 2)}</td>}
            {losses && <td class="number">{significant(losses[i] ?? null)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Going({ run, model }: { run: Run; model: Model }) {
  const arm = model.arm.get(run.arm);
  const p = run.progress;
  const share = p && known(p.step) && known(p.of) && p.of > 0 ? p.step / p.of : null;
  const stale = arm?.staleness;
  const all = stale?.reduce((sum, each) => sum + each, 0) ?? 0;
  const meanStale = stale && all > 0 ? stale.reduce((sum, each, i) => sum + each * i, 0) / all : null;
  return (
    <li class="going">
      <p class="going-name">{runName(run, arm)}</p>
      <progress max={1} value={share ?? undefined} aria-label={`Progress of ${runName(run, arm)}`} />
      <p class="quiet tabular">
        {share === null ? "starting" : `step ${count(p?.step)} of ${count(p?.of)}, ${percent(share)}`}
        {known(p?.seconds_left) && `, ${seconds(p.seconds_left)} left`}
        {known(run.loss) && `, loss ${significant(run.loss)}`}
        {known(run.examples_per_s) && `, ${significant(run.examples_per_s)} examples/s`}
        {known(p?.bytes_per_s) && p.bytes_per_s > 0 && `, each worker sends ${bytes(p.bytes_per_s)}/s`}
        {known(meanStale) && `, updates ${significant(meanStale, 2)} old on average`}
      </p>
      <Workers run={run} />
    </li>
  );
}

export function Now({ model }: { model: Model }) {
  const running = model.results.runs.filter((run) => run.state === "running");
  const done = model.results.runs.filter((run) => run.state !== "running" && run.state !== "planned").length;
  if (running.length === 0 && model.results.state !== "running") return null;
  const all = model.results.runs.length;
  return (
    <section class="now" aria-labelledby="now-title">
      <h2 id="now-title">Going on now</h2>
      <p class="lead tabular" role="status">{count(done)} of {plural(all, "run")} done.</p>
      <progress max={all} value={done} aria-label="Runs done" />
      <ul class="plain">{running.slice(0, mostRunning).map((run) => <Going key={run.id} run={run} model={model} />)}</ul>
      {running.length > mostRunning && <p class="quiet">and {running.length - mostRunning} more</p>}
    </section>
  );
}

/** "updated 3 s ago". It ticks in silence: a screen reader hears only when the connection is lost or back. */
export function LiveStatus({ live }: { live: LiveState }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const since = live.updated === null ? "" : `updated ${ago(Math.max(0, now - live.updated))}`;
  return (
    <span class={`live ${live.connection}`}>
      <span class="light" aria-hidden="true" />
      <span role="status">{live.connection === "lost" ? "connection lost, trying again" : live.connection === "connecting" ? "connecting" : "live"}</span>
      {since && <span class="quiet tabular" aria-hidden="true">{since}</span>}
    </span>
  );
}
