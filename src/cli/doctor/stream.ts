// What `waggle doctor` makes of the journal's stream and its snapshots': whether both are there and as they must be,
// how full they are, and who keeps them. Asks nothing (journal/stream/inspection.ts). The one thing to know: where only
// one of the two is there, storage was lost, or the first start died before there were both.

import { duration } from "../../audit/describe.ts";
import type { StreamCluster } from "../../journal/stream/api.ts";
import { adviceOnLostStream } from "../../journal/stream/identity.ts";
import type { FoundStream, StreamsInspection } from "../../journal/stream/inspection.ts";
import { twiceTheRoom } from "../../journal/stream/room.ts";
import { missingStreamAdvice } from "../../journal/stream/settings.ts";
import { limits } from "../../limits.ts";
import { exitCodeOf, exitCodes } from "../exit-code.ts";
import { counted, formatBytes, formatCount, formatShare } from "../format.ts";
import { isCalledFull } from "../journal-full.ts";
import type { Check } from "./check.ts";

type PresentStream = Extract<FoundStream, { readonly kind: "there" }>;

export function* checkStreams({ journal, snapshots, maxPayload }: StreamsInspection): Generator<Check> {
  const troubles = [
    ...silenceOf(journal),
    ...silenceOf(snapshots),
    ...absenceOf(journal, snapshots),
    ...wrongSettings([...settingsOf(journal), ...settingsOf(snapshots), maxPayload]),
  ];
  const count = settingsOf(journal).length + settingsOf(snapshots).length + 1;
  const found = `${counted(count, "setting")} of ${journal.stream} and ${snapshots.stream} read back, all as they must be`;
  if (troubles.length === 0) yield { name: "stream", status: "ok", found };
  yield* troubles;
  if (journal.kind === "there") yield* [...checkRoom(journal, "journal"), ...checkReplicas(journal)];
  if (snapshots.kind === "there") yield* [...checkRoom(snapshots, "snapshots"), ...checkReplicas(snapshots)];
}

function* silenceOf(found: FoundStream): Generator<Check> {
  if (found.kind !== "silent") return;
  const { stream, error } = found;
  const advice =
    error.code === "WAGGLE_BROKER"
      ? {}
      : { advice: "start the servers that keep it; one with replicas needs a majority of them" };
  const { message } = error;
  yield {
    name: "stream",
    status: "fail",
    found: `${stream}: ${message}`,
    ...advice,
    exitCode: exitCodeOf(error),
  };
}

function* absenceOf(journal: FoundStream, snapshots: FoundStream): Generator<Check> {
  const name = "stream";
  if (journal.kind === "missing" && snapshots.kind === "there") {
    yield {
      name,
      status: "fail",
      found: `${journal.stream} is gone, and ${snapshots.stream} is there: somebody deleted the journal, or the server lost its storage`,
      advice: adviceOnLostStream(journal.stream),
      exitCode: exitCodes.journalDamaged,
    };
  } else if (journal.kind === "missing") {
    const isNew = snapshots.kind === "missing";
    const advice = isNew
      ? missingStreamAdvice
      : `look again when ${snapshots.stream} answers, before one is made`;
    yield {
      name,
      status: isNew ? "warn" : "fail",
      found: `there is no ${journal.stream}`,
      advice,
    };
  } else if (journal.kind === "there" && snapshots.kind === "missing") {
    yield missingSnapshots(journal, snapshots);
  }
}

/** Whatever was purged stands in the snapshots, and nowhere else on a disk. A leader makes the stream anew when its
 *  next snapshot is due. */
function missingSnapshots({ stream, report }: PresentStream, snapshots: FoundStream): Check {
  const name = "stream";
  if (report.firstSeq > 1) {
    const what = `${snapshots.stream} is gone, and ${stream} was purged before record ${formatCount(report.firstSeq)}`;
    return {
      name,
      status: "fail",
      found: `${what}: what stood there cannot be restored`,
      advice:
        "let the coordinators that run go on, which hold it in memory, and start one more (`waggle up`): it makes the " +
        `stream anew, and the leader saves its state there. Where none runs, put ${snapshots.stream} back from a backup`,
      exitCode: exitCodes.journalDamaged,
    };
  }
  const least = formatBytes(limits.snapshotsBytesFallbacks.at(-1) ?? limits.snapshotsBytesMax);
  return {
    name,
    status: "fail",
    found: `there is no ${snapshots.stream} for snapshots of ${stream}`,
    advice:
      `start a coordinator, which creates it; where it says that there is no room for ${least}, give JetStream that much ` +
      "more first (`max_file_store` of the server, `max_file` of the account)",
  };
}

function settingsOf(found: FoundStream) {
  return found.kind === "there" ? found.settings : [];
}

function* wrongSettings(checks: PresentStream["settings"]): Generator<Check> {
  for (const { setting, wanted, found, advice } of checks.filter(({ ok }) => !ok))
    yield { name: "stream", status: "fail", found: `${setting} is ${found}, wanted ${wanted}`, advice };
}

// --- room -------------------------------------------------------------------------------------------

type Purpose = "journal" | "snapshots";

const consequences = {
  journal: {
    short: "no tasks are accepted; results and terms go on",
    full: "what does not fit waits, and nothing is answered until there is room",
  },
  snapshots: { short: "the next snapshot may not fit", full: "no snapshot fits" },
} as const;

function* checkRoom({ stream, report }: PresentStream, purpose: Purpose): Generator<Check> {
  const name = "room";
  const { bytes } = report;
  const bytesMax = report.config["max_bytes"];
  if (typeof bytesMax !== "number" || bytesMax <= 0) return; // said among the settings
  const size = `${stream} has ${formatBytes(bytes)} of ${formatBytes(bytesMax)}`;
  const share = formatShare(bytes / bytesMax);
  const advice = `give it more: \`${twiceTheRoom(stream, bytesMax)}\`, which is ${formatBytes(2 * bytesMax)}; JetStream needs that much room`;
  const { short, full } = consequences[purpose];
  if (isStreamFull({ bytes, bytesMax }, purpose))
    yield { name, status: "fail", found: `${size}, it is full: ${full}`, advice };
  else if (bytes > bytesMax * limits.journalFullShare)
    yield { name, status: "warn", found: `${size}, ${share}: ${short}`, advice };
  else yield { name, status: "ok", found: `${size}, ${share}` };
}

function isStreamFull(
  usage: { readonly bytes: number; readonly bytesMax: number },
  purpose: Purpose,
): boolean {
  if (purpose === "journal") return isCalledFull(usage);
  return usage.bytesMax - usage.bytes < limits.snapshotPartBytesMax;
}

// --- replicas ---------------------------------------------------------------------------------------

/** Nothing where one server of its own keeps it. */
function* checkReplicas({ stream, report: { cluster, config } }: PresentStream): Generator<Check> {
  const name = "replicas";
  if (cluster === undefined) return;
  const { leader = "" } = cluster;
  const count = Number(config["num_replicas"]);
  const majority = Math.floor(count / 2) + 1;
  const start = `start the servers that keep it: ${majority} of ${count} must be there`;
  const { unreachable: exitCode } = exitCodes;
  if (leader === "") {
    // Which of them are there is not told: without a leader none has heard of the others.
    const found = `${stream} has no leader, so nothing is stored`;
    const advice = `look again in some seconds, it may be electing one; else ${start}`;
    return yield { name, status: "fail", found, advice, exitCode };
  }
  const away = (cluster.replicas ?? []).filter(isAway);
  const there = count - away.length;
  const who = [`${leader} leads`, ...away.map(awayText)].join("; ");
  if (there < majority) {
    const found = `${stream} has lost its majority, so nothing is stored: ${who}`;
    yield { name, status: "fail", found, advice: start, exitCode };
  } else if (away.length > 0) {
    const advice =
      "start what is stopped, and look after what lags: with fewer than a majority nothing is stored";
    yield { name, status: "warn", found: `${stream} is kept by ${there} of ${count}: ${who}`, advice };
  } else if (count > 1) {
    yield { name, status: "ok", found: `${stream} is kept by ${count} servers, all up to date: ${who}` };
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
    ? `${name} was not heard for ${duration(silentMs)}${lagging}`
    : `${name} is not up to date${lagging}`;
}
