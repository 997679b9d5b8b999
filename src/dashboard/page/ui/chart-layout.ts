// Places the states and arrows of a chart (dagre). Loaded only when a chart is looked at.

import * as dagre from "@dagrejs/dagre";
import type { ChartView } from "../../wire.ts";

export interface PlacedState {
  readonly name: string;
  readonly title: string;
  /** Middle of the box. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly isGroup: boolean;
  readonly isFinal: boolean;
}

export interface PlacedEdge {
  readonly path: string;
  readonly label: readonly string[];
  readonly x: number;
  readonly y: number;
}

export interface ChartLayout {
  readonly width: number;
  readonly height: number;
  readonly states: readonly PlacedState[];
  readonly edges: readonly PlacedEdge[];
  /** Signals of outer states, and shared signals: `alive: lapsed → closed`. */
  readonly outer: readonly string[];
}

const NAME_LETTER = 6.8;
const LETTER = 5.9;
const HEIGHT = 38;
const LINE = 12;
const MARGIN = 12;
/** From a group's edge to the states in it: at three sides, and above. */
const GROUP = 10;
const GROUP_TITLE = 24;
/** A signal from so many states to the same state is listed instead of drawn. */
const ALIKE_MIN = 4;

interface Point {
  readonly x: number;
  readonly y: number;
}

export function layoutOf({ id, states, edges }: ChartView): ChartLayout {
  const graph = new dagre.graphlib.Graph({ compound: true, multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 30, edgesep: 12, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const parents = new Set(states.flatMap(({ parent }) => (parent === undefined ? [] : [parent])));
  const titles = new Map(states.map(({ name }) => [name, name.split(".").at(-1) ?? name]));
  for (const { name } of states) {
    const title = titles.get(name) ?? name;
    graph.setNode(name, {
      label: title,
      width: Math.max(74, title.length * NAME_LETTER + 26),
      height: HEIGHT,
    });
  }
  for (const { name, parent } of states) if (parent !== undefined) graph.setParent(name, parent);

  const leafOf = (name: string): string => {
    const first =
      states.find(({ parent, isInitial }) => parent === name && isInitial) ??
      states.find(({ parent }) => parent === name);
    return first === undefined ? name : leafOf(first.name);
  };
  const isLeaf = (name: string) => titles.has(name) && !parents.has(name);
  const [drawn, undrawn] = parted(edges, ({ from, to, event }) => {
    const alike = edges.filter((edge) => edge.to === to && edge.event === event && isLeaf(edge.from));
    return isLeaf(from) && alike.length < ALIKE_MIN;
  });
  const labels = new Map<string, string[]>();
  for (const { from, to, event } of drawn) {
    const key = JSON.stringify([from, leafOf(to)]);
    labels.set(key, [...(labels.get(key) ?? []), spoken(event, id)]);
  }
  for (const [key, label] of labels) {
    const [from, to] = JSON.parse(key) as [string, string];
    const width = Math.max(...label.map((line) => line.length)) * LETTER;
    graph.setEdge(from, to, {
      label: label.join("\n"),
      width,
      height: label.length * LINE + 4,
      labelpos: "c",
    });
  }
  // A state with listed signals only is placed below the sources of the signals.
  for (const { from, to } of undrawn)
    if (
      isLeaf(from) &&
      isLeaf(to) &&
      states.find(({ name }) => name === to)?.isInitial !== true &&
      graph.predecessors(to)?.length === 0
    )
      graph.setEdge(from, to, { label: "", width: 0, height: 0 });
  dagre.layout(graph);

  const { width = 0, height = 0 } = graph.graph();
  const boxes = new Map(states.map(({ name }) => [name, graph.node(name) as Box]));
  const boxOf = (name: string): Box => {
    const inner = states.filter(({ parent }) => parent === name).map((state) => boxOf(state.name));
    const own = boxes.get(name) ?? { x: 0, y: 0, width: 0, height: 0 };
    return inner.length === 0 ? own : around(inner);
  };
  const placed = states.map(({ name, isFinal }) => ({
    ...boxOf(name),
    ...{ name, title: titles.get(name) ?? name, isFinal, isGroup: parents.has(name) },
  }));
  const above = Math.max(0, MARGIN - Math.min(...placed.map((box) => box.y - box.height / 2)));
  return {
    width,
    height: height + above,
    outer: listed(undrawn, id),
    states: placed.map((state) => ({ ...state, y: state.y + above })),
    edges: graph.edges().flatMap((edge: dagre.Edge) => {
      const { points, label, x, y, width: wide } = graph.edge(edge) as unknown as Drawn;
      const lowered = points.map((point) => ({ x: point.x, y: point.y + above }));
      const box = boxOf(edge.v);
      const path = edge.v === edge.w ? loopOf({ ...box, y: box.y + above }, x - wide / 2) : pathOf(lowered);
      return label === "" ? [] : [{ path, label: label.split("\n"), x, y: y + above + 4 }];
    }),
  };
}

/** A rectangle by its middle. */
interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

/** An edge as laid out. */
interface Drawn extends Box {
  readonly points: readonly Point[];
  readonly label: string;
}

/** A group around its states, with room for the title above them. */
function around(boxes: readonly Box[]): Box {
  const left = Math.min(...boxes.map(({ x, width }) => x - width / 2)) - GROUP;
  const right = Math.max(...boxes.map(({ x, width }) => x + width / 2)) + GROUP;
  const top = Math.min(...boxes.map(({ y, height }) => y - height / 2)) - GROUP_TITLE;
  const bottom = Math.max(...boxes.map(({ y, height }) => y + height / 2)) + GROUP;
  return { x: (left + right) / 2, y: (top + bottom) / 2, width: right - left, height: bottom - top };
}

/** `queued, delayed: cancelled → cancelled`: a line for all states with the signal. */
function listed(edges: ChartView["edges"], id: string): readonly string[] {
  const sources = new Map<string, string[]>();
  for (const { from, to, event } of edges) {
    const key = `${spoken(event, id)} → ${to}`;
    sources.set(key, [...(sources.get(key) ?? []), from === "" || from === id ? "any" : from]);
  }
  return [...sources].map(([key, from]) => `${[...new Set(from)].join(", ")}: ${key}`);
}

/** `TASK_CANCELLED` of the chart `task` → `cancelled`. */
function spoken(event: string, id: string): string {
  const words = event.toLowerCase().replaceAll("_", " ");
  return words.startsWith(`${id} `) ? words.slice(id.length + 1) : words;
}

function parted<Item>(items: readonly Item[], test: (item: Item) => boolean): readonly [Item[], Item[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

/** A curve through the points. */
function pathOf(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (first === undefined || last === undefined) return "";
  let path = `M${round(first)}`;
  for (const [at, point] of rest.entries()) {
    const next = rest[at + 1];
    if (next === undefined) break;
    path += `Q${round(point)} ${round({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`;
  }
  return `${path}L${round(last)}`;
}

/** From a state to itself, at the right, up to its label. */
function loopOf({ x, y, width, height }: Box, labelLeft: number): string {
  const right = x + width / 2;
  const far = Math.max(right + 12, labelLeft + 2);
  const [above, below] = [y - height / 4, y + height / 4];
  const curve = [
    { x: far, y: above - 8 },
    { x: far, y: below + 8 },
    { x: right, y: below },
  ];
  return `M${round({ x: right, y: above })}C${curve.map(round).join(" ")}`;
}

function round({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`;
}
