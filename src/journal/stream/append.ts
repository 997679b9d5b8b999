// Decides the outcome of an append from JetStream's answer. Pure. An acknowledgement must name the right stream and the
// expected position, and must not be marked as a duplicate. A refusal counts only if the server compared positions. All
// further answers prove nothing.

import * as z from "zod";
import { headOf } from "../../cut-text.ts";
import type { AppendOutcome } from "../journal.ts";
import { apiCodes } from "./api.ts";

/** The header makes the server store the message at exactly `expected + 1`, or not at all. `Nats-Msg-Id` is never sent:
 *  nats-server 2.10.27 can answer `{"seq":0,"duplicate":true}` for a message never stored. */
export function appendHeaders(expected: number): Record<string, string> {
  return { "Nats-Expected-Last-Sequence": String(expected) };
}

/** Upper bound on the bytes of the headers, which count against the server's max payload. */
export const APPEND_HEADERS_BYTES = 64;

/** Descriptions of `storeFailed` for a lack of space: JetStream's own, and the operating system's. */
const NO_ROOM = /^maximum |no space left on device/;
const noRoomCodes: ReadonlySet<number> = new Set([
  apiCodes.accountResources,
  apiCodes.noResources,
  apiCodes.noAccountStorage,
  apiCodes.noStorage,
  apiCodes.messageTooLarge,
]);

const answerSchema = z.object({
  stream: z.string().optional(),
  seq: z.number().optional(),
  duplicate: z.boolean().optional(),
  error: z.object({ err_code: z.number().optional(), description: z.string().optional() }).optional(),
});
type Answer = z.infer<typeof answerSchema>;

const decoder = new TextDecoder();

/** Never `missing`: a removed stream does not answer. @param data the answer's bytes */
export function readAppendAnswer(
  data: Uint8Array,
  expected: { readonly stream: string; readonly position: number },
): AppendOutcome {
  const text = decoder.decode(data);
  if (isUsualAcknowledgement(text, expected)) return { kind: "stored" };
  const answer = parse(text);
  if (answer === undefined) return unproven(text);
  if (answer.error !== undefined) return readError(answer.error, text);
  return positionIn(answer, expected.stream) === expected.position ? { kind: "stored" } : unproven(text);
}

/** The position in the acknowledgement of an append without expected position; undefined without acknowledgement. */
export function acknowledgedPosition(data: Uint8Array, stream: string): number | undefined {
  return positionIn(parse(decoder.decode(data)) ?? {}, stream);
}

function positionIn({ error, seq = 0, stream, duplicate }: Answer, of: string): number | undefined {
  return error === undefined && stream === of && duplicate !== true && seq > 0 ? seq : undefined;
}

function readError(error: NonNullable<Answer["error"]>, text: string): AppendOutcome {
  const { err_code = 0, description = "" } = error;
  if (err_code === apiCodes.wrongLastSequence) return { kind: "refused" };
  const isFull =
    noRoomCodes.has(err_code) || (err_code === apiCodes.storeFailed && NO_ROOM.test(description));
  return isFull ? { kind: "full", message: `JetStream says: ${description}` } : unproven(text);
}

/** As nats-server 2.9 to 2.15 write it, without a domain. All further answers are parsed. */
function isUsualAcknowledgement(
  text: string,
  { stream, position }: { readonly stream: string; readonly position: number },
): boolean {
  return (
    position > 0 &&
    (text === `{"stream":"${stream}","seq":${position}}` ||
      text === `{"stream":"${stream}", "seq":${position}}`)
  );
}

function parse(text: string): Answer | undefined {
  try {
    return answerSchema.parse(JSON.parse(text));
  } catch {
    return undefined; // proves nothing; the text is kept in the cause
  }
}

function unproven(text: string): { readonly kind: "unknown"; readonly cause: Error } {
  return { kind: "unknown", cause: new Error(`JetStream answered ${headOf(text, 256)}`) };
}
