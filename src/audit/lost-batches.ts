// Finds the batches that the records of a journal lack, without folding and without hashes. For exports, which copy
// every record. Counts as a check of the journal does (verifying/verify.ts): the log continues with the next batch, or
// at the next base. A segment ends with the batch that the next segment continues.

import { decodeBatchHeader, decodeRecord, type Opened } from "../journal/records.ts";

/** The first and the last of adjacent batches. */
export interface LostBatches {
  readonly from: number;
  /** Undefined if no later segment begins with a base: the log cannot be read on. */
  readonly to: number | undefined;
  /** The journal itself says that the batches are lost (`AuditTrimmed`). */
  readonly isAdmitted: boolean;
}

export class LostBatchSearch {
  readonly #journal: string | undefined;
  /** Undefined before the first batch. */
  #lastIdx: number | undefined;
  /** Records were damaged since the last batch. */
  #isBehindDamage = false;
  readonly #lost: { readonly from: number; readonly to: number }[] = [];
  #auditFirstIdx = 1;

  /** @param journal its identity; records of other journals do not count */
  constructor(journal: string | undefined) {
    this.#journal = journal;
  }

  /** In the order of their indexes. Call after the last record. */
  get lost(): readonly LostBatches[] {
    const lost = this.#lost.map((each) => ({ ...each, isAdmitted: this.#auditFirstIdx > each.to }));
    if (!this.#isBehindDamage) return lost;
    return [...lost, { from: (this.#lastIdx ?? 0) + 1, to: undefined, isAdmitted: false }];
  }

  /** Takes the next readable record. */
  take(bytes: Uint8Array): void {
    const header = decodeBatchHeader(bytes);
    if (header === undefined) {
      const record = decodeRecord(bytes);
      if (record?.kind === "opened" && record.journal === this.#journal) this.#takeOpened(record);
    } else if (header.journal === this.#journal && header.idx === (this.#lastIdx ?? header.idx - 1) + 1) {
      this.#continueFrom(header.idx);
      if (this.#lost.length > 0) this.#noteTrim(bytes);
    }
  }

  /** The next records are damaged. */
  damaged(): void {
    this.#isBehindDamage = true;
  }

  #takeOpened({ tail: { idx }, base }: Opened): void {
    const from = (this.#lastIdx ?? idx) + 1;
    if (from <= idx && base === undefined) return;
    if (base !== undefined && from <= idx) this.#lost.push({ from, to: from <= base.idx ? base.idx : idx });
    this.#continueFrom(idx);
  }

  #continueFrom(idx: number): void {
    this.#lastIdx = idx;
    this.#isBehindDamage = false;
  }

  #noteTrim(bytes: Uint8Array): void {
    const batch = decodeRecord(bytes);
    for (const event of batch?.kind === "batch" ? batch.events : [])
      if (event.type === "AuditTrimmed") this.#auditFirstIdx = event.firstIdx;
  }
}
