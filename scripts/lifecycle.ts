// Writes docs/lifecycle.md from the charts in machines/. The sentences are the descriptions in the charts.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from "xstate";
import { agentMachine, coordinatorMachine, slotMachine, taskMachine } from "../machines/index.ts";

const page = fileURLToPath(new URL("../docs/lifecycle.md", import.meta.url));

/** The page, from the charts. */
export function lifecyclePage(): string {
  const charts = [taskMachine, slotMachine, agentMachine, coordinatorMachine];
  return [introduction, ...charts.map(chapter)].join("\n");
}

const introduction = `# Lifecycles

<!-- Generated from machines/ by \`npm run docs:lifecycle\`. Edit the charts, not this page. -->

This page lists the states of tasks, slot leases, agents and coordinators, and the signals that lead from state to state.
The charts are in \`machines/\`, and programs import them from \`waggledance/machines\`. Signals are a contract. Names of
states may change: programs read \`ready\`, \`busy\`, \`offline\` and a task's state from answers and events. States of the
agent's and the coordinator's chart run actors: an actor starts when the state begins, and stops when the state ends.
`;

function chapter(machine: AnyStateMachine): string {
  const { root } = machine;
  return `## ${title(machine.id)}

${sentencesOf(root)}

\`\`\`mermaid
stateDiagram-v2
${diagram(root).join("\n")}
\`\`\`

| state | |
|---|---|
${descendants(root)
  .map((state) => `| ${nameOf(state)} | ${sentencesOf(state)} |`)
  .join("\n")}

| from | signal | to |
|---|---|---|
${edges(root)
  .map(({ from, signal, to }) => `| ${nameOf(from)} | \`${signal}\` | ${nameOf(to)} |`)
  .join("\n")}
`;
}

/** The description of a state, followed by the names of the state's actors. */
function sentencesOf(state: AnyStateNode): string {
  const actors = state.invoke.map(({ src }) => `\`${String(src)}\``);
  const running = actors.length === 0 ? [] : [`Runs ${actors.join(", ")}.`];
  return [...(state.description === undefined ? [] : [state.description]), ...running].join(" ");
}

interface Edge {
  readonly from: AnyStateNode;
  /** With the guard, if any, in brackets. */
  readonly signal: string;
  readonly to: AnyStateNode;
}

function edges(state: AnyStateNode): Edge[] {
  const own = [...state.transitions.values()].flat().flatMap(edgesOfTransition);
  return [...own, ...children(state).flatMap(edges)];
}

function edgesOfTransition(transition: AnyTransitionDefinition): Edge[] {
  const { source, guard, target } = transition;
  const name = signalOf(transition);
  const signal = guard === undefined ? name : `${name} [${guardName(guard)}]`;
  return (target ?? []).map((to) => ({ from: source, signal, to: initialLeaf(to) }));
}

function guardName(guard: unknown): string {
  return typeof guard === "string" ? guard : (guard as { readonly type: string }).type;
}

function signalOf(transition: AnyTransitionDefinition): string {
  if (!("delay" in transition)) return actorSignalOf(transition) ?? transition.eventType;
  const ms = Number(transition.source.machine.implementations.delays[String(transition.delay)]);
  return `after ${ms / 1_000} s`;
}

/** The end of an actor of the state, by the actor's name; undefined for a different signal. */
function actorSignalOf({ eventType, source }: AnyTransitionDefinition): string | undefined {
  const invoked = source.invoke.find(({ id }) => eventType.endsWith(`.${id}`));
  if (invoked === undefined) return undefined;
  const isError = eventType.startsWith("xstate.error.");
  return `${String(invoked.src)} ${isError ? "failed" : "done"}`;
}

function initialLeaf(state: AnyStateNode): AnyStateNode {
  const first = state.type === "compound" ? state.initial.target[0] : undefined;
  return first === undefined ? state : initialLeaf(first);
}

function diagram(root: AnyStateNode): string[] {
  return [...nested(root, "  "), ...arrows(edges(root))];
}

/** One arrow for all signals between the same states. An edge of the root is drawn from each non-final state. */
function arrows(all: readonly Edge[]): string[] {
  const signalsByArrow = new Map<string, string[]>();
  const drawn = all.flatMap((edge) => {
    const starts = edge.from.parent === undefined ? children(edge.from).filter(isNotFinal) : [edge.from];
    return starts.map((from) => ({ ...edge, from }));
  });
  for (const { from, signal, to } of drawn) {
    const arrow = `  ${idOf(from)} --> ${idOf(to)}`;
    signalsByArrow.set(arrow, [...(signalsByArrow.get(arrow) ?? []), signal]);
  }
  return [...signalsByArrow].map(([arrow, signals]) => `${arrow} : ${signals.join(", ")}`);
}

function nested(parent: AnyStateNode, indent: string): string[] {
  const lines = parent.type === "parallel" ? [] : [`${indent}[*] --> ${idOf(initialLeaf(parent))}`];
  for (const [at, state] of children(parent).entries()) {
    if (parent.type === "parallel" && at > 0) lines.push(`${indent}--`);
    if (children(state).length > 0) {
      lines.push(`${indent}state ${idOf(state)} {`, ...nested(state, `${indent}  `), `${indent}}`);
    } else if (state.path.length > 1) lines.push(`${indent}state "${state.key}" as ${idOf(state)}`);
    if (state.type === "final") lines.push(`${indent}${idOf(state)} --> [*]`);
  }
  return lines;
}

function descendants(state: AnyStateNode): AnyStateNode[] {
  return children(state).flatMap((child) => [child, ...descendants(child)]);
}

function children(state: AnyStateNode): AnyStateNode[] {
  return Object.values(state.states);
}

function nameOf(state: AnyStateNode): string {
  return state.path.length === 0 ? "any" : state.path.join(".");
}

function isNotFinal({ type }: AnyStateNode): boolean {
  return type !== "final";
}

function idOf(state: AnyStateNode): string {
  return state.path.join("_");
}

function title(id: string): string {
  return `${id.charAt(0).toUpperCase()}${id.slice(1)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(page, lifecyclePage());
