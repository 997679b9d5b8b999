// Every setting with its value and origin, for a user who asks why a value applies. Not here: reading the sources and
// their precedence (settings.ts).

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
  /** Name in waggle.config.json: `swarm`, `credentials.tls.ca`. */
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
  "tokenKeyFile",
  "declarationsFile",
  "operatorConfig",
]);

/** `nats://user:password@host`: the part before the last @ of each URL is secret. */
function withoutSecrets(urls: string): string {
  return urls
    .split(",")
    .map((url) => url.replace(/^(\s*(?:[a-z]+:\/\/)?).*@/i, "$1***@"))
    .join(",");
}
