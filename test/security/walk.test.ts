// The commands of docs/security.md, run as they stand there, with a port of the test's own: a swarm with TLS, two
// projects and three groups. Then each holder works within its folder, in both modes.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { authModes } from "../../src/auth/roster.ts";
import { freePort } from "../../src/broker/free-port.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { startProcess } from "../support/secured-server.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

const page = fileURLToPath(new URL("../../docs/security.md", import.meta.url));
const [server] = natsServersFor("the walk of docs/security.md");

function commandsOfPage(): string[][] {
  const walk =
    /<!-- walk -->\n\n```sh\n([\s\S]+?)```\n\n<!-- end -->/.exec(readFileSync(page, "utf8"))?.[1] ?? "";
  return walk
    .trim()
    .split("\n")
    .map((line) => line.replace(/ &$/, "").split(" "));
}

type AtEnd = (end: () => Promise<void>) => void;

/** Runs the page's commands. @returns the running coordinator */
async function walk(workplace: Workplace, mode: string, atEnd: AtEnd): Promise<RunningWaggle> {
  const commands = commandsOfPage();
  expect(commands.length).toBeLessThanOrEqual(8);
  for (const [program, ...args] of commands) {
    if (program === "nats-server") {
      const { stop } = await startProcess(server?.path ?? "", join(workplace.folder, args.at(-1) ?? ""));
      atEnd(stop);
    } else if (args[0] === "up") {
      const coordinator = workplace.start(...args);
      await coordinator.says("leading");
      return coordinator;
    } else {
      const more = args[1] === "init" ? ["--port", String(await freePort()), "--mode", mode] : [];
      expect(await workplace.runVerb(...args, ...more)).toMatchObject({ code: 0, stderr: "" });
    }
  }
  throw new Error("the page starts no coordinator");
}

describe.runIf(server !== undefined)("the walk of docs/security.md", () => {
  // Concurrent: in one mode an agent waits until the refusal of its credential counts as final.
  it.concurrent.for(authModes)(
    "makes a swarm of two projects and three groups, in mode %s",
    { timeout: 180_000 },
    async (mode, { onTestFinished }) => {
      const workplace = await Workplace.make(server?.path);
      onTestFinished(() => workplace.clear());
      const coordinator = await walk(workplace, mode, onTestFinished);
      const as = (name: string) => ["--config", `.waggle/auth/credentials/acme/${name}/waggle.config.json`];
      const agents = ["gpu", "cpu", "people"].map((group) =>
        workplace.start(
          "agent",
          ...as(group),
          "--group",
          group,
          "--kind",
          `${group}-work`,
          "--exec",
          "wc -w",
        ),
      );
      for (const agent of agents) await agent.says("joined");
      // What the roster says is in force, although no credential was made while a coordinator ran.
      await expect
        .poll(async () => (await workplace.runVerb("policy", "show", "--json", ...as("operator"))).stdout)
        .toMatch(/"agents":"declared".*"security":"strict"|"security":"strict".*"agents":"declared"/);
      const grants = await workplace.runVerb("grant", "list", ...as("operator"));
      for (const group of ["gpu", "cpu", "people"]) expect(grants.stdout).toContain(group);
      const submit = (project: string, ...more: string[]) =>
        workplace.runVerb("submit", ...as(`${project}-submitter`), "--text", "a b c", "--wait", ...more);

      expect(await submit("web", "--kind", "gpu-work")).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/3\n$/),
      });
      expect(await submit("search", "--kind", "people-work")).toMatchObject({ code: 0 });
      expect(await submit("web", "--kind", "cpu-work", "--project", "search")).toMatchObject({
        code: 5,
        stderr: expect.stringContaining("WAGGLE_FORBIDDEN"),
      });
      const intruder = workplace.start(
        "agent",
        ...as("gpu"),
        "--group",
        "cpu",
        "--kind",
        "x",
        "--exec",
        "cat",
      );
      expect((await intruder.finished).stderr).toContain("WAGGLE_FORBIDDEN");

      const owner = await workplace.runVerb("auth", "add", "owner", "--swarm", "acme", "--project", "web");
      expect(owner).toMatchObject({ code: 0, stdout: expect.stringContaining("knows the inbox") });
      expect(await workplace.runVerb("pause", "web", ...as("web-owner"))).toMatchObject({ code: 0 });
      expect(await workplace.runVerb("resume", "web", ...as("web-owner"))).toMatchObject({
        code: 0,
        stderr: "",
      });

      const bounded = await workplace.runVerb("auth", "rotate", "cpu", "--swarm", "acme");
      expect(bounded).toMatchObject({ code: 0, stdout: expect.stringContaining("has reloaded") });
      const revoked = await workplace.runVerb("auth", "revoke", "gpu", "--swarm", "acme");
      expect(revoked).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("the server has disconnected the holder"),
        stderr: expect.stringContaining("has taken back the attempts"),
      });
      const status = await workplace.runVerb("status", ...as("operator"));
      expect(status).toMatchObject({ code: 0, stdout: expect.stringMatching(/-people-work-/) });
      await expect
        .poll(async () => (await workplace.runVerb("grant", "show", "gpu", ...as("operator"))).stdout)
        .toMatch(/max concurrent +0/);
      // A busy machine answers late: the verb waits, and says so.
      coordinator.child.kill("SIGSTOP");
      const adding = workplace.start("auth", "add", "agent", "--swarm", "acme", "--group", "gpu");
      await adding.says("no leader answers yet");
      coordinator.child.kill("SIGCONT");
      const again = await adding.finished;
      expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("the leader knows the grant") });
      const renewed = workplace.start(
        "agent",
        ...as("gpu"),
        "--group",
        "gpu",
        "--kind",
        "gpu-work",
        "--exec",
        "wc -w",
      );
      await renewed.says("joined");
      // The agent of the revoked credential, which ran from the folder on this machine.
      expect(await agents[0]?.finished).toMatchObject({
        code: 5,
        stderr: expect.stringMatching(/WAGGLE_(?:UNAUTHORIZED|FORBIDDEN)/),
      });
      expect(await submit("web", "--kind", "gpu-work")).toMatchObject({ code: 0 });
    },
  );
});
