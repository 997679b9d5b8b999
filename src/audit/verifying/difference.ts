// Where two JSON values differ, for people.

const DIFFERENCES_MAX = 10;

export interface Difference {
  /** `events[0].receipt.feasible` */
  readonly path: string;
  /** Undefined if the field did not exist. */
  readonly was: unknown;
  readonly is: unknown;
}

/** At most ten, in the order of the fields. */
export function differencesOf(was: unknown, is: unknown): readonly Difference[] {
  return [...differences("", was, is)].slice(0, DIFFERENCES_MAX);
}

function* differences(path: string, was: unknown, is: unknown): Generator<Difference> {
  if (Object.is(was, is)) return;
  if (!isTree(was) || !isTree(is) || Array.isArray(was) !== Array.isArray(is)) {
    yield { path, was, is };
    return;
  }
  const keys = new Set([...Object.keys(was), ...Object.keys(is)]);
  for (const key of keys) {
    const at = Array.isArray(was) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    yield* differences(at, was[key], is[key]);
  }
}

function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
