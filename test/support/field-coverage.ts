// Which fields of a schema a property test never made or never changed. A field that is added to a schema later fails
// the test until the test makes it.

import * as z from "zod";
import { fieldPath } from "./mutator.ts";

/** Paths of all fields and items that a message of the schema may have: `tasks`, `tasks[]`, `tasks[].kind`. Fields of a
 *  record have no paths, because the schema does not name them.
 *  @throws for a schema that says nothing about its values, or that this function does not know */
export function fieldsOf(schema: z.ZodType, path = ""): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return fieldsOf(schema.unwrap() as z.ZodType, path);
  if (schema instanceof z.ZodObject)
    return Object.entries(schema.shape).flatMap(([name, field]) => {
      const inner = fieldPath(path, name, false);
      return [inner, ...fieldsOf(field as z.ZodType, inner)];
    });
  if (schema instanceof z.ZodArray) {
    const inner = fieldPath(path, "", true);
    return [inner, ...fieldsOf(schema.element as z.ZodType, inner)];
  }
  if (schema instanceof z.ZodUnion)
    return schema.options.flatMap((option) => fieldsOf(option as z.ZodType, path));
  if (!valueTypes.has(schema.type)) throw new Error(`fields of a schema of the type ${schema.type}`);
  return [];
}

/** Types of schemas without fields of their own. */
const valueTypes: ReadonlySet<string> = new Set(["string", "number", "boolean", "literal", "enum", "record"]);

export class FieldCoverage {
  readonly #notMade: Set<string>;
  readonly #notChanged: Set<string>;

  constructor(schema: z.ZodType) {
    this.#notMade = new Set(fieldsOf(schema));
    this.#notChanged = new Set(this.#notMade);
  }

  /** Notes the fields of a message that was not changed. */
  noteMade(message: object): void {
    if (this.#notMade.size > 0) this.#noteFields(message, "");
  }

  /** Notes the changes of a message. Several changes count for no field, because each may hide the others. */
  noteChanged(paths: readonly string[]): void {
    const [path, ...others] = paths;
    if (path !== undefined && others.length === 0) this.#notChanged.delete(path);
  }

  /** What is missing, in words; empty when every field was made, and was the only change of a message. */
  get missing(): readonly string[] {
    return [
      ...[...this.#notMade].map((path) => `${path}: never made`),
      ...[...this.#notChanged].map((path) => `${path}: never changed alone`),
    ];
  }

  #noteFields(owner: object, path: string): void {
    for (const [key, value] of Object.entries(owner)) {
      const inner = fieldPath(path, key, Array.isArray(owner));
      this.#notMade.delete(inner);
      if (typeof value === "object" && value !== null) this.#noteFields(value, inner);
    }
  }
}
