// A server without space: the disk under its store is full, so that writes fail with ENOSPC, or the server has
// reached its own bound (`max_file_store`). When space returns, a server that does not recover alone is
// restarted, as an operator does; the restart is measured separately.

import { type Field, StuckError } from "./field.ts";
import { monotonicMs } from "./monotonic.ts";
import type { ServerMember } from "./servers.ts";
import type { Filling, SmallDisk } from "./small-disk.ts";
import { within } from "./within.ts";

const MIB = 1024 * 1024;
/** Enough for a coordinator's smallest journal and snapshots, and for several legs of load. */
export const fullServerRoom = { diskBytes: 320 * MIB, storeBytesMax: 256 * MIB };

/** Space left until the disk is full: some seconds of load. */
const LEFT_BYTES_MAX = 512 * 1024;
/** Time without acceptance that shows more than a pause. */
const SILENCE_MS = 2_000;
const FILLS_UP_MS = 90_000;
/** Time for a recovery without a restart, after space returned. */
const BY_ITSELF_MS = 15_000;
const ENDS_MS = 10_000;
const BACK_MS = 90_000;
const LOG_LINES_MAX = 8;

/** Alternates with the disk, where mounting is permitted. */
export async function fillServer(field: Field, round: number): Promise<void> {
  const { members, mounting } = field.plan.servers;
  const [server] = members;
  if (server === undefined || mounting === undefined) throw new Error("there is no server with little room");
  const logLength = server.log().length;
  if (mounting.kind === "refused") sayWithoutDisk(field, mounting.why);
  if (mounting.kind === "mounted" && round % 2 === 0) await fillDisk(field, server, mounting.disk);
  else await fillStore(field, server);
  for (const line of complaintsIn(server.log().slice(logLength))) field.note(`${server.name}: ${line}`);
  await field.between(1_000, 3_000);
}

/** Logged once in every leg, so that a part without mounting does not look complete. */
function sayWithoutDisk({ processes: { troubles } }: Field, why: string): void {
  const sentence = withoutDisk(why);
  if (!troubles.includes(sentence)) troubles.push(sentence);
}

export function withoutDisk(why: string): string {
  return `no disk was filled, for mounting a small one is not permitted here (${why}); max_file_store was reached instead`;
}

async function fillDisk(field: Field, server: ServerMember, disk: SmallDisk): Promise<void> {
  const filling = field.random.pick<Filling>(["ballast", "shrunk"]);
  disk.fill(filling, { leaving: field.random.below(LEFT_BYTES_MAX) });
  field.note(`${filling}: ${disk.free} bytes are left on the disk`);
  await nothingTaken(field);
  field.note(`${disk.free} bytes are left on the disk`);
  await field.between(500, 5_000);
  disk.makeRoom();
  field.mark({ figure: "disk has room again → next accept" });
  await comesBack(field, server);
}

async function fillStore(field: Field, server: ServerMember): Promise<void> {
  field.note(`max_file_store: ${await field.ballast.fill()}`);
  await nothingTaken(field);
  await field.between(500, 5_000);
  const why = await field.ballast.remove();
  if (why !== undefined) field.note(`the ballast is still there: ${why}`);
  field.mark({ figure: "server has room again → next accept" });
  await comesBack(field, server);
  if (why === undefined) return;
  const again = await field.ballast.remove();
  if (again !== undefined) throw new Error(`the ballast cannot be removed: ${again}`);
}

async function nothingTaken(field: Field): Promise<void> {
  const fromMs = monotonicMs();
  const isSilent = () => {
    if (monotonicMs() - fromMs < SILENCE_MS) return false;
    for (const { event } of field.witness.eventsSince(monotonicMs() - SILENCE_MS))
      if (event.type === "TaskSubmitted") return false;
    return true;
  };
  await field.until("the server takes no more tasks", isSilent, FILLS_UP_MS);
  field.note("no more tasks are taken");
}

async function comesBack(field: Field, server: ServerMember): Promise<void> {
  const sinceMs = monotonicMs();
  try {
    await field.accepted(sinceMs, { withinMs: BY_ITSELF_MS });
    return;
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
  }
  field.note("there is room, and the server does not come back by itself: it is restarted");
  await within(ENDS_MS, "it ends when it is asked", server.kill("SIGTERM")).catch(() => {
    field.note("nor does it end when it is asked (SIGTERM): it is killed");
  });
  field.mark({ figure: "full server restarted → next accept" });
  await server.restart();
  await field.accepted(monotonicMs(), { withinMs: BACK_MS });
}

/** Warnings and errors of a server's log: each kind once, without the varying details. */
export function complaintsIn(log: string): readonly string[] {
  const complaints = log.split("\n").flatMap((line) => /\[(?:ERR|WRN|FTL)\] .*/.exec(line)?.[0] ?? []);
  const bySort = new Map(complaints.map((line) => [line.replace(/\d+/g, "#"), line]));
  return [...bySort.values()].slice(0, LOG_LINES_MAX);
}
