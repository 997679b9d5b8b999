// A process of the demo: the coordinator, or an agent joining over NATS like every agent. The process waits for an
// order. It ends in order when the demo stops it or is gone. Each role loads only the code it needs, because six
// processes start at once.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { setTimeout } from "node:timers/promises";
import pino, { type Logger } from "pino";
import { type Handler, InfrastructureError } from "../../agent/handler.ts";
import { stopBroker } from "../../broker/stop-broker.ts";
import { WaggleError } from "../../errors.ts";
import type { ConditionOrder, MemberNotice, MemberOrder } from "./member-order.ts";
import { chanceOf } from "./scenario.ts";
import { demoKinds, demoWork } from "./work.ts";

const stopped = new AbortController();
process.once("disconnect", () => stopped.abort());
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stopped.abort());

const [order] = (await once(process, "message")) as [MemberOrder];
try {
  await live(order);
  process.exit(0);
} catch (error) {
  const { code, message } =
    error instanceof WaggleError ? error : { code: "UNEXPECTED", message: String(error) };
  if (process.connected) await sendNotice({ type: "failed", code, message });
  process.exit(1);
}

async function live(given: MemberOrder): Promise<void> {
  const logger = pino(
    { level: given.logLevel, base: { member: nameOf(given) } },
    pino.destination({ dest: 2, sync: true }),
  );
  if (given.role === "coordinator") await coordinate(given, logger);
  else await work(given, logger);
}

function nameOf(given: MemberOrder): string {
  return given.role === "agent" ? given.agent.id : "coordinator";
}

async function coordinate({ settings }: MemberOrder, logger: Logger): Promise<void> {
  const { runCoordinator } = await import("../run-coordinator.ts");
  const running = await runCoordinator({ settings, logger, env: process.env, signal: stopped.signal });
  try {
    await Promise.race([running.coordinator.whenLeading(), untilStopped()]);
    await sendNotice({ type: "ready" });
    const error = await Promise.race([running.coordinator.closed, untilStopped()]);
    if (error !== undefined) throw error;
  } finally {
    await running.stop();
    // The demo stops the broker. A member stops the broker only after the demo was killed.
    if (!process.connected) await stopBroker(settings.dataFolder);
  }
}

async function work(given: MemberOrder & { role: "agent" }, logger: Logger): Promise<void> {
  const { id, maxConcurrent } = given.agent;
  let isBroken = false;
  process.on("message", (order: ConditionOrder) => {
    isBroken = order.isBroken;
    void sendNotice({ type: "condition", isBroken, at: Date.now() });
  });
  const handler = handlerOf(given, () => isBroken);
  const options = { id, kinds: demoKinds, maxConcurrent, handler, signal: stopped.signal };
  const { joinAgent } = await import("../join-agent.ts");
  const agent = await joinAgent(options, { settings: given.settings, logger, env: process.env });
  await sendNotice({ type: "ready" });
  const error = await agent.closed;
  if (error !== undefined) throw error;
}

/** Does real work. Only the speed is staged, and the failures of a broken agent. */
function handlerOf(
  { agent, attemptMs, folder }: MemberOrder & { role: "agent" },
  isBroken: () => boolean,
): Handler {
  return async (task, { signal }) => {
    const kind = demoKinds.find((known) => known === task.kind);
    if (kind === undefined) throw new Error(`the demo's agents do ${demoKinds.join(", ")}`);
    if (isBroken()) throw new Error("on purpose: the demo has broken this agent");
    const chance = chanceOf(`${task.id}#${task.attempt}`);
    await setTimeout(attemptMs * agent.slowness * (0.5 + chance), undefined, { signal });
    const { name, bytes } = await inputOf(task.payload, folder);
    return demoWork[kind](name, bytes);
  };
}

/** The file of the payload, if it is a file of the demo; otherwise the payload is the text. */
async function inputOf(payload: string, folder: string): Promise<{ name: string; bytes: Buffer }> {
  const file = fileIn(payload);
  if (file === undefined) return { name: "", bytes: Buffer.from(payload) };
  const path = resolve(folder, file);
  if (!path.startsWith(folder + sep)) throw new Error("the file lies outside the demo's folder");
  try {
    return { name: file, bytes: await readFile(path) };
  } catch (cause) {
    throw new InfrastructureError(`cannot read ${file}`, { cause });
  }
}

function fileIn(payload: string): string | undefined {
  try {
    const value: unknown = JSON.parse(payload);
    const file = typeof value === "object" && value !== null && "file" in value ? value.file : undefined;
    return typeof file === "string" ? file : undefined;
  } catch {
    return undefined; // no JSON: a foreign text, to be counted as well
  }
}

function untilStopped(): Promise<undefined> {
  return new Promise((resolve) => {
    if (stopped.signal.aborted) resolve(undefined);
    else stopped.signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

function sendNotice(notice: MemberNotice): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(notice, () => resolve());
  });
}
