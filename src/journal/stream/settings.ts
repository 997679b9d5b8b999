// The settings of a swarm's two streams, its journal and its snapshots: what to create them with, and whether what
// the server says they have is that. They are read back because older servers ignore silently what they do not
// know, and because a stream may have been made or edited by hand. Pure.

import { WaggleError } from "../../errors.ts";
import type { SwarmId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import { wantedRoom } from "../kept-room.ts";

export type StreamPurpose = "journal" | "snapshots";

export interface StreamId {
  readonly swarm: SwarmId;
  readonly purpose: StreamPurpose;
}

export interface WantedStream extends StreamId {
  /** Undefined: any number when found; 1 when created, for snapshots as many as their journal has. */
  readonly replicas?: number | undefined;
  /** Undefined: the first of `bytesMaxChoices` when created, any bound when found. */
  readonly bytesMax?: number | undefined;
  /** So much of a journal is to be kept: one that is created gets the room for it, where the server has it. */
  readonly keptBytes?: number | undefined;
}

/** One line of `waggle doctor`. */
export interface SettingCheck {
  readonly setting: string;
  readonly wanted: string;
  readonly found: string;
  readonly ok: boolean;
  /** What to do when it is not ok. */
  readonly advice: string;
}

type Config = Readonly<Record<string, unknown>>;

export function streamNameOf({ swarm, purpose }: StreamId): string {
  return purpose === "journal" ? `WAGGLE_${swarm}` : `WAGGLE_${swarm}_SNAP`;
}

/** The bounds to create a stream with, in this order: less where the server has not that much room, because a small
 *  disk is no reason to refuse a swarm. One that was asked for is meant. */
export function bytesMaxChoices({
  purpose,
  bytesMax,
  keptBytes = 0,
}: WantedStream): readonly [number, ...number[]] {
  if (bytesMax !== undefined) return [bytesMax];
  if (purpose === "snapshots") return [limits.snapshotsBytesMax, ...limits.snapshotsBytesFallbacks];
  const wanted = wantedRoom(keptBytes);
  const byDefault = [limits.journalBytesMax, ...limits.journalBytesFallbacks] as const;
  return wanted > limits.journalBytesMax ? [wanted, ...byDefault] : byDefault;
}

export function streamConfigOf(wanted: WantedStream): Config {
  return {
    name: streamNameOf(wanted),
    ...fixedSettings(wanted),
    max_bytes: bytesMaxChoices(wanted)[0],
    num_replicas: wanted.replicas ?? 1,
  };
}

/** The same for every stream of a purpose. A setting that the server does not mention counts as `unmentioned`. */
function fixedSettings({ swarm, purpose }: StreamId) {
  const { journal, snapshotChunk, snapshotManifest } = subjectsOf(swarm);
  return {
    subjects: purpose === "journal" ? [journal] : [snapshotChunk, snapshotManifest],
    storage: "file",
    retention: "limits",
    discard: "new",
    max_age: 0,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    max_msg_size: -1,
    max_consumers: -1,
    no_ack: false,
    allow_direct: false,
    allow_rollup_hdrs: false,
    deny_delete: true,
    deny_purge: false,
  } as const;
}

/** Must not be set; not sent at creation, because older servers do not know all of them. */
const absentSettings = [
  "sealed",
  "mirror",
  "sources",
  "republish",
  "subject_transform",
  "discard_new_per_subject",
  "allow_msg_ttl",
  "allow_msg_counter",
  "allow_msg_schedules",
] as const;

/** Not changed by `nats stream edit`. */
const immutableSettings: ReadonlySet<string> = new Set([
  "storage",
  "retention",
  "max_consumers",
  "deny_purge",
  "mirror",
  "sealed",
  "persist_mode",
]);

/** All settings, those that are as wanted too. @param found the stream's `config` as the server tells it */
export function checkStreamSettings(found: Config, wanted: WantedStream): SettingCheck[] {
  const stream = streamNameOf(wanted);
  const check = (setting: string, text: string, isWanted: (value: unknown) => boolean): SettingCheck => ({
    setting,
    wanted: text,
    found: show(found[setting]),
    ok: isWanted(found[setting]),
    advice: adviceFor(setting, { stream, text }),
  });
  return [
    ...Object.entries(fixedSettings(wanted)).map(([setting, value]) =>
      check(setting, show(value), (present) => isSame(present ?? unmentioned(value), value)),
    ),
    ...absentSettings.map((setting) => check(setting, "not set", isUnset)),
    check("persist_mode", "default", (present) => isUnset(present) || present === "default"),
    countCheck(check, "max_bytes", wanted.bytesMax),
    countCheck(check, "num_replicas", wanted.replicas),
  ];
}

type Check = (setting: string, text: string, isWanted: (value: unknown) => boolean) => SettingCheck;

function countCheck(check: Check, setting: string, wanted: number | undefined): SettingCheck {
  if (wanted !== undefined) return check(setting, show(wanted), (present) => present === wanted);
  return check(setting, "at least 1", (present) => typeof present === "number" && present >= 1);
}

/** Whether the server takes messages as large as batches get; the limit is the server's, not the stream's. */
export function checkMaxPayload(found: number): SettingCheck {
  const wanted = limits.turnBytesMax + limits.batchBytesMax + 64 * 1024;
  return {
    setting: "max_payload",
    wanted: `at least ${wanted}`,
    found: show(found),
    ok: found >= wanted,
    advice: "raise max_payload in the server's configuration",
  };
}

export const missingStreamAdvice = "start a coordinator of this swarm, which creates it";

/** In place of the others while there is no stream. */
export function missingStreamCheck(id: StreamId): SettingCheck {
  const stream = streamNameOf(id);
  return {
    setting: "stream",
    wanted: stream,
    found: "none",
    ok: false,
    advice: missingStreamAdvice,
  };
}

/** @param checks those that are not ok, at least one */
export function settingsError(id: StreamId, checks: readonly SettingCheck[]): WaggleError {
  const lines = checks.map(
    ({ setting, wanted, found, advice }) => `${setting} is ${found}, wanted ${wanted}: ${advice}`,
  );
  return new WaggleError(
    "WAGGLE_JOURNAL_SETTINGS",
    `the stream ${streamNameOf(id)} cannot be this swarm's ${nounOf[id.purpose]}. ${lines.join(". ")}.`,
  );
}

const nounOf: Readonly<Record<StreamPurpose, string>> = { journal: "journal", snapshots: "snapshot store" };

/** @param wanted.text the value, as it is said */
function adviceFor(
  setting: string,
  { stream, text }: { readonly stream: string; readonly text: string },
): string {
  if (immutableSettings.has(setting))
    return `this cannot be changed, so use another swarm name, or delete the stream ${stream} if nobody needs it`;
  const flag = editFlags[setting];
  const edit = flag === undefined || !/^\d+$/.test(text) ? stream : `${stream} ${flag} ${text}`;
  return `change it with \`nats stream edit ${edit}\`, or ask for what is there`;
}

/** Of settings that are asked for as a number. */
const editFlags: Readonly<Record<string, string>> = { num_replicas: "--replicas", max_bytes: "--max-bytes" };

/** What a server means by leaving a setting out. */
function unmentioned(wanted: unknown): unknown {
  if (typeof wanted === "boolean") return false;
  return typeof wanted === "number" ? 0 : undefined;
}

function isUnset(value: unknown): boolean {
  return (
    value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0)
  );
}

function isSame(found: unknown, wanted: unknown): boolean {
  return JSON.stringify(found) === JSON.stringify(wanted);
}

function show(value: unknown): string {
  if (value === undefined || value === null) return "not set";
  return typeof value === "string" ? value : JSON.stringify(value);
}
