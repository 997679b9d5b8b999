// A recorded client as a separate process: submits at a steady rate, sometimes queries, cancels and resubmits,
// and waits for every outcome. The parent tells the client when to stop submitting and when to end.

import { connect } from "../../../src/client/connect.ts";
import type { Swarm } from "../../../src/client/swarm.ts";
import type { TaskHandle } from "../../../src/client/task-handle.ts";
import { swarmId } from "../../../src/ids.ts";
import { encode } from "../../../src/protocol/codec.ts";
import { subjectsOf } from "../../../src/protocol/subjects.ts";
import { RecordingTransport } from "../../../src/sim/history/recording-transport.ts";
import { SeededRandom } from "../../../src/sim/random.ts";
import { connectNats } from "../../../src/transport/nats.ts";
import { HistoryWriter } from "../history-file.ts";
import { monotonicMs } from "../monotonic.ts";
import type { ClientOrders, ClientReport, ProcessStart } from "./start.ts";

const TICK_MS = 20;
/** What could not be submitted for so long is made up for; beyond, the rate is what it is. */
const CATCH_UP_MS = 10_000;
const QUERY_MS = 5_000;
/** Of submitted tasks. */
const shares = { asked: 0.1, cancelled: 0.03, repeated: 0.03, conflicting: 0.01 } as const;

class Load {
  readonly #swarm: Swarm;
  readonly #start: ProcessStart;
  readonly #random: SeededRandom;
  readonly counts = { accepted: 0, ended: 0, unknown: 0, refused: 0 };
  readonly #open = new Set<Promise<void>>();
  #sequence = 0;
  /** Thousandths of tasks. */
  #owed = 0;
  #tickedMs = monotonicMs();
  isStopped = false;

  constructor(swarm: Swarm, start: ProcessStart) {
    this.#swarm = swarm;
    this.#start = start;
    this.#random = new SeededRandom(`${start.seed}/${start.node}`);
  }

  get open(): number {
    return this.#open.size;
  }

  /** By the time that passed, for ticks come late on a busy machine. */
  tick(): void {
    const { ratePerSecond, openMax } = this.#start;
    const nowMs = monotonicMs();
    const passedMs = nowMs - this.#tickedMs;
    this.#tickedMs = nowMs;
    if (this.isStopped) return;
    this.#owed = Math.min(this.#owed + ratePerSecond * passedMs, ratePerSecond * CATCH_UP_MS);
    for (; this.#owed >= 1_000 && this.open < openMax; this.#owed -= 1_000) {
      const session = this.#one().finally(() => this.#open.delete(session));
      this.#open.add(session);
    }
  }

  async #one(): Promise<void> {
    this.#sequence += 1;
    const id = `${this.#start.node}-${process.pid}-${this.#sequence}`;
    const request = { id, kind: "chaos", payload: `${id} ${"x".repeat(this.#start.payloadBytes)}` };
    const handle = await this.#submit(request);
    if (handle === undefined) return;
    this.counts.accepted += 1;
    await this.#meddle(handle, request);
    await this.#outcome(handle);
  }

  /** Undefined: refused or unknown, which the record judges. */
  async #submit(request: { id: string; kind: string; payload: string }): Promise<TaskHandle | undefined> {
    try {
      return await this.#swarm.submit(request, { retry: true });
    } catch (error) {
      const isUnknown = (error as { code?: string }).code === "WAGGLE_OUTCOME_UNKNOWN";
      this.counts[isUnknown ? "unknown" : "refused"] += 1;
      return undefined;
    }
  }

  async #meddle(handle: TaskHandle, request: { id: string; kind: string; payload: string }): Promise<void> {
    const draw = this.#random.fraction();
    const { asked, cancelled, repeated, conflicting } = shares;
    // Whatever these answer, or fail to, is on the record; a failure to ask is none of the tasks'.
    const ignored = () => undefined;
    if (draw < asked) await this.#query(handle);
    else if (draw < asked + cancelled) await handle.cancel().catch(ignored);
    else if (draw < asked + cancelled + repeated) await this.#swarm.submit(request).catch(ignored);
    else if (draw < asked + cancelled + repeated + conflicting)
      await this.#swarm.submit({ ...request, payload: "another" }).catch(ignored);
  }

  /** As others would who look it up: any coordinator may answer. */
  async #query({ id: task, project }: TaskHandle): Promise<void> {
    const subject = subjectsOf(swarmId(this.#start.swarm)).query(project, "task");
    await transport.request(subject, encode({ v: 1, task }), { timeoutMs: QUERY_MS });
  }

  async #outcome(handle: TaskHandle): Promise<void> {
    for (;;) {
      try {
        await handle.outcome();
        this.counts.ended += 1;
        return;
      } catch (error) {
        sendReport({ type: "trouble", sentence: `${handle.id}: ${String(error)}` });
        if ((error as { code?: string }).code !== "WAGGLE_UNREACHABLE") return;
      }
    }
  }
}

function sendReport(report: ClientReport): void {
  process.send?.(report);
}

const start = JSON.parse(process.argv[2] ?? "{}") as ProcessStart;
const writer = new HistoryWriter(start.historyFile, start.recordsEvery);
const inner = await connectNats({ urls: start.urls, name: start.node });
const transport = new RecordingTransport(inner, {
  node: start.node,
  swarm: swarmId(start.swarm),
  now: monotonicMs,
  record: writer.record,
});
const swarm = await connect({ transport, swarm: start.swarm });
swarm.losses$.subscribe((loss) => sendReport({ type: "trouble", sentence: String(loss) }));
const load = new Load(swarm, start);
setInterval(() => load.tick(), TICK_MS);
setInterval(() => sendReport({ type: "counts", ...load.counts, open: load.open }), 250);
process.on("message", (order: ClientOrders) => {
  if (order.type === "stop-submitting") load.isStopped = true;
  if (order.type === "end") {
    writer.flush();
    process.exit(0);
  }
});
process.once("disconnect", () => process.exit(1));
sendReport({ type: "ready" });
