// What a stream's answer to an append proves. Pure. The rule: only the position that was
// expected, from this stream and not called a duplicate, is an acknowledgement; a refusal is one only where
// the server compared positions; everything else proves nothing.

import { z } from "zod";
import { headOf } from "../../cut-text.ts";
import type { AppendOutcome } from "../journal.ts";

/** A plain publish with this header is stored at exactly that position + 1, or not at all. `Nats-Msg-Id` is
 *  never sent: 2.10.27 can answer `{"seq":0,"duplicate":true}` for a message it never stored. */
export function appendHeaders(expectedSeq: number): Record<string, string> {
  return { "Nats-Expected-Last-Sequence": String(expectedSeq) };
}

/** What those headers add to a message at most, of what counts against the server's max payload. */
export const APPEND_HEADERS_BYTES = 64;

const WRONG_LAST_SEQUENCE = 10071;
/** The stream's `max_bytes` or a full disk, among other failures to store. */
const STORE_FAILED = 10077;
/** `maximum bytes exceeded`; of a disk, as its operating system says it: `write …: no space left on device`. */
const NO_ROOM = /^maximum |no space left on device/;
/** Limits of the account, the server's or the cluster's storage or memory, one message too large. */
const NO_ROOM_CODES: ReadonlySet<number> = new Set([10002, 10023, 10028, 10047, 10054]);

const answerSchema = z.object({
  stream: z.string().optional(),
  seq: z.number().optional(),
  duplicate: z.boolean().optional(),
  error: z.object({ err_code: z.number().optional(), description: z.string().optional() }).optional(),
});
type Answer = z.infer<typeof answerSchema>;

const decoder = new TextDecoder();

/** @param data the answer's bytes as they came */
export function readAppendAnswer(
  data: Uint8Array,
  expected: { readonly stream: string; readonly seq: number },
): AppendOutcome {
  const text = decoder.decode(data);
  const answer = parse(text);
  if (answer === undefined) return unproven(text);
  if (answer.error !== undefined) return readError(answer.error, text);
  const isAcknowledgement =
    answer.seq === expected.seq && answer.stream === expected.stream && answer.duplicate !== true;
  return isAcknowledgement ? { kind: "stored", seq: expected.seq } : unproven(text);
}

/** Expects a position at which no stream ends: refused for sure, and the refusal says where the server counts it to
 *  end. */
export const nowhereHeaders = appendHeaders(Number.MAX_SAFE_INTEGER);

/** @param data the answer to a publish with `nowhereHeaders`, as it came
 *  @returns the last position as the server judges appends by it; undefined where it does not say */
export function readRefusedAt(data: Uint8Array): number | undefined {
  const { err_code, description = "" } = parse(decoder.decode(data))?.error ?? {};
  if (err_code !== WRONG_LAST_SEQUENCE) return undefined;
  const digits = /: (\d+)$/.exec(description)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** What the answer to a plain publish proves, which may be stored anywhere.
 *  @param data the answer's bytes as they came */
export function readPutAnswer(data: Uint8Array, stream: string): PutOutcome {
  const text = decoder.decode(data);
  const answer = parse(text);
  if (answer === undefined) return unproven(text);
  if (answer.error !== undefined) {
    const outcome = readError(answer.error, text);
    return outcome.kind === "full" ? outcome : unproven(text);
  }
  const { seq } = answer;
  const isAcknowledgement =
    seq !== undefined && seq >= 1 && answer.stream === stream && answer.duplicate !== true;
  return isAcknowledgement ? { kind: "stored", seq } : unproven(text);
}

export type PutOutcome = Exclude<AppendOutcome, { readonly kind: "refused" }>;

function readError(error: NonNullable<Answer["error"]>, text: string): AppendOutcome {
  const { err_code = 0, description = "" } = error;
  if (err_code === WRONG_LAST_SEQUENCE) return { kind: "refused" };
  const isFull = NO_ROOM_CODES.has(err_code) || (err_code === STORE_FAILED && NO_ROOM.test(description));
  return isFull ? { kind: "full", message: `JetStream: ${description}` } : unproven(text);
}

function parse(text: string): Answer | undefined {
  try {
    return answerSchema.parse(JSON.parse(text));
  } catch {
    return undefined; // whatever it is, it proves nothing; the text is kept in the cause
  }
}

function unproven(text: string): { readonly kind: "unknown"; readonly cause: Error } {
  return { kind: "unknown", cause: new Error(`JetStream answered ${headOf(text, 256)}`) };
}
