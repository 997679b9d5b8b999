// JSON Merge Patch (RFC 7396): what changed between two states of a view. Tables are records by id, so that a change of
// one row is a small patch. No state contains null, which a patch uses for a removed key.

type Json = Readonly<Record<string, unknown>>;

/** The patch from one value to the next; undefined if both are equal. Arrays are replaced as a whole. */
export function patchBetween(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return isEqual(before, after) ? undefined : after;
  const patch: Record<string, unknown> = {};
  let isChanged = false;
  for (const [name, value] of Object.entries(after)) {
    if (value === undefined) continue;
    const change = patchBetween(own(before, name), value);
    if (change === undefined) continue;
    define(patch, name, change);
    isChanged = true;
  }
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined || own(after, name) !== undefined) continue;
    define(patch, name, null);
    isChanged = true;
  }
  return isChanged ? patch : undefined;
}

/** The next value. Neither argument changes. */
export function patched(before: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const after: Record<string, unknown> = isObject(before) ? { ...before } : {};
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete after[name];
    else define(after, name, patched(own(after, name), change));
  }
  return after;
}

/** Ids of rows come from users: `__proto__` and `constructor` are ids like any others. */
function own(value: Json, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEqual(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((each, at) => isEqual(each, other[at]));
  return isObject(one) && isObject(other) && patchBetween(one, other) === undefined;
}
