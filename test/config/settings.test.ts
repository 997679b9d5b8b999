// Sources of settings, their precedence, and errors.

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { configJsonSchema } from "../../src/config/json-schema.ts";
import { retentionWarning } from "../../src/config/retention.ts";
import { settingsInForce } from "../../src/config/setting-origins.ts";
import { loadSettings, programSettings, type SettingsSources } from "../../src/config/settings.ts";
import { InvalidConfigError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";

function aFolder(config?: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), "waggle-config-"));
  const text = typeof config === "string" ? config : JSON.stringify(config);
  if (config !== undefined) writeFileSync(join(folder, "waggle.config.json"), text);
  return folder;
}

function settings(sources: Partial<SettingsSources>) {
  return loadSettings({ flags: {}, env: {}, cwd: sources.cwd ?? aFolder(), ...sources });
}

function errorOf(sources: Partial<SettingsSources>): InvalidConfigError {
  try {
    settings(sources);
  } catch (error) {
    if (error instanceof InvalidConfigError) return error;
  }
  throw new Error("nothing was refused");
}

describe("settings", () => {
  it("have defaults", () => {
    const cwd = aFolder();
    expect(settings({ cwd })).toMatchObject({
      nats: undefined,
      natsContext: undefined,
      credentials: undefined,
      swarm: "default",
      project: "default",
      dataFolder: join(cwd, ".waggle"),
      logLevel: undefined,
    });
    expect(settings({ cwd }).user).toMatch(/^\S+$/);
  });

  it("come from flags before the environment before the file", () => {
    const cwd = aFolder({ swarm: "file", project: "file", user: "file" });
    const env = { WAGGLE_SWARM: "env", WAGGLE_PROJECT: "env" };
    expect(settings({ cwd, env, flags: { swarm: "flag" } })).toMatchObject({
      swarm: "flag",
      project: "env",
      user: "file",
    });
  });

  it("take how long a leader may be silent as a duration, within bounds", () => {
    expect(settings({ flags: { leaderTimeout: "1s" } }).leaderTimeoutMs).toBe(1_000);
    expect(settings({ env: { WAGGLE_LEADER_TIMEOUT: "500ms" } }).leaderTimeoutMs).toBe(500);
    expect(settings({ cwd: aFolder({ leaderTimeout: "10s" }) }).leaderTimeoutMs).toBe(10_000);
    for (const wrong of ["3", "499ms", "11s", "soon", "-1s"])
      expect(errorOf({ flags: { leaderTimeout: wrong } }).message).toBe(
        "--leader-timeout: must be a duration from 500 ms to 10 s, like 1s",
      );
  });

  it("say what a coordinator's id begins with, or nothing", () => {
    expect(settings({ flags: { name: "north" } }).name).toBe("north");
    expect(settings({ env: { WAGGLE_NAME: "north" } }).name).toBe("north");
    expect(settings({ cwd: aFolder({ name: "north" }) }).name).toBe("north");
    expect(settings({}).name).toBeUndefined();
    for (const wrong of ["", "a.b", "a b", "n".repeat(65)])
      expect(errorOf({ flags: { name: wrong } }).message).toBe(
        "--name: must be 1–64 characters of A–Z a–z 0–9 _ -",
      );
  });

  it.each(["nats", "swarm", "user", "dataFolder", "leaderTimeout", "retain", "logLevel"])(
    "name the required type of %s in the file, if the value is no text",
    (name) => {
      expect(errorOf({ cwd: aFolder({ [name]: 5 }) }).message).toMatch(
        new RegExp(`waggle\\.config\\.json: ${name}: must be `),
      );
    },
  );

  it("keep so long, so much, or the less of both of the journal", () => {
    const forever = Number.POSITIVE_INFINITY;
    expect(settings({}).retention).toEqual({ ageMs: 7 * 86_400_000, bytes: 7 * 1024 ** 3 });
    expect(settings({ flags: { retain: "1d" } }).retention).toEqual({ ageMs: 86_400_000, bytes: forever });
    expect(settings({ env: { WAGGLE_RETAIN: "1.5GiB" } }).retention).toEqual({
      ageMs: forever,
      bytes: 1.5 * 1024 ** 3,
    });
    expect(settings({ cwd: aFolder({ retain: "30d, 2TB" }) }).retention).toEqual({
      ageMs: 30 * 86_400_000,
      bytes: 2e12,
    });
    for (const wrong of ["", "7", "7d,8d", "1GiB,2GiB", "much", "7d,"])
      expect(errorOf({ cwd: aFolder({ retain: wrong }) }).message).toContain(
        "must be one duration, one size, or both separated by a comma: 7d, 10GiB, 7d,10GiB",
      );
  });

  it("permit plain secrets only by flag or variable", () => {
    expect(settings({}).insecure).toBe(false);
    expect(settings({ flags: { insecure: true } }).insecure).toBe(true);
    expect(settings({ env: { WAGGLE_INSECURE: "1" } }).insecure).toBe(true);
    expect(settings({ env: { WAGGLE_INSECURE: "" } }).insecure).toBe(false);
    expect(errorOf({ env: { WAGGLE_INSECURE: "yes" } }).message).toBe("WAGGLE_INSECURE: must be 1, or unset");
  });

  it("warn about a very small retention", () => {
    for (const little of ["0s", "59m", "1KiB", "7d,1MiB", "1s,1GiB"])
      expect(retentionWarning(settings({ flags: { retain: little } }).retention)).toContain(
        "are removed soon",
      );
    for (const enough of ["1h", "16MiB", "7d,10GiB"])
      expect(retentionWarning(settings({ flags: { retain: enough } }).retention)).toBeUndefined();
  });

  it("take on how many servers the journal is kept from a flag, a variable or the file", () => {
    expect(settings({ flags: { replicas: "3" } }).replicas).toBe(3);
    expect(settings({ env: { WAGGLE_REPLICAS: "5" } }).replicas).toBe(5);
    expect(settings({ cwd: aFolder({ replicas: 3 }) }).replicas).toBe(3);
    for (const wrong of ["0", "6", "three", "1.5", "-1"])
      expect(errorOf({ flags: { replicas: wrong } }).message).toBe(
        "--replicas: must be a whole number from 1 to 5: the number of servers that store the journal",
      );
    expect(errorOf({ cwd: aFolder({ replicas: true }) }).message).toContain(
      "replicas: must be a whole number",
    );
  });

  it("take an empty variable for an absent one", () => {
    expect(settings({ env: { WAGGLE_SWARM: "", NATS_URL: "" } })).toMatchObject({
      swarm: "default",
      nats: undefined,
    });
  });

  it("let the highest source decide between a URL and a context", () => {
    const cwd = aFolder({ nats: "nats://file:4222" });
    const env = { NATS_URL: "nats://env:4222" };
    expect(settings({ cwd, env, flags: { natsContext: "mine" } })).toMatchObject({
      nats: undefined,
      natsContext: "mine",
    });
    expect(settings({ cwd, env })).toMatchObject({ nats: "nats://env:4222", natsContext: undefined });
  });

  it("refuse a URL and a context from one source, by its own names", () => {
    const { message } = errorOf({ flags: { nats: "nats://a", natsContext: "b" } });
    expect(message).toContain("--nats and --nats-context");
  });

  it("resolve paths against the naming file or folder", () => {
    const folder = aFolder({
      dataFolder: "swarm",
      credentials: { creds: "me.creds", tls: { ca: "/etc/ca.pem" } },
    });
    const cwd = aFolder();
    const found = settings({ cwd, flags: { config: join(folder, "waggle.config.json") } });
    expect(found.dataFolder).toBe(join(folder, "swarm"));
    expect(found.credentials).toEqual({ creds: join(folder, "me.creds"), tls: { ca: "/etc/ca.pem" } });
    expect(settings({ cwd, env: { WAGGLE_DATA_FOLDER: "here" } }).dataFolder).toBe(join(cwd, "here"));
  });

  it.each([
    ["a flag", { flags: { swarm: "a.b" } }, "--swarm", "A–Z"],
    ["a variable", { env: { WAGGLE_USER: "ann lee" } }, "WAGGLE_USER", "without spaces"],
    ["a log level", { env: { WAGGLE_LOG_LEVEL: "loud" } }, "WAGGLE_LOG_LEVEL", "must be one of silent, "],
    ["an empty URL", { flags: { nats: "" } }, "--nats", "must be the URL of a NATS server"],
    ["an empty context", { flags: { natsContext: "" } }, "--nats-context", "must be the name of a context"],
    [
      "an empty path",
      { flags: { tlsCa: "" } },
      "--tls-ca",
      "must be the path of a certificate, like ./ca.pem",
    ],
    ["an empty folder", { flags: { dataFolder: "" } }, "--data-folder", "must be the path of a folder"],
    ["a coordinator's name", { env: { WAGGLE_NAME: "a.b" } }, "WAGGLE_NAME", "A–Z"],
    ["a field", { cwd: aFolder({ project: "a b" }) }, "project", "A–Z"],
    [
      "a nested field",
      { cwd: aFolder({ credentials: { tls: { ca: 1 } } }) },
      "credentials.tls.ca",
      "the path of",
    ],
    ["a setting that does not exist", { cwd: aFolder({ swrm: "x" }) }, "swrm", "is no setting"],
  ])("name %s that is wrong", (_, sources, field, sentence) => {
    const error = errorOf(sources);
    expect(error.field).toBe(field);
    expect(error.message).toContain(field);
    expect(error.message).toContain(sentence);
  });

  it("say where a file is not JSON, and that a named one is missing", () => {
    expect(errorOf({ cwd: aFolder("{ swarm: }") }).message).toContain("waggle.config.json is not JSON");
    expect(errorOf({ env: { WAGGLE_CONFIG: "nowhere.json" } }).message).toContain("there is no such file");
  });

  it("accept the schema's own name in the file", () => {
    expect(settings({ cwd: aFolder({ $schema: "./waggle.schema.json", swarm: "s" }) }).swarm).toBe("s");
  });
});

describe("waggle.schema.json", () => {
  it("is what the schema says (else: tsx scripts/config-schema.ts)", () => {
    const file = readFileSync(new URL("../../waggle.schema.json", import.meta.url), "utf8");
    expect(JSON.parse(file)).toEqual(configJsonSchema());
  });
});

describe("settings of a program", () => {
  const of = (sources: Partial<Parameters<typeof programSettings>[0]>) =>
    programSettings({ options: {}, env: {}, cwd: aFolder(), ...sources });

  it("come from options before the environment, and from no file", () => {
    const cwd = aFolder({ swarm: "file", project: "file", user: "file" });
    const env = { WAGGLE_SWARM: "env", NATS_URL: "nats://env", WAGGLE_DATA_FOLDER: "there" };
    expect(of({ cwd, env, options: { swarm: "option", natsContext: undefined } })).toMatchObject({
      nats: "nats://env",
      natsContext: undefined,
      swarm: "option",
      project: "default",
      user: undefined,
      dataFolder: join(cwd, "there"),
    });
  });

  it("name one server, whatever the environment names besides", () => {
    const env = { NATS_URL: "nats://env", NATS_CREDS: "env.creds" };
    const cwd = aFolder();
    expect(of({ cwd, env, options: { natsContext: "mine" } })).toMatchObject({
      nats: undefined,
      natsContext: "mine",
      credentials: { creds: join(cwd, "env.creds") },
    });
  });

  it("have nothing to do with the log", () => {
    expect(of({ env: { WAGGLE_LOG_LEVEL: "loud" } })).toMatchObject({ swarm: "default" });
  });
});

it("a file of settings that is not UTF-8 is refused by file and line", () => {
  const cwd = aFolder();
  writeFileSync(join(cwd, "waggle.config.json"), Buffer.from('{\n"swarm": "caf\xe9"}', "latin1"));
  expect(errorOf({ cwd }).message).toContain("waggle.config.json:2: not UTF-8");
});

describe("settings with their origin", () => {
  it("name the flag, the variable, the file, or the default", () => {
    const cwd = aFolder({ project: "reports", swarm: "file", credentials: { tls: { ca: "./ca.pem" } } });
    const found = settingsInForce({
      cwd,
      env: { WAGGLE_SWARM: "env", WAGGLE_USER: "ann" },
      flags: { user: "bob" },
    });
    const file = { kind: "file", name: join(cwd, "waggle.config.json") };
    expect(found).toEqual(
      expect.arrayContaining([
        { setting: "nats", value: null, origin: { kind: "default" } },
        { setting: "credentials.tls.ca", value: join(cwd, "ca.pem"), origin: file },
        { setting: "swarm", value: "env", origin: { kind: "environment", name: "WAGGLE_SWARM" } },
        { setting: "project", value: "reports", origin: file },
        { setting: "user", value: "bob", origin: { kind: "flag", name: "--user" } },
        { setting: "dataFolder", value: join(cwd, ".waggle"), origin: { kind: "default" } },
      ]),
    );
  });

  it("show no password or token, and only the server that is used", () => {
    const env = { NATS_URL: "nats://ann:s3cret@a:4222,tls://t0ken@b:4222,c:4222" };
    const found = settingsInForce({ cwd: aFolder({ natsContext: "production" }), env, flags: {} });
    const values = Object.fromEntries(found.map(({ setting, value }) => [setting, value]));
    expect(values).toMatchObject({ nats: "nats://***@a:4222,tls://***@b:4222,c:4222", natsContext: null });
  });

  it("have the defaults that settings have", () => {
    const cwd = aFolder();
    const values = Object.fromEntries(
      settingsInForce({ cwd, env: {}, flags: {} }).map(({ setting, value }) => [setting, value]),
    );
    const spelt = settings({ cwd, env: { WAGGLE_RETAIN: values["retain"] ?? "" } });
    expect(spelt.retention).toEqual(settings({ cwd }).retention);
    expect(values).toMatchObject({
      leaderTimeout: `${limits.leaderTimeoutMs / 1000}s`,
      replicas: "1",
    });
  });

  it("are refused as settings are", () => {
    expect(() => settingsInForce({ cwd: aFolder(), env: { WAGGLE_SWARM: "a b" }, flags: {} })).toThrow(
      "WAGGLE_SWARM",
    );
  });
});
