// Production coordinators over one memory transport and one memory journal, in virtual time. Nothing here waits for a
// coordinator: with a part of the chart removed, the coordinator may never answer.

import type { ProbedCoordinator, Role } from "../../src/coordinator/coordinator.ts";
import { startProbedCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import {
  type AnswerFate,
  MemoryJournal,
  type MemoryRequest,
  type RequestFate,
} from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { Gate } from "../support/gate.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, silentLogger, subjects, WireNode } from "../support/swarm.ts";
import { aRef } from "../support/task-refs.ts";
import { WatchedJournal } from "../support/watched-journal.ts";

export class CoordinatorFixture {
  readonly clock = new ManualClock();
  readonly hub = new MemoryHub({ clock: this.clock });
  readonly store = new MemoryJournalStore({ clock: this.clock });
  readonly watched = new WatchedJournal(this.store);
  readonly client = new WireNode(this.hub.connect());

  /** The first coordinator leads, and the others follow. */
  static async led(): Promise<{ readonly fixture: CoordinatorFixture; readonly leader: RunningCoordinator }> {
    const fixture = new CoordinatorFixture();
    return { fixture, leader: await fixture.start("c1") };
  }

  async start(id: string, { isOffline = false } = {}): Promise<RunningCoordinator> {
    const started = new RunningCoordinator(id, this, isOffline);
    await this.clock.settle();
    return started;
  }

  /** The answer that comes before any time passes; undefined when none does. */
  async answerTo<Answer>(request: Promise<Answer>): Promise<Answer | undefined> {
    let answer: Answer | undefined;
    request.then(
      (given) => {
        answer = given;
      },
      () => undefined, // as no answer
    );
    await this.clock.settle();
    return answer;
  }

  submit(task: string) {
    return this.answerTo(this.client.submit([{ id: task, kind: "count" }]));
  }

  transfer(of: number) {
    return this.answerTo(this.client.ask(subjects.operator("transfer"), { of }));
  }
}

export class RunningCoordinator {
  /** Called for each request to the journal: holds the request, or throws. */
  onRequest: ((request: MemoryRequest) => Promise<void> | undefined) | undefined;
  readonly journal: MemoryJournal;
  role: Role | undefined;
  /** Undefined while the coordinator runs. `code`: why it halted. */
  end: { readonly code: string | undefined } | undefined;
  readonly #transport: Transport;
  #coordinator: ProbedCoordinator | undefined;
  #gate: Gate | undefined;

  constructor(id: string, { hub, store, clock }: CoordinatorFixture, isOffline: boolean) {
    this.#transport = hub.connect();
    this.journal = new MemoryJournal(store, {
      onRequest: async (request): Promise<RequestFate> => {
        await this.onRequest?.(request);
        return "deliver";
      },
      onAnswer: async (): Promise<AnswerFate> => {
        await this.#gate?.opened;
        return "deliver";
      },
    });
    this.journal.setOffline(isOffline);
    const ended = (error: { readonly code: string } | undefined) => {
      this.end = { code: error?.code };
    };
    startProbedCoordinator({
      id,
      swarm: swarmId("test"),
      transport: this.#transport,
      journal: this.journal,
      clock,
      random: noJitter,
      logger: silentLogger,
    }).then((coordinator) => {
      this.#coordinator = coordinator;
      coordinator.role$.subscribe((role) => {
        this.role = role;
      });
      void coordinator.closed.then(ended);
    }, ended);
  }

  /** Whether the state that the coordinator holds contains a live task. */
  hasTask(id: string): boolean {
    return this.#coordinator?.probe.settledState?.taskById.get(aRef(id, "default")) !== undefined;
  }

  stop(): void {
    void this.#coordinator?.stop();
  }

  /** Holds the journal's answers until `release`. */
  hold(): void {
    this.#gate = new Gate();
  }

  release(): void {
    this.#gate?.open();
    this.#gate = undefined;
  }

  /** The next publish on a subject, or subscription to the subject, throws. */
  failOnce(method: "publish" | "subscribe", failing: string, error: Error): void {
    const transport = this.#transport;
    const carry: (...args: never[]) => unknown = transport[method].bind(transport);
    Object.assign(transport, {
      [method]: (subject: string, ...rest: never[]) => {
        if (subject !== failing) return carry(subject as never, ...rest);
        Object.assign(transport, { [method]: carry });
        throw error;
      },
    });
  }
}
