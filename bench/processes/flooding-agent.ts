// An agent of another make that reports progress of its one attempt far too often, while its parent says so: `flood`
// with a rate a second, `rest`. The task is its own, and it awaits it, so that every report is passed on to somebody.

import { connect } from "@nats-io/transport-node";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

const STEP_MS = 5;
const connection = await connect({ servers: [...serverFromArguments().urls] });
const prefix = "waggle.v1.bench";
const incarnation = `flooding${process.pid}`;
let sentASecond = 0;
let passedOn = 0;

connection.subscribe(`${prefix}.client.flooding.progress`, {
  callback: () => {
    passedOn += 1;
  },
});
const assigned = connection.subscribe(`${prefix}.agent.flooding.assign`, { max: 1 });
await ask("agent.flooding.join", { incarnation, kinds: ["flooding"], maxConcurrent: 1 });
await ask("project.flooding.submit", { tasks: [{ id: incarnation, kind: "flooding" }], notify: "flooding" });
for await (const _ of assigned); // one
beat();
setInterval(beat, 1_000);
setInterval(report, STEP_MS);

process.on("message", (said: { readonly ratePerSecond: number }) => {
  sentASecond = said.ratePerSecond;
  process.send?.({ passedOn });
});
readyForParent();

function beat(): void {
  const held = [{ task: incarnation, attempt: 1 }];
  tell("heartbeat", { incarnation, status: "busy", inFlight: 1, seen: 1, held });
}

function report(): void {
  const message = JSON.stringify({
    incarnation,
    task: incarnation,
    attempt: 1,
    fraction: 0.5,
    message: "step",
  });
  for (let n = 0; n < (sentASecond * STEP_MS) / 1_000; n += 1)
    connection.publish(`${prefix}.agent.flooding.progress`, message);
}

function tell(verb: string, message: object): void {
  connection.publish(`${prefix}.agent.flooding.${verb}`, JSON.stringify(message));
}

async function ask(subject: string, message: object): Promise<void> {
  const { data } = await connection.request(`${prefix}.${subject}`, JSON.stringify(message), {
    timeout: 5_000,
  });
  const answer = Buffer.from(data).toString();
  if (answer.includes('"ok":false')) throw new Error(`${subject}: ${answer}`);
}
