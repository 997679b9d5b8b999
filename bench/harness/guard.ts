// The guard of CI: flags, bounds and verdict of `npm run bench:smoke`. Not here: the measurements.

import { parseArgs } from "node:util";
import type { Figures } from "./record.ts";
import { type Read, refusing } from "./refusing.ts";
import { latencyOverPath, throughputOverBare } from "./required.ts";
import type { Spread } from "./statistics.ts";
import { spreadText } from "./tables.ts";

/** `required`: what the present code holds on a busy machine too; the defaults of the flags. `wanted`: the goal, which
 *  is printed beside. */
export const guardBounds = {
  /** Least tasks per second ÷ bare request/reply, C = 1024. */
  throughput: { required: 0.8, wanted: 1 },
  /** Greatest p50 of a task ÷ (2 appends + 2 round trips), C = 1. */
  latency: { required: 3, wanted: 2 },
} as const;

export interface GuardFlags {
  readonly requireThroughput: number;
  readonly requireLatency: number;
  readonly rounds: number;
  readonly json: boolean;
}

export const guardUsage = `usage: npm run bench:smoke -- [options]

Measures Waggle beside bare NATS request/reply and the physical path of a task, in turn, in one run: two appends to
JetStream and two round trips. Takes a minute, and two when a ratio misses its bound at first. Ends with 1 if
a ratio misses its bound twice, with 2 for wrong flags.
Needs a nats-server on the PATH or in WAGGLE_NATS_SERVERS, and npm run build before.

  --require-throughput <ratio>  least tasks per second ÷ request/reply, 1,024 in flight. Default ${guardBounds.throughput.required}
  --require-latency <ratio>     greatest p50 ÷ (2 appends + 2 round trips), one task at a time. Default ${guardBounds.latency.required}
  --rounds <number>             rounds, from 1 to 99. Default 5
  --json                        print one JSON object instead of sentences
  -h, --help                    print help

Examples:
  $ npm run bench:smoke
  $ npm run bench:smoke -- --require-throughput ${guardBounds.throughput.wanted} --require-latency ${guardBounds.latency.wanted}`;

/** @returns the flags, "help", or a sentence about the wrong flag */
export function readGuardFlags(argv: readonly string[]): Read<GuardFlags> {
  return refusing(() => {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        "require-throughput": { type: "string", default: String(guardBounds.throughput.required) },
        "require-latency": { type: "string", default: String(guardBounds.latency.required) },
        rounds: { type: "string", default: "5" },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) return "help";
    for (const name of ["require-throughput", "require-latency"] as const)
      if (!/^\d+(\.\d+)?$/.test(values[name]))
        return { refused: `--${name} is a ratio such as 0.4, not '${values[name]}'` };
    if (!/^[1-9]\d?$/.test(values.rounds))
      return { refused: `--rounds is a number from 1 to 99, not '${values.rounds}'` };
    return {
      requireThroughput: Number(values["require-throughput"]),
      requireLatency: Number(values["require-latency"]),
      rounds: Number(values.rounds),
      json: values.json,
    };
  });
}

export interface Judged {
  readonly what: string;
  /** Undefined if a window failed. */
  readonly ratio: Spread | undefined;
  readonly required: number;
  readonly wanted: number;
  readonly isMet: boolean;
  readonly sentence: string;
}

export function judge(
  figures: Figures,
  { requireThroughput, requireLatency }: Pick<GuardFlags, "requireThroughput" | "requireLatency">,
): readonly Judged[] {
  const throughput = throughputOverBare(figures);
  const latency = latencyOverPath(figures);
  return [
    judged("C = 1024: tasks/s ÷ request/reply", throughput, "≥", requireThroughput, guardBounds.throughput),
    judged("C = 1: p50 ÷ (2 appends + 2 round trips)", latency, "≤", requireLatency, guardBounds.latency),
  ];
}

function judged(
  what: string,
  ratio: Spread | undefined,
  sign: "≥" | "≤",
  required: number,
  { wanted }: { readonly wanted: number },
): Judged {
  const isMet = ratio !== undefined && (sign === "≥" ? ratio.median >= required : ratio.median <= required);
  const sentence = `${what}: ${spreadText(ratio, 2)}, required ${sign} ${required}, wanted ${sign} ${wanted}${isMet ? "" : "  NOT MET"}`;
  return { what, ratio, required, wanted, isMet, sentence };
}
