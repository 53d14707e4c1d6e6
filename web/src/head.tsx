// The first screen's words: the answer, what carries it, and what to trust.
import { useState } from "preact/hooks";
import { count, halfWidth, known, plural, qualityNumber, ratio } from "./format";
import { append, type Model } from "./model";
import type { Arm, Run } from "./results";
import { Shape } from "./shape";
import { checkName, flagName, runName } from "./words";

const marks: Record<string, string> = { best: "✓", undecided: "?", none: "–", nothing: "…" };

export function Answer({ model }: { model: Model }) {
  const { advice } = model.results;
  return (
    <section class={`answer verdict-${advice.verdict}`} aria-label="The answer">
      <p class="sentence"><span class="verdict" aria-hidden="true">{marks[advice.verdict] ?? "…"}</span>{advice.sentence || "There is nothing to say yet."}</p>
      {advice.paragraph && advice.paragraph !== advice.sentence && <p class="paragraph">{advice.paragraph}</p>}
    </section>
  );
}

const mostAtAGlance = 6;

/** The numbers that the sentence speaks of, and those of the front. */
export function Glance({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const { measure, advice, baseline } = model.results;
  const spokenOf = new Set([advice.arm, ...advice.rivals, baseline]);
  const rank = (arm: Arm) => (arm.id === advice.arm ? 0 : spokenOf.has(arm.id) ? 1 : arm.pareto ? 2 : 3);
  const arms = model.shown.filter((arm) => model.onAxis(arm) && (known(arm.quality?.mean) || known(arm.speedup?.mean)))
    .sort((a, b) => rank(a) - rank(b)).slice(0, mostAtAGlance)
    .sort((a, b) => (b.speedup?.mean ?? 0) - (a.speedup?.mean ?? 0));
  if (arms.length < 2) return null;
  return (
    <table class="glance">
      <caption class="unseen">The arms that matter most</caption>
      <thead>
        <tr>
          <th scope="col">fastest first</th>
          <th scope="col" class="number">speed-up</th>
          <th scope="col" class="number">{measure.label}{measure.percent && ", %"}</th>
        </tr>
      </thead>
      <tbody>
        {arms.map((arm) => (
          <tr key={arm.id} class={arm.id === advice.arm ? "best" : ""}>
            <th scope="row">
              <span class="row-name"><Shape family={arm.family} /><button type="button" class="link" onClick={() => openArm(arm.id)}>{arm.name}</button></span>
            </th>
            <td class="number">{ratio(arm.speedup?.mean)}</td>
            <td class="number">{qualityNumber(arm.quality?.mean, measure)} <span class="quiet">{halfWidth(arm.quality, measure)}</span></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface Chip {
  key: string;
  kind: "good" | "warn" | "bad" | "info";
  words: string;
  texts: { arm?: Arm; text: string }[];
}

const order: Chip["kind"][] = ["bad", "warn", "info", "good"];
const icons = { good: "✓", warn: "⚠", bad: "✗", info: "i" };

function chipsOf(model: Model): Chip[] {
  const chips: Chip[] = [];
  for (const note of model.results.notes) {
    chips.push({ key: `note-${note.code}-${note.text}`, kind: note.severity === "warning" ? "warn" : "info", words: flagName(note.code), texts: [{ text: note.text }] });
  }
  const flags = new Map<string, { arm: Arm; text: string }[]>();
  const checks = new Map<string, { fails: { arm: Arm; text: string }[]; nature: { arm: Arm; text: string }[]; ok: number; unknown: number }>();
  for (const arm of model.arms) {
    for (const flag of arm.flags) append(flags, flag.code, { arm, text: flag.text });
    for (const check of arm.checks) {
      const of = checks.get(check.code) ?? { fails: [], nature: [], ok: 0, unknown: 0 };
      checks.set(check.code, of);
      if (check.differs_by_nature) of.nature.push({ arm, text: check.text });
      else if (check.known === false) of.unknown += 1;
      else if (check.ok) of.ok += 1;
      else of.fails.push({ arm, text: check.text });
    }
  }
  for (const [code, { fails }] of checks) {
    if (fails.length > 0) chips.push({ key: `fail-${code}`, kind: "bad", words: `${plural(fails.length, "arm")} left out: ${checkName(code)}`, texts: fails });
  }
  for (const [code, texts] of flags) {
    chips.push({ key: `flag-${code}`, kind: "warn", words: `${flagName(code)}: ${texts.length === 1 ? texts[0]?.arm.name : plural(texts.length, "arm")}`, texts });
  }
  for (const [code, { nature }] of checks) {
    if (nature.length > 0 && !flags.has(`other-${code}`)) chips.push({ key: `nature-${code}`, kind: "info", words: `other ${checkName(code)} by nature: ${plural(nature.length, "arm")}`, texts: nature });
  }
  const passed = [...checks].filter(([, of]) => of.fails.length === 0 && of.nature.length === 0 && of.unknown === 0 && of.ok > 0);
  const named = passed.filter(([code]) => code !== "trained").map(([code]) => checkName(code));
  if (named.length > 0) {
    chips.push({
      key: "passed", kind: "good", words: `the same for all: ${named.join(", ")}`,
      texts: passed.map(([code, of]) => ({ text: `${checkName(code)}: ${plural(of.ok, "arm")} checked` })),
    });
  }
  return chips.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
}

const mostTexts = 12;

const mostFailures = 8;

/** Runs that gave no result, by what they said. */
export function Failures({ model, openRun }: { model: Model; openRun: (id: string) => void }) {
  const said = new Map<string, Run[]>();
  for (const run of model.results.runs) {
    if (run.state !== "failed" && run.state !== "killed" && run.state !== "diverged") continue;
    const why = run.message || `It ${run.state === "failed" ? "failed" : run.state === "killed" ? "was killed" : "diverged"}.`;
    append(said, why, run);
  }
  if (said.size === 0) return null;
  const all = [...said.values()].reduce((sum, runs) => sum + runs.length, 0);
  return (
    <section class="trust failures" aria-labelledby="failures-title">
      <h2 id="failures-title"><span class="bad" aria-hidden="true">✗</span> {plural(all, "run")} gave no result</h2>
      <ul class="reasons">
        {[...said].slice(0, mostFailures).map(([why, runs]) => (
          <li key={why}>
            {runs[0] && <button type="button" class="link" onClick={() => runs[0] && openRun(runs[0].id)}>{runName(runs[0], model.arm.get(runs[0].arm))}</button>}
            {runs.length > 1 && ` and ${count(runs.length - 1)} more`}: {why}
          </li>
        ))}
        {said.size > mostFailures && <li class="quiet">and {count(said.size - mostFailures)} other reasons, under “Every run”</li>}
      </ul>
    </section>
  );
}

/** What may weaken the answer, and what was checked and found equal. */
export function Trust({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const [open, setOpen] = useState<string | null>(null);
  const chips = chipsOf(model);
  if (chips.length === 0) return null;
  const shown = chips.find((chip) => chip.key === open);
  return (
    <section class="trust" aria-labelledby="trust-title">
      <h2 id="trust-title">What to trust</h2>
      <ul class="chips">
        {chips.map((chip) => (
          <li key={chip.key}>
            <button
              type="button" class={`chip ${chip.kind}`} aria-expanded={chip.key === open}
              onClick={() => setOpen(chip.key === open ? null : chip.key)}
            >
              <span class="icon" aria-hidden="true">{icons[chip.kind]}</span> {chip.words}
            </button>
          </li>
        ))}
      </ul>
      {shown && (
        <ul class="reasons">
          {shown.texts.slice(0, mostTexts).map(({ arm, text }) => (
            <li>
              {arm && <><button type="button" class="link" onClick={() => openArm(arm.id)}>{arm.name}</button>: </>}
              {text}
            </li>
          ))}
          {shown.texts.length > mostTexts && <li class="quiet">and {count(shown.texts.length - mostTexts)} more, in the table</li>}
        </ul>
      )}
    </section>
  );
}
