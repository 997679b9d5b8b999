// The operator at the end of a seed: removes every limit, pause and drain, so that every waiting task can run. The
// operator repeats each request until it is answered. It also repeats the whole round, because clients may still finish
// old operations, and copies of requests arrive up to two minutes later. The operator is done after a round behind the
// last operation.

import { connect } from "../../client/connect.ts";
import type { HoldTargetOption } from "../../client/operations.ts";
import type { Swarm } from "../../client/swarm.ts";
import type { Clock } from "../../clock.ts";
import { WaggleError } from "../../errors.ts";
import { pause } from "../../pause.ts";
import type { Habitat } from "./habitat.ts";
import { newMachine } from "./session.ts";
import { projects, resources, types, type Workload } from "./workload.ts";

/** Pause before a repeated request, ms. */
const AGAIN_MS = 500;
/** …and before a repeated round, ms. */
const ROUND_MS = 20_000;

export class Operator {
  readonly #habitat: Habitat;
  readonly #workload: Workload;
  readonly #isAnyMeddling: () => boolean;
  #isDone = false;
  #waitsFor = "a connection";

  /** @param isAnyMeddling whether a client may still set a limit, pause or drain */
  constructor(habitat: Habitat, workload: Workload, isAnyMeddling: () => boolean) {
    this.#habitat = habitat;
    this.#workload = workload;
    this.#isAnyMeddling = isAnyMeddling;
  }

  /** Whether the last round is over. */
  get isDone(): boolean {
    return this.#isDone;
  }

  get waitsFor(): string {
    return this.#waitsFor;
  }

  start(): void {
    const machine = newMachine();
    const session = this.#habitat.newSession("operator", machine);
    const transport = this.#habitat.newConnection("operator", session);
    const { clock, random } = session;
    const { swarm } = this.#habitat;
    const logger = this.#habitat.loggerOf("operator");
    connect({ transport, swarm, project: "ops", user: "operator", clock, random, logger })
      .then((connected) => this.#putRight(connected, clock))
      .catch((error: unknown) => this.#habitat.escaped("operator", error));
  }

  #holdTargets(): HoldTargetOption[] {
    return [
      ...this.#workload.agents.map(({ id }) => ({ agent: id })),
      ...types.map((type) => ({ type })),
      ...resources.map((resource) => ({ resource })),
    ];
  }

  async #putRight(swarm: Swarm, clock: Clock): Promise<void> {
    const { groups } = this.#workload;
    const anyAgent = groups.length === 0 ? {} : ({ agents: "open" } as const);
    const steps: (readonly [what: string, ask: () => Promise<unknown>])[] = [
      ["resume", () => swarm.resume()],
      ["policy", () => swarm.setPolicy({ rules: "waggle", topN: null, budget: null, ...anyAgent })],
      ...groups.map((group) => [`grant of ${group}`, () => swarm.removeGrant(group)] as const),
      ...types.map((type) => [`rate ${type}`, () => swarm.removeRate(type)] as const),
      ...projects.flatMap((project) => [
        [`resume ${project}`, () => swarm.resume(project)] as const,
        [
          `project ${project}`,
          () => swarm.setProject(project, { budget: null, maxConcurrent: null }),
        ] as const,
      ]),
      ...this.#workload.agents.map(({ id }) => [`undrain ${id}`, () => swarm.undrain(id)] as const),
      ...this.#holdTargets().map(
        (target) => [`unhold ${JSON.stringify(target)}`, () => swarm.unhold(target)] as const,
      ),
    ];
    for (;;) {
      const isLast = !this.#isAnyMeddling();
      for (const [what, ask] of steps) {
        this.#waitsFor = what;
        while (!(await isDone(ask))) await pause(clock, AGAIN_MS);
      }
      this.#isDone ||= isLast;
      this.#waitsFor = "clients to finish their operations";
      await pause(clock, ROUND_MS);
    }
  }
}

/** An agent that never joined (WAGGLE_UNKNOWN_AGENT), or a resource that was never set, is refused, and needs no
 *  mending. */
async function isDone(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return error.code === "WAGGLE_UNKNOWN_AGENT" || error.code === "WAGGLE_INVALID_VALUE";
  }
}
