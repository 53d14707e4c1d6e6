// The map of a network: hosts by region, links as thick as they were used and coloured by how busy they were.
import { useState } from "preact/hooks";
import { bytes, known, percent, plural, significant } from "../format";
import type { Model } from "../model";
import type { Arm, Network, Num } from "../results";
import type { Sheet } from "../save";
import { mark } from "../tip";
import { networkName } from "../words";
import { Drawing, Figure, Swatches } from "./figure";
import { fitted, placeLabels, textWidth } from "./labels";
import { layMap, most, sum, type Host, type Line, type MapLayout, type Wire } from "./map";

/** More lines than this are not stopped at one by one; the table has them. */
const mostStops = 60;

const busyClasses: { least: number; part: string; name: string }[] = [
  { least: 0.75, part: "busy-3", name: "busy 75 % of the time or more" },
  { least: 0.5, part: "busy-2", name: "50 to 75 %" },
  { least: 0.25, part: "busy-1", name: "25 to 50 %" },
  { least: -Infinity, part: "busy-0", name: "less than 25 %" },
];

export function busyClass(busy: Num): string {
  return known(busy) ? (busyClasses.find(({ least }) => busy >= least)?.part ?? "busy-0") : "busy-unknown";
}

function span(values: Num[], unit: string): string {
  const all = values.filter(known);
  if (all.length === 0) return "";
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return low === high || significant(low) === significant(high) ? `${significant(low)} ${unit}` : `${significant(low)} to ${significant(high)} ${unit}`;
}

/** What is known of the links behind a line. */
function facts(wires: Wire[]): string[] {
  const sent = sum(wires.map((wire) => wire.bytes));
  const busy = most(wires.map((wire) => wire.busy));
  return [
    known(sent) ? `${bytes(sent)} per step` : "",
    known(busy) ? (wires.length > 1 ? `busiest link ${percent(busy)} busy` : `${percent(busy)} busy`) : "",
    span(wires.map((wire) => wire.latency_ms), "ms one way"),
    span(wires.map((wire) => wire.gbit), "Gbit/s"),
  ].filter(Boolean);
}

interface MapProps {
  layout: MapLayout;
  hosts: Host[];
  label: string;
  /** A class for the colour of a line. */
  colour: (line: Line) => string;
  thickness: (line: Line) => number;
}

export function NetworkMap({ layout, hosts, label, colour, thickness }: MapProps) {
  const { clusters, dots, lines, inside, bundled, dot, width, height } = layout;
  const name = (line: Line, end: "from" | "to") => (bundled ? clusters[line[end]]?.name : hosts[line[end]]?.name) ?? "?";
  const busiest = lines.filter((line) => known(line.busy) && line.busy >= 0.5).sort((a, b) => (b.busy ?? 0) - (a.busy ?? 0))[0];
  const ringed = clusters.some((cluster) => cluster.hosts.length > 1); // a ring about a single host says nothing
  return (
    <Drawing width={width} height={height} label={label}>
      {clusters.map((cluster, k) => {
        if (cluster.hosts.length === 0) return null;
        const within = inside.get(k) ?? [];
        const words = [cluster.name || hosts[cluster.hosts[0] ?? 0]?.name || "", plural(cluster.hosts.length, "host"), ...(within.length > 0 ? [`inside it: ${facts(within).join(", ")}`] : [])];
        return (
          <g key={k} class="region" {...mark({ label: words.join(", "), stop: clusters.length <= mostStops, tip: () => <>{words.map((each, i) => <p key={i}>{i === 0 ? <b>{each}</b> : each}</p>)}</> })}>
            {ringed && <circle class={`rim ${within.some((wire) => known(wire.busy)) ? busyClass(most(within.map((wire) => wire.busy))) : ""}`} cx={cluster.x} cy={cluster.y} r={cluster.r} />}
          </g>
        );
      })}
      {[...lines].sort((a, b) => thickness(b) - thickness(a)).map((line) => {
        const thick = thickness(line);
        const kind = line.wires[0]?.kind;
        const words = [`${name(line, "from")} ${line.both ? "and" : "to"} ${name(line, "to")}`, ...(kind ? [kind] : []), ...(line.wires.length > 1 ? [plural(line.wires.length, "link")] : []), ...facts(line.wires)];
        return (
          <g key={line.key} class={`link ${colour(line)} ${lines.length > 24 ? "faint" : ""}`} data-link={line.key} {...mark({ label: words.join(", "), stop: lines.length <= mostStops, tip: () => <><p><b>{words[0]}</b></p><p>{words.slice(1).join(" · ")}</p></> })}>
            <path class="link-hit" data-hit d={line.path} />
            <path class="wire" d={line.path} stroke-width={thick} />
            {!line.both && <path class="head" d="M0,0L-1.7,-0.9L-1.7,0.9Z" transform={`translate(${line.end.x.toFixed(1)},${line.end.y.toFixed(1)}) rotate(${line.end.angle.toFixed(1)}) scale(${(3 + thick * 0.75).toFixed(2)})`} />}
          </g>
        );
      })}
      {dots.map(({ host, x, y }) => {
        const of = hosts[host];
        if (!of) return null;
        const stage = of.stages[0];
        return (
          <g key={host} class={`host ${stage === undefined ? "" : `stage stage-${stage % 8}`} ${of.mark ? "" : "idle"}`} transform={`translate(${x.toFixed(1)},${y.toFixed(1)})`} data-host={host} {...mark({ label: of.words, stop: dots.length <= 24, tip: () => <p>{of.words}</p> })}>
            <circle r={dot} />
            <text aria-hidden="true" text-anchor="middle" dy="0.35em" style={{ fontSize: `${dot > 8 ? 11 : 9}px` }}>{textWidth(of.mark, 11) < dot * 2 ? of.mark : "…"}</text>
          </g>
        );
      })}
      {clusters.map((cluster, k) => (
        <text key={k} class="region-name" aria-hidden="true" x={cluster.label.x} y={cluster.label.y} dy="0.34em" text-anchor={cluster.label.anchor}>
          {fitted(cluster.name, Math.max(60, width * 0.3), 13, 600)}
        </text>
      ))}
      {busiest && <Busiest line={busiest} layout={layout} />}
    </Drawing>
  );
}

/** Says of the busiest link how busy it was, beside its middle, where nothing else stands. */
function Busiest({ line, layout: { clusters, dots, dot, bundled, width, height } }: { line: Line; layout: MapLayout }) {
  const text = `${percent(line.busy)} busy`;
  const around = ({ x, y }: { x: number; y: number }, r: number) => ({ x: x - r, y: y - r, width: 2 * r, height: 2 * r });
  const [dx, dy] = [line.end.x - line.middle.x, line.end.y - line.middle.y];
  const taken = [
    ...[-0.6, -0.3, 0, 0.3, 0.6].map((t) => around({ x: line.middle.x + t * dx, y: line.middle.y + t * dy }, 5)), // the line itself
    ...(bundled ? clusters.map((cluster) => around(cluster, cluster.r)) : dots.map((each) => around(each, dot))),
    ...clusters.map(({ name, label }) => {
      const wide = textWidth(name, 13, 600);
      return { x: label.anchor === "start" ? label.x : label.anchor === "end" ? label.x - wide : label.x - wide / 2, y: label.y - 9, width: wide, height: 18 };
    }),
  ];
  const place = placeLabels([{ key: "", ...line.middle, width: textWidth(text, 12, 600) }], taken, { x: 0, y: 0, width, height }, () => 100)[0];
  return place ? <text class="busiest" aria-hidden="true" x={place.x} y={place.y} dy="0.34em">{text}</text> : null;
}

function hostsOf(network: Network): Host[] {
  return network.hosts.map(({ name, region }, i) => {
    const ranks = network.seats.flatMap((seat, rank) => (seat === i ? [rank] : []));
    return {
      name, region: region || "one place", stages: [],
      mark: ranks.length === 0 ? "" : ranks.length === 1 ? String(ranks[0]) : `${ranks.length}×`,
      words: `${name}${region && region !== name ? ` in ${region}` : ""}: ${ranks.length === 0 ? "no worker" : `${ranks.length === 1 ? "worker" : "workers"} ${ranks.join(", ")}`}`,
    };
  });
}

export function linkSheet(hosts: Host[], wires: Wire[], kinds = false): Sheet {
  return {
    header: ["from", "region", "to", "region of it", ...(kinds ? ["carries"] : []), "latency ms", "Gbit/s", "bytes per step", "busy share"],
    rows: wires.map((wire) => [
      hosts[wire.from]?.name ?? null, hosts[wire.from]?.region ?? null, hosts[wire.to]?.name ?? null, hosts[wire.to]?.region ?? null,
      ...(kinds ? [wire.kind] : []), wire.latency_ms, wire.gbit, wire.bytes, wire.busy,
    ]),
  };
}

/** Up to 9 pixels, of many lines up to 5, in proportion to what a line carried. */
export function thicknessBy(lines: Line[], value: (line: Line) => Num): (line: Line) => number {
  const largest = most(lines.map(value)) ?? 0;
  return (line) => {
    const mine = value(line);
    return known(mine) && largest > 0 ? Math.max(1.2, (lines.length > 24 ? 5 : 9) * (mine / largest)) : 1.5;
  };
}

function told(network: Network, arm: Arm): string {
  if (arm.simulated) return "Simulated: nothing was really sent.";
  if (network.how === "real") return "";
  const late = known(network.late_ms_p99) ? `; 99 % of its packets were at most ${significant(network.late_ms_p99, 2)} ms late` : "";
  return network.trustworthy
    ? `Emulated on one machine${late}.`
    : `⚠ Emulated on one machine that was too busy for it${late}: these shares and times do not count.`;
}

/** The same for a drawing and the words about it. */
function isBundled(hosts: Host[], wires: Wire[]): boolean {
  return layMap(hosts, wires, 1000).bundled;
}

export function NetworkChart({ model }: { model: Model }) {
  const arms = model.arms.filter((arm) => arm.network !== null);
  const [chosen, choose] = useState<string | null>(null);
  const arm = arms.find((each) => each.id === chosen) ?? arms.find((each) => each.id === model.results.advice.arm) ??
    arms.find((each) => each.network && each.network.links.length > 0) ?? arms[0];
  const network = arm?.network;
  if (!arm || !network || network.hosts.length < 2) return null;
  const hosts = hostsOf(network);
  const wires: Wire[] = network.links.filter((link) => link.from !== link.to).map((link) => ({ ...link, kind: "" }));
  const counted = wires.some((wire) => known(wire.bytes));
  const used = new Set(wires.map((wire) => busyClass(wire.busy)));
  const thickest = most(wires.map((wire) => wire.bytes));
  const draw = (width: number) => {
    const layout = layMap(hosts, wires, width);
    return (
      <NetworkMap
        layout={layout} hosts={hosts} colour={(line) => busyClass(line.busy)} thickness={thicknessBy(layout.lines, (line) => line.bytes)}
        label={`The network of ${arm.name}: ${plural(hosts.length, "host")}, ${plural(wires.length, "link")} in use`}
      />
    );
  };
  const regions = new Set(hosts.map((host) => host.region)).size;
  return (
    <Figure
      id="network" title="The network and its links" draw={draw} sheet={() => linkSheet(hosts, wires)}
      lead={
        <>
          {arms.length > 1 ? (
            <label class="chooser">
              Links as used by{" "}
              <select value={arm.id} onChange={(event) => choose(event.currentTarget.value)}>
                {arms.map((each) => <option key={each.id} value={each.id}>{each.name}{networkName(each) && !each.name.includes(each.network_name ?? "") ? `, ${networkName(each)}` : ""}</option>)}
              </select>
            </label>
          ) : <>{arm.name}, {networkName(arm)}. </>}
          {" "}{counted ? "A line is as thick as the bytes that it carries in a step, and coloured by how busy it was." : "Nobody counted what the links carried."}
          {" "}A host has the number of its worker.
          {counted && <Swatches items={busyClasses.filter(({ part }) => used.has(part)).map(({ part, name }) => ({ part, name }))} />}
        </>
      }
      note={
        <>
          <p>
            {regions > 1 ? "Regions stand on a ring in the order of the cluster file: where on earth they are is not known." : "Hosts of one region stand on a ring."}
            {isBundled(hosts, wires) && " Links from one region to another are drawn as one; a ring’s colour is that of the busiest link inside."}
            {known(thickest) && counted && ` The link that carries most has ${bytes(thickest)} per step.`}
            {" "}{told(network, arm)}
          </p>
        </>
      }
    />
  );
}
