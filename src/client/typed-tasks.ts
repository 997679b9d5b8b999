// The submitter's checks of typed kinds: the payload before sending, the result on arrival.

import { checkedJson, type InferredOutput, type TypedKind } from "../agent/typed-kind.ts";
import { wordsOf } from "../agent/words.ts";
import { InvalidMessageError } from "../errors.ts";

/** @throws InvalidMessageError with the path of each problem, and where the schema itself throws */
export async function checkedAt<Schema extends TypedKind["input"]>(
  what: "payload" | "result",
  json: string,
  schema: Schema,
  suffix = "",
): Promise<InferredOutput<Schema>> {
  const checked = await checkedJson(json, { schema, what }).catch((cause: unknown) => {
    throw new InvalidMessageError(`${what}: its schema threw: ${wordsOf(cause)}`, { cause, field: what });
  });
  if (checked.ok) return checked.value;
  throw new InvalidMessageError(`${checked.message}${suffix}`, { field: checked.field });
}
