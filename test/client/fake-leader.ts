// A scripted leader: silent, refusing, forgetful, or with an older journal. For behaviour that a real
// coordinator does not show on demand; all further tests use a real coordinator.

import { swarmId } from "../../src/ids.ts";
import { encode } from "../../src/protocol/codec.ts";
import type { CoordinatorHeartbeat, Outcome } from "../../src/protocol/schemas.ts";
import { doneSubject, type Subjects, subjectsOf } from "../../src/protocol/subjects.ts";
import type { Message, Subscription, Transport } from "../../src/transport/transport.ts";

export interface AskedFor {
  /** `submit`, `await`, `cancel`, `drain`, `query.journal`, … */
  readonly verb: string;
  readonly project: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the message holds
  readonly body: any;
}

interface FakeTask {
  readonly json: string;
  outcome: Outcome | undefined;
  notify: Set<string>;
}

export class FakeLeader {
  term = 1;
  idx = 1;
  readonly asked: AskedFor[] = [];
  readonly tasks = new Map<string, FakeTask>();
  /** Asked first. `undefined`: the answer of a leader; `silence`: no answer; a promise: the answer when it
   *  resolves. */
  script: (asked: AskedFor) => object | Promise<object> | "silence" | undefined = () => undefined;
  readonly #transport: Transport;
  readonly #subjects: Subjects;
  #subscriptions: Subscription[] = [];

  constructor(hub: { connect(): Transport }, swarm = "test") {
    this.#transport = hub.connect();
    this.#subjects = subjectsOf(swarmId(swarm));
  }

  /** A leader appears. */
  start(term = this.term): this {
    this.term = term;
    const { prefix } = this.#subjects;
    const verbs = ["submit", "await", "cancel", "query.*"].map((verb) => `${prefix}.project.*.${verb}`);
    this.#subscriptions = [...verbs, `${prefix}.operator.*`].map((pattern) =>
      this.#transport.subscribe(pattern, (message) => this.#take(message)),
    );
    return this;
  }

  /** The leader disappears: requests have no responders. */
  stop(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
  }

  heartbeat(more: Partial<CoordinatorHeartbeat> = {}): void {
    const heartbeat = { id: "fake", term: this.term, idx: this.idx, leading: true, ...more };
    this.#transport.publish(this.#subjects.coordinator, encode(heartbeat));
  }

  end(task: string, outcome: Partial<Outcome> = {}, options: { readonly notifies?: boolean } = {}): void {
    const known = this.tasks.get(task);
    if (known === undefined) throw new Error(`no task ${task}`);
    this.idx += 1;
    known.outcome = {
      project: "default",
      task,
      state: "completed",
      attempts: 1,
      agent: "a1",
      result: "done",
      ...outcome,
    };
    if (options.notifies === false) return;
    for (const token of known.notify) this.push(token, [known.outcome]);
  }

  push(token: string, ended: readonly Outcome[]): void {
    this.#transport.publish(doneSubject(token), encode({ term: this.term, idx: this.idx, ended }));
  }

  /** Messages of the verb so far. */
  of(verb: string): AskedFor[] {
    return this.asked.filter((asked) => asked.verb === verb);
  }

  #take(message: Message): void {
    const [sender, ...rest] = message.subject.slice(this.#subjects.prefix.length + 1).split(".");
    const [project = "", ...verb] = sender === "project" ? rest : ["", ...rest];
    const body = JSON.parse(Buffer.from(message.data).toString());
    const asked = { verb: verb.join("."), project, body };
    this.asked.push(asked);
    const answer = this.script(asked) ?? this.#answer(asked);
    const { reply } = message;
    if (answer === "silence" || reply === undefined) return;
    if (answer instanceof Promise) void answer.then((late) => this.#transport.publish(reply, encode(late)));
    else this.#transport.publish(reply, encode(answer));
  }

  #answer({ verb, body }: AskedFor): object {
    switch (verb) {
      case "submit":
        return this.#accept(body);
      case "await":
        return this.#outcomes(body);
      default:
        return { ok: false, code: "WAGGLE_INVALID_MESSAGE", message: `the fake has no ${verb}` };
    }
  }

  #accept({ tasks, notify }: { tasks: { id: string }[]; notify?: string }): object {
    const answers = tasks.map((task) => {
      const known = this.tasks.get(task.id);
      const json = JSON.stringify(task);
      if (known !== undefined && known.json !== json) {
        return { ok: false, code: "WAGGLE_CONFLICT", message: "other content", field: "id" };
      }
      const entry = known ?? { json, outcome: undefined, notify: new Set() };
      if (notify !== undefined) entry.notify.add(notify);
      this.tasks.set(task.id, entry);
      return { ok: true, task: task.id, ...(known === undefined ? {} : { duplicate: true }) };
    });
    this.idx += 1;
    return { term: this.term, idx: this.idx, answers };
  }

  #outcomes({ tasks, notify }: { tasks: string[]; notify: string }): object {
    const answers = tasks.map((id) => {
      const task = this.tasks.get(id);
      if (task === undefined) return { ok: false, code: "WAGGLE_UNKNOWN_TASK", message: `no task ${id}` };
      if (task.outcome !== undefined) return { ok: true, outcome: task.outcome };
      task.notify.add(notify);
      return { ok: true, live: true };
    });
    return { term: this.term, idx: this.idx, answers };
  }
}
