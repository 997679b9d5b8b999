// Flags of `npm run bench:profile`. Not here: the measurement.

import { parseArgs } from "node:util";
import type { Order } from "../peers/peer.ts";
import { type Read, refusing } from "./refusing.ts";

export interface ProfileFlags {
  readonly order: Order;
  /** Name of the order, for the budget. */
  readonly what: string;
  /** Number of agents, even: two processes share them. */
  readonly agents: number;
  readonly lines: number;
  readonly report: boolean;
  readonly keep?: string;
  readonly before?: string;
}

export const profileUsage = `usage: npm run bench:profile -- [options]

Prints where the microseconds of a task go: CPU profiles of coordinator, agent and client within a measured window, and
a budget by role and part.

  --c <number>         tasks in flight. Default 1024
  --rate <number>      tasks per second instead, whatever comes back
  --burst <number>     tasks at once instead
  --agents <number>    agents, an even number, in two processes. Default 2
  --seconds <number>   length of the window. Default 8
  --top <number>       lines of each list. Default 25
  --before <folder>    another checkout of Waggle, built: measured first, as the column "before" of the budget
  --keep <folder>      keep the .cpuprofile files there, for Chrome's DevTools
  --report             also write docs/results/budget.json and the budget of docs/performance.md. Without --before, the
                       column "before" stays as in docs/results/budget.json
  -h, --help           print help

Examples:
  $ npm run bench:profile
  $ npm run bench:profile -- --c 1
  $ npm run bench:profile -- --agents 500
  $ npm run bench:profile -- --rate 2000 --keep profiles
  $ npm run bench:profile -- --before ../waggle-before --report`;

/** @returns the flags, "help", or a sentence about the wrong flag */
export function readProfileFlags(argv: readonly string[]): Read<ProfileFlags> {
  return refusing(() => {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        c: { type: "string" },
        rate: { type: "string" },
        burst: { type: "string" },
        agents: { type: "string", default: "2" },
        seconds: { type: "string", default: "8" },
        top: { type: "string", default: "25" },
        before: { type: "string" },
        keep: { type: "string" },
        report: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) return "help";
    const { c, rate, burst, agents, seconds, top, before, keep, report } = values;
    const numbers = { c, rate, burst, agents, seconds, top };
    for (const [name, text] of Object.entries(numbers))
      if (text !== undefined && !/^[1-9]\d{0,6}$/.test(text))
        return { refused: `--${name} is a number from 1 to 9999999, not '${text}'` };
    if ([c, rate, burst].filter((text) => text !== undefined).length > 1)
      return { refused: "--c, --rate and --burst exclude each other" };
    if (Number(agents) % 2 !== 0) return { refused: `--agents is an even number, not '${agents}'` };
    const { order, what } = orderOf({ c: c ?? "1024", rate, burst, ms: Number(seconds) * 1000 });
    return {
      order,
      what: agents === "2" ? what : `${what}, ${agents} agents`,
      agents: Number(agents),
      lines: Number(top),
      report,
      ...(keep === undefined ? {} : { keep }),
      ...(before === undefined ? {} : { before }),
    };
  });
}

interface Asked {
  readonly c: string;
  readonly rate: string | undefined;
  readonly burst: string | undefined;
  readonly ms: number;
}

function orderOf({ c, rate, burst, ms }: Asked): Pick<ProfileFlags, "order" | "what"> {
  const count = (text: string) => Number(text).toLocaleString("en");
  if (burst !== undefined)
    return { order: { op: "burst", tasks: Number(burst) }, what: `${count(burst)} tasks at once` };
  if (rate !== undefined)
    return {
      order: { op: "open", ratePerSecond: Number(rate), ms },
      what: `open loop at ${count(rate)} tasks/s`,
    };
  return {
    order: { op: "closed", concurrency: Number(c), ms },
    what: c === "1" ? "one task at a time" : `${count(c)} tasks in flight`,
  };
}
