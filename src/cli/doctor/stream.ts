// Checks of the journal's streams, one per segment: settings, replicas, and used storage. Sends no requests
// (journal/stream/opening.ts does). Not here: whether the log can be read (log.ts).

import { duration } from "../../audit/describe.ts";
import { counted } from "../../count-text.ts";
import type { JournalUsage } from "../../journal/journal.ts";
import type { StreamCluster } from "../../journal/stream/api.ts";
import type { FoundSegment, JournalInspection } from "../../journal/stream/opening.ts";
import { limits } from "../../limits.ts";
import { exitCodeOf, exitCodes } from "../exit-code.ts";
import { formatBytes, formatShare } from "../format.ts";
import { isCalledFull } from "../journal-full.ts";
import type { Check } from "./check.ts";

type PresentSegment = Extract<FoundSegment, { readonly kind: "there" }>;

export function* checkStreams({ segments, maxPayload }: JournalInspection): Generator<Check> {
  const present = segments.filter((found) => found.kind === "there");
  const troubles = [
    ...silenceOf(segments),
    ...wrongSettings(
      present.flatMap(({ stream, settings }) => settings.map((each) => ({ stream, ...each }))),
    ),
    ...wrongSettings([maxPayload]),
  ];
  yield* troubles;
  if (troubles.length === 0) yield streamsAreWell(present);
  for (const segment of present) yield* checkReplicas(segment, segment === present.at(-1));
}

function streamsAreWell(present: readonly PresentSegment[]): Check {
  const name = "streams";
  const [first] = present;
  const last = present.at(-1);
  if (first === undefined || last === undefined)
    return {
      name,
      status: "warn",
      found: "this swarm has no journal yet",
      advice: "start a coordinator: it creates the journal",
    };
  const bytes = present.reduce((sum, { report }) => sum + report.bytes, 0);
  const streams = first === last ? first.stream : `${first.stream} to ${last.stream}`;
  const settings = counted(first.settings.length, "setting");
  const found = `${counted(present.length, "segment")} (${streams}), ${formatBytes(bytes)}; ${settings} of each read back, all correct`;
  return { name, status: "ok", found };
}

function* silenceOf(segments: readonly FoundSegment[]): Generator<Check> {
  for (const found of segments) {
    if (found.kind !== "silent") continue;
    const { stream, error } = found;
    const advice =
      error.code === "WAGGLE_BROKER"
        ? {}
        : {
            advice:
              "start the servers that store the stream; a stream with replicas needs a majority of them",
          };
    yield {
      name: "streams",
      status: "fail",
      found: `${stream}: ${error.message}`,
      ...advice,
      exitCode: exitCodeOf(error),
    };
  }
}

type Setting = PresentSegment["settings"][number] & { readonly stream?: string };

function* wrongSettings(checks: readonly Setting[]): Generator<Check> {
  for (const { stream, setting, wanted, found, advice } of checks.filter(({ ok }) => !ok)) {
    const of = stream === undefined ? "" : ` of ${stream}`;
    yield { name: "streams", status: "fail", found: `${setting}${of} is ${found}, wanted ${wanted}`, advice };
  }
}

// --- room -------------------------------------------------------------------------------------------

/** Checks the room that all segments together take. */
export function checkRoom(usage: JournalUsage): Check {
  const name = "room";
  const { bytes, bytesMax, remedy } = usage;
  const used = `the journal has ${formatBytes(bytes)}`;
  if (bytesMax === undefined) return { name, status: "ok", found: `${used}, without a bound` };
  const size = `${used} of ${formatBytes(bytesMax)}`;
  const share = formatShare(bytes / bytesMax);
  const advice = remedy === undefined ? {} : { advice: remedy };
  if (isCalledFull(usage)) {
    const found = `${size}, full: batches that do not fit wait, and no request is answered until the journal has room`;
    return { name, status: "fail", found, ...advice };
  }
  if (bytes > bytesMax * limits.journalFullShare) {
    const found = `${size}, ${share}: no tasks are accepted; results and terms are still journaled`;
    return { name, status: "warn", found, ...advice };
  }
  return { name, status: "ok", found: `${size}, ${share}` };
}

// --- replicas ---------------------------------------------------------------------------------------

/** No check for a stream on a single server. Earlier segments are reported only with a problem. */
function* checkReplicas(
  { stream, report: { cluster, config } }: PresentSegment,
  isNewest: boolean,
): Generator<Check> {
  const name = "replicas";
  if (cluster === undefined) return;
  const { leader = "" } = cluster;
  const count = Number(config["num_replicas"]);
  const majority = Math.floor(count / 2) + 1;
  const start = `start the servers that store the stream: ${majority} of ${count} must be online`;
  const { unreachable: exitCode } = exitCodes;
  if (leader === "") {
    // Without a leader no server knows which of the others are online.
    const found = `${stream} has no leader, so nothing is stored`;
    const advice = `check again in some seconds: an election may be in progress; otherwise ${start}`;
    return yield { name, status: "fail", found, advice, exitCode };
  }
  const away = (cluster.replicas ?? []).filter(isAway);
  const there = count - away.length;
  const who = [`${leader} leads`, ...away.map(awayText)].join("; ");
  if (there < majority) {
    const found = `${stream} has lost its majority, so nothing is stored: ${who}`;
    yield { name, status: "fail", found, advice: start, exitCode };
  } else if (away.length > 0) {
    const advice = "start the stopped servers and check those that lag: without a majority nothing is stored";
    yield {
      name,
      status: "warn",
      found: `${stream} is up to date on ${there} of ${count} servers: ${who}`,
      advice,
    };
  } else if (count > 1 && isNewest) {
    yield { name, status: "ok", found: `${stream} is stored on ${count} servers, all up to date: ${who}` };
  }
}

type Replica = NonNullable<StreamCluster["replicas"]>[number];

function isAway({ current, offline, active }: Replica): boolean {
  return offline || !current || active > limits.replicaSilentMs * 1_000_000;
}

function awayText({ name, offline, active, lag }: Replica): string {
  const silentMs = active / 1_000_000;
  const lagging = lag > 0 ? `, lacks ${counted(lag, "record")}` : "";
  if (offline) return `${name} is offline${lagging}`;
  return silentMs > limits.replicaSilentMs
    ? `${name} has been silent for ${duration(silentMs)}${lagging}`
    : `${name} is not up to date${lagging}`;
}
