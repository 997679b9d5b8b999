// Every setting with its value and where that came from, for a user who asks why a setting holds.
// Not here: how the sources are read and which wins (settings.ts).

import { resolve } from "node:path";
import {
  environmentVariables,
  loadSettings,
  type SettingName,
  type SettingOrigin,
  type SettingsSources,
  settingLayers,
} from "./settings.ts";

export interface SettingInForce {
  /** As waggle.config.json calls it: `swarm`, `credentials.tls.ca`. */
  readonly setting: string;
  /** Paths are absolute; user names, passwords and tokens within URLs are `***`. Null: nothing is set. */
  readonly value: string | null;
  readonly origin: SettingOrigin;
}

/** In the order of waggle.config.json.
 *  @throws InvalidConfigError naming the flag, the variable or the field that is wrong */
export function settingsInForce(sources: SettingsSources): SettingInForce[] {
  const settings = loadSettings(sources);
  const layers = settingLayers(sources);
  const defaults: Partial<Record<SettingName, string>> = {
    swarm: settings.swarm,
    project: settings.project,
    user: settings.user,
    dataFolder: settings.dataFolder,
    leaderTimeout: "3s",
    replicas: "1",
    retain: "7d,7GiB",
  };
  const isOverruled = (name: SettingName) =>
    (name === "nats" || name === "natsContext") && settings[name] === undefined;
  return (Object.keys(environmentVariables) as SettingName[]).map((name): SettingInForce => {
    const setting = fieldNames[name] ?? name;
    const layer = layers.find(({ values }) => values[name] !== undefined);
    if (layer === undefined || isOverruled(name))
      return { setting, value: defaults[name] ?? null, origin: { kind: "default" } };
    const said = String(layer.values[name]);
    const value = pathNames.has(name) ? resolve(layer.folder, said) : said;
    return { setting, value: name === "nats" ? withoutSecrets(value) : value, origin: layer.originOf(name) };
  });
}

const fieldNames: Partial<Record<SettingName, string>> = {
  creds: "credentials.creds",
  nkey: "credentials.nkey",
  tlsCa: "credentials.tls.ca",
  tlsCert: "credentials.tls.cert",
  tlsKey: "credentials.tls.key",
};
const pathNames: ReadonlySet<SettingName> = new Set([
  "creds",
  "nkey",
  "tlsCa",
  "tlsCert",
  "tlsKey",
  "dataFolder",
]);

/** `nats://user:password@host`: what stands before the last @ of each URL is for the server alone. */
function withoutSecrets(urls: string): string {
  return urls
    .split(",")
    .map((url) => url.replace(/^(\s*(?:[a-z]+:\/\/)?).*@/i, "$1***@"))
    .join(",");
}
