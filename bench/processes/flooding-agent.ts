// A foreign agent that sends messages of one sort too often. The parent process gives the rate per second (0: rests).
// Progress reports are of an awaited task of the agent, so that every report is passed on. Results are of an attempt
// that never existed, and joins repeat the present session.

import { connect, createInbox } from "@nats-io/transport-node";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

const STEP_MS = 5;
const connection = await connect({ servers: [...serverFromArguments().urls] });
const prefix = "waggle.v1.bench";
const incarnation = `flooding${process.pid}`;
const inbox = createInbox();
const notify = createInbox();
const project = "flooding";
const held = [{ project, task: incarnation, attempt: 1 }];
const joining = { incarnation, kinds: ["flooding"], maxConcurrent: 1 };
const messages = {
  progress: { incarnation, project, task: incarnation, attempt: 1, fraction: 0.5, message: "step" },
  heartbeat: { incarnation, status: "busy", inFlight: 1, seen: 1, held },
  join: { ...joining, held, seen: 1 },
  result: {
    incarnation,
    results: [{ project, task: incarnation, attempt: 9, token: "none", outcome: "completed", result: "" }],
  },
  release: { incarnation, handle: "none" },
};
type Verb = keyof typeof messages;
let verb: Verb = "progress";
let sentASecond = 0;
let passedOn = 0;

connection.subscribe(`${notify}.progress`, {
  callback: () => {
    passedOn += 1;
  },
});
const assigned = connection.subscribe(`${prefix}.agent._.flooding.assign`, { max: 1 });
connection.subscribe(inbox, { callback: () => undefined });
await ask("agent._.flooding.join", joining);
await ask("project.flooding.submit", { tasks: [{ id: incarnation, kind: "flooding" }], notify });
for await (const _ of assigned); // one
heartbeat();
setInterval(heartbeat, 1_000);
setInterval(flood, STEP_MS);

process.on("message", (said: { readonly ratePerSecond: number; readonly verb: Verb }) => {
  sentASecond = said.ratePerSecond;
  verb = said.verb;
  process.send?.({ passedOn });
});
readyForParent();

function heartbeat(): void {
  publishAs("heartbeat", messages.heartbeat);
}

function flood(): void {
  const message = JSON.stringify(messages[verb]);
  const options = verb === "progress" ? {} : { reply: inbox };
  for (let n = 0; n < (sentASecond * STEP_MS) / 1_000; n += 1)
    connection.publish(`${prefix}.agent._.flooding.${verb}`, message, options);
}

function publishAs(verb: string, message: object): void {
  connection.publish(`${prefix}.agent._.flooding.${verb}`, JSON.stringify(message));
}

async function ask(subject: string, message: object): Promise<void> {
  const { data } = await connection.request(`${prefix}.${subject}`, JSON.stringify(message), {
    timeout: 5_000,
  });
  const answer = Buffer.from(data).toString();
  if (answer.includes('"ok":false')) throw new Error(`${subject}: ${answer}`);
}
