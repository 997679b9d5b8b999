// When snapshots are made, as far as variables say it that are no settings: nobody needs them but tests, and whoever
// set on the NATS server how soon it syncs.

import { InvalidConfigError } from "../errors.ts";
import { durationIn } from "./duration.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What is not said is absent. */
export interface SnapshotPace {
  readonly everyEvents?: number;
  /** In which the server syncs what it stores. */
  readonly snapshotSyncMs?: number;
}

/** @throws InvalidConfigError naming the variable that is wrong */
export function snapshotPace(env: Environment): SnapshotPace {
  const everyEvents = read(env, "WAGGLE_SNAPSHOT_EVENTS", countIn, "a number of events, from 1");
  const snapshotSyncMs = read(env, "WAGGLE_SNAPSHOT_SYNC", durationIn, "a duration such as 2m or 500ms");
  return {
    ...(everyEvents === undefined ? {} : { everyEvents }),
    ...(snapshotSyncMs === undefined ? {} : { snapshotSyncMs }),
  };
}

function countIn(text: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** An empty variable counts as absent, as it does for settings. */
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
