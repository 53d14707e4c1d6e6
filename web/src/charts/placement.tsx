// Where a plan puts the stages of a pipeline and their replicas.
import { known, plural, ratio, seconds } from "../format";
import type { Model } from "../model";
import type { Num, Placement } from "../results";
import { Figure, Swatches } from "./figure";
import { layMap, type Host, type Line, type Wire } from "./map";
import { NetworkMap, thicknessBy } from "./network";

const mostPlacements = 8;

interface Seat {
  host: string;
  region: string;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function field(value: unknown, ...names: string[]): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return names.map((name) => (value as Record<string, unknown>)[name]).find((each) => each !== undefined && each !== null);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/** Where each device is. Devices are numbered host by host, from 0. */
function seatsOf(placement: Placement): Seat[] {
  const regions = list(placement.regions);
  const hosts = list(placement.hosts);
  const devices = list(placement.devices);
  const hostAt = (i: number): Seat => {
    const host = hosts[i];
    const name = text(host) || text(field(host, "name"));
    return { host: name || `host ${i}`, region: text(field(host, "region")) || text(regions[i]) };
  };
  const count = Math.max(0, ...placement.stages.flat()) + 1;
  if (devices.length > 0) {
    return devices.map((device, i) => {
      if (typeof device === "number") return hostAt(device);
      const host = field(device, "host");
      const at = typeof host === "number" ? hostAt(host) : { host: text(host) || text(device) || text(field(device, "name")) || `device ${i}`, region: "" };
      return { host: at.host, region: text(field(device, "region")) || at.region || (regions.length === devices.length ? text(regions[i]) : "") };
    });
  }
  const seats: Seat[] = [];
  hosts.forEach((host, i) => {
    const many = field(host, "devices");
    for (let k = 0; k < (typeof many === "number" ? many : 1); ++k) seats.push(hostAt(i));
  });
  for (let i = seats.length; i < count; ++i) seats.push({ host: `device ${i}`, region: text(regions[i]) });
  return seats;
}

function linksOf(placement: Placement): Map<string, { latency_ms: Num; gbit: Num; bytes: Num }> {
  const found = new Map<string, { latency_ms: Num; gbit: Num; bytes: Num }>();
  const number = (value: unknown): Num => (typeof value === "number" ? value : null);
  for (const link of list(placement.links)) {
    const [from, to] = [field(link, "from"), field(link, "to")];
    if (typeof from !== "number" || typeof to !== "number") continue;
    found.set(`${from}-${to}`, { latency_ms: number(field(link, "latency_ms")), gbit: number(field(link, "gbit")), bytes: number(field(link, "bytes")) });
  }
  return found;
}

function PlacementChart({ placement, id }: { placement: Placement; id: string }) {
  const seats = seatsOf(placement);
  const hosts: Host[] = [];
  const numbers = new Map<string, number>();
  const hostOf = seats.map((seat) => {
    const key = `${seat.host}\n${seat.region}`;
    const known = numbers.get(key);
    if (known !== undefined) return known;
    numbers.set(key, hosts.length);
    hosts.push({ name: seat.host, region: seat.region || "one place", mark: "", stages: [], words: "" });
    return hosts.length - 1;
  });
  placement.stages.forEach((stage, s) => stage.forEach((device) => {
    const host = hosts[hostOf[device] ?? -1];
    if (host && !host.stages.includes(s)) host.stages.push(s);
  }));
  hosts.forEach((host, i) => {
    const held = placement.stages.flatMap((stage, s) => stage.flatMap((device, replica) => (hostOf[device] === i ? [`stage ${s}, replica ${replica} (device ${device})`] : [])));
    host.mark = host.stages.join(",");
    host.words = `${host.name}${host.region && host.region !== host.name ? ` in ${host.region}` : ""}: ${held.join("; ") || "not used"}`;
  });
  const given = linksOf(placement);
  const wire = (from: number, to: number, kind: string): Wire[] => {
    const [a, b] = [hostOf[from], hostOf[to]];
    if (a === undefined || b === undefined || a === b) return [];
    const link = given.get(`${from}-${to}`);
    return [{ from: a, to: b, latency_ms: link?.latency_ms ?? null, gbit: link?.gbit ?? null, bytes: link?.bytes ?? null, busy: null, kind }];
  };
  const wires = placement.stages.flatMap((stage, s) => stage.flatMap((device, i) => [
    ...(placement.stages[s + 1]?.[i] !== undefined ? wire(device, placement.stages[s + 1]?.[i] ?? 0, "activations") : []),
    // A ring, as gradients are averaged.
    ...(stage.length > 1 ? wire(device, stage[(i + 1) % stage.length] ?? 0, "gradients") : []),
  ]));
  const replicas = placement.stages[0]?.length ?? 0;
  const network = placement.network ? `${placement.network}${known(placement.scale) && placement.scale !== 1 ? ` ÷ ${placement.scale}` : ""}` : "";
  const cost = [
    known(placement.cost_s) ? `predicted ${seconds(placement.cost_s)} per iteration` : "",
    known(placement.data_parallel_s) && known(placement.pipeline_s) ? `${seconds(placement.data_parallel_s)} to average gradients, ${seconds(placement.pipeline_s)} along the pipeline` : "",
    known(placement.random_s) && known(placement.cost_s) && placement.cost_s > 0 ? `${ratio(placement.random_s / placement.cost_s)} as fast as random layouts` : "",
    known(placement.region_blind_s) && known(placement.cost_s) && placement.cost_s > 0 ? `${ratio(placement.region_blind_s / placement.cost_s)} as fast as layouts that ignore regions` : "",
  ].filter(Boolean).join("; ").replaceAll(/(\d) (ms|s|min|h)\b/g, "$1\u00a0$2"); // a number keeps its unit
  const kinds = new Set(wires.map(({ kind }) => kind));
  const idle = hosts.filter((host) => host.stages.length === 0).length;
  const draw = (width: number) => {
    const layout = layMap(hosts, wires, width);
    const carried = layout.lines.some((line) => known(line.bytes));
    return (
      <NetworkMap
        layout={layout} hosts={hosts} label={`${placement.file}: ${plural(placement.stages.length, "stage")} on ${plural(hosts.length, "host")}`}
        colour={(line: Line) => `flow-${line.wires[0]?.kind === "gradients" ? "gradients" : "activations"}`}
        thickness={thicknessBy(layout.lines, (line) => (carried ? line.bytes : line.wires.length / 1.5))}
      />
    );
  };
  return (
    <Figure
      id={id} title={`Where the stages sit: ${placement.file.replace(/\.placement\.json$/, "")}`} draw={draw}
      lead={
        <>
          {plural(placement.stages.length, "stage")} x {plural(replicas, "replica")}{network && ` on ${network}`}{cost && `: ${cost}`}. A host has the number and colour of its stage.
          <Swatches items={[
            ...(kinds.has("activations") ? [{ part: "flow-activations", name: "activations to the next stage, and their gradients back" }] : []),
            ...(kinds.has("gradients") ? [{ part: "flow-gradients", name: "gradients among the replicas of a stage" }] : []),
          ]} />
        </>
      }
      note={<p>Regions stand on a ring: where on earth they are is not known.{hosts.length > 16 && " Links from one region to another are drawn as one, as thick as there are many."}{idle > 0 && ` ${plural(idle, "host")} not used.`}</p>}
      sheet={() => ({
        header: ["stage", "replica", "device", "host", "region"],
        rows: placement.stages.flatMap((stage, s) => stage.map((device, replica) => [s, replica, device, seats[device]?.host ?? null, seats[device]?.region || null])),
      })}
    />
  );
}

export function PlacementCharts({ model }: { model: Model }) {
  return (
    <>
      {model.results.placements.slice(0, mostPlacements).map((placement, i) => <PlacementChart key={placement.file} id={`placement-${i}`} placement={placement} />)}
      {model.results.placements.length > mostPlacements && <p class="quiet">{plural(model.results.placements.length - mostPlacements, "more placement", "more placements")} in the folder.</p>}
    </>
  );
}
