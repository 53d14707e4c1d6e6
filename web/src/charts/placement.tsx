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

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/** Where each device is: `devices` has the number of its host. */
function seatsOf(placement: Placement): Seat[] {
  const hosts = list(placement.hosts);
  const named = list(placement.devices).map((at): Seat => {
    const host = typeof at === "number" ? hosts[at] : undefined;
    return { host: text(field(host, "name")) || `host ${text(at)}`, region: text(field(host, "region")) };
  });
  const count = Math.max(0, ...placement.stages.flat()) + 1;
  for (let i = named.length; i < count; ++i) named.push({ host: `device ${i}`, region: "" });
  return named;
}

/** What flows between devices. Where the plan does not say: along each replica's pipeline, and round each stage. */
function flowsOf(placement: Placement): Wire[] {
  const number = (value: unknown): Num => (typeof value === "number" ? value : null);
  const given = list(placement.links).flatMap((link): Wire[] => {
    const [from, to] = [field(link, "from"), field(link, "to")];
    if (typeof from !== "number" || typeof to !== "number") return [];
    return [{
      from, to, kind: text(field(link, "kind")) === "gradients" ? "gradients" : "activations", busy: null,
      latency_ms: number(field(link, "latency_ms")), gbit: number(field(link, "gbit")), bytes: number(field(link, "bytes")),
    }];
  });
  if (given.length > 0) return given;
  const bare = (from: number, to: number, kind: string): Wire => ({ from, to, kind, latency_ms: null, gbit: null, bytes: null, busy: null });
  return placement.stages.flatMap((stage, s) => stage.flatMap((device, i) => {
    const next = placement.stages[s + 1]?.[i];
    const peer = stage[(i + 1) % stage.length];
    return [
      ...(next !== undefined ? [bare(device, next, "activations")] : []),
      ...(peer !== undefined && peer !== device ? [bare(device, peer, "gradients")] : []),
    ];
  }));
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
  const wires = flowsOf(placement).flatMap((flow): Wire[] => {
    const [from, to] = [hostOf[flow.from], hostOf[flow.to]];
    return from === undefined || to === undefined || from === to ? [] : [{ ...flow, from, to }];
  });
  const replicas = placement.stages[0]?.length ?? 0;
  const network = placement.network ? `${placement.network}${known(placement.scale) && placement.scale !== 1 ? ` ÷ ${placement.scale}` : ""}` : "";
  const cost = [
    known(placement.cost_s) ? `predicted ${seconds(placement.cost_s)} per iteration` : "",
    [
      known(placement.compute_s) && placement.compute_s > 0 ? `${seconds(placement.compute_s)} to compute` : "",
      known(placement.data_parallel_s) ? `${seconds(placement.data_parallel_s)} to average gradients` : "",
      known(placement.pipeline_s) ? `${seconds(placement.pipeline_s)} along the pipeline` : "",
    ].filter(Boolean).join(", "),
    known(placement.random_s) && known(placement.cost_s) && placement.cost_s > 0 ? `${ratio(placement.random_s / placement.cost_s)} as fast as random layouts` : "",
    known(placement.region_blind_s) && known(placement.cost_s) && placement.cost_s > 0 ? `${ratio(placement.region_blind_s / placement.cost_s)} as fast as layouts that ignore regions` : "",
  ].filter(Boolean).join("; ").replaceAll(/(\d) (ms|s|min|h)\b/g, "$1\u00a0$2"); // a number keeps its unit
  const carries = wires.some((wire) => known(wire.bytes));
  const kinds = new Set(wires.map(({ kind }) => kind));
  const idle = hosts.filter((host) => host.stages.length === 0).length;
  const layers = (stage: number): string | null => {
    const [from, end] = list(list(placement.layers)[stage]);
    return typeof from === "number" && typeof end === "number" ? (end - from === 1 ? `${from}` : `${from} to ${end - 1}`) : null;
  };
  const bundled = layMap(hosts, wires, 1000).bundled;
  const crosses = (kind: string) => wires.some((wire) => wire.kind === kind && hosts[wire.from]?.region !== hosts[wire.to]?.region);
  const stay = bundled ? ["activations", "gradients"].filter((kind) => kinds.has(kind) && !crosses(kind)) : [];
  const draw = (width: number) => {
    const layout = layMap(hosts, wires, width);
    return (
      <NetworkMap
        layout={layout} hosts={hosts} label={`${placement.file}: ${plural(placement.stages.length, "stage")} on ${plural(hosts.length, "host")}`}
        colour={(line: Line) => `flow-${line.wires[0]?.kind === "gradients" ? "gradients" : "activations"}`}
        thickness={thicknessBy(layout.lines, (line) => (carries ? line.bytes : line.wires.length / 1.5))}
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
            ...(kinds.has("activations") && !stay.includes("activations") ? [{ part: "flow-activations", name: "activations to the next stage, and their gradients back" }] : []),
            ...(kinds.has("gradients") && !stay.includes("gradients") ? [{ part: "flow-gradients", name: "gradients among the replicas of a stage" }] : []),
          ]} />
        </>
      }
      note={<p>Regions stand on a ring: where on earth they are is not known.{bundled && " Links from one region to another are drawn as one."}{carries ? " A line is as thick as the bytes that it carries in an iteration." : ""}{stay.length > 0 && ` ${stay.join(" and ").replace(/^./, (letter) => letter.toUpperCase())} stay inside the regions.`}{idle > 0 && ` ${plural(idle, "host")} not used.`}</p>}
      sheet={() => ({
        header: ["stage", "layers", "replica", "device", "host", "region"],
        rows: placement.stages.flatMap((stage, s) => stage.map((device, replica) => [s, layers(s), replica, device, seats[device]?.host ?? null, seats[device]?.region || null])),
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
