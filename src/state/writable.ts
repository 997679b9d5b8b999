/** What is read only once it is made, while it is made. */
export type Writable<Of> = { -readonly [Key in keyof Of]: Of[Key] };
