// Proof by mutation that a chart is the program. A test removes each part of the chart (edge, invoked actor, action,
// tag) in turn, and one scenario that runs the product must fail without the part. The table of parts is written by
// hand. A part that no scenario needs fails the suite, and so does a new part that the table does not name.

import { expect, it } from "vitest";
import type { AnyStateMachine } from "xstate";

/** By name: runs the product and asserts what the product does. Time is virtual, and a scenario awaits no promise that
 *  may never settle. */
export type Scenarios<Name extends string> = Readonly<Record<Name, () => Promise<void>>>;

/** By scenario: the parts of the chart without which the scenario fails. The table names each part once. */
export type Needs<Name extends string> = Readonly<Record<Name, readonly string[]>>;

interface Part {
  /** `ready ─FIRST_TASK→ busy`, `restoring ─restore failed→ halted` for the end of an actor, `joining: join` for an
   *  actor, `waiting / logWait` for an action, `busy #busy` for a tag. */
  readonly name: string;
  /** Removes the part from the chart's definition. @returns a function that restores the definition */
  readonly remove: () => () => void;
}

/** The product must make its machine by `machine.provide(…)`, which reads the definition again. */
export function everyPartIsNeeded<Name extends string>(
  machine: AnyStateMachine,
  scenarios: Scenarios<Name>,
  needs: Needs<Name>,
): void {
  const parts = partsOf(machine);
  const scenarioByPart = new Map<string, Name>();
  for (const scenario of Object.keys(needs) as Name[])
    for (const part of needs[scenario]) scenarioByPart.set(part, scenario);

  it("has exactly the parts that the table names", () => {
    const named = Object.values<readonly string[]>(needs).flat();
    expect(named.toSorted()).toEqual(parts.map(({ name }) => name).toSorted());
  });

  it.each(Object.entries<() => Promise<void>>(scenarios))("%s", async (_, run) => {
    await run();
  });

  it.each(parts.map(({ name, remove }) => [name, remove] as const))("needs %s", async (name, remove) => {
    const scenario = scenarioByPart.get(name);
    if (scenario === undefined) return expect.unreachable("the table names no scenario");
    const putBack = remove();
    try {
      await expect(scenarios[scenario](), `"${scenario}" passes without the part`).rejects.toThrow();
    } finally {
      putBack();
    }
  });
}

type Definition = Record<string, unknown>;

function partsOf({ config }: AnyStateMachine): Part[] {
  return partsOfState(config as Definition, "");
}

function partsOfState(state: Definition, path: string): Part[] {
  const here = path === "" ? "any" : path;
  const edges = (["on", "after"] as const).flatMap((kind) =>
    Object.keys((state[kind] ?? {}) as Definition).flatMap((signal) =>
      partsOfEdge(state[kind] as Definition, signal, `${here} ─${signal}`),
    ),
  );
  const invoked = elementsOf(state, "invoke").flatMap(([part, actor]) => [
    { ...part, name: `${here}: ${String(actor["src"])}` },
    ...partsOfEdge(actor, "onDone", `${here} ─${String(actor["src"])} done`),
    ...partsOfEdge(actor, "onError", `${here} ─${String(actor["src"])} failed`),
  ]);
  const actions = ["entry", "exit"].flatMap((when) =>
    elementsOf(state, when).map(([part, action]) => ({ ...part, name: `${here} / ${nameOf(action)}` })),
  );
  const tags = elementsOf(state, "tags").map(([part, tag]) => ({ ...part, name: `${here} #${String(tag)}` }));
  const inner = Object.entries((state["states"] ?? {}) as Record<string, Definition>).flatMap(([key, each]) =>
    partsOfState(each, path === "" ? key : `${path}.${key}`),
  );
  return [...edges, ...invoked, ...actions, ...tags, ...inner];
}

function partsOfEdge(edges: Definition, signal: string, name: string): Part[] {
  return elementsOf(edges, signal).flatMap(([part, edge]) => {
    if (typeof edge === "string") return [{ ...part, name: `${name}→ ${edge}` }];
    const guard = edge["guard"] === undefined ? "" : ` [${nameOf(edge["guard"])}]`;
    const whole = `${name}${guard}→ ${String(edge["target"])}`;
    const actions = elementsOf(edge, "actions").map(([action, its]) => ({
      ...action,
      name: `${whole} / ${nameOf(its)}`,
    }));
    return [{ ...part, name: whole }, ...actions];
  });
}

/** The elements under a key, one or many, each with the function that removes the element. */
function elementsOf(owner: Definition, key: string): [Omit<Part, "name">, Definition][] {
  const all = owner[key];
  if (all === undefined) return [];
  const remove = (at: number) => () => {
    owner[key] = Array.isArray(all) ? all.toSpliced(at, 1) : [];
    return () => {
      owner[key] = all;
    };
  };
  return [all].flat().map((element, at) => [{ remove: remove(at) }, element as Definition]);
}

/** Of an action or a guard. */
function nameOf(named: unknown): string {
  return typeof named === "string" ? named : String((named as Definition)["type"]);
}
