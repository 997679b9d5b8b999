// The server's protection, for `waggle doctor`: login, encryption, the reach of this user, and published advisories. A
// finding is a warning while only this machine reaches the server, and a failure elsewhere. Reads no message: the
// subscriptions below end as soon as the server has permitted or refused them.

import * as z from "zod";
import type { FoundBroker } from "../../broker/find-broker.ts";
import { WaggleError } from "../../errors.ts";
import { NO_PROJECT, swarmId } from "../../ids.ts";
import { segmentNumberIn } from "../../journal/stream/settings.ts";
import { limits } from "../../limits.ts";
import { decode, encode } from "../../protocol/codec.ts";
import { allInboxes } from "../../protocol/permissions.ts";
import { streamNames, streamRequest } from "../../protocol/server-subjects.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import { connectNats, type NatsOptions, type NatsTransport, type ServerFacts } from "../../transport/nats.ts";
import { isLoopback } from "../../transport/server-address.ts";
import type { Transport } from "../../transport/transport.ts";
import type { VerbContext } from "../verb.ts";
import type { Check } from "./check.ts";

const name = "security";
const remedy = "`waggle auth` makes credentials and a server's configuration (docs/security.md)";

export interface SecurityDeps {
  readonly transport: NatsTransport;
  readonly options: NatsOptions;
  readonly context: VerbContext;
}

export async function* checkSecurity(broker: FoundBroker, deps: SecurityDeps): AsyncGenerator<Check> {
  const facts = deps.transport.server();
  const isExposed = isReachable(facts, deps.options);
  const severity = isExposed ? "fail" : "warn";
  if (broker.local !== undefined && !isExposed) {
    const found =
      "this machine alone reaches the broker, with the secret of the data folder, which permits everything";
    return yield { name, status: "ok", found };
  }
  yield await checkLogin(deps, severity);
  yield checkEncryption(facts, isExposed);
  yield await checkReach(deps, severity);
  yield checkAdvisories(facts, severity);
}

/** Whether other machines reach the server. */
function isReachable({ host }: Pick<ServerFacts, "host">, { urls }: Pick<NatsOptions, "urls">): boolean {
  const hosts = urls.map((url) => new URL(url).hostname);
  return [host, ...hosts].some((each) => each !== "" && !isLoopback(each));
}

type Severity = "warn" | "fail";

async function checkLogin({ options }: SecurityDeps, severity: Severity): Promise<Check> {
  const { credentials: _, ...stranger } = options;
  try {
    const transport = await connectNats({ ...stranger, name: "waggle doctor, without a login" });
    await transport.close();
    const found = "the server lets in everybody: any client can write anything, also into the journal";
    return { name, status: severity, found, advice: remedy };
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return { name, status: "ok", found: "the server refuses clients without a login" };
  }
}

function checkEncryption({ isEncrypted }: ServerFacts, isExposed: boolean): Check {
  if (isEncrypted) return { name, status: "ok", found: "the connection is encrypted (TLS)" };
  if (!isExposed) return { name, status: "ok", found: "no TLS, but only this machine reaches the server" };
  const found =
    "no TLS on a server that other machines reach: tasks, results and passwords can be read on the way";
  return { name, status: "fail", found, advice: remedy };
}

/** No role may subscribe to these subjects (protocol/permissions.ts). */
async function checkReach({ transport, context }: SecurityDeps, severity: Severity): Promise<Check> {
  const subjects = subjectsOf(swarmId(context.settings.swarm));
  const reached: string[] = [];
  if (await maySubscribe(transport, subjects.assign("*", "*"))) reached.push("assignments of all agents");
  if (await maySubscribe(transport, allInboxes)) reached.push("answers and outcomes of all users");
  if (await maySubscribe(transport, `${subjects.prefix}.>`)) reached.push("all messages of the swarm");
  const streams = await reachedStreams(transport, context.settings.swarm);
  const others = streams?.others ?? [];
  if (others.length > 0) reached.push(`streams of other programs (${firstOf(others)})`);
  // Of the roles, a coordinator alone reads streams; it has no `queriesOnly`.
  else if (streams !== undefined && (reached.length > 0 || context.settings.queriesOnly))
    reached.push("all streams of the account");
  if (reached.length === 0) {
    const own =
      streams === undefined ? "" : "; the user reaches all streams of the account, as a coordinator must";
    return { name, status: "ok", found: `this user reaches only its own traffic${own}` };
  }
  const found = `the user reaches more than the role needs: ${reached.join(", ")}`;
  const isShared = reached.length === 1 && others.length > 0;
  return { name, status: severity, found, advice: isShared ? accountOfItsOwn : remedy };
}

const accountOfItsOwn =
  "give the swarm an account of its own: permissions cannot name a swarm's streams one by one";

const NAMES_SHOWN = 3;

function firstOf(names: readonly string[]): string {
  const more = names.length - NAMES_SHOWN;
  return names.slice(0, NAMES_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

async function maySubscribe(transport: Transport, subject: string): Promise<boolean> {
  let isForbidden = false;
  const subscription = transport.subscribe(subject, () => undefined, {
    onForbidden: () => {
      isForbidden = true;
    },
  });
  try {
    await transport.flush(); // the refusal comes before the answer to the flush
  } finally {
    subscription.unsubscribe();
  }
  return !isForbidden;
}

/** Undefined if this user reads no streams. Asks for a stream that cannot exist: any answer shows that the request was
 *  permitted. @returns the streams of the account that are not the swarm's */
async function reachedStreams(
  transport: NatsTransport,
  swarm: string,
): Promise<{ readonly others: readonly string[] } | undefined> {
  const terms = { timeoutMs: limits.requestTimeoutMs };
  const none = streamRequest("INFO", `WAGGLE_${NO_PROJECT}_0`);
  if ((await transport.request(none, encode({}), terms)).kind !== "answered") return undefined;
  const listed = await transport.request(streamNames, encode({}), terms);
  const names = listed.kind === "answered" ? decode(listed.data, namesSchema) : undefined;
  const all = names?.ok ? (names.value.streams ?? []) : [];
  return { others: all.filter((each) => segmentNumberIn(each, swarmId(swarm)) === undefined) };
}

const namesSchema = z.object({ streams: z.array(z.string()).nullish() });

/** @param fixed the first versions with the fix, oldest branch first; newer branches have the fix */
interface Advisory {
  readonly id: string;
  readonly effect: string;
  readonly fixed: readonly string[];
}

/** The advisories of advisories.nats.io that defeat users, accounts or permissions. */
const advisories: readonly Advisory[] = [
  {
    id: "CVE-2023-47090",
    effect: "strangers may get in beside a system account",
    fixed: ["2.9.23", "2.10.2"],
  },
  {
    id: "CVE-2025-30215",
    effect: "users may delete streams of other accounts",
    fixed: ["2.10.27", "2.11.1"],
  },
  {
    id: "2026-16",
    effect: "with no_auth_user, peers get in without a login",
    fixed: ["2.11.16", "2.12.7", "2.14.0"],
  },
  {
    id: "2026-18",
    effect: "queue subscriptions may pass a deny rule, which `waggle auth` does not use",
    fixed: ["2.11.16", "2.12.7", "2.14.0"],
  },
];

export function checkAdvisories({ version }: Pick<ServerFacts, "version">, severity: Severity): Check {
  const open = advisories.filter(({ fixed }) => !hasFix(version, fixed));
  if (open.length === 0) return { name, status: "ok", found: `no advisory known for nats-server ${version}` };
  const found = `nats-server ${version} lacks fixes: ${open.map(({ id, effect }) => `${id} (${effect})`).join("; ")}`;
  const newest = open.at(-1)?.fixed.join(", ") ?? "";
  const advice = `upgrade to ${newest} or newer, unless your distribution has added the fixes to this version`;
  return { name, status: severity, found, advice };
}

function hasFix(version: string, fixed: readonly string[]): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  const branches = fixed.map((each) => each.split(".").map(Number));
  const own = branches.find((each) => each[0] === major && each[1] === minor);
  if (own !== undefined) return patch >= (own[2] ?? 0);
  const last = branches.at(-1) ?? [0, 0, 0];
  return major > (last[0] ?? 0) || (major === last[0] && minor > (last[1] ?? 0));
}
