// Several agents on one connection: one message for all, and each agent its own answer.

import { beforeEach, expect, it } from "vitest";
import { type BundleMember, Bundler } from "../../src/agent/bundler.ts";
import { systemRandom } from "../../src/clock.ts";
import { swarmId } from "../../src/ids.ts";
import { encode, parseText } from "../../src/protocol/codec.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import type { Message } from "../../src/transport/transport.ts";
import { ManualClock, settled } from "../client/manual-clock.ts";

const subjects = subjectsOf(swarmId("test"));
let clock: ManualClock;
let hub: MemoryHub;
let bundler: Bundler;
let heard: { readonly verb: string; readonly speaker: string; readonly message: Record<string, unknown> }[];
let answer: (message: Record<string, never>) => object | undefined;

beforeEach(() => {
  clock = new ManualClock();
  hub = new MemoryHub({ clock });
  heard = [];
  answer = () => undefined;
  const leader = hub.connect();
  const onMessage = ({ subject, data, reply = "" }: Message) => {
    const [speaker = "", verb = ""] = subject.split(".").slice(-2);
    const message = parseText(data) as Record<string, never>;
    heard.push({ verb, speaker, message });
    const said = answer(message);
    if (said !== undefined) leader.publish(reply, encode(said));
  };
  for (const verb of ["heartbeat", "result"] as const)
    leader.subscribe(subjects.agent("_", "*", verb), onMessage);
  bundler = new Bundler({ transport: hub.connect(), clock, random: systemRandom });
});

const place = (id: string, group = "_") => bundler.memberFor({ subjects, group, id });
const ask = (from: BundleMember, message: object) =>
  new Promise((settle, fail) => {
    from.request("result", JSON.stringify(message), { settle, fail });
  });
const value = (outcome: object) => ({ kind: "part", value: outcome });

function two(): [BundleMember, BundleMember] {
  const places: [BundleMember, BundleMember] = [place("a1"), place("a2")];
  for (const each of places) each.listen(() => undefined);
  return places;
}

async function sent(): Promise<void> {
  await settled();
  await clock.advance(1);
  await settled();
}

it("an agent without company, or with company in another group, speaks for itself", () => {
  const alone = place("a1");
  alone.listen(() => undefined);
  expect(alone.carries("result")).toBe(false);
  const end = place("a2", "west").listen(() => undefined);
  expect(alone.carries("result")).toBe(false);
  end();
  const company = place("a3").listen(() => undefined);
  expect([alone.carries("result"), alone.carries("heartbeat"), alone.carries("join")]).toEqual([
    true,
    true,
    false,
  ]);
  company();
  expect(alone.carries("result")).toBe(false);
});

it("parts that wait together share a message, and each agent gets its own answer", async () => {
  const [one, other] = two();
  answer = () => ({
    term: 3,
    idx: 9,
    answers: [1],
    others: [{ answers: [2, 3] }, { ok: false, code: "X", message: "" }],
  });
  const third = place("a3");
  third.listen(() => undefined);
  const outcomes = Promise.all([ask(one, { n: 1 }), ask(other, { n: 2 }), ask(third, { n: 3 })]);
  await sent();
  expect(await outcomes).toEqual([
    value({ term: 3, idx: 9, answers: [1] }),
    value({ term: 3, idx: 9, answers: [2, 3] }),
    value({ term: 3, idx: 9, ok: false, code: "X", message: "" }),
  ]);
  expect(heard.map(({ message }) => message)).toEqual([
    {
      agent: "a1",
      n: 1,
      others: [
        { agent: "a2", n: 2 },
        { agent: "a3", n: 3 },
      ],
    },
  ]);
  expect(["a1", "a2", "a3"]).not.toContain(heard[0]?.speaker);
});

it("a refusal of the whole message refuses every part; a missing part of an answer answers nothing", async () => {
  const [one, other] = two();
  const refusal = { ok: false, code: "WAGGLE_BACKPRESSURE", message: "later" };
  answer = () => refusal;
  const refused = Promise.all([ask(one, { n: 1 }), ask(other, { n: 2 })]);
  await sent();
  expect(await refused).toEqual([value(refusal), value(refusal)]);
  answer = () => ({ term: 3, idx: 9, answers: [] });
  const half = Promise.all([ask(one, { n: 1 }), ask(other, { n: 2 })]);
  await sent();
  expect(await half).toEqual([value({ term: 3, idx: 9, answers: [] }), { kind: "part", value: undefined }]);
});

it("assignments of one message reach their agents", () => {
  const got: [string, unknown][] = [];
  for (const id of ["a1", "a2"]) place(id).listen((push) => got.push([id, push]));
  const task = { number: 1, project: "p", task: "t", attempt: 1, token: "k", kind: "count", user: "u" };
  const assignment = { ...task, payload: "", timeoutMs: 1, maxAttempts: 1 };
  const [first, second] = ["x1", "x2"].map((incarnation) => ({ incarnation, assignments: [assignment] }));
  const push = { type: "assign", term: 2, agent: "a2", ...first, others: [{ agent: "a1", ...second }] };
  const leader = hub.connect();
  leader.publish(`${subjects.prefix}.agent._.nobody.assign`, encode(push));
  return sent()
    .then(async () => {
      expect(got).toEqual([]);
      const [one] = [place("a1")];
      void ask(one as BundleMember, { n: 1 });
      await sent();
      leader.publish(subjects.assign("_", heard[0]?.speaker ?? ""), encode(push));
      await sent();
    })
    .then(() =>
      expect(got).toEqual([
        ["a2", { type: "assign", term: 2, ...first }],
        ["a1", { type: "assign", term: 2, ...second }],
      ]),
    );
});

it("at most two messages of results are in flight; later parts share the next", async () => {
  const [one, other] = two();
  for (const n of [1, 2, 3, 4]) {
    void ask(n % 2 === 0 ? one : other, { n });
    await sent();
  }
  expect(heard.map(({ message }) => message["n"])).toEqual([1, 2]);
});
