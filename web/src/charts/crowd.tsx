// Thousands of points: two paths for each family instead of an element for each, and the pointer finds the nearest.
import { useRef } from "preact/hooks";
import { familyClass } from "../families";
import { known } from "../format";
import type { Model } from "../model";
import { showTip } from "../tip";
import { ArmTip } from "../tips";
import type { Box } from "./labels";
import type { Layout, Plot, Spot } from "./layout";

/** A line of no length with a round end. */
function dot(x: number, y: number): string {
  return `M${x.toFixed(1)},${y.toFixed(1)}h0`;
}

function Dust({ plot, layout: { quiet, x, y } }: { plot: Plot; layout: Layout }) {
  const paths = new Map<string, { means: string; seeds: string }>();
  for (const spot of quiet.filter(({ arm }) => !arm.excluded)) {
    const path = paths.get(spot.arm.family) ?? { means: "", seeds: "" };
    paths.set(spot.arm.family, path);
    path.means += dot(spot.x, spot.y);
    spot.arm.quality?.values.forEach((value, i) => {
      const along = plot.across(spot.arm)?.values[i];
      if (known(value) && known(along)) path.seeds += dot(x(along), y(value));
    });
  }
  return (
    <>
      {[...paths].map(([family, { means, seeds }]) => (
        <g key={family} class={familyClass(family)}>
          <path class="dust seeds" d={seeds} />
          <path class="dust" d={means} />
        </g>
      ))}
    </>
  );
}

interface FinderProps {
  spots: Spot[];
  frame: Box;
  model: Model;
  openArm: (id: string) => void;
}

const reachOfPointer = 12;

function Finder({ spots, frame, model, openArm }: FinderProps) {
  const probe = useRef<SVGCircleElement>(null);
  const nearest = (event: MouseEvent): Spot | null => {
    const area = (event.currentTarget as SVGRectElement).getBoundingClientRect();
    const [px, py] = [event.clientX - area.left + frame.x, event.clientY - area.top + frame.y];
    let [best, least] = [null as Spot | null, reachOfPointer ** 2];
    for (const spot of spots) {
      const far = (spot.x - px) ** 2 + (spot.y - py) ** 2;
      if (far < least) [best, least] = [spot, far];
    }
    return best;
  };
  const move = (event: MouseEvent) => {
    const spot = nearest(event);
    if (!spot || !probe.current) return showTip(null);
    probe.current.setAttribute("cx", String(spot.x));
    probe.current.setAttribute("cy", String(spot.y));
    showTip({ at: probe.current, content: <ArmTip arm={spot.arm} model={model} /> });
  };
  const open = (event: MouseEvent) => {
    const spot = nearest(event);
    if (spot) openArm(spot.arm.id);
  };
  return (
    <g data-hit aria-hidden="true">
      <circle ref={probe} class="hit" r={4} cx={frame.x} cy={frame.y} />
      <rect class="hit" {...frame} onMouseMove={move} onMouseLeave={() => showTip(null)} onClick={open} />
    </g>
  );
}

export function Crowd({ plot, layout, model, openArm }: { plot: Plot; layout: Layout } & Pick<FinderProps, "model" | "openArm">) {
  if (layout.quiet.length === 0) return null;
  return (
    <>
      <Dust plot={plot} layout={layout} />
      <Finder spots={layout.quiet} frame={layout.frame} model={model} openArm={openArm} />
    </>
  );
}
