// The page from top to bottom.
import { useEffect, useMemo, useState } from "preact/hooks";
import { AdviceBars, AdviceTable } from "./advice";
import { BytesChart } from "./charts/bytes";
import { CurveChart } from "./charts/curves";
import { NetworkChart } from "./charts/network";
import { Picture } from "./charts/picture";
import { PlacementCharts } from "./charts/placement";
import { PredictionChart } from "./charts/predictions";
import { ScalingChart } from "./charts/scaling";
import { StageCharts } from "./charts/stages";
import { TimeChart } from "./charts/time";
import { TuningChart } from "./charts/tuning";
import { Details, type Opened } from "./details";
import { EveryRun } from "./everyrun";
import { plural } from "./format";
import { Answer, Failures, Glance, Trust } from "./head";
import { listen, type LiveState } from "./live";
import { modelOf, type Model } from "./model";
import { LiveStatus, Now } from "./now";
import type { Results } from "./results";
import { ArmTable } from "./table";
import { chooseTheme, currentTheme, type Theme } from "./theme";
import { TipWindow } from "./tip";

const themes: Theme[] = ["auto", "light", "dark"];

function ThemeSwitch() {
  const [theme, setTheme] = useState(currentTheme);
  const choose = (wanted: Theme) => {
    chooseTheme(wanted);
    setTheme(wanted);
  };
  return (
    <fieldset class="themes">
      <legend class="unseen">Theme</legend>
      {themes.map((each) => (
        <label key={each}>
          <input type="radio" name="theme" value={each} checked={theme === each} onChange={() => choose(each)} />
          <span>{each}</span>
        </label>
      ))}
    </fieldset>
  );
}

function Blank({ waiting }: { waiting: boolean }) {
  return (
    <main class="blank">
      <h1>{waiting ? "Waiting for the first numbers" : "Nothing here yet"}</h1>
      <p>
        {waiting
          ? "The page fills by itself as soon as a run has begun."
          : "This is the empty page. “syncopate report DIR” writes one with the results of a folder of runs in it."}
      </p>
    </main>
  );
}

/** Networks and what was predicted about them. */
function Networks({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  return (
    <>
      <NetworkChart model={model} />
      <PlacementCharts model={model} />
      <PredictionChart model={model} openArm={openArm} />
      <AdviceBars model={model} />
      <AdviceTable model={model} />
    </>
  );
}

function NoArms({ model, openArm }: { model: Model; openArm: (id: string) => void }) {
  const { advice, notes, placements, advice_check } = model.results;
  return (
    <>
      <section class={placements.length > 0 || advice_check ? "" : "blank"}>
        <p class="sentence">{advice.sentence || "No run has finished, so there is nothing to compare."}</p>
        {advice.paragraph && <p class="paragraph">{advice.paragraph}</p>}
        {notes.map((note) => <p key={note.text}>{note.text}</p>)}
      </section>
      <Networks model={model} openArm={openArm} />
    </>
  );
}

export function App({ first, address }: { first: Results | null; address: string | null }) {
  const [results, setResults] = useState(first);
  const [live, setLive] = useState<LiveState>({ connection: "connecting", updated: null });
  const [opened, setOpened] = useState<Opened | null>(null);
  useEffect(() => (address === null ? undefined : listen(address, { results: setResults, state: setLive })), [address]);
  const model = useMemo(() => results && modelOf(results), [results]);
  useEffect(() => {
    if (results) document.title = `${results.title || "Comparison"} · Syncopate`;
  }, [results?.title]);

  const openArm = (id: string) => setOpened({ kind: "arm", id });
  const openRun = (id: string) => setOpened({ kind: "run", id });
  const finished = results?.runs.filter((run) => run.state === "done").length ?? 0;
  return (
    <>
      <a class="skip" href="#table-title">Skip to the table</a>
      <header class="top">
        <span class="brand">Syncopate</span>
        {results?.file && <span class="quiet file">{results.file}</span>}
        {address !== null && <LiveStatus live={live} />}
        <ThemeSwitch />
      </header>
      {!model || !results ? <Blank waiting={address !== null} /> : (
        <main>
          <h1>{results.title || "Comparison"}</h1>
          {model.arms.length === 0 ? <NoArms model={model} openArm={openArm} /> : (
            <>
              <div class="first">
                <Answer model={model} />
                <Picture model={model} openArm={openArm} openRun={openRun} />
                <div class="rest">
                  <Now model={model} />
                  <Glance model={model} openArm={openArm} />
                  <Failures model={model} openRun={openRun} />
                  <Trust model={model} openArm={openArm} />
                </div>
              </div>
              <TimeChart model={model} openArm={openArm} />
              <CurveChart model={model} what="quality" openArm={openArm} />
              <CurveChart model={model} what="loss" openArm={openArm} />
              <div class="pair">
                <ScalingChart model={model} openArm={openArm} />
                <BytesChart model={model} openArm={openArm} />
              </div>
              <StageCharts model={model} openArm={openArm} />
              <Networks model={model} openArm={openArm} />
              <TuningChart model={model} openArm={openArm} />
              <ArmTable model={model} openArm={openArm} openRun={openRun} />
              <EveryRun model={model} />
            </>
          )}
          <footer class="quiet">
            {[
              results.runs.length > 0 ? plural(finished, "finished run") : "",
              results.made ? `reported ${results.made}` : "",
              results.program.version ? `by syncopate ${results.program.version}${results.program.commit ? ` (${results.program.commit})` : ""}` : "",
            ].filter(Boolean).join(", ")}.
            The same numbers are in results.csv, results.json and results.xlsx, beside this page.
          </footer>
          <Details model={model} opened={opened} close={() => setOpened(null)} openArm={openArm} openRun={openRun} />
        </main>
      )}
      <TipWindow />
    </>
  );
}
