// A tool: the description for the model, the check of the arguments, and the call of the swarm.

import * as z from "zod";
import { readerOf } from "../../agent/options.ts";
import type { Swarm } from "../../client/swarm.ts";
import type { Answer } from "./answer.ts";

/** Surroundings of one call. */
export interface ToolContext {
  /** Connects at the first use. @throws UnreachableError */
  readonly swarm: () => Promise<Swarm>;
  /** The project of calls that name none, for a user that may ask about no other. */
  readonly onlyProject?: string | undefined;
  /** Aborted when the client cancels the call, or is gone. */
  readonly signal: AbortSignal;
  /** Reports progress of a long call. Undefined: the client asked for none. */
  readonly report: ((message: string) => void) | undefined;
}

export interface ToolDefinition<Input extends object> {
  readonly name: string;
  readonly title: string;
  /** For the model: effect, answer, and the next tool to call. */
  readonly description: string;
  /** Changes the swarm: left out of a read-only server. */
  readonly changes: boolean;
  /** The change cannot be undone. */
  readonly isDestructive?: boolean;
  readonly each: { readonly [Name in keyof Input]-?: z.ZodType<Input[Name]> };
  readonly required?: readonly (keyof Input & string)[];
  /** Common wrong names of arguments. */
  readonly otherwise?: Readonly<Record<string, string>>;
  /** Valid arguments, for the refusal of a value of another type. */
  readonly example: string;
  run(input: Input, context: ToolContext): Promise<Answer>;
}

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly changes: boolean;
  readonly isDestructive: boolean;
  /** JSON Schema of the arguments. */
  readonly inputSchema: { readonly type: "object"; readonly [keyword: string]: unknown };
  /** @throws InvalidMessageError naming the argument, and the errors of the swarm */
  call(given: unknown, context: ToolContext): Promise<Answer>;
}

export function toolOf<Input extends object>(definition: ToolDefinition<Input>): Tool {
  const { name, title, description, changes, isDestructive = false, each, required = [] } = definition;
  const { otherwise = {}, example } = definition;
  const read = readerOf<Input>({ each, required, otherwise, example, subject: "the arguments:" });
  return {
    ...{ name, title, description, changes, isDestructive },
    inputSchema: schemaOf(each, required),
    call: async (given, context) => {
      const { onlyProject } = context;
      const defaults = onlyProject !== undefined && "project" in each ? { project: onlyProject } : {};
      return await definition.run({ ...defaults, ...read(name, given) }, context);
    },
  };
}

function schemaOf(
  each: Readonly<Record<string, z.ZodType>>,
  required: readonly string[],
): Tool["inputSchema"] {
  const shape = Object.fromEntries(
    Object.entries(each).map(([name, schema]) => [
      name,
      required.includes(name) ? schema : schema.optional(),
    ]),
  );
  const { $schema: _, ...schema } = z.toJSONSchema(z.strictObject(shape), {
    io: "input",
    override: ({ jsonSchema }) => {
      // zod's bounds of every integer say nothing to a model
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return { ...schema, type: "object" };
}
