// A seed with its remaining faults and operations: `--shrink` writes the file and `--schedule` runs it. Unknown faults
// and operations are refused: a fault without effect would make the seed pass.

import { readFileSync, writeFileSync } from "node:fs";
import * as z from "zod";
import {
  BUSY,
  type Fault,
  faultKinds,
  isFaultKind,
  LEADER,
  profiles,
  STANDBY,
} from "../../sim/fault/fault.ts";
import { planOf, type SeedRequest } from "../../sim/fault/run-seed.ts";
import { nodesOf, type Operation } from "../../sim/fault/workload.ts";
import { fileError } from "../file-error.ts";
import { textIn } from "../source.ts";

const ms = z.number().min(0);

const faultSchema = z.strictObject({
  kind: z.string().refine(isFaultKind, { error: "no fault of this version" }),
  atMs: ms,
  forMs: ms,
  of: z.string().optional(),
  nodes: z.array(z.string()).min(1).optional(),
  share: z.number().gt(0).max(1).optional(),
  ms: z.number().optional(),
  direction: z.enum(["up", "down"]).optional(),
  count: z.int().min(1).optional(),
  bytes: z.int().min(1).optional(),
});

const doings = {
  submit: true,
  cancel: true,
  retry: true,
  revoke: true,
  reschedule: true,
  query: true,
  await: true,
  pause: true,
  resume: true,
  hold: true,
  unhold: true,
  drain: true,
  undrain: true,
  "set-project": true,
  "set-kind": true,
  "set-policy": true,
  "set-rate": true,
  "set-grant": true,
  "remove-grant": true,
  "set-resource": true,
  acquire: true,
} satisfies Record<Operation["does"], true>;

/** The client checks the parameters of an operation itself. */
const operationSchema = z.looseObject({
  atMs: ms,
  client: z.string(),
  does: z.string().refine((name) => Object.hasOwn(doings, name), { error: "no operation of this version" }),
});

const fileSchema = z.strictObject({
  version: z.string(),
  seed: z.int().min(0),
  forMs: z.number().positive(),
  without: z.array(z.string()),
  profile: z.enum(profiles).optional(),
  schedule: z.array(faultSchema),
  operations: z.array(operationSchema),
});

export interface ScheduledSeed {
  readonly request: SeedRequest;
  /** Version of the code that wrote the file; the seed may run differently on different code. */
  readonly version: string;
}

/** @throws UsageError when the file cannot be read or `--shrink` did not write it */
export function readSchedule(path: string, file: string): ScheduledSeed {
  try {
    const parsed = fileSchema.safeParse(JSON.parse(textIn(readFileSync(path), file)));
    if (!parsed.success)
      throw new Error(`\`waggle torture --shrink\` did not write it: ${why(parsed.error)}`);
    const { version, ...request } = parsed.data as unknown as SeedRequest & { readonly version: string };
    requireNodes(request);
    return { request, version };
  } catch (error) {
    throw fileError("use", file, error, "schedule");
  }
}

/** @throws UsageError when the file cannot be written */
export function writeSchedule(path: string, file: string, { request, version }: ScheduledSeed): void {
  try {
    writeFileSync(path, `${JSON.stringify({ version, ...request }, undefined, 1)}\n`);
  } catch (error) {
    throw fileError("write", file, error);
  }
}

function why({ issues }: z.ZodError): string {
  const [first] = issues;
  if (first === undefined) return "something is wrong";
  const place = first.path.join(".");
  const known = place.endsWith(".kind") ? ` (there are ${Object.keys(faultKinds).join(", ")})` : "";
  return `${place === "" ? "" : `${place}: `}${first.message}${known}`;
}

/** Refuses a fault or an operation of an unknown node. */
function requireNodes(request: SeedRequest): void {
  const { coordinators, agents, clients } = nodesOf(planOf(request).workload);
  const nodes = new Set([LEADER, STANDBY, BUSY, ...coordinators, ...agents, ...clients]);
  for (const { of, nodes: several = [] } of request.schedule ?? ([] as Fault[])) {
    const struck = [...several, ...(of === undefined ? [] : [of])].map((node) => node.split("/")[0] ?? "");
    const unknown = struck.find((node) => !nodes.has(node));
    if (unknown !== undefined) throw new Error(`seed ${request.seed} has no node ${unknown}`);
  }
  for (const { client } of request.operations ?? [])
    if (!clients.includes(client)) throw new Error(`seed ${request.seed} has no client ${client}`);
}
