// Everything about one run: its settings, where it was made, and the command that makes it again.
import { useState } from "preact/hooks";
import { bytes, count, known, quality, ratio, seconds, setting, significant } from "./format";
import type { Model } from "./model";
import type { Arm, Run } from "./results";
import { partsOf, stateName } from "./words";

export function Copy({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("copied");
    } catch {
      setSaid("select it and press Ctrl-C"); // a page from disk may not be allowed to
    }
    setTimeout(() => setSaid(""), 3000);
  };
  return (
    <>
      <button type="button" class="copy" aria-label={label} onClick={copy}>Copy</button>
      <span class="quiet" role="status">{said}</span>
    </>
  );
}

export function Facts({ facts }: { facts: [string, string | null | undefined][] }) {
  const given = facts.filter(([, value]) => value && value !== "–");
  return (
    <dl class="facts">
      {given.map(([name, value]) => (
        <div key={name} class={name.length + (value?.length ?? 0) > 42 ? "long" : ""}><dt>{name}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}

export function SettingsTable({ settings }: { settings: Record<string, unknown> }) {
  const names = Object.keys(settings);
  if (names.length === 0) return <p class="quiet">None.</p>;
  return <Facts facts={names.map((name) => [name, setting(settings[name])])} />;
}

function quoted(folder: string): string {
  return /^[\w./-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
}

export function RunCard({ run, arm, model }: { run: Run; arm: Arm | undefined; model: Model }) {
  const measure = model.measureOf(arm);
  const hidden = run.parts?.hidden;
  return (
    <div class="run-card">
      {run.message && <p class="bad">✗ {run.message}</p>}
      <Facts
        facts={[
          ["state", stateName(run.state) + (run.reused ? ", from an earlier sweep" : "")],
          [measure.label, quality(run.quality, measure) + (run.collapsed ? " (collapsed)" : "")],
          ["training loss at the end", significant(run.loss)],
          ["speed-up", ratio(run.speedup)],
          ["training time", seconds(run.train_seconds)],
          ["steps", count(run.steps)],
          ["examples", count(run.examples)],
          ["examples/s", significant(run.examples_per_s)],
          ["ms per iteration", significant(run.ms)],
          ["of which", partsOf(run.parts).map(({ name, ms }) => `${name} ${significant(ms, 2)}`).join(", ")],
          ["exchange hidden behind compute", known(hidden) && hidden > 0 ? `${significant(hidden, 2)} ms` : null],
          ["sent per step", bytes(run.bytes_per_step)],
          ["peak memory", bytes(run.peak_memory)],
        ]}
      />
      {run.command && (
        <>
          <h4>To repeat it</h4>
          <div class="command"><code>{run.command}</code><Copy text={run.command} label="Copy the command" /></div>
        </>
      )}
      <h4>What differs from other runs</h4>
      <SettingsTable settings={Object.keys(run.settings).length > 0 ? run.settings : (arm?.settings ?? {})} />
      <h4>Where it was made</h4>
      <Facts
        facts={[
          ["host", run.host], ["processor", run.cpu],
          ["cores", count(run.cores)], ["threads per worker", count(run.threads)],
          ["cores busy with other work", significant(run.outside_load, 2)],
          ["date", run.date], ["program", [run.version, run.commit].filter(Boolean).join(", ")],
          ["start", run.start_hash], ["data", run.data_hash],
        ]}
      />
      <h4>Files</h4>
      <p><code>{quoted(run.folder)}</code>: spec.json has every setting, steps.jsonl every step, result.json the result.</p>
    </div>
  );
}
