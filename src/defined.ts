// Leaves out fields without a value, because an absent field and an undefined field are different types here.

type Optional<Fields> = {
  [Name in keyof Fields]: undefined extends Fields[Name] ? Name : never;
}[keyof Fields];

/** The fields with a value; fields that may be undefined become optional. */
export type Defined<Fields> = { [Name in Exclude<keyof Fields, Optional<Fields>>]: Fields[Name] } & {
  [Name in Optional<Fields>]?: Exclude<Fields[Name], undefined>;
};

/** Fields that are absent or undefined. */
export type Widened<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | undefined };

export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Defined<Fields>;
}
