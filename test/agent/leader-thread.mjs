// A leader in a separate thread, which hears agents while the test's thread is blocked. Assigns one task to
// each agent that joins, answers as a leader, and reports heartbeat times and results to the test.

import { parentPort, workerData } from "node:worker_threads";
import { connect } from "@nats-io/transport-node";

const { server, agent, heartbeatMs, leaseTtlMs } = workerData;
const connection = await connect({ servers: server });
const subject = (verb) => `waggle.v1.test.agent._.${agent}.${verb}`;
const heartbeats = [];
/** Handle of the request for slots. */
let asked;
/** Heartbeats since then that lack the handle. */
let unlisted = 0;
let isLogAsked = false;

on("join", (join, message) => {
  message.respond(
    JSON.stringify({ ok: true, term: 1, idx: 1, unknown: [], resumed: false, heartbeatMs, leaseTtlMs }),
  );
  const task = { number: 1, task: "t1", attempt: 1, token: "1.1", kind: "count", project: "p", user: "u" };
  const assignments = [{ ...task, payload: "", timeoutMs: 60_000, maxAttempts: 3 }];
  connection.publish(
    subject("assign"),
    JSON.stringify({ type: "assign", term: 1, incarnation: join.incarnation, assignments }),
  );
});
on("acquire", ({ handle }, message) => {
  asked = handle;
  const granted = JSON.stringify({ term: 1, idx: 2, answer: { ok: true, state: "granted" } });
  setTimeout(() => message.respond(granted), 2 * heartbeatMs);
});
on("release", (_, message) => {
  message.respond(JSON.stringify({ ok: true, term: 1, idx: 3, was: "held" }));
});
on("heartbeat", ({ held, seen, slots = { held: [], waiting: [] } }, message) => {
  if (asked !== undefined && ![...slots.held, ...slots.waiting].includes(asked)) unlisted += 1;
  heartbeats.push({ at: performance.now(), held: held.length, seen });
  if (held.length === 1 && !isLogAsked) void askForLog();
  message.respond(JSON.stringify({ term: 1, renewed: true }));
});
on("result", ({ results }, message) => {
  message.respond(
    JSON.stringify({ term: 1, idx: 2, answers: results.map(() => ({ ok: true, status: "ok" })) }),
  );
  parentPort.postMessage({ type: "result", results, heartbeats, unlisted });
});
on("leave", (_, message) => {
  message.respond(JSON.stringify({ ok: true, term: 1, idx: 3 }));
  parentPort.postMessage({ type: "left" });
});
await connection.flush();
parentPort.postMessage({ type: "ready" });

async function askForLog() {
  isLogAsked = true;
  const question = JSON.stringify({ v: 1, project: "p", task: "t1", agent });
  const answer = await connection.request(subject("log"), question, { timeout: 2_000 });
  parentPort.postMessage({ type: "log", ...answer.json(), at: Date.now() });
}

function on(verb, handle) {
  connection.subscribe(subject(verb), { callback: (_, message) => handle(message.json(), message) });
}
