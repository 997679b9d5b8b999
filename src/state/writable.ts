/** A read-only type with writable fields, for code to build a value. */
export type Writable<Of> = { -readonly [Key in keyof Of]: Of[Key] };
