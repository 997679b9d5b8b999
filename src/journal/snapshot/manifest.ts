// What a snapshot says of itself: how far the history goes that it holds, where its chunks lie, and what a replay needs
// to go on behind it. Written last, so that a manifest that can be read says that its snapshot was whole, and that
// history up to its batch existed.

import { Fields, refuse } from "../../core/snapshot/checked-fields.ts";
import { snapshotVersion } from "../../core/snapshot/swarm.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import type { EventType } from "../../state/event.ts";
import { hashOf, isCount } from "../batch.ts";
import type { Run } from "../batch-places.ts";
import type { AlienRecords, ChainPosition } from "../replay.ts";

/** A part of the lines of a snapshot: `bytes` bytes at a place of the store, with their `hashOf`. */
export type ChunkRef = readonly [place: number, bytes: number, hash: string];

export interface Manifest {
  /** Of the journal that was folded. `seq` is that of the record behind which the journal goes on: at or behind the
   *  record of batch `idx`, or, where the journal lost its end, what was its last record then. */
  readonly position: ChainPosition;
  /** Journal time of batch `idx`. */
  readonly at: Instant;
  /** Of the last event of batch `idx`. */
  readonly lastEventType: EventType | undefined;
  /** Where batches stand (batch-places.ts). */
  readonly runs: readonly Run[];
  readonly deadRecords: number;
  readonly alienRecords: AlienRecords | undefined;
  readonly chunks: readonly ChunkRef[];
}

/** By which a snapshot is known again, wherever it is stored. */
export interface SnapshotName {
  /** Of its manifest's bytes. */
  readonly hash: string;
  /** Of the last batch in it. */
  readonly idx: BatchIndex;
  /** Of that batch's bytes. */
  readonly batchHash: string;
  /** The record behind which the journal goes on. */
  readonly seq: number;
}

export function nameOf(manifest: Manifest): SnapshotName {
  const { idx, seq, hash: batchHash } = manifest.position;
  return { hash: hashOf(encodeManifest(manifest)), idx, batchHash, seq };
}

/** Of the state that a snapshot holds, in bytes. */
export function sizeOf({ chunks }: Manifest): number {
  return chunks.reduce((sum, [, bytes]) => sum + bytes, 0);
}

/** The hash of the rest, a line break, and the rest. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const { position, ...rest } = manifest;
  const { journal, term, idx, hash, seq } = position;
  const json = Buffer.from(
    JSON.stringify({ version: snapshotVersion, journal, term, idx, hash, seq, ...rest }),
  );
  return Buffer.concat([Buffer.from(`${hashOf(json)}\n`), json]);
}

/** @throws JournalDamagedError for anything else than what `encodeManifest` made */
export function decodeManifest(bytes: Uint8Array): Manifest {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = buffer.indexOf("\n");
  const json = buffer.subarray(end + 1);
  if (end < 0 || buffer.toString("latin1", 0, end) !== hashOf(json))
    refuse("a snapshot's manifest is not as it was written");
  return readManifest(new Fields(JSON.parse(json.toString()), "manifest"));
}

function readManifest(fields: Fields): Manifest {
  const version = fields.whole("version", { min: 1 });
  if (version !== snapshotVersion)
    refuse(
      `a snapshot's manifest is of version ${version}, which another waggle wrote; this one reads version ${snapshotVersion}`,
    );
  const manifest: Manifest = {
    position: {
      journal: fields.text("journal"),
      term: fields.whole("term", { min: 1 }),
      idx: fields.whole("idx", { min: 1 }),
      hash: fields.text("hash"),
      seq: fields.whole("seq"),
    },
    at: fields.whole("at"),
    lastEventType: fields.optionalText<EventType>("lastEventType"),
    runs: fields.list("runs").map((run) => readTriple<Run>(run, isRun, "runs")),
    deadRecords: fields.whole("deadRecords"),
    alienRecords: fields.optionalWithin("alienRecords", (of) => ({
      count: of.whole("count", { min: 1 }),
      lastAt: of.whole<Instant>("lastAt"),
    })),
    chunks: fields.list("chunks").map((chunk) => readTriple<ChunkRef>(chunk, isChunkRef, "chunks")),
  };
  fields.end();
  return manifest;
}

function readTriple<Triple>(
  value: unknown,
  isOne: (value: readonly unknown[]) => boolean,
  name: string,
): Triple {
  if (!Array.isArray(value) || value.length !== 3 || !isOne(value))
    refuse(`manifest.${name} holds ${JSON.stringify(value)}`, `manifest.${name}`);
  return value as Triple;
}

function isRun([idx, seq, count]: readonly unknown[]): boolean {
  return isCount(idx) && isCount(seq) && isCount(count);
}

function isChunkRef([place, bytes, hash]: readonly unknown[]): boolean {
  return isCount(place) && isCount(bytes) && typeof hash === "string";
}
