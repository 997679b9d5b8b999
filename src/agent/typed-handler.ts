// Turns the handler of a kind made by `defineKind` into a plain handler: it receives the checked input, and its
// result is checked before the report. An input that does not fit ends the task. A result that does not fit
// fails the attempt.

import { isGenerated, resultOf } from "./generated.ts";
import { type Handler, type HandlerContext, type HandlerTask, InvalidInputError } from "./handler.ts";
import { checkedJson, type HandlerResultOf, type TaskInputOf, type TypedKind } from "./typed-kind.ts";

/** A task of a typed kind. `input` is the payload after parsing by the input schema. */
export type TypedHandlerTask<Input> = HandlerTask & { readonly input: Input };

/** As `Handler`, typed by the kind. The return value is checked against the output schema and sent as JSON; so is the
 *  return value of a generator. */
export type TypedHandler<Kind extends TypedKind> = (
  task: TypedHandlerTask<TaskInputOf<Kind>>,
  context: HandlerContext,
) =>
  | HandlerResultOf<Kind>
  | Promise<HandlerResultOf<Kind>>
  | AsyncGenerator<unknown, HandlerResultOf<Kind>>
  | Generator<unknown, HandlerResultOf<Kind>>;

export function handlerOf<Kind extends TypedKind>(kind: Kind, handler: TypedHandler<Kind>): Handler {
  return async (task, context) => {
    const input = await checkedJson(task.text(), { schema: kind.input, what: "payload" });
    if (!input.ok) throw new InvalidInputError(input.message);
    const given = await handler(Object.assign(task, { input: input.value }), context);
    const result = isGenerated(given) ? await resultOf(given, context.emit, context.signal) : given;
    const json: string | undefined = JSON.stringify(result);
    if (json === undefined)
      throw new Error(`the handler of kind ${kind.name} returned no value that JSON can hold`);
    const output = await checkedJson(json, { schema: kind.output, what: "result" });
    if (!output.ok)
      throw new Error(`the result does not fit the output of kind ${kind.name}: ${output.message}`);
    return json;
  };
}
