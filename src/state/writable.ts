/** A read-only type with its fields writable, for the code that builds a value. */
export type Writable<Of> = { -readonly [Key in keyof Of]: Of[Key] };
