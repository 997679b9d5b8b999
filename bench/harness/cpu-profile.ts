// A .cpuprofile as time per task: by file, by function, and by function with all that it calls. Idle time is left out.

import { existsSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";

/** The part of the format of V8 that is read. Times are µs of the machine's monotonic clock. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    /** Line and column count from 0. */
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
      readonly columnNumber: number;
    };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
  readonly startTime: number;
}

export interface Window {
  readonly fromUs: number;
  readonly toUs: number;
}

export interface Row {
  readonly what: string;
  readonly us: number;
}

export interface ProfileSummary {
  readonly busyUs: number;
  /** Largest first. Self time sums to the busy time. */
  readonly files: readonly Row[];
  readonly functions: readonly Row[];
  /** A function counts once per sample, however often it is on the stack. */
  readonly inclusive: readonly Row[];
}

/** @param root of the checkout, which is cut off from paths */
export function summaryOf(profile: CpuProfile, window: Window, root: string): ProfileSummary {
  const frames = framesOf(profile, root);
  const files = new Map<string, number>();
  const functions = new Map<string, number>();
  const inclusive = new Map<string, number>();
  let busyUs = 0;
  let at = profile.startTime;
  for (const [index, id] of profile.samples.entries()) {
    const us = profile.timeDeltas[index] ?? 0;
    at += us;
    const frame = frames.get(id);
    if (frame === undefined || at < window.fromUs || at > window.toUs || frame.name === "(idle)") continue;
    busyUs += us;
    add(files, frame.file === "" ? frame.name : frame.file, us);
    add(functions, frame.label, us);
    for (const label of frame.stack) add(inclusive, label, us);
  }
  return { busyUs, files: sorted(files), functions: sorted(functions), inclusive: sorted(inclusive) };
}

interface Frame {
  readonly name: string;
  readonly file: string;
  readonly label: string;
  /** Labels of the function and its callers, without those of Node and V8. */
  readonly stack: ReadonlySet<string>;
}

function framesOf({ nodes }: CpuProfile, root: string): ReadonlyMap<number, Frame> {
  const parentById = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const nodeById = new Map(nodes.map((node) => [node.id, node]));
  const frames = new Map<number, Frame>();
  const frameOf = (id: number): Frame | undefined => {
    const known = frames.get(id);
    const node = nodeById.get(id);
    if (known !== undefined || node === undefined) return known;
    const name = node.callFrame.functionName || "(anonymous)";
    const file = shortPath(sourceOf(node.callFrame), root);
    const label = file === "" ? name : `${file}  ${name}`;
    const parent = parentById.get(id);
    const above = parent === undefined ? undefined : frameOf(parent);
    const isOwn = file !== "" && !file.startsWith("node:");
    const frame = { name, file, label, stack: new Set([...(above?.stack ?? []), ...(isOwn ? [label] : [])]) };
    frames.set(id, frame);
    return frame;
  };
  for (const { id } of nodes) frameOf(id);
  return frames;
}

/** The URL of the source file by the source map beside a bundled file; the file itself without a map. */
function sourceOf({ url, lineNumber, columnNumber }: CpuProfile["nodes"][number]["callFrame"]): string {
  const entry = sourceMapOf(url)?.findEntry(lineNumber, columnNumber);
  return entry !== undefined && "originalSource" in entry ? new URL(entry.originalSource, url).href : url;
}

const sourceMapByUrl = new Map<string, SourceMap | undefined>();

function sourceMapOf(url: string): SourceMap | undefined {
  if (!sourceMapByUrl.has(url)) {
    const file = url.startsWith("file:") ? `${fileURLToPath(url)}.map` : "";
    sourceMapByUrl.set(
      url,
      existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, "utf8"))) : undefined,
    );
  }
  return sourceMapByUrl.get(url);
}

/** `file:///…/src/a.ts` → `src/a.ts`, and a package's file from its name on. */
function shortPath(url: string, root: string): string {
  return url
    .replace(/^file:\/\//, "")
    .replace(`${root.replace(/\/$/, "")}/`, "")
    .replace(/^(?:.*\/)?node_modules\//, "");
}

function add(sums: Map<string, number>, key: string, us: number): void {
  sums.set(key, (sums.get(key) ?? 0) + us);
}

function sorted(sums: ReadonlyMap<string, number>): readonly Row[] {
  return [...sums].map(([what, us]) => ({ what, us })).sort((a, b) => b.us - a.us);
}
