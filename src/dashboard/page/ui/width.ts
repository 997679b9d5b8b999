// The width of an element, followed as the window changes.

import { type Signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Measured<Kind extends Element> {
  readonly box: RefObject<Kind | null>;
  /** Pixels; 0 before the first layout. */
  readonly width: Signal<number>;
}

export function useWidth<Kind extends Element>(): Measured<Kind> {
  const box = useRef<Kind>(null);
  const width = useSignal(0);
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    width.value = current.clientWidth;
    const observer = new ResizeObserver(([entry]) => {
      width.value = Math.floor(entry?.contentRect.width ?? 0);
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [width]);
  return { box, width };
}
