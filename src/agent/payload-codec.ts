// Seals payloads and results between submitters and agents, with keys that servers, coordinators and the journal never
// see. The codec is user code: it gets bytes and returns bytes. Not sealed: ids, kinds, attributes, errors.

import { InvalidConfigError } from "../errors.ts";
import { callback, objectOf } from "./options.ts";
import { resultText } from "./result-text.ts";

/** Where bytes belong; an authenticating codec binds them to it. */
export interface CodecContext {
  readonly of: "payload" | "result";
  readonly project: string;
  readonly task: string;
}

/** Both may return a promise. An error of `encode` or `decode` at an agent fails the attempt as invalid input. */
export interface PayloadCodec {
  /** Sealed bytes, which may be longer than the given. As base64 at most 256 KiB. A repeated submission of one task id
   *  is the same task only if `encode` returns the same bytes. */
  encode(bytes: Uint8Array, context: CodecContext): Uint8Array | Promise<Uint8Array>;
  /** The reverse of `encode`. Throws for bytes that it did not seal. */
  decode(bytes: Uint8Array, context: CodecContext): Uint8Array | Promise<Uint8Array>;
}

export const payloadCodec = objectOf<PayloadCodec>({
  each: { encode: callback(), decode: callback() },
  required: ["encode", "decode"],
  example: "{ encode, decode }",
});

/** Text as in a message; bytes as base64. */
export interface WireText {
  readonly text: string;
  readonly encoding?: "base64" | undefined;
}

/** The first byte of what is sealed says whether text or bytes follow. */
const TEXT = 0;
const BYTES = 1;

/** @throws the errors of the codec, InvalidConfigError when it returns no bytes */
export async function sealed(
  codec: PayloadCodec,
  { text, encoding }: WireText,
  context: CodecContext,
): Promise<{ readonly text: string; readonly encoding: "base64" }> {
  const content = Buffer.from(text, encoding ?? "utf8");
  const plain = Buffer.concat([Buffer.of(encoding === undefined ? TEXT : BYTES), content]);
  const bytes = checkedBytes("encode", await codec.encode(plain, context));
  return { text: Buffer.from(bytes).toString("base64"), encoding: "base64" };
}

/** @throws the errors of the codec, InvalidConfigError when it returns no bytes; Error for what was not sealed */
export async function opened(
  codec: PayloadCodec,
  { text, encoding }: WireText,
  context: CodecContext,
): Promise<WireText> {
  if (encoding === undefined) throw new Error(`the ${context.of} was not sealed by a codec`);
  const bytes = checkedBytes("decode", await codec.decode(Buffer.from(text, "base64"), context));
  const content = Buffer.from(bytes.subarray(1));
  if (bytes[0] === TEXT) return { text: content.toString("utf8") };
  if (bytes[0] === BYTES) return { text: content.toString("base64"), encoding: "base64" };
  throw new Error(`the ${context.of} was sealed by something else`);
}

/** A handler's value, sealed. Undefined stays no result. @throws UnusableResultError, and as `sealed` */
export async function sealedResult(
  codec: PayloadCodec,
  value: unknown,
  context: CodecContext,
): Promise<Uint8Array | undefined> {
  const { result, encoding } = resultText(value);
  if (result === undefined) return undefined;
  return Buffer.from((await sealed(codec, { text: result, encoding }, context)).text, "base64");
}

function checkedBytes(what: string, bytes: unknown): Uint8Array {
  if (bytes instanceof Uint8Array) return bytes;
  throw new InvalidConfigError(`codec.${what} must return a Uint8Array`, { field: `codec.${what}` });
}
