// `waggle auth` without a server: its files, and its refusals. On servers: test/security.

import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tokenKeyIn } from "../../src/cli/token-key.ts";
import { aShell, runIn } from "./shell.ts";

let cwd: string;
const auth = (...args: string[]) => runIn(aShell({ cwd }), "auth", ...args);
const secretOf = (name: string) =>
  readFileSync(join(cwd, ".waggle/auth/credentials/default", name, `${name}.nk`), "utf8");

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), "waggle-auth-"));
  expect(await auth("init")).toMatchObject({ code: 0, stderr: "" });
  expect(await auth("add", "agent", "--group", "gpu")).toMatchObject({ code: 0 });
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

describe("waggle auth", () => {
  it("protects folder and secrets from other users", () => {
    const modeOf = (path: string) => statSync(join(cwd, ".waggle/auth", path)).mode & 0o777;
    expect(modeOf("")).toBe(0o700);
    for (const file of ["auth.json", "ca.key", "server.key", "credentials/default/gpu/gpu.nk"])
      expect(modeOf(file)).toBe(0o600);
  });

  it("prints no secret, and writes none into the server's configuration", async () => {
    const { stdout } = await auth("show", "gpu", "--json");
    const config = readFileSync(join(cwd, ".waggle/auth/nats-server.conf"), "utf8");
    for (const text of [stdout, config]) expect(text).not.toContain(secretOf("gpu").trim());
  });

  it("names the subjects of services with a credential, and keeps them when its key is rotated", async () => {
    const prompt = "agents.prompt.waggle.ann.count";
    const added = await auth(
      ...["add", "submitter", "--project", "web", "--name", "counter"],
      ...["--serve", "svc.count", "--serve", prompt, "--call", "svc.other"],
    );
    expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining("serve nats") });
    expect(await auth("rotate", "counter")).toMatchObject({ code: 0 });
    const { permissions } = JSON.parse((await auth("show", "counter", "--json")).stdout);
    expect(permissions.subscribe).toEqual(
      expect.arrayContaining(["svc.count", prompt, "agents.status.waggle.ann.count", "$SRV.>"]),
    );
    expect(permissions.publish).toEqual(expect.arrayContaining(["svc.other", "agents.hb.waggle.ann.count"]));
    expect(permissions.publish).not.toContain("svc.count");
    const printed = await auth("print", "--role", "submitter", "--project", "web", "--serve", "svc.count");
    expect(printed.stdout).toContain("allow_responses");
  });

  it("replaces the key of a rotated credential", async () => {
    const before = secretOf("gpu");
    expect(await auth("rotate", "gpu")).toMatchObject({ code: 0 });
    expect(secretOf("gpu")).not.toBe(before);
  });

  it("gives every coordinator one key of the attempts' tokens, and nobody else", async () => {
    const folder = join(cwd, ".waggle/auth/credentials/default");
    const keyOf = (name: string) => readFileSync(join(folder, name, "token.key"), "utf8");
    const config = JSON.parse(readFileSync(join(folder, "coordinator/waggle.config.json"), "utf8"));
    expect(config.tokenKeyFile).toBe("./token.key");
    expect(tokenKeyIn(join(folder, "coordinator/token.key")).length).toBe(64);
    expect(await auth("add", "coordinator", "--name", "second")).toMatchObject({ code: 0 });
    expect(keyOf("second")).toBe(keyOf("coordinator"));
    for (const name of ["gpu", "operator"])
      expect(readdirSync(join(folder, name))).not.toContain("token.key");
  });

  it("refuses a folder of keys, or a data folder, that other users may reach", async () => {
    for (const [path, mode, sentence] of [
      [".waggle/auth", 0o755, "chmod -R go="],
      [".waggle", 0o777, "chmod go-w"],
    ] as const) {
      chmodSync(join(cwd, path), mode);
      for (const args of [["list"], ["add", "auditor"], ["init", "--swarm", "other"]])
        expect(await auth(...args)).toMatchObject({ stdout: "", stderr: expect.stringContaining(sentence) });
      chmodSync(join(cwd, path), 0o700);
    }
    expect(await auth("list")).toMatchObject({ code: 0 });
  });

  it.each([
    ["a second init of a swarm", ["init"], "has an account already"],
    ["another mode", ["init", "--mode", "jwt", "--swarm", "other"], "mode config"],
    ["a host with a scheme", ["init", "--swarm", "other", "--host", "nats://a"], "--host"],
    ["an agent without a group", ["add", "agent"], "--group is required"],
    ["a group of an auditor", ["add", "auditor", "--group", "gpu"], "--group has no meaning"],
    ["kinds of a submitter", ["add", "submitter", "--project", "web", "--kinds", "x"], "for agents alone"],
    [
      "a service of an auditor",
      ["add", "auditor", "--serve", "svc.x"],
      "--serve is for submitters and owners",
    ],
    [
      "a call of an auditor",
      ["add", "auditor", "--call", "svc.x"],
      "--call is for agents, submitters and owners",
    ],
    [
      "the leader's subjects",
      ["add", "submitter", "--project", "web", "--serve", "waggle.v1.x"],
      "svc.count",
    ],
    ["everything", ["add", "submitter", "--project", "web", "--serve", ">"], "svc.count"],
    ["others' inboxes", ["add", "submitter", "--project", "web", "--call", "_INBOX.gpu.x"], "svc.count"],
    ["a name in use", ["add", "agent", "--group", "gpu"], "auth rotate gpu"],
    ["a name that is a group", ["add", "auditor", "--name", "gpu"], "there is a credential gpu"],
    ["a group that is a name", ["add", "agent", "--group", "operator", "--name", "x"], "_INBOX.operator"],
    ["a ttl in mode config", ["add", "auditor", "--ttl", "1d"], "needs mode jwt"],
    ["an unknown credential", ["revoke", "nobody"], "there are "],
    ["an unknown swarm", ["list", "--swarm", "other"], "auth init --swarm other"],
  ])("refuses %s, and says what to do", async (_, args, sentence) => {
    const { code, stderr } = await auth(...args);
    expect(code).toBeGreaterThan(0);
    expect(stderr).toContain(sentence);
  });
});
