// The file of declarations: what `waggle up` refuses before it starts anything, and what is set in the swarm.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { declarationsIn, declare } from "../../src/cli/declarations.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { silentLogger } from "../support/swarm.ts";
import { Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

let cwd: string;
let file: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "waggle-declarations-"));
  file = join(cwd, "declarations.json");
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

describe("waggle up", () => {
  it.each([
    ["no JSON", "{", "cannot read .* JSON"],
    ["an unknown field", `{ "grant": {} }`, 'Unrecognized key: "grant"'],
    ["a group that is no name", `{ "grants": { "a.b": {} } }`, "grants.a.b"],
    ["a field that a grant lacks", `{ "grants": { "gpu": { "speed": 1 } } }`, "grants.gpu"],
    ["a setting that is the operator's", `{ "projects": { "web": { "creditWeight": 2 } } }`, "projects.web"],
  ])("refuses %s, with file and field, and starts nothing", async (_, content, sentence) => {
    writeFileSync(file, content);
    const { code, stderr } = await runIn(aShell({ cwd }), "up", "--declarations-file", file);
    expect([code, stderr]).toEqual([2, expect.stringContaining("WAGGLE_INVALID_CONFIG")]);
    expect(stderr).toContain(`--declarations-file: `);
    expect(stderr.replaceAll(/\s+/g, " ")).toMatch(new RegExp(sentence));
    expect(existsSync(join(cwd, ".waggle"))).toBe(false);
  });

  it("refuses a missing file", async () => {
    const { code, stderr } = await runIn(aShell({ cwd }), "up", "--declarations-file", "absent.json");
    expect(code).toBe(2);
    expect(stderr).toContain(`cannot read ${join(cwd, "absent.json")}`);
  });
});

describe("declarations", () => {
  let workplace: Workplace;
  let swarm: Swarm;
  const policyNow = async () => {
    const { agents, security } = (await swarm.settings()).policy;
    return { agents, security };
  };
  const isNew = { isNew: true, logger: silentLogger };
  const isOld = { isNew: false, logger: silentLogger };

  beforeEach(async () => {
    workplace = await Workplace.make();
    await workplace.start("up", "--no-dashboard").says("leading");
    swarm = await connect({ dataFolder: workplace.dataFolder });
  });
  afterEach(async () => {
    await swarm.close();
    await workplace.clear();
  });

  it("are set where the swarm lacks them, and change nothing that is set", async () => {
    await swarm.setGrant("cpu", { maxConcurrent: 2 });
    await swarm.setProject("web", { creditWeight: 3, inboxUsers: ["ann"] });
    writeFileSync(
      file,
      JSON.stringify({
        policy: { agents: "declared", security: "strict" },
        grants: { cpu: {}, gpu: { kinds: ["review"] } },
        projects: { web: { inboxUsers: ["bob"] }, search: { inboxUsers: ["eve"] } },
      }),
    );
    await declare(swarm, declarationsIn(file), isNew);
    const { grants, projects } = await swarm.settings();
    expect(grants).toEqual([
      { group: "cpu", settings: { maxConcurrent: 2 } },
      { group: "gpu", settings: { kinds: ["review"] } },
    ]);
    expect(projects.map(({ project, settings }) => [project, settings.inboxUsers])).toEqual([
      ["web", ["ann", "bob"]],
      ["search", ["eve"]],
    ]);
    expect(projects.find(({ project }) => project === "web")?.settings.creditWeight).toBe(3);
    expect(await policyNow()).toEqual({ agents: "declared", security: "strict" });

    await swarm.setPolicy({ security: "open" });
    const { idx } = await swarm.status();
    await declare(swarm, declarationsIn(file), isOld);
    expect(await policyNow()).toEqual({ agents: "declared", security: "open" });
    expect((await swarm.status()).idx).toBe(idx);
  });
});
