// How much of the journal is kept to be read, as people write it: `7d`, `10GiB`, or both with a comma.

import { limits } from "../limits.ts";
import { durationIn } from "./duration.ts";

/** An absent bound is infinite. */
export interface Retention {
  readonly ageMs: number;
  readonly bytes: number;
}

const unitsBytes: Readonly<Record<string, number>> = {
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
};

const SIZE = /^(\d+(?:\.\d+)?)\s?([KMGT]i?B)$/;

export const defaultRetention: Retention = {
  ageMs: limits.auditRetentionMs,
  bytes: limits.auditRetentionBytes,
};

/** Undefined for an invalid text. Each part is a duration or a size, at most one of each. An absent part has no bound.
 */
export function retentionIn(text: string): Retention | undefined {
  const parts = text.split(",").map((part) => part.trim());
  const ages = parts.map(durationIn).filter((ms) => ms !== undefined);
  const sizes = parts.map(bytesIn).filter((bytes) => bytes !== undefined);
  if (ages.length + sizes.length !== parts.length || ages.length > 1 || sizes.length > 1) return undefined;
  return { ageMs: ages[0] ?? Number.POSITIVE_INFINITY, bytes: sizes[0] ?? Number.POSITIVE_INFINITY };
}

/** Warning for a very small retention; otherwise undefined. */
export function retentionWarning({ ageMs, bytes }: Retention): string | undefined {
  if (ageMs >= limits.auditRetentionMsLittle && bytes >= limits.auditRetentionBytesLittle) return undefined;
  return (
    "retain is very small: results and histories of tasks are removed soon after the end, with the second base after " +
    "the end. No waiting or running task is lost. Set 1h, 16MiB or more to read results later"
  );
}

function bytesIn(text: string): number | undefined {
  const [, amount, unit = ""] = SIZE.exec(text) ?? [];
  const size = unitsBytes[unit];
  return size === undefined ? undefined : Math.round(Number(amount) * size);
}
