// Findings at the end of a seed, in worlds with a lasting violation.

import { describe, expect, it } from "vitest";
import { startAgent } from "../../../src/agent/agent.ts";
import type { Handler } from "../../../src/agent/handler.ts";
import { connect } from "../../../src/client/connect.ts";
import type { TaskRequest } from "../../../src/client/task-request.ts";
import { agentId } from "../../../src/ids.ts";
import { decodeRecord } from "../../../src/journal/records.ts";
import type { Fault, FaultKind } from "../../../src/sim/fault/fault.ts";
import type { Habitat } from "../../../src/sim/fault/habitat.ts";
import { payloadOf } from "../../../src/sim/fault/payload.ts";
import { planOf } from "../../../src/sim/fault/run-seed.ts";
import { newMachine } from "../../../src/sim/fault/session.ts";
import type { Workload } from "../../../src/sim/fault/workload.ts";
import { World } from "../../../src/sim/fault/world.ts";
import { liveTask } from "../../support/task-refs.ts";

const request = { seed: 8, forMs: 15_000, without: [] };
const FOR_EVER_MS = 3_600_000;
const lost = { lossShare: 1, duplicateShare: 0, reorderShare: 0, lateShare: 0, lateMs: 0, heldUntilMs: 0 };

interface Course {
  readonly operations?: Workload["operations"];
  readonly schedule?: readonly Fault[];
  readonly change?: (workload: Workload) => Workload;
  readonly without?: readonly FaultKind[];
  readonly seed?: number;
  /** Called before the run. */
  readonly prepare?: (world: World) => void;
}

async function worldAfter(course: Course): Promise<World> {
  const { operations = [], schedule = [], without = [], seed = request.seed, change, prepare } = course;
  const { workload: drawn } = planOf({ ...request, seed, operations });
  const workload = change?.(drawn) ?? drawn;
  const world = new World({ ...request, seed, workload, schedule, without, untilMs: request.forMs });
  prepare?.(world);
  await world.run();
  return world;
}

const findingsOf = async (course: Course) => (await worldAfter(course)).habitat.findings;

function submits(task: Partial<TaskRequest>): Workload["operations"] {
  const payload = payloadOf({ does: "complete", ms: 4_000, limitMs: 20_000 });
  const tasks = [{ id: "t1", kind: "count", project: "acme", payload, timeoutMs: 20_000, ...task }];
  return [{ atMs: 6_000, client: "k1", does: "submit", tasks }];
}

/** An additional agent, outside the world: no fault frees its handlers. */
function joinBeside(habitat: Habitat, kind: string, handler: Handler, id = "x1"): void {
  const session = habitat.newSession(id, newMachine());
  const transport = habitat.newConnection("x1", session);
  const { clock, random } = session;
  const { swarm } = habitat;
  const deps = { swarm, connection: { kind: "transport", transport }, clock, random } as const;
  void startAgent({ id, kinds: [kind], handler }, deps);
}

it("a correct world has no finding, and a history to check", async () => {
  const { habitat } = await worldAfter({ operations: submits({}) });
  expect(habitat.findings).toEqual([]);
  const compared = (by: "hash" | "state") =>
    new Set(habitat.readings.flatMap((read) => (read[by] ? [read.reader.split(" ")[0]] : [])));
  for (const by of ["hash", "state"] as const) expect(compared(by)).toEqual(new Set(["leader", "standby"]));
  const seen = habitat.history.map(({ kind }) => kind);
  expect(seen).toEqual(expect.arrayContaining(["call", "submit", "assigned", "result", "notified"]));
});

it("a task without a capable agent is found", async () => {
  expect(await findingsOf({ operations: submits({ kind: "unheard-of" }) })).toMatchObject([
    {
      check: "everything-accepted-ends",
      sentence: expect.stringContaining("1 tasks have not ended: t1 queued#0"),
    },
  ]);
});

it("a standby that cannot read on is found, and a journal with lost records", async () => {
  const without = ["crash", "transfer", "foreign", "disconnect"] as const;
  const cut: Fault = { kind: "cut", atMs: 8_000, forMs: FOR_EVER_MS, of: "standby/journal" };
  expect(await findingsOf({ without, schedule: [cut] })).toMatchObject([{ check: "standbys-follow" }]);
  const prepare = ({ truth }: World) => void Object.defineProperty(truth, "isWhole", { value: false });
  expect(await findingsOf({ without, prepare })).toMatchObject([{ check: "the-journal-is-mended" }]);
});

it("an attempt closed for silence before its begin is found, unless its agent was unreachable", async () => {
  const closed = { task: "t1", attempt: 1, agent: agentId("a1"), by: "stalled", timeoutMs: 20_000 } as const;
  const prepare = ({ habitat, truth }: World) =>
    void habitat.engine.after(14_000, "stalled", () =>
      truth.onLimitReached({ ...closed, decidedMs: habitat.engine.nowMs }),
    );
  expect(await findingsOf({ prepare })).toMatchObject([{ check: "what-waits-is-not-stalled" }]);
  const cut: Fault = { kind: "cut", atMs: 8_000, forMs: 1_000, of: "a1", direction: "up" };
  expect(await findingsOf({ prepare, schedule: [cut] })).toEqual([]);
});

it("an operator without an answer is found", async () => {
  const prepare = ({ habitat }: World) => {
    for (const direction of ["up", "down"] as const) habitat.linkOf("operator").set(direction, lost);
  };
  expect(await findingsOf({ prepare })).toMatchObject([
    {
      check: "everything-accepted-ends",
      sentence: expect.stringContaining("the operator still waits for: resume"),
    },
  ]);
});

it("a late operation of a client is undone by the operator before the checks", async () => {
  const heldUntilMs = 25_000;
  const prepare = ({ habitat }: World) => {
    const link = habitat.linkOf("k1");
    const held = { ...lost, lossShare: 0, reorderShare: 1, heldUntilMs };
    habitat.engine.after(14_400, "held", () => link.set("up", held));
    habitat.engine.after(14_900, "passing", () => link.set("up", undefined));
  };
  const operations: Workload["operations"] = [
    { atMs: 14_500, client: "k1", does: "pause", project: undefined },
  ];
  const { habitat, truth } = await worldAfter({ operations, prepare });
  expect(habitat.findings).toEqual([]);
  const pauses = truth.batches.filter((bytes) => Buffer.from(bytes).includes("SwarmPaused"));
  expect(pauses).toHaveLength(1);
  expect(habitat.occurrences.counts()).toMatchObject({ "agent-lost-in-calm": 1 });
});

it("so is an operation long on its way to the coordinators, after its client gave up", async () => {
  const heldUntilMs = 25_000;
  const prepare = ({ habitat }: World) => {
    const setAll = (condition: typeof lost | undefined) => {
      for (const id of ["c1", "c2", "c3"]) habitat.linkOf(id).set("down", condition);
    };
    const held = { ...lost, lossShare: 0, reorderShare: 1, heldUntilMs };
    habitat.engine.after(14_400, "held", () => setAll(held));
    habitat.engine.after(14_600, "passing", () => setAll(undefined));
  };
  const change = (workload: Workload) => ({
    ...workload,
    clients: workload.clients.map((client) => ({ ...client, remembers: false })),
  });
  const operations: Workload["operations"] = [
    { atMs: 14_500, client: "k1", does: "pause", project: undefined },
  ];
  const schedule: Fault[] = [{ kind: "crash", atMs: 14_550, forMs: 100, of: "k1" }];
  const { habitat, truth } = await worldAfter({ operations, prepare, change, schedule });
  expect(habitat.findings).toEqual([]);
  const pauses = truth.batches.filter((bytes) => Buffer.from(bytes).includes("SwarmPaused"));
  expect(pauses).toHaveLength(1);
  expect(habitat.occurrences.counts()).toMatchObject({ "agent-lost-in-calm": 1 });
});

it("a client never notified of its task's end is found", async () => {
  const schedule: Fault[] = [{ kind: "cut", atMs: 8_000, forMs: FOR_EVER_MS, of: "k1", direction: "down" }];
  expect(await findingsOf({ operations: submits({}), schedule })).toMatchObject([
    { check: "endings-are-notified", sentence: "k1 still waits for acme/t1, which has ended" },
  ]);
});

it("capacity never freed is found", async () => {
  const operations = submits({ kind: "stubborn", timeoutMs: 3_000, maxAttempts: 1 });
  const neverEnds = () => new Promise<never>(() => undefined);
  const prepare = ({ habitat }: World) => joinBeside(habitat, "stubborn", neverEnds);
  expect(await findingsOf({ operations, prepare })).toMatchObject([
    {
      check: "places-are-given-back",
      sentence: expect.stringContaining("ended attempt 1 of t1 occupies capacity of x1"),
    },
  ]);
});

it("a lost accepted task is found by the waiting client", async () => {
  const lostMs = 8_000;
  const schedule = ["c1", "c2", "c3"].map(
    (of): Fault => ({ kind: "crash", atMs: lostMs - 1, forMs: 1_000, of }),
  );
  const prepare = ({ habitat, truth }: World) => {
    habitat.engine.after(lostMs, "lost", () => {
      const { newestStream: stream } = habitat;
      const { position = 0 } = truth.live ?? {};
      stream?.loseTail(Math.min(truth.storedSince(5_900), stream.lastSeq - position));
      truth.lost();
    });
  };
  expect(await findingsOf({ operations: submits({}), schedule, prepare })).toMatchObject([
    { check: "accepted-tasks-end", sentence: expect.stringContaining("k1 waits for acme/t1 and receives:") },
  ]);
});

it("an agent that ends by itself is found", async () => {
  const change = (workload: Workload) => ({
    ...workload,
    agents: workload.agents.map((agent) => (agent.id === "a2" ? { ...agent, maxConcurrent: 0 } : agent)),
  });
  expect(await findingsOf({ change })).toMatchObject([
    { check: "agents-go-on", sentence: expect.stringContaining("a2 ended: ") },
  ]);
});

describe("an uncaught error is found:", () => {
  const escaped = (node: string) => [
    { check: "nothing-escapes", sentence: expect.stringMatching(`^${node}: `) },
  ];

  it("of an agent with refused options", async () => {
    const get = (): never => {
      throw new TypeError("as ordered");
    };
    const change = (workload: Workload) => ({
      ...workload,
      agents: workload.agents.map((each) =>
        each.id === "a2" ? { ...each, kinds: new Proxy(each.kinds, { get }) } : each,
      ),
    });
    const found = { check: "agents-go-on", sentence: expect.stringMatching(/^a2 ended: /) };
    expect(await findingsOf({ change })).toContainEqual(expect.objectContaining(found));
  });

  it("of a client", async () => {
    const change = (workload: Workload) => ({
      ...workload,
      clients: workload.clients.map((each) => (each.id === "k1" ? { ...each, user: "" } : each)),
    });
    expect(await findingsOf({ change })).toMatchObject(escaped("k1"));
  });

  it("of the operator", async () => {
    let agents: unknown[] = [];
    const change = (workload: Workload) => {
      agents = [...workload.agents];
      return { ...workload, agents: agents as unknown as Workload["agents"] };
    };
    const prepare = () => void agents.push(undefined); // an agent it cannot undrain
    expect(await findingsOf({ change, prepare })).toMatchObject(escaped("operator"));
  });
});

describe("in the quiet at the end,", () => {
  /** After all faults heal, the journal has no room for such a record. */
  const refuses = (kind: "opened" | "closing") => (world: World) => {
    const { habitat } = world;
    const onPublish = habitat.fates.onPublish.bind(habitat.fates);
    const handle = habitat.jetStream.handle.bind(habitat.jetStream);
    let isRefused = false;
    habitat.fates.onPublish = () => (isRefused ? "full" : onPublish());
    habitat.jetStream.handle = (subject, data, headers, reply, losses) => {
      isRefused = habitat.hasHealed && decodeRecord(data)?.kind === kind;
      handle(subject, data, headers, reply, losses);
      isRefused = false;
    };
  };

  it("the swarm recovers from a crashed leader, a crashed agent and a leader's stop", async () => {
    const { habitat } = await worldAfter({});
    expect(habitat.findings).toEqual([]);
    expect(habitat.occurrences.counts()).toMatchObject({
      "term-begun-in-calm": 1,
      "agent-lost-in-calm": 1,
      "term-handed-over-in-calm": 1,
    });
  });

  it("no new leader in time after a leader's crash is found", async () => {
    expect(await findingsOf({ prepare: refuses("opened") })).toMatchObject([
      { check: "recovery-is-bounded", sentence: expect.stringMatching(/a new term after the crash of c\d/) },
    ]);
  });

  it("no new leader in time after a leader's stop is found", async () => {
    expect(await findingsOf({ prepare: refuses("closing") })).toMatchObject([
      { check: "recovery-is-bounded", sentence: expect.stringContaining("a new term after the stop of c") },
    ]);
  });

  it("a crashed agent not lost in time is found", async () => {
    // A ghost goes on sending under the agent's id.
    const prepare = ({ habitat }: World) => {
      const route = habitat.server.route.bind(habitat.server);
      habitat.server.route = (message, side) => {
        if (habitat.hasHealed && message.subject.endsWith(".heartbeat"))
          for (let s = 1; s < 20; s += 1)
            habitat.engine.after(s * 1_000, "ghost", () => void route(message, side));
        return route(message, side);
      };
    };
    expect(await findingsOf({ prepare })).toMatchObject([
      {
        check: "recovery-is-bounded",
        sentence: expect.stringMatching(/the loss of a\d+ after its crash, and new attempts of probe/),
      },
    ]);
  });

  it("the probe waits if a session is replaced before its crash, and its task is unassigned", async () => {
    const prepare = ({ habitat, truth }: World) => {
      const openIn = (attempt: number) => {
        const row = liveTask(truth.state, "probe");
        return row?.attempt === attempt ? row.open : undefined;
      };
      const once = (isSo: () => boolean, then: () => void): void =>
        isSo() ? then() : void habitat.engine.after(10, "look", () => once(isSo, then));
      once(
        () => openIn(1) !== undefined,
        () => joinBeside(habitat, "other", () => "never asked", "a1"),
      );
      once(
        () => openIn(2) !== undefined,
        () => joinBeside(habitat, "count", () => "done"),
      );
    };
    const change = (workload: Workload) => ({
      ...workload,
      agents: workload.agents.map((each) => (each.id === "a1" ? each : { ...each, kinds: ["outline"] })),
    });
    const { habitat } = await worldAfter({ seed: 3, prepare, change });
    expect(habitat.findings).toEqual([]);
    expect(habitat.occurrences.counts()).toMatchObject({ "agent-lost-in-calm": 1 });
  });

  it("a lost agent's task that runs elsewhere without completing is found", async () => {
    const prepare = ({ habitat, truth }: World) => {
      const session = habitat.newSession("x1", newMachine());
      const options = {
        project: "ops",
        user: "x1",
        swarm: habitat.swarm,
        clock: session.clock,
        random: session.random,
      };
      const look = () => {
        if (liveTask(truth.state, "probe")?.attempt !== 2) habitat.engine.after(100, "look", look);
        else
          void connect({ ...options, transport: habitat.newConnection("x1", session) }).then((swarm) =>
            swarm.cancel("probe", { project: "ops" }),
          );
      };
      look();
    };
    expect(await findingsOf({ prepare })).toMatchObject([
      { check: "recovery-is-bounded", sentence: expect.stringMatching(/^probe is cancelled after a crash/) },
    ]);
  });

  it("a standby that does not follow is found", async () => {
    const prepare = ({ habitat }: World) => {
      habitat.engine.after(request.forMs, "cut", () => {
        for (const coordinator of ["c1", "c2"]) habitat.linkOf(`${coordinator}/journal`).set("down", lost);
      });
    };
    expect(await findingsOf({ prepare })).toMatchObject([
      {
        check: "recovery-is-bounded",
        sentence: expect.stringContaining("the probe still waits for a leader with followers"),
      },
    ]);
  });

  it("no node crashes or stops if the seed leaves that out, or if faults go on", async () => {
    const names = ["term-begun-in-calm", "agent-lost-in-calm", "term-handed-over-in-calm"];
    const left = await worldAfter({ without: ["crash", "transfer"] });
    const going = await worldAfter({
      schedule: [{ kind: "slow", atMs: 8_000, forMs: FOR_EVER_MS, of: "k1", ms: 1 }],
    });
    for (const { habitat } of [left, going]) {
      expect(habitat.findings).toEqual([]);
      expect(Object.keys(habitat.occurrences.counts()).filter((name) => names.includes(name))).toEqual([]);
    }
  });
});

it("a different batch at the same index of the journal is found", async () => {
  const prepare = ({ habitat }: World) =>
    void habitat.readings.push({ reader: "standby c9", idx: 1, hash: "another" });
  expect(await findingsOf({ prepare })).toMatchObject([
    {
      check: "P8 readings",
      sentence: expect.stringContaining("standby c9 has read a batch 1 that differs"),
    },
  ]);
});

it("two states at the same index of the journal are found", async () => {
  const prepare = ({ habitat }: World) =>
    void habitat.readings.push({ reader: "standby c9", idx: 1, state: "another" });
  expect(await findingsOf({ prepare })).toMatchObject([
    {
      check: "P13 fold",
      sentence: expect.stringContaining("standby c9 had a state after batch 1 that differs"),
    },
  ]);
});

it("an answer that contradicts the journal is found", async () => {
  const cancelled = {
    kind: "cancel",
    node: "k9",
    project: "acme",
    task: "t9",
    sentMs: 1,
    heardMs: 2,
  } as const;
  const prepare = ({ habitat }: World) =>
    void habitat.history.push({ ...cancelled, round: 1, answer: "cancelled" });
  expect(await findingsOf({ prepare })).toMatchObject([
    {
      check: "P5 answers",
      sentence: expect.stringContaining("k9: cancel t9, sent at 1.0 ms, is answered cancelled"),
    },
  ]);
});
