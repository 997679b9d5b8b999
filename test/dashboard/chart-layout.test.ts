// The drawn state charts: no text lies on another text or on a state, and every group has room for its title.

import { describe, expect, it } from "vitest";
import { type ChartLayout, layoutOf, type PlacedState } from "../../src/dashboard/page/ui/chart-layout.ts";
import { chartViews } from "../../src/dashboard/views/charts.ts";
import { aStatus } from "../support/statuses.ts";

interface Rectangle {
  readonly name: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

const LETTER = 5.9;
const LINE = 12;

function boxOf({ name, x, y, width, height }: PlacedState): Rectangle {
  return { name, left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

/** By the size of the letters in the browser. */
function labelsOf({ edges }: ChartLayout): Rectangle[] {
  return edges.map(({ label, x, y }) => {
    const half = (Math.max(...label.map((line) => line.length)) * LETTER) / 2;
    const high = (label.length * LINE) / 2;
    return {
      name: label.join(" "),
      left: x - half,
      right: x + half,
      top: y - 4 - high,
      bottom: y - 4 + high,
    };
  });
}

const overlap = (one: Rectangle, other: Rectangle) =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

describe.each(chartViews(aStatus()))("the chart $id", (chart) => {
  const layout = layoutOf(chart);
  const states = layout.states.filter(({ isGroup }) => !isGroup).map(boxOf);
  const groups = layout.states.filter(({ isGroup }) => isGroup).map(boxOf);

  it("has no label on a label or on a state", () => {
    const labels = labelsOf(layout);
    const hits = labels.flatMap((label, at) =>
      [...labels.slice(at + 1), ...states]
        .filter((other) => overlap(label, other))
        .map(({ name }) => [label.name, name]),
    );
    expect(hits).toEqual([]);
  });

  it("has room for the title of a group above what is in it", () => {
    for (const group of groups) {
      const title = { ...group, bottom: group.top + 20, right: group.left + 10 + group.name.length * LETTER };
      const inner = [...states, ...groups].filter(({ name }) => name.startsWith(`${group.name}.`));
      expect(inner.filter((other) => overlap(title, other)).map(({ name }) => name)).toEqual([]);
    }
  });

  it("lies within its drawing", () => {
    for (const { left, right, top, bottom } of [...states, ...groups, ...labelsOf(layout)]) {
      expect(Math.min(left, top)).toBeGreaterThanOrEqual(0);
      expect(right).toBeLessThanOrEqual(layout.width + 1);
      expect(bottom).toBeLessThanOrEqual(layout.height + 1);
    }
  });

  it("has no state outside of a group within it", () => {
    for (const group of groups)
      for (const state of states)
        if (!state.name.startsWith(`${group.name}.`)) expect(overlap(group, state), state.name).toBe(false);
  });
});
