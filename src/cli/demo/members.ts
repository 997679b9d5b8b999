// The demo's processes: started, given their order, stopped in order, and killed if they do not end. When the demo is
// gone, its channel breaks, and the processes end by themselves.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { setTimeout } from "node:timers/promises";
import { WaggleError, type WaggleErrorCode } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { ConditionOrder, MemberNotice, MemberOrder } from "./member-order.ts";

export interface Member {
  readonly name: string;
  /** Resolves at the end of the process, with the exit code or the signal. */
  readonly ended: Promise<string>;
  /** Breaks or repairs an agent. Resolves with the instant of the change; undefined if the agent has ended. */
  setBroken(isBroken: boolean): Promise<number | undefined>;
  stop(): Promise<void>;
}

/** Starts a process. `ready` resolves when the coordinator leads or the agent has joined.
 *  `ready` throws WaggleError with the member's reason, or the signal's reason. */
export function startMember(
  name: string,
  order: MemberOrder,
  signal: AbortSignal,
): { readonly member: Member; readonly ready: Promise<void> } {
  const child = fork(createRequire(import.meta.url).resolve("waggledance/demo-member"), [], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    detached: true, // the demo handles Ctrl-C and stops its members in order
    execArgv: [],
  });
  const ended = once(child, "exit").then(([code, signal]) => String(code ?? signal));
  child.send(order);
  const member: Member = {
    name,
    ended,
    setBroken: (isBroken) => setBroken({ child, ended }, isBroken),
    stop: () => stopChild(child, ended),
  };
  return { member, ready: untilReady(name, { child, ended, signal }) };
}

interface Child {
  readonly child: ChildProcess;
  readonly ended: Promise<string>;
}

async function untilReady(name: string, { child, ended, signal }: Child & { readonly signal: AbortSignal }) {
  const late = AbortSignal.timeout(limits.demoStartMs);
  const failed = (code: string, message: string): MemberNotice => ({ type: "failed", code, message });
  const heard = once(child, "message", { signal: AbortSignal.any([signal, late]) });
  const notice = await Promise.race([
    heard.then(
      ([message]) => message as MemberNotice,
      () => failed("WAGGLE_UNREACHABLE", "not ready in time"),
    ),
    ended.then((how) => failed("WAGGLE_BROKER", `the process ended (${how})`)),
  ]);
  signal.throwIfAborted();
  if (notice.type !== "failed") return;
  throw new WaggleError(
    notice.code as WaggleErrorCode,
    `the demo's ${name} could not start: ${notice.message}`,
  );
}

async function setBroken({ child, ended }: Child, isBroken: boolean): Promise<number | undefined> {
  if (!child.connected) return undefined;
  const order: ConditionOrder = { type: "condition", isBroken };
  const heard = once(child, "message").then(([message]) => message as MemberNotice);
  child.send(order);
  const notice = await Promise.race([heard, ended.then(() => undefined)]);
  return notice?.type === "condition" ? notice.at : undefined;
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const late = new AbortController();
  const isLate = setTimeout(limits.demoStopMs, undefined, { signal: late.signal });
  isLate.catch(() => undefined); // the process ended in time
  await Promise.race([ended, isLate]);
  late.abort();
  if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  await ended;
}
