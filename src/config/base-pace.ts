// When bases are made, from environment variables that are no settings: only for tests, and for operators who
// changed the sync interval of the NATS server.

import { InvalidConfigError } from "../errors.ts";
import { durationIn } from "./duration.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Unset values are absent. */
export interface BasePace {
  readonly everyEvents?: number;
  /** Time until a base counts as stored: the sync interval of the server. No next base is due before. */
  readonly baseSyncMs?: number;
}

/** @throws InvalidConfigError naming the wrong variable */
export function basePace(env: Environment): BasePace {
  const everyEvents = read(env, "WAGGLE_BASE_EVENTS", countIn, "a number of events, from 1");
  const baseSyncMs = read(env, "WAGGLE_BASE_SYNC", durationIn, "a duration such as 2m or 500ms");
  return {
    ...(everyEvents === undefined ? {} : { everyEvents }),
    ...(baseSyncMs === undefined ? {} : { baseSyncMs }),
  };
}

function countIn(text: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** An empty variable counts as absent, as in settings. */
function read(
  env: Environment,
  name: string,
  valueIn: (text: string) => number | undefined,
  what: string,
): number | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  const value = valueIn(text);
  if (value === undefined) throw new InvalidConfigError(`${name}: must be ${what}`, { field: name });
  return value;
}
