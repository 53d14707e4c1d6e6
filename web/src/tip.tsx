// The one small window that explains a mark while the pointer or the focus is on it.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface Shown {
  at: Element;
  content: ComponentChildren;
}

let show: (shown: Shown | null) => void = () => {};

export function showTip(shown: Shown | null): void {
  show(shown);
}

export function TipWindow() {
  const [shown, setShown] = useState<Shown | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    show = setShown;
    const hide = (event: Event) => {
      if (!(event instanceof KeyboardEvent) || event.key === "Escape") setShown(null);
    };
    addEventListener("scroll", hide, { passive: true, capture: true });
    addEventListener("keydown", hide);
    return () => {
      show = () => {};
      removeEventListener("scroll", hide, { capture: true });
      removeEventListener("keydown", hide);
    };
  }, []);
  useLayoutEffect(() => {
    if (!shown || !box.current) return;
    const mark = shown.at.getBoundingClientRect();
    const { width, height } = box.current.getBoundingClientRect();
    const left = Math.max(8, Math.min(innerWidth - width - 8, mark.left + mark.width / 2 - width / 2));
    const above = mark.top - height - 10;
    box.current.style.left = `${left}px`;
    box.current.style.top = `${above > 8 ? above : mark.bottom + 10}px`;
  }, [shown]);
  // Screen readers hear the same from the mark's own label.
  return shown && <div class="tip" ref={box} aria-hidden="true">{shown.content}</div>;
}

function heat(arm: string | undefined, hot: boolean): void {
  if (arm === undefined) return;
  document.body.classList.toggle("has-hot", hot);
  for (const mark of document.querySelectorAll(`[data-arm="${CSS.escape(arm)}"]`)) mark.classList.toggle("hot", hot);
}

interface Mark {
  label: string;
  tip?: () => ComponentChildren;
  arm?: string;
  open?: () => void;
  /** Whether Tab stops here. */
  stop?: boolean;
}

/** What makes an element of a chart speak, point out its arm everywhere, and open. */
export function mark({ label, tip, arm, open, stop = true }: Mark) {
  const enter = (event: Event) => {
    heat(arm, true);
    if (tip) show({ at: event.currentTarget as Element, content: tip() });
  };
  const leave = () => {
    heat(arm, false);
    show(null);
  };
  return {
    ...(stop ? { tabindex: 0 } : {}),
    role: open ? ("button" as const) : ("img" as const),
    "aria-label": label,
    "data-arm": arm,
    onMouseEnter: enter,
    onMouseLeave: leave,
    onFocus: enter,
    onBlur: leave,
    onClick: open && (() => {
      leave();
      open();
    }),
    onKeyDown: open && ((event: KeyboardEvent) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      leave();
      open();
    }),
  };
}
