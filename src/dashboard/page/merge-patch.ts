// JSON Merge Patch (RFC 7396). The old value does not change, and the new value shares all unchanged parts.

type Json = Readonly<Record<string, unknown>>;

export function mergePatch(value: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Record<string, unknown> = isObject(value) ? { ...value } : {};
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete merged[name];
    else if (Object.hasOwn(merged, name)) merged[name] = mergePatch(merged[name], change);
    else define(merged, name, mergePatch(undefined, change));
  }
  return merged;
}

/** `__proto__` is a valid name of a task. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
