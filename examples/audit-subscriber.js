// The audit with a plain NATS client, without any package of Waggle: the events of a swarm as JSON lines, in order and
// each once. Live messages show gaps by `prevIdx`; the journal fills the gaps. `node audit-subscriber.js 1` begins at
// batch 1; without a number at the present. With --to-present, ends at the present. Any language can do the same:
// docs/audit.md.

import { readFileSync } from "node:fs";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";

const prefix = `waggle.v1.${process.env.WAGGLE_SWARM ?? "default"}`;
const from = Number(process.argv.slice(2).find((word) => /^\d+$/.test(word)) ?? Number.MAX_SAFE_INTEGER);

// The broker of `waggle up` takes the key that lies beside its address.
const broker = process.env.NATS_URL ? undefined : JSON.parse(readFileSync(".waggle/broker.json", "utf8"));
const key =
  broker && nkeyAuthenticator(new TextEncoder().encode(readFileSync(".waggle/user.nk", "utf8").trim()));
const nats = await connect({ servers: process.env.NATS_URL ?? broker.url, authenticator: key });

// Subscribed before the first page is asked for: nothing lies between the two.
const messages = nats.subscribe(`${prefix}.event.>`);
await nats.flush();
const present = (await pageFrom(Number.MAX_SAFE_INTEGER)).last;

/** The newest batch printed, and the subjects of its events printed so far. */
let newestIdx = Math.min(from - 1, present);
const subjectsOfNewest = new Set();
/** The last batch read from the journal, whole. */
let readIdx = newestIdx;
await readUntil(present);
if (process.argv.includes("--to-present")) await nats.drain();

let term = 0;
const lastIdxBySubject = new Map();
for await (const message of messages) {
  const { events, ...batch } = message.json();
  const lastIdx = Math.max(lastIdxBySubject.get(message.subject) ?? 0, readIdx);
  // A new leader knows no messages of earlier leaders: what was lost before shows nowhere.
  const isNewLeader = term !== 0 && batch.term > term;
  if (batch.prevIdx > lastIdx || isNewLeader) await readUntil(batch.idx - 1);
  lastIdxBySubject.set(message.subject, batch.idx);
  term = batch.term;
  print(batch, message.subject, events);
}

/** Reads the journal from the newest printed batch on: some of its messages may be missing. */
async function readUntil(lastIdx) {
  for (let next = Math.max(newestIdx, readIdx + 1); next <= lastIdx; ) {
    const page = await pageFrom(next);
    for (const { events, ...batch } of page.batches) {
      if (batch.idx > lastIdx) break;
      for (const subject of new Set(events.map(subjectOf)))
        print(
          batch,
          subject,
          events.filter((event) => subjectOf(event) === subject),
        );
      readIdx = batch.idx;
      next = batch.idx + 1;
    }
  }
}

/** Raw batches from an index on; `last` is the newest index. Payloads and results stand here alone. */
async function pageFrom(idx) {
  const subject = `${prefix}.project._.query.journal`;
  const answer = (await nats.request(subject, JSON.stringify({ v: 1, from: idx }))).json();
  if (answer.ok === false) throw new Error(`${answer.code}: ${answer.message}`);
  return answer;
}

/** `TaskDeadLettered` of project acme: `….event.acme.task.dead-lettered`. */
function subjectOf(event) {
  const [noun, ...verb] = event.type.split(/(?=[A-Z])/).map((word) => word.toLowerCase());
  const project = event.project ?? event.task?.project ?? "_";
  return `${prefix}.event.${project}.${noun}.${verb.join("-")}`;
}

function print({ idx, term: of, at }, subject, events) {
  if (idx < newestIdx || (idx === newestIdx && subjectsOfNewest.has(subject))) return;
  if (idx > newestIdx) subjectsOfNewest.clear();
  newestIdx = idx;
  subjectsOfNewest.add(subject);
  for (const event of events) console.log(JSON.stringify({ idx, term: of, at, event }));
}
