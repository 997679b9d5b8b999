// `npm run bench:smoke`: the guard of CI, in a minute. Waggle beside bare request/reply with 1,024 tasks in flight,
// and beside the physical path of one task. Bounds and flags: harness/guard.ts.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Children, stopAtSignals } from "./harness/children.ts";
import { type GuardFlags, guardUsage, judge, readGuardFlags } from "./harness/guard.ts";
import { Pace } from "./harness/pace.ts";
import { newestNatsServer, preparePeers } from "./harness/prepare.ts";
import { type Figure, Figures } from "./harness/record.ts";
import { flagsOrExitCode } from "./harness/refusing.ts";
import { measureInTurn } from "./harness/rounds.ts";
import { type System, Systems, systemKinds } from "./harness/systems.ts";
import { numberText } from "./harness/tables.ts";
import type { Order } from "./peers/peer.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const bulk = { op: "closed", concurrency: 1024, ms: 1_500 } as const;
/** Before each window of `bulk`: after a pause, the first seconds of load take more CPU time per task. */
const bulkRamp: Order = { ...bulk, ms: 800 };
const few: Order = { op: "closed", concurrency: 16, ms: 3_500 };
const single: Order = { op: "closed", concurrency: 1, ms: 500 };

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  const flags = flagsOrExitCode(readGuardFlags(argv), guardUsage);
  if (typeof flags === "number") return flags;
  let figures = await measureAll(flags);
  let verdict = judge(new Figures({ figures }), flags);
  if (!verdict.every(({ isMet }) => isMet)) {
    for (const { sentence } of verdict) console.error(sentence);
    console.error("! measuring once more: a shared machine has slow minutes");
    figures = await measureAll(flags);
    verdict = judge(new Figures({ figures }), flags);
  }
  if (flags.json) {
    console.log(JSON.stringify({ judged: verdict.map(({ sentence: _, ...rest }) => rest), figures }));
  } else {
    for (const figure of figures) console.log(lineOf(figure));
    for (const { sentence } of verdict) console.log(sentence);
  }
  return verdict.every(({ isMet }) => isMet) ? 0 : 1;
}

async function measureAll({ rounds }: GuardFlags): Promise<readonly Figure[]> {
  preparePeers(root, { withPackages: false });
  const say = (line: string) => console.error(line);
  const children = new Children((sentence) => say(`! ${sentence}`));
  const folder = mkdtempSync(join(tmpdir(), "waggle-smoke-"));
  stopAtSignals(children, folder);
  const systems = new Systems({ children, folder, natsServer: newestNatsServer(), checkout: root });
  const figures: Figure[] = [];
  const measuring = {
    rounds,
    pace: new Pace({ plan: [], calmMs: 0 }),
    say,
    add: (figure: Figure) => {
      figures.push(figure);
    },
    failed: new Set<System>(),
  };
  try {
    const append = await systems.start(systemKinds.append, "append");
    const bare = await systems.start(systemKinds.bare, "bare");
    const waggle = await systems.start(systemKinds.waggle, "waggle");
    const turns = (order: Order, ...chosen: readonly System[]) => chosen.map((system) => ({ system, order }));
    const ramped = turns(bulk, bare, waggle).map((turn) => ({ ...turn, ramp: bulkRamp }));
    const warming = { ...measuring, rounds: 1, add: () => undefined };
    // Single tasks come first: after windows of 1,024 tasks V8 runs single tasks more slowly for some thousand tasks.
    await measureInTurn("warm-up", turns(few, waggle, bare, waggle), warming);
    await measureInTurn("warm-up", turns(single, append, waggle), warming);
    await measureInTurn("c1", turns(single, append, bare, waggle), measuring);
    await measureInTurn("warm-up", turns(bulk, waggle, bare, waggle), warming);
    await measureInTurn("c1024", ramped, measuring);
    return figures;
  } finally {
    await systems.stopServers();
    await children.stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

function lineOf({ case: name, system, round, error, ratePerSecond, p50 }: Figure): string {
  const place = `${name}, round ${round}, ${system}:`;
  if (error !== undefined) return `${place} failed: ${error}`;
  return `${place} ${numberText(ratePerSecond)}/s, p50 ${numberText(p50, 3)} ms`;
}
