// Measures systems in turn: A B C, A B C, … A window begins when the machine is calm.

import type { Order } from "../peers/peer.ts";
import { between, spent } from "./machine.ts";
import type { Pace } from "./pace.ts";
import type { Figure, Role } from "./record.ts";
import type { System } from "./systems.ts";

export interface Measuring {
  readonly rounds: number;
  readonly pace: Pace;
  readonly say: (line: string) => void;
  readonly add: (figure: Figure) => void;
  /** Systems that failed once: a hung system would cost minutes in each round. */
  readonly failed: Set<System>;
}

export interface Turn {
  readonly system: System;
  readonly order: Order | undefined;
  /** Runs right before the window, and is not measured. */
  readonly ramp?: Order | undefined;
  /** Name of the figure. Default: the system's name. */
  readonly name?: string;
  /** Measured right after the window. If it rejects, the window fails. */
  readonly more?: () => Promise<Partial<Figure>>;
}

export async function measureInTurn(
  name: string,
  turns: readonly Turn[],
  measuring: Measuring,
): Promise<void> {
  const { rounds, failed, pace } = measuring;
  for (let round = 1; round <= rounds; round += 1) {
    for (const turn of turns) if (!failed.has(turn.system)) await measure(name, round, turn, measuring);
    pace.ended(round, rounds);
  }
}

async function measure(name: string, round: number, turn: Turn, measuring: Measuring): Promise<void> {
  const { system, order } = turn;
  if (order === undefined) return;
  const { add, say, failed, pace } = measuring;
  const place = { case: name, system: turn.name ?? system.name, round };
  try {
    await pace.calm();
    if (turn.ramp !== undefined) await system.ask(turn.ramp);
    const figure = await measureWindow(system, order);
    add({ ...place, ...figure, ...(await turn.more?.()) });
  } catch (cause) {
    const error = cause instanceof Error ? cause.message : String(cause);
    say(`! ${system.name}, ${name}: ${error}`);
    add({ ...place, error });
    failed.add(system);
  }
}

/** One window of a system. @throws Error as `ask` */
export async function measureWindow(
  system: System,
  order: Order,
): Promise<Omit<Figure, "case" | "system" | "round">> {
  const before = spent(system.pids);
  const { value: _, ...timing } = await system.ask(order);
  const { usByRole, ...load } = between(before, spent(system.pids));
  const wanted = order.op === "open" ? { wantedPerSecond: order.ratePerSecond } : {};
  return { ...timing, ...wanted, usByRole: perTask(usByRole, timing.tasks), ...load };
}

/** CPU µs by role, per task. */
export function perTask(
  usByRole: Readonly<Record<string, number>>,
  tasks: number,
): Partial<Record<Role, number>> {
  return Object.fromEntries(
    Object.entries(usByRole).map(([role, us]) => [role, Math.round((us / tasks) * 10) / 10]),
  );
}
