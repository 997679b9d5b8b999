// Coordinators and `waggle serve nats` as NATS services: against the shapes of ADR-32, and found by the published
// client, on the development broker and on nats-server.

import { Svcm } from "@nats-io/services";
import { createInbox, headers, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { InvalidInputError } from "../../src/agent/handler.ts";
import { findBroker } from "../../src/broker/find-broker.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { openNatsConnection } from "../../src/transport/nats.ts";
import { aShell, runIn } from "../cli/shell.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

const semver = z.string().regex(/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/);
const strings = z.record(z.string(), z.string());
const standard = {
  name: z.string().regex(/^[A-Za-z0-9_-]+$/),
  id: z.string().min(1),
  version: semver,
  metadata: strings,
};
const count = z.int().min(0);
const endpoint = { name: z.string(), subject: z.string(), queue_group: z.string() };

/** The answers of ADR-32, revision 6, with no other field. */
const shapes = {
  PING: z.strictObject({ type: z.literal("io.nats.micro.v1.ping_response"), ...standard }),
  INFO: z.strictObject({
    ...{ type: z.literal("io.nats.micro.v1.info_response"), ...standard, description: z.string() },
    endpoints: z.array(z.strictObject({ ...endpoint, metadata: strings })),
  }),
  STATS: z.strictObject({
    ...{ type: z.literal("io.nats.micro.v1.stats_response"), ...standard, started: z.iso.datetime() },
    endpoints: z.array(
      z.strictObject({
        ...{ ...endpoint, num_requests: count, num_errors: count, last_error: z.string() },
        ...{ data: z.unknown().optional(), processing_time: count, average_processing_time: count },
      }),
    ),
  }),
};
type Verb = keyof typeof shapes;

const [server] = natsServersFor("NATS services");

describe.each([
  ["the development broker", undefined],
  ["nats-server", server?.path],
])("on %s", (name, path) => {
  const isMissing = name === "nats-server" && path === undefined;
  let workplace: Workplace;
  let coordinator: RunningWaggle;
  let swarm: Swarm;
  let nats: NatsConnection;

  beforeAll(async () => {
    if (isMissing) return;
    workplace = await Workplace.make(path);
    coordinator = workplace.start("up", "--name", "north");
    await coordinator.says("leading");
    swarm = await connect({ dataFolder: workplace.dataFolder, project: "served" });
    await swarm.agent({ id: "worker", kinds: ["work"], maxConcurrent: 100, handler: work });
    const { address } = await findBroker({ mode: "find-only", dataFolder: workplace.dataFolder, env: {} });
    nats = await openNatsConnection({ ...address, name: "another program" });
  });
  afterAll(async () => {
    if (isMissing) return;
    await nats.close();
    await swarm.close();
    await workplace.clear();
  });

  const gates = new Map<string, () => void>();

  async function work(task: { text(): string; bytes(): Uint8Array }): Promise<unknown> {
    const said = task.text();
    if (said === "fail") throw new Error("the work is too hard");
    if (said === "bad") throw new InvalidInputError("no such word");
    if (said.startsWith("wait ")) await new Promise<void>((resolve) => gates.set(said, resolve));
    if (said === "never") await new Promise(() => undefined);
    return task.bytes();
  }

  /** All answers within a moment. */
  async function ask<Of extends Verb>(verb: Of, ...rest: string[]): Promise<z.infer<(typeof shapes)[Of]>[]> {
    const subject = ["$SRV", verb, ...rest].join(".");
    const answers: z.infer<(typeof shapes)[Of]>[] = [];
    const inbox = nats.subscribe(createInbox());
    nats.publish(subject, "", { reply: inbox.getSubject() });
    setTimeout(() => inbox.unsubscribe(), 1_000);
    for await (const answer of inbox)
      if (answer.data.length > 0)
        // not the server's word that nobody answers
        answers.push(shapes[verb].parse(answer.json()) as z.infer<(typeof shapes)[Of]>);
    return answers;
  }

  async function serve(...flags: string[]): Promise<RunningWaggle> {
    const serving = workplace.start("serve", "nats", "--kind", "work", "--project", "served", ...flags);
    await serving.says("serving work on");
    return serving;
  }

  const request = async (subject: string, data: string | Uint8Array = "", timeout = 20_000) => {
    const answer = await nats.request(subject, data, { timeout });
    const field = (of: string) => answer.headers?.get(of) ?? "";
    return {
      text: answer.string(),
      data: answer.data,
      task: field("Waggle-Task"),
      error: field("Nats-Service-Error"),
      code: field("Nats-Service-Error-Code"),
      retryAfter: field("Retry-After"),
    };
  };

  it.skipIf(isMissing)("a coordinator answers all nine questions in the shapes of ADR-32", async () => {
    const [ping] = await ask("PING");
    expect(ping).toMatchObject({ name: "waggle", metadata: { swarm: "default" } });
    const id = ping?.id ?? "";
    expect(id).toMatch(/^north-/);
    const own = [[], ["waggle"], ["waggle", id]];
    const questions = (["PING", "INFO", "STATS"] as const).flatMap((verb) =>
      own.map((rest) => ask(verb, ...rest)),
    );
    for (const answers of await Promise.all(questions)) expect(answers).toMatchObject([{ id }]);
    const foreign = [["other"], ["waggle", "other"], ["waggle", id, "more"]].map((rest) =>
      ask("PING", ...rest),
    );
    expect(await Promise.all(foreign)).toEqual([[], [], []]);

    const [info] = await ask("INFO", "waggle");
    expect(info?.endpoints.map((each) => each.name)).toEqual(
      expect.arrayContaining(["project-query", "project-submit", "operator", "agent-heartbeat"]),
    );
    const requestsOf = async (of: string) =>
      (await ask("STATS", "waggle"))[0]?.endpoints.find((each) => each.name === of)?.num_requests ?? 0;
    const before = await requestsOf("project-query");
    await swarm.status();
    await swarm.status();
    expect((await requestsOf("project-query")) - before).toBeGreaterThanOrEqual(2);
  });

  it.skipIf(isMissing)("both kinds of services are found by the published client", async () => {
    const serving = await serve("--subject", "svc.found");
    const client = new Svcm(nats as unknown as ConstructorParameters<typeof Svcm>[0]).client();
    const all = async <Found>(found: AsyncIterable<Found>) => {
      const list: Found[] = [];
      for await (const each of found) list.push(each);
      return list;
    };
    const names = (await all(await client.ping())).map((each) => each.name);
    expect(names.toSorted()).toEqual(["waggle", "waggle-work"]);
    expect(await all(await client.info("waggle-work"))).toMatchObject([
      { endpoints: [{ subject: "svc.found", queue_group: "q" }], metadata: { kind: "work" } },
    ]);
    await request("svc.found", "a");
    await request("svc.found", "fail");
    expect(await all(await client.stats("waggle-work"))).toMatchObject([
      {
        endpoints: [
          {
            num_requests: 2,
            num_errors: 1,
            last_error: expect.stringMatching(/^WAGGLE_TASK_FAILED: .*too hard/),
          },
        ],
      },
    ]);
    expect((await serving.kill("SIGINT")).code).toBe(0);
    expect((await all(await client.ping())).map((each) => each.name)).toEqual(["waggle"]);
  });

  describe.skipIf(isMissing)("waggle serve nats", () => {
    let serving: RunningWaggle;

    it("answers text and bytes with the task's result, and names the task", async () => {
      serving = await serve("--subject", "svc.work", "--user", "bridge", "--timeout", "10s");
      const text = await request("svc.work", "how many words");
      expect(text).toMatchObject({ text: "how many words", error: "" });
      expect((await swarm.story(text.task)).status).toMatchObject({
        state: "completed",
        user: "bridge",
        project: "served",
      });
      const bytes = Uint8Array.of(0, 255, 10);
      expect([...(await request("svc.work", bytes)).data]).toEqual([...bytes]);
      expect(await request("svc.work")).toMatchObject({ text: "", error: "" });
    });

    it("sends chunks before the result to a requester who asks for them", async () => {
      await swarm.agent({
        id: "streamer",
        kinds: ["stream"],
        handler: async function* () {
          yield "one ";
          yield Uint8Array.of(0xff);
          await new Promise((resolve) => setTimeout(resolve, 200));
          yield "two";
          return "one two";
        },
      });
      const streaming = workplace.start("serve", "nats", "--kind", "stream", "--subject", "svc.stream");
      await streaming.says("serving stream on");
      const asked = headers();
      asked.set("Waggle-Stream", "1");
      const inbox = nats.subscribe(createInbox());
      nats.publish("svc.stream", "go", { headers: asked, reply: inbox.getSubject() });
      const chunks: string[] = [];
      for await (const message of inbox) {
        const nth = message.headers?.get("Waggle-Chunk") ?? "";
        if (nth === "") {
          expect(message.string()).toBe("one two");
          break;
        }
        chunks[Number(nth)] = Buffer.from(message.data).toString("latin1");
        expect(message.headers?.get("Waggle-Attempt")).toBe("1");
      }
      expect(chunks).toEqual(["one ", "\u00ff", "two"]);
      expect(await request("svc.stream", "go")).toMatchObject({ text: "one two" });
      await streaming.kill("SIGINT");
    });

    it("answers many requests at once, each with its own result", async () => {
      const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => request("svc.work", `n${n}`)));
      expect(answers.map(({ text }) => text)).toEqual(Array.from({ length: 200 }, (_, n) => `n${n}`));
    });

    it.each([
      ["invalid input", "bad", "400", /^WAGGLE_TASK_FAILED: .*no such word/],
      ["a failed task", "fail", "500", /^WAGGLE_TASK_FAILED: .*too hard/],
      ["too large a request", "x".repeat(300_000), "400", /^WAGGLE_INVALID_MESSAGE: .*256 KiB/],
      ["a time-out, at which the task expires", "never", "504", /^WAGGLE_TASK_EXPIRED: /],
    ])("answers %s as an error", async (_what, payload, code, expected) => {
      const answer = await request("svc.work", payload, 30_000);
      expect(answer).toMatchObject({ text: "", code, error: expect.stringMatching(expected) });
    });

    it("answers 404 when no agent serves the kind, and 429 when a budget is used up", async () => {
      const lonely = workplace.start("serve", "nats", "--kind", "nobody", "--subject", "svc.nobody");
      await lonely.says("serving nobody");
      expect(await request("svc.nobody", "x")).toMatchObject({
        code: "404",
        error: expect.stringMatching(/^WAGGLE_NO_CAPABLE_AGENT: /),
      });
      await swarm.setProject("served", { budget: { tokens: 1, windowMs: 60_000, mode: "reject" } });
      const refused = await request("svc.work", "x");
      expect(refused).toMatchObject({ code: "429", error: expect.stringMatching(/BUDGET/) });
      await swarm.removeProject("served");
      await lonely.kill("SIGKILL");
    });

    it("ignores unexpected messages, and counts them in the figures", async () => {
      nats.publish("svc.work", "no reply wanted");
      nats.publish("svc.work", "to the journal", { reply: "waggle.v1.default.journal.1" });
      nats.publish("svc.work", "with headers", { headers: headers() });
      expect(await request("svc.work", "after")).toMatchObject({ text: "after" });
      const [stats] = await ask("STATS", "waggle-work");
      expect(stats?.endpoints[0]?.last_error).toContain("without a reply inbox");
    });

    it("loses no task when it is killed in mid-request, and the other of the group goes on", async () => {
      const spare = await serve("--subject", "svc.pair", "--queue", "pair", "--timeout", "20s");
      const doomed = await serve("--subject", "svc.pair", "--queue", "pair", "--timeout", "20s");
      const asked = Array.from({ length: 8 }, (_, n) => request("svc.pair", `wait ${name}${n}`, 6_000));
      const settled = Promise.allSettled(asked);
      await expect
        .poll(() => [...gates.keys()].filter((key) => key.startsWith(`wait ${name}`)).length)
        .toBe(8);
      await doomed.kill("SIGKILL");
      for (const open of gates.values()) open();
      for (const one of await settled)
        if (one.status === "fulfilled") expect(one.value).toMatchObject({ error: "" });
      const live = { project: "served", state: ["queued", "delayed", "assigned", "running"] } as const;
      await expect.poll(async () => (await swarm.taskPage(live)).tasks).toEqual([]);
      expect(await request("svc.pair", "still here")).toMatchObject({ text: "still here" });
      await spare.kill("SIGINT");
    });

    it("answers the open requests at Ctrl-C", async () => {
      const leaving = await serve("--subject", "svc.leaving");
      const open = request("svc.leaving", `wait ${name} leaving`);
      await expect.poll(() => gates.has(`wait ${name} leaving`)).toBe(true);
      const ended = leaving.kill("SIGINT");
      await leaving.says("answering the open requests");
      gates.get(`wait ${name} leaving`)?.();
      expect(await open).toMatchObject({ text: `wait ${name} leaving`, error: "" });
      expect((await ended).code).toBe(0);
    });

    it("ends with the others", async () => {
      expect(await serving.kill("SIGINT")).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/answered 2\d\d requests, 8 of them with an error/),
      });
    });
  });
});

describe("waggle serve nats without a swarm", () => {
  it.each([
    ["--kind KIND and --subject SUBJECT are required", ["--kind", "k"]],
    [
      "reaches subjects of NATS or of the swarm",
      ["--kind", "k", "--subject", "waggle.v1.default.project.*.submit"],
    ],
    ["reaches subjects of NATS or of the swarm", ["--kind", "k", "--subject", "$SRV.PING"]],
    ["reaches subjects of NATS or of the swarm", ["--kind", "k", "--subject", ">"]],
  ])("says %s", async (expected, flags) => {
    const { code, stderr } = await runIn(aShell(), "serve", "nats", ...flags);
    expect([code, stderr]).toEqual([2, expect.stringContaining(expected)]);
  });
});
