// A stored run of the benchmark: the figures, the machine, the servers.

import type { Timing } from "../peers/peer.ts";
import { FOREIGN_CORES_MAX } from "./machine.ts";
import type { CodeName } from "./prepare.ts";
import { ratiosByRound, type Spread, spreadOf } from "./statistics.ts";

/** The roles of all tables. */
export const roles = ["server", "coordinator", "workers", "client"] as const;
/** Followers are in the tables of cases that have some. */
export type Role = (typeof roles)[number] | "followers";

/** One window of one system. */
export interface Figure extends Partial<Omit<Timing, "value">> {
  readonly case: string;
  readonly system: string;
  readonly round: number;
  readonly wantedPerSecond?: number;
  /** CPU µs per task. */
  readonly usByRole?: Readonly<Partial<Record<Role, number>>>;
  /** Cores used by the benchmark and all its systems, by other programs, and taken by the hypervisor. */
  readonly cores?: number;
  readonly foreign?: number;
  readonly stolen?: number;
  /** Resident memory of the coordinator, in the cases that grow. */
  readonly coordinatorMiB?: number;
  /** From the end of the window until each follower had seen all events, in the case of followers. */
  readonly caughtUpMs?: number;
  /** Part of the window in which a base was written, in the case of bases. */
  readonly baseShare?: number;
  /** Tasks ended before, in the sustained case. */
  readonly endedBefore?: number;
  /** The window was not measured. */
  readonly error?: string;
}

export interface Run extends CodeName {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly rounds: number;
  readonly quick: boolean;
  readonly node: string;
  readonly servers: Readonly<Record<string, string>>;
  readonly machine: {
    readonly cores: number;
    readonly model: string;
    readonly memoryGiB: number;
    readonly system: string;
    /** Load average over a minute, before the first and after the last window. */
    readonly load: readonly [before: number, after: number];
  };
  /** Systems that were left out, with the reason. */
  readonly leftOut: readonly { readonly system: string; readonly reason: string }[];
  readonly figures: readonly Figure[];
}

type NumberField =
  | "ratePerSecond"
  | "p50"
  | "p99"
  | "max"
  | "acceptedMs"
  | "ms"
  | "cores"
  | "foreign"
  | "wantedPerSecond"
  | "coordinatorMiB"
  | "caughtUpMs"
  | "baseShare";

/** Reads a run by case and system. A round with a window under foreign load does not count, unless all rounds of the
 *  system are so. */
export class Figures {
  readonly #figures: readonly Figure[];

  constructor({ figures }: Pick<Run, "figures">) {
    this.#figures = figures;
  }

  systemsIn(name: string): string[] {
    return [...new Set(this.#figures.filter((figure) => figure.case === name).map(({ system }) => system))];
  }

  cases(): string[] {
    return [...new Set(this.#figures.map((figure) => figure.case))];
  }

  rolesIn(name: string): readonly Role[] {
    const has = (role: Role) =>
      this.#figures.some((figure) => figure.case === name && figure.usByRole?.[role] !== undefined);
    return has("followers") ? [...roles, "followers"] : roles;
  }

  /** All measured rounds. */
  of(name: string, system: string): readonly Figure[] {
    return this.#figures.filter(
      (figure) => figure.case === name && figure.system === system && figure.error === undefined,
    );
  }

  /** The rounds that count. */
  counted(name: string, system: string): readonly Figure[] {
    const all = this.of(name, system);
    const calm = all.filter(isCalm);
    return calm.length > 0 ? calm : all;
  }

  calmRounds(name: string, system: string): { readonly calm: number; readonly all: number } {
    const all = this.of(name, system);
    return { calm: all.filter(isCalm).length, all: all.length };
  }

  spread(name: string, system: string, field: NumberField): Spread | undefined {
    return spreadOf(this.counted(name, system).flatMap((figure) => figure[field] ?? []));
  }

  /** The rounds that count, or all. */
  byRound(
    name: string,
    system: string,
    field: NumberField,
    which: "counted" | "of" = "counted",
  ): ReadonlyMap<number, number> {
    return valueByRound(this[which](name, system), field);
  }

  /** CPU µs per task of a role; in the idle case per second. */
  spreadOfRole(name: string, system: string, role: Role): Spread | undefined {
    return spreadOf(this.counted(name, system).flatMap(({ usByRole }) => usByRole?.[role] ?? []));
  }

  /** CPU µs per task of all processes. */
  usOfAll(name: string, system: string): Spread | undefined {
    return spreadOf(this.counted(name, system).map(usSum));
  }

  /** Ratio of `ours` to `theirs`, per round that counts for both; without such a round, per round of all. */
  ratio(
    name: string,
    ours: string,
    theirs: string,
    field: NumberField | "us" = "ratePerSecond",
  ): Spread | undefined {
    const ratios = (figuresOf: (system: string) => readonly Figure[]) =>
      ratiosByRound(valueByRound(figuresOf(ours), field), valueByRound(figuresOf(theirs), field));
    const counted = ratios((system) => this.counted(name, system));
    const all = () => ratios((system) => this.of(name, system));
    return spreadOf(counted.length > 0 ? counted : all());
  }
}

export function isCalm({ foreign = 0 }: Figure): boolean {
  return foreign < FOREIGN_CORES_MAX;
}

function valueByRound(figures: readonly Figure[], field: NumberField | "us"): ReadonlyMap<number, number> {
  return new Map(
    figures.flatMap((figure) => {
      const value = field === "us" ? usSum(figure) : figure[field];
      return value === undefined ? [] : [[figure.round, value] as const];
    }),
  );
}

function usSum({ usByRole = {} }: Figure): number {
  return Object.values(usByRole).reduce((sum, us) => sum + us, 0);
}
