// The settings of a segment's stream: for its creation, and to compare with the server's settings. Settings are read
// back because older servers silently ignore unknown settings, and users may create or edit a stream by hand. Pure.

import { WaggleError } from "../../errors.ts";
import type { SwarmId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import type { StreamConfig } from "./api.ts";

export interface SegmentId {
  readonly swarm: SwarmId;
  readonly number: number;
}

/** A line of `waggle doctor`. */
export interface SettingCheck {
  readonly setting: string;
  readonly wanted: string;
  readonly found: string;
  readonly ok: boolean;
  /** How to repair the setting if not ok. */
  readonly advice: string;
}

export function streamNameOf({ swarm, number }: SegmentId): string {
  return `WAGGLE_${swarm}_${number}`;
}

/** The segment's number; undefined if the stream is not a segment of the swarm. */
export function segmentNumberIn(stream: string, swarm: SwarmId): number | undefined {
  const prefix = `WAGGLE_${swarm}_`;
  const digits = stream.startsWith(prefix) ? stream.slice(prefix.length) : "";
  const number = /^[1-9]\d*$/.test(digits) ? Number(digits) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

export function streamConfigOf(id: SegmentId, replicas: number): StreamConfig {
  return { name: streamNameOf(id), ...fixedSettings(id), num_replicas: replicas };
}

/** A setting absent from the server's answer counts as `unmentioned`. */
function fixedSettings({ swarm, number }: SegmentId) {
  const { segment, segmentOpened, segmentSealed } = subjectsOf(swarm);
  return {
    subjects: [segment(number), segmentOpened(number), segmentSealed(number)],
    storage: "file",
    retention: "limits",
    discard: "new",
    max_age: 0,
    max_bytes: -1,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    max_msg_size: -1,
    max_consumers: -1,
    no_ack: false,
    allow_direct: false,
    allow_rollup_hdrs: false,
    deny_delete: true,
    deny_purge: true,
  } as const;
}

/** Must not be set; not sent at creation, because older servers do not know all the names. */
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
  "sealed",
  "mirror",
  "persist_mode",
]);

/** One check per setting, correct or not. @param found the stream's `config` from the server */
export function checkSettings(found: StreamConfig, id: SegmentId): SettingCheck[] {
  const stream = streamNameOf(id);
  const check = (setting: string, text: string, isWanted: (value: unknown) => boolean): SettingCheck => ({
    setting,
    wanted: text,
    found: show(found[setting]),
    ok: isWanted(found[setting]),
    advice: immutableSettings.has(setting)
      ? `this cannot be changed: use a different swarm name, or delete the stream ${stream} if its records are not needed`
      : `change it with \`nats stream edit ${stream}\``,
  });
  return [
    ...Object.entries(fixedSettings(id)).map(([setting, value]) =>
      check(
        setting,
        show(value),
        (present) => JSON.stringify(present ?? unmentioned(value)) === JSON.stringify(value),
      ),
    ),
    ...absentSettings.map((setting) => check(setting, "not set", isUnset)),
    check("persist_mode", "default", (present) => isUnset(present) || present === "default"),
    check("num_replicas", "at least 1", (present) => typeof present === "number" && present >= 1),
  ];
}

/** The server must take messages as large as batches get. The limit is the server's, not the stream's. */
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

/** @throws WaggleError WAGGLE_JOURNAL_SETTINGS when a check is not ok. @param what names the stream or the server */
export function requireSettings(what: string, checks: readonly SettingCheck[]): void {
  const wrong = checks.filter(({ ok }) => !ok);
  if (wrong.length === 0) return;
  const lines = wrong.map(
    ({ setting, wanted, found, advice }) => `${setting} is ${found}, wanted ${wanted}: ${advice}`,
  );
  throw new WaggleError("WAGGLE_JOURNAL_SETTINGS", `${what} cannot keep a journal. ${lines.join(". ")}.`);
}

/** The value of a setting absent from the server's answer. */
function unmentioned(wanted: unknown): unknown {
  if (typeof wanted === "boolean") return false;
  return typeof wanted === "number" ? 0 : undefined;
}

function isUnset(value: unknown): boolean {
  return (
    value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0)
  );
}

function show(value: unknown): string {
  if (value === undefined || value === null) return "not set";
  return typeof value === "string" ? value : JSON.stringify(value);
}
