// The interface that schema libraries share (https://standardschema.dev, version 1; MIT licence, Colin McDonnell):
// zod, valibot and arktype implement it, so this package depends on none of them here. Only the part that is used.

export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema takes. */
export type InputOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["input"];
/** What a schema makes of it. */
export type OutputOf<Schema extends StandardSchema> = NonNullable<Schema["~standard"]["types"]>["output"];
