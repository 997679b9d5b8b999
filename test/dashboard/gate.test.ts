// Who may ask the dashboard: foreign names, foreign pages, and requests without the cookie or the token get nothing.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fixture } from "./dashboard-fixture.ts";

let page: Fixture;
beforeAll(async () => {
  page = await Fixture.start({ token: "a-token-of-the-user-16", names: ["Swarm.Example"] });
});
afterAll(() => page.stop());

describe("names (DNS rebinding)", () => {
  it.each(["evil.example", "127.0.0.1.evil.example", "evil.example:4280", "0.0.0.0", "localhost.evil"])(
    "the Host %j is refused, whatever the path",
    async (host) => {
      for (const path of ["/", "/api/overview", "/enter/a-token-of-the-user-16", "/assets/app.js"])
        expect(await page.refusal(path, { headers: { host } })).toMatchObject({
          status: 403,
          code: "WAGGLE_FORBIDDEN",
        });
    },
  );

  it.each(["localhost:1", "127.0.0.1", "[::1]:4280", "swarm.example:80", "SWARM.EXAMPLE"])(
    "the Host %j is this server's",
    async (host) => {
      expect((await page.get("/api/session", { headers: { host } })).status).toBe(200);
    },
  );
});

describe("signing in", () => {
  it("the printed URL sets a cookie for this host alone, and leads to a URL without the token", async () => {
    const { status, headers } = await page.get("/enter/a-token-of-the-user-16", {
      headers: { cookie: undefined },
    });
    expect(status).toBe(303);
    expect(headers.location).toBe("/");
    const [cookie] = headers["set-cookie"] ?? [];
    expect(cookie).toMatch(
      new RegExp(`^waggle-${page.running.port}=[a-z0-9]{32}; Path=/; HttpOnly; SameSite=Strict$`),
    );
    expect(cookie).not.toContain("a-token-of-the-user-16");
  });

  it.each(["/enter/wrong", "/enter/", "/enter", "/enter/a-token-of-the-user-1"])(
    "%s is refused",
    async (path) => {
      expect(await page.refusal(path, { headers: { cookie: undefined } })).toMatchObject({ status: 401 });
    },
  );

  it.each([undefined, "waggle-1=x", "waggle=a-token-of-the-user-16"])(
    "the cookie %j opens nothing",
    async (cookie) => {
      const headers = { cookie };
      expect(await page.refusal("/api/overview", { headers })).toMatchObject({
        status: 401,
        code: "WAGGLE_FORBIDDEN",
      });
      expect(await page.refusal("/api/live?view=overview", { headers })).toMatchObject({ status: 401 });
      for (const path of ["/", "/assets/app.js", "/tasks"]) {
        const { status, text } = await page.get(path, { headers });
        expect(status).toBe(401);
        expect(text).toContain("open the URL that");
      }
    },
  );
});

describe("changes", () => {
  const pause = (headers: Record<string, string | undefined>) =>
    page.refusal("/api/actions/pause", {
      method: "POST",
      headers: { ...page.changeHeaders, ...headers },
      body: {},
    });

  it.each([
    ["another site's page", { origin: "http://evil.example" }],
    ["another port's page", { origin: "http://127.0.0.1:1" }],
    ["a page without an origin", { origin: "null" }],
    ["no Origin", { origin: undefined }],
    ["no token", { "x-waggle-token": undefined }],
    ["a wrong token", { "x-waggle-token": "x" }],
    ["a request of another site", { "sec-fetch-site": "cross-site" }],
  ])("from %s are refused", async (_, headers) => {
    expect(await pause(headers)).toMatchObject({ status: 403, code: "WAGGLE_FORBIDDEN" });
    expect((await page.swarm.settings()).paused).toBe(false);
  });

  it("without the cookie, or not as JSON, are refused", async () => {
    expect(await pause({ cookie: undefined })).toMatchObject({ status: 401 });
    expect(await pause({ "content-type": "text/plain" })).toMatchObject({ status: 415 });
    expect((await page.swarm.settings()).paused).toBe(false);
  });

  it("a page of another site reads nothing either", async () => {
    const headers = { origin: "http://evil.example" };
    expect(await page.refusal("/api/overview", { headers })).toMatchObject({ status: 403 });
  });

  it("bodies are bounded and must be JSON", async () => {
    const body = JSON.stringify({ task: { kind: "count", payload: "x".repeat(3 * 1024 * 1024) } });
    const send = (text: string, headers: Record<string, string> = {}) =>
      page.refusal("/api/actions/submit", {
        method: "POST",
        headers: { ...page.changeHeaders, ...headers },
        body: text,
      });
    expect(await send(body)).toMatchObject({ status: 413, code: "WAGGLE_INVALID_MESSAGE" });
    expect(await send(body, { "content-length": String(body.length) })).toMatchObject({ status: 413 });
    expect(await send("{nonsense")).toMatchObject({ status: 400, code: "WAGGLE_INVALID_MESSAGE" });
    expect(await send("[".repeat(10_000))).toMatchObject({ status: 400 });
    expect((await page.act("pause", {})).json).toMatchObject({ ok: true });
    await page.act("resume", {});
  });
});

describe("--read-only", () => {
  it("refuses every change, and the page learns so", async () => {
    const reader = await Fixture.start({ isReadOnly: true });
    try {
      const session = (await reader.get("/api/session")).json;
      expect(session).toMatchObject({ isReadOnly: true, verbs: [] });
      expect(session.changeToken).toBeUndefined();
      for (const verb of ["submit", "cancel", "retry", "drain", "undrain", "pause", "resume", "revoke"]) {
        const { status, json } = await reader.act(verb, {});
        expect(status).toBe(403);
        expect(json.error).toMatchObject({
          code: "WAGGLE_FORBIDDEN",
          message: expect.stringContaining("--read-only"),
        });
      }
      expect((await reader.get("/api/overview")).status).toBe(200);
    } finally {
      await reader.stop();
    }
  });
});
