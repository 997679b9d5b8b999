// The messages of the Synadia Agent Protocol for NATS 0.3 (core-protocol.md), both directions. Each reader checks one
// message of a foreign program and returns a value or a sentence about the fault. Not here: who sends them, and when.

import { Buffer } from "node:buffer";
import * as z from "zod";
import { SUBJECT_TOKEN_PATTERN } from "../../ids.ts";
import { type Decoded, decode, encode, invalid } from "../../protocol/codec.ts";
import { serviceQuestion } from "../../protocol/server-subjects.ts";
import { AGENTS_SERVICE } from "../../protocol/service-permissions.ts";
import { isInbox } from "../../protocol/subjects.ts";

export const PROTOCOL_VERSION = "0.3";
/** Every agent answers once. */
export const discoverySubject = serviceQuestion(AGENTS_SERVICE);

/** The fields of an agent's INFO and heartbeats that the bridge uses. */
export interface ForeignAgent {
  /** Id of the instance. */
  readonly instance: string;
  /** Name of the harness: `claude-code`. */
  readonly agent: string;
  readonly owner: string;
  /** Label of the session, or else the last token of the prompt subject. */
  readonly session: string;
  readonly promptSubject: string;
  /** Longest request, bytes. Infinity: not said. */
  readonly maxPayloadBytes: number;
  readonly takesAttachments: boolean;
  /** The swarm whose kind this agent is, for an agent of `waggle serve synadia`. */
  readonly swarm: string | undefined;
}

/** Metadata of a NATS service are strings; the examples of the protocol's text have a boolean, too. */
const metadataValue = z.union([z.string(), z.boolean(), z.number()]).transform(String);
const metadata = z.record(z.string(), metadataValue).nullish();

const plain = z.string().regex(/^[!-~]{1,63}$/, "must be 1–63 printable ASCII characters without spaces");

const descriptionSchema = z.object({
  name: z.literal(AGENTS_SERVICE),
  id: z.string().regex(SUBJECT_TOKEN_PATTERN, "must be a token of a subject"),
  metadata: z.object({
    agent: plain,
    owner: plain,
    session: plain.optional(),
    protocol_version: z.string(),
    waggle_swarm: z.string().optional(),
  }),
  endpoints: z.array(z.object({ name: z.string(), subject: z.string(), metadata })),
});

/** Reads the answer to `$SRV.INFO.agents`. */
export function readDescription(data: Uint8Array): Decoded<ForeignAgent> {
  const read = decode(data, descriptionSchema);
  if (!read.ok) return read;
  const { id: instance, metadata: about, endpoints } = read.value;
  const { agent, owner, protocol_version: version, waggle_swarm: swarm } = about;
  if (!/^0\.3(?:[.+-].*)?$/.test(version))
    return invalid(
      `protocol_version: is ${JSON.stringify(version)}; this bridge speaks ${PROTOCOL_VERSION}`,
      "protocol_version",
    );
  const prompt = endpoints.find(({ name }) => name === "prompt");
  if (prompt === undefined) return invalid("endpoints: there is no endpoint prompt", "endpoints");
  const { subject: promptSubject, metadata: terms } = prompt;
  if (!isForeignSubject(promptSubject))
    return invalid(`endpoints: the subject ${JSON.stringify(promptSubject)} cannot be prompted`, "endpoints");
  const required = terms?.min_sender_trust ?? "any";
  if (required !== "any")
    return invalid(`endpoints: prompts must be ${required}, and this bridge does not sign them`, "endpoints");
  const name = promptSubject.split(".").at(-1) ?? "";
  return {
    ok: true,
    value: {
      ...{ instance, agent, owner, session: about.session ?? name, promptSubject, swarm },
      maxPayloadBytes: bytesIn(terms?.max_payload),
      takesAttachments: terms?.attachments_ok === "true",
    },
  };
}

/** Without wildcards, and outside the subjects of NATS and of a swarm: a task's payload must reach agents alone. */
function isForeignSubject(subject: string): boolean {
  return /^(?!\$|_INBOX|waggle\.)[^\s.*>]+(?:\.[^\s.*>]+)*$/.test(subject);
}

const unitBytes: Readonly<Record<string, number>> = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };

/** `1MB`. */
function bytesIn(text: string | undefined): number {
  const [, digits, unit = ""] = /^([1-9]\d{0,9})(B|KB|MB|GB)$/.exec(text ?? "") ?? [];
  return digits === undefined ? Number.POSITIVE_INFINITY : Number(digits) * (unitBytes[unit] ?? 1);
}

export interface Heartbeat {
  readonly instance: string;
  /** Until the next one, ms. */
  readonly intervalMs: number;
}

const DAY_S = 86_400;

const heartbeatSchema = z.object({
  instance_id: z.string().regex(SUBJECT_TOKEN_PATTERN, "must be a token of a subject"),
  interval_s: z.number().positive(),
});

export function readHeartbeat(data: Uint8Array): Decoded<Heartbeat> {
  const read = decode(data, heartbeatSchema);
  if (!read.ok) return read;
  const { instance_id: instance, interval_s: seconds } = read.value;
  return { ok: true, value: { instance, intervalMs: Math.min(seconds, DAY_S) * 1_000 } };
}

export interface HeartbeatFields {
  readonly agent: string;
  readonly owner: string;
  readonly session: string;
  readonly instance: string;
  /** Ms since the Unix epoch. */
  readonly at: number;
  readonly intervalMs: number;
}

/** A heartbeat, and the answer of the endpoint `status`. */
export function writeHeartbeat({ instance, at, intervalMs, ...of }: HeartbeatFields): Uint8Array {
  const ts = `${new Date(at).toISOString().slice(0, 19)}Z`;
  return encode({ ...of, instance_id: instance, ts, interval_s: intervalMs / 1_000 });
}

/** Standard alphabet, padded, without white space (RFC 4648, section 4). */
const base64 = z
  .string()
  .refine((text) => Buffer.from(text, "base64").toString("base64") === text, "must be padded base64");

const attachmentSchema = z.looseObject({ filename: z.string().min(1), content: base64 });
export type Attachment = z.infer<typeof attachmentSchema>;

/** A request: `{"prompt":"…","attachments":[…]}`. Unknown fields are kept. */
const promptSchema = z.looseObject({
  prompt: z.string().min(1, "must not be empty"),
  attachments: z.array(attachmentSchema).optional(),
});
export type Prompt = z.infer<typeof promptSchema>;

/** Reads a request or the answer to a query: JSON if it begins with `{`, else text. */
export function readPrompt(data: Uint8Array): Decoded<Prompt> {
  if (data.length === 0) return invalid("the prompt: is empty", "prompt");
  if (isJsonObject(data)) return decode(data, promptSchema);
  try {
    return { ok: true, value: { prompt: utf8.decode(data) } };
  } catch {
    return invalid("the prompt: is not UTF-8", "prompt");
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A prompt from the text of a task: an envelope as it is, and any other text as the prompt. Text that begins with a
 *  brace needs an envelope: alone it would be read as JSON. */
export function promptOf(text: string): Decoded<{ readonly data: Uint8Array; readonly prompt: Prompt }> {
  const data = Buffer.from(text);
  if (data.length === 0) return invalid("the prompt: is empty", "prompt");
  if (!isJsonObject(data)) return { ok: true, value: { data, prompt: { prompt: text } } };
  if (!hasPrompt(text))
    return { ok: true, value: { data: encode({ prompt: text }), prompt: { prompt: text } } };
  const read = decode(data, promptSchema);
  return read.ok ? { ok: true, value: { data, prompt: read.value } } : read;
}

function hasPrompt(text: string): boolean {
  try {
    return typeof Reflect.get(Object(JSON.parse(text)), "prompt") === "string";
  } catch {
    return false; // text for the agent, such as `{see above}`
  }
}

const BRACE = 0x7b;
const white = new Set([0x09, 0x0a, 0x0d, 0x20]);

function isJsonObject(data: Uint8Array): boolean {
  return data.find((byte) => !white.has(byte)) === BRACE;
}

/** A message of an agent in answer to a prompt. */
export type Chunk =
  | { readonly type: "ack" }
  /** Content of the answer. */
  | { readonly type: "response"; readonly text: string; readonly attachments: readonly Attachment[] }
  | { readonly type: "query"; readonly query: Query }
  /** Another status, or a type of a later version: only shows that the agent goes on. */
  | { readonly type: "other" };

/** A question of the agent, in mid-prompt. */
export interface Query {
  readonly id: string;
  /** An inbox, for one answer. */
  readonly replySubject: string;
  readonly prompt: string;
}

const chunkSchema = z.object({ type: z.string(), data: z.unknown() });
const contentSchema = z.object({ text: z.string(), attachments: z.array(attachmentSchema).nullish() });
const querySchema = z.object({
  id: z.string(),
  reply_subject: z.string().refine(isInbox, "must be an inbox, such as _INBOX.x"),
  prompt: z.string(),
});

export function readChunk(data: Uint8Array): Decoded<Chunk> {
  const read = decode(data, chunkSchema);
  if (!read.ok) return read;
  switch (read.value.type) {
    case "status":
      return { ok: true, value: { type: read.value.data === "ack" ? "ack" : "other" } };
    case "response":
      return contentOf(read.value.data);
    case "query":
      return queryOf(read.value.data);
    default:
      return { ok: true, value: { type: "other" } };
  }
}

function contentOf(data: unknown): Decoded<Chunk> {
  if (typeof data === "string") return { ok: true, value: { type: "response", text: data, attachments: [] } };
  const read = contentSchema.safeParse(data);
  if (!read.success) return invalid("data: of a response must be text, or an object with text", "data");
  const { text, attachments } = read.data;
  return { ok: true, value: { type: "response", text, attachments: attachments ?? [] } };
}

function queryOf(data: unknown): Decoded<Chunk> {
  const read = querySchema.safeParse(data);
  if (!read.success)
    return invalid("data: of a query must have id, prompt and reply_subject, an inbox", "data");
  const { id, reply_subject: replySubject, prompt } = read.data;
  return { ok: true, value: { type: "query", query: { id, replySubject, prompt } } };
}

export const writeAck = (): Uint8Array => encode({ type: "status", data: "ack" });
/** Callers ignore an unknown status, and wait on. */
export const writeWorking = (): Uint8Array => encode({ type: "status", data: "working" });

export function writeResponse(text: string, attachments: readonly Attachment[] = []): Uint8Array {
  return encode({ type: "response", data: attachments.length === 0 ? text : { text, attachments } });
}

/** An error of a NATS service. */
export interface Refusal {
  /** 400 to 599. */
  readonly code: number;
  readonly description: string;
  readonly retryAfterMs: number | undefined;
}

const refusalSchema = z.object({
  message: z.string().optional(),
  retry_after_s: z.number().min(0).optional(),
});

/** Reads an error message from its headers and its body, which may be empty or no JSON. */
export function readRefusal(
  code: string,
  { error, data }: { readonly error: string | undefined; readonly data: Uint8Array },
): Refusal {
  const body = data.length === 0 ? undefined : decode(data, refusalSchema);
  const { message, retry_after_s: seconds } = body?.ok === true ? body.value : {};
  return {
    code: /^\d{3}$/.test(code) ? Number(code) : 500,
    description: message ?? error ?? "no reason given",
    retryAfterMs: seconds === undefined ? undefined : seconds * 1_000,
  };
}

export function writeRefusal(error: string, message: string, retryAfterMs: number | undefined): Uint8Array {
  const wait = retryAfterMs === undefined ? {} : { retry_after_s: Math.ceil(retryAfterMs / 1_000) };
  return encode({ error, message, ...wait });
}
