// A family's mark, beside a name.
import { familyClass, shapePath } from "./families";

export function Shape({ family }: { family: string }) {
  return (
    <svg class={`shape ${familyClass(family)}`} width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">
      <path d={shapePath(family, 60)} />
    </svg>
  );
}
