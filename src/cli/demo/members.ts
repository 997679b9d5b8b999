// The demo's processes: started, told what to be, stopped in good order, killed if they do not go.
// They end by themselves when the demo is gone, however it went, because the channel to it breaks.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WaggleError, type WaggleErrorCode } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { MemberNotice, MemberOrder } from "./member-order.ts";

export interface Member {
  readonly name: string;
  readonly ready: MemberNotice & { readonly type: "ready" };
  /** Resolves when the process has ended, with what it ended by: an exit code or a signal. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** Resolves when it leads, or has joined. @throws WaggleError with the reason it gave, or the signal's reason */
export async function startMember(name: string, order: MemberOrder, signal: AbortSignal): Promise<Member> {
  const child = fork(fileURLToPath(new URL("./member-main.js", import.meta.url)), [], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    detached: true, // Ctrl-C is the demo's: it stops its members in order
    execArgv: [],
  });
  const ended = once(child, "exit").then(([code, signal]) => String(code ?? signal));
  const stop = () => stopChild(child, ended);
  child.send(order);
  try {
    return { name, ready: await readyNotice(name, { child, ended, signal }), ended, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function readyNotice(
  name: string,
  {
    child,
    ended,
    signal,
  }: { readonly child: ChildProcess; readonly ended: Promise<string>; readonly signal: AbortSignal },
) {
  const late = AbortSignal.timeout(limits.demoStartMs);
  const failed = (code: string, message: string): MemberNotice => ({ type: "failed", code, message });
  const told = once(child, "message", { signal: AbortSignal.any([signal, late]) });
  const notice = await Promise.race([
    told.then(
      ([message]) => message as MemberNotice,
      () => failed("WAGGLE_UNREACHABLE", "it was not ready in time"),
    ),
    ended.then((how) => failed("WAGGLE_BROKER", `it ended (${how})`)),
  ]);
  signal.throwIfAborted();
  if (notice.type === "ready") return notice;
  throw new WaggleError(
    notice.code as WaggleErrorCode,
    `the demo's ${name} could not start: ${notice.message}`,
  );
}

async function stopChild(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const late = new AbortController();
  await Promise.race([ended, setTimeout(limits.demoStopMs, undefined, { signal: late.signal })]);
  late.abort();
  if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  await ended;
}
