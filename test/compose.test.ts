// docker-compose.yml is documentation that people run: its commands are held against the command line, its
// form against docker-compose. No container is started here.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { environmentVariables } from "../src/config/settings.ts";
import { hasProgram } from "./support/programs.ts";

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly restart?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly profiles?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
}

const root = fileURLToPath(new URL("..", import.meta.url));
const text = readFileSync(`${root}docker-compose.yml`, "utf8");
const { services } = parse(text, { merge: true }) as { services: Record<string, Service> };
const ours = Object.entries(services).filter(([, service]) => service.build !== undefined);

describe("docker-compose.yml", () => {
  test("has a server, a coordinator and agents, and by profile Prometheus and Grafana", () => {
    const names = Object.keys(services);
    expect(names.filter((name) => services[name]?.profiles === undefined)).toEqual([
      "nats",
      "coordinator",
      "agent",
    ]);
    expect(names.filter((name) => services[name]?.profiles?.[0] === "metrics")).toEqual([
      "prometheus",
      "grafana",
    ]);
    expect(ours.map(([name]) => name)).toEqual(["coordinator", "agent"]);
  });

  test("pins the server, gives it JetStream and asks for its health", () => {
    expect(services.nats?.image).toMatch(/^nats:\d+\.\d+\.\d+(-alpine)?$/);
    expect(services.nats?.command).toContain("--jetstream");
    expect(services.nats?.healthcheck?.test).toContain("http://127.0.0.1:8222/healthz");
  });

  test.each(ours)("%s waits for a healthy server and knows its address", (_, service) => {
    expect(service.depends_on).toEqual({ nats: { condition: "service_healthy" } });
    expect(service.environment?.NATS_URL).toBe("nats://nats:4222");
    for (const name of Object.keys(service.environment ?? {})) {
      expect(Object.values(environmentVariables)).toContain(name);
    }
  });

  test.each(ours)("%s is started again that ended because the server was away", (_, service) => {
    expect(service.restart).toBe("unless-stopped");
  });

  test("every port is published on loopback only", () => {
    const published = Object.values(services).flatMap(({ ports = [] }) => ports);
    expect(published.length).toBeGreaterThan(0);
    expect(published.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
  });

  test("every mounted file exists", () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) =>
      volumes.map((volume) => volume.split(":")[0] ?? "").filter((path) => path.startsWith("./")),
    );
    expect(mounted).toHaveLength(4);
    expect(mounted.filter((path) => !existsSync(`${root}${path}`))).toEqual([]);
  });

  test("Prometheus reads the port where the coordinator serves metrics", () => {
    const [, , address = ""] = services.coordinator?.command ?? [];
    const { scrape_configs } = parse(readFileSync(`${root}observability/prometheus.yml`, "utf8"));
    expect(scrape_configs[0].dns_sd_configs[0]).toMatchObject({ names: ["coordinator"], port: 9464 });
    expect(address).toBe("0.0.0.0:9464");
  });

  test("agents can be scaled: they are given neither a name nor a port of their own", () => {
    expect(services.agent).not.toHaveProperty("container_name");
    expect(services.agent).not.toHaveProperty("ports");
    expect(services.agent?.command).not.toContain("--id");
  });

  const commands = [...ours.map(([, { command }]) => command), ...commandsInComments()];

  test.each(commands.map((command) => ({ command, line: command.join(" ") })))(
    "waggle knows $line",
    ({ command }) => {
      const [verb = "", ...rest] = command;
      const help = helpOf(verb);
      for (const flag of rest.filter((word) => word.startsWith("--"))) expect(help).toContain(flag);
    },
  );

  test.runIf(hasProgram("docker-compose", "docker-compose.yml"))("docker-compose accepts it", () => {
    const checked = spawnSync("docker-compose", ["config", "--quiet"], { cwd: root, encoding: "utf8" });
    expect(`${checked.stdout}${checked.stderr}`).toBe("");
    expect(checked.status).toBe(0);
  });
});

/** `docker compose run --rm SERVICE VERB …` in the file's own comment. */
function commandsInComments(): string[][] {
  const found = [...text.matchAll(/^#\s+docker compose run --rm \w+ (.*)$/gm)].map(([, line = ""]) =>
    line.replace(/'[^']*'/g, "text").split(" "),
  );
  if (found.length === 0) throw new Error("the comment of docker-compose.yml shows no commands");
  return found;
}

function helpOf(verb: string): ReadonlySet<string> {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["bin/waggle.js", verb, "--help"], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`waggle ${verb} --help ended ${status}: ${stderr}`);
  return new Set(stdout.match(/--[a-z][a-z-]*/g));
}
