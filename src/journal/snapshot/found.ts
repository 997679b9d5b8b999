// What a reading found out of the snapshots that there are: which one can be read, and of those that reach further why
// they cannot. Plain values, for threads copy them. Says nothing of what became of them since.

import type { JournalDamagedError } from "../../errors.ts";
import type { Manifest, SnapshotName } from "./manifest.ts";

export interface FoundSnapshots {
  /** The one that was read in whole. Undefined where the reading began at the first record. */
  readonly read: ReadSnapshot | undefined;
  /** Those that reach further and could not be read, the furthest first. */
  readonly unreadable: readonly UnreadableSnapshot[];
}

export interface ReadSnapshot extends SnapshotName {
  /** Of its manifest. */
  readonly place: number;
}

export interface UnreadableSnapshot {
  /** Of its manifest. */
  readonly place: number;
  /** A sentence without its full stop. */
  readonly why: string;
}

/** What was found, once the one that was read cannot be read any more. */
export function withFault(
  { read, unreadable }: FoundSnapshots,
  manifest: Manifest,
  fault: JournalDamagedError,
): FoundSnapshots {
  if (read === undefined) return { read, unreadable };
  const { place } = read;
  return { read: undefined, unreadable: [...unreadable, { place, why: whyUnreadable(manifest, fault) }] };
}

/** @returns a sentence without its full stop */
export function whyUnreadable({ position }: Manifest, fault: JournalDamagedError): string {
  return `that of batch ${position.idx} cannot be read: ${fault.message}`;
}
