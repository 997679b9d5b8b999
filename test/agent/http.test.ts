// HTTP endpoints as handlers, with a real server: verdicts, headers, limits, and secrecy of credentials.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { InfrastructureError, InvalidInputError } from "../../src/agent/handler.ts";
import { httpHandler } from "../../src/agent/http.ts";
import { freePort } from "../../src/broker/free-port.ts";
import { connect } from "../../src/client/connect.ts";
import { limits } from "../../src/limits.ts";
import { startTestSwarm } from "../support/swarm.ts";
import { aContext, aLogger, aTask } from "./attempt-fixture.ts";

let server: Server;
let port: number;
let answer: (request: IncomingMessage, body: Buffer, response: ServerResponse) => void;
let requests: { readonly request: IncomingMessage; readonly body: Buffer }[] = [];

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    requests.push({ request, body });
    answer(request, body, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  requests = [];
});

async function post(
  task: Parameters<typeof aTask>[0] = {},
  url = `http://127.0.0.1:${port}/work`,
): Promise<unknown> {
  return await httpHandler({ url })(aTask(task), aContext());
}

/** Begins an answer and cuts the connection in the middle. */
function breakingOff(status: number): typeof answer {
  return (_, __, response) => {
    response.writeHead(status, { "content-length": "100" });
    response.write("half");
    setTimeout(() => response.destroy(), 10);
  };
}

describe("a request", () => {
  it.each([
    ["1200", 200, [1_200], []],
    ["1200", 500, [1_200], []],
    ["many", 200, [], [expect.stringMatching(/waggle-tokens: "many"; expected a whole number$/)]],
    ["-1", 500, [], [expect.stringContaining('waggle-tokens: "-1"')]],
    ["", 200, [], []],
  ])(
    "learns the tokens used from the answer's header: %s with %d",
    async (tokens, status, expected, warned) => {
      answer = (_, __, response) => response.writeHead(status, { "waggle-tokens": tokens }).end();
      const said: number[] = [];
      const { warnings, logger } = aLogger();
      const context = aContext({ logger, reportTokens: (count) => void said.push(count) });
      const call = httpHandler({ url: `http://127.0.0.1:${port}/work` })(
        aTask(),
        context,
      ) as Promise<unknown>;
      await call.catch(() => undefined);
      expect(said).toEqual(expected);
      expect(warnings).toEqual(warned);
    },
  );

  it("carries the payload, and the user, project and task", async () => {
    answer = (_, body, response) => response.end(`${body.length}`);
    expect(await post({ payload: "one two", attempt: 2 })).toBe("7");
    const { request, body } = requests[0] ?? expect.fail();
    expect(request.method).toBe("POST");
    expect(body.toString()).toBe("one two");
    expect(request.headers).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "content-length": "7",
      "waggle-task-id": "t1",
      "waggle-attempt": "2",
      "waggle-kind": "count",
      "waggle-project": "p",
      "waggle-user": "u",
    });
  });

  it("carries the task's attributes as JSON in ASCII, and none without any", async () => {
    const attributes = { ticket: "OPS-17", note: "zoë 🐝\n" };
    answer = (_, __, response) => response.end();
    await post({ attributes });
    await post({});
    const [first, second] = requests.map(({ request }) => request.headers["waggle-attributes"]);
    expect(first).toMatch(/^[\x20-\x7e]+$/);
    expect(JSON.parse(String(first))).toEqual(attributes);
    expect(second).toBeUndefined();
  });

  it("carries the trace of its task", async () => {
    const trace = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "vendor=1" };
    answer = (_, __, response) => response.end();
    await post(trace);
    await post({});
    expect(requests.map(({ request }) => request.headers["traceparent"])).toEqual([
      trace.traceparent,
      undefined,
    ]);
    expect(requests[0]?.request.headers["tracestate"]).toBe("vendor=1");
  });

  it("names the content type of the body", async () => {
    answer = (request, _, response) => response.end(request.headers["content-type"]);
    expect(await post({ payload: '{"a":1}' })).toBe("application/json");
    expect(await post({ payload: "{a}" })).toBe("text/plain; charset=utf-8");
    expect(await post({ payload: "/wA=", encoding: "base64" })).toBe("application/octet-stream");
    expect(requests[2]?.body).toEqual(Buffer.from([0xff, 0]));
  });

  it("writes names that no header may hold in percent", async () => {
    answer = (request, _, response) => response.end(String(request.headers["waggle-user"]));
    const written = await post({ user: "zoë🐝100%@acme.org" });
    expect(written).toBe("zo%C3%AB%F0%9F%90%9D100%25@acme.org");
    expect(decodeURIComponent(String(written))).toBe("zoë🐝100%@acme.org");
  });

  it("turns a user and password of the URL into authorization", async () => {
    answer = (request, _, response) => response.end(request.headers.authorization);
    const written = await post({}, `http://ann:p%40ss@127.0.0.1:${port}/`);
    expect(written).toBe(`Basic ${Buffer.from("ann:p@ss").toString("base64")}`);
  });

  it("has the headers that were asked for", async () => {
    answer = (request, _, response) =>
      response.end(`${request.headers["x-key"]} ${request.headers["content-type"]}`);
    const handler = httpHandler({
      url: `http://127.0.0.1:${port}/`,
      headers: { "x-key": "1", "Content-Type": "text/csv" },
    });
    expect(await handler(aTask(), aContext())).toBe("1 text/csv");
  });
});

describe("an answer", () => {
  it("of bytes is a result of bytes", async () => {
    answer = (_, __, response) => response.end(Buffer.from([0xff, 0]));
    expect(await post()).toEqual(Buffer.from([0xff, 0]));
  });

  it.each([
    [200, undefined],
    [204, undefined],
    [400, InvalidInputError],
    [422, InvalidInputError],
    [429, InfrastructureError],
    [502, InfrastructureError],
    [503, InfrastructureError],
    [504, InfrastructureError],
    [529, InfrastructureError],
    [302, Error],
    [401, Error],
    [404, Error],
    [500, Error],
  ])("of status %d", async (status, errorClass) => {
    answer = (_, __, response) => {
      response.writeHead(status, status === 302 ? { location: "/elsewhere" } : {});
      response.end(status === 204 ? undefined : "its words");
    };
    const outcome = await post().catch((error: unknown) => error);
    if (errorClass === undefined) {
      expect(outcome).toBe(status === 204 ? "" : "its words");
    } else {
      expect(outcome).toBeInstanceOf(errorClass);
      expect((outcome as Error).constructor).toBe(errorClass);
      expect((outcome as Error).message).toBe(`http://127.0.0.1:${port}/work answered ${status}: its words`);
    }
    expect(requests, "a redirect is not followed").toHaveLength(1);
  });

  it("that is too long fails, and is not read to its end", async () => {
    let isCut = false;
    answer = (_, __, response) => {
      response.on("close", () => {
        isCut = !response.writableFinished;
      });
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
      };
      response.on("drain", more);
      more();
    };
    await expect(post()).rejects.toThrow(`more than ${limits.payloadBytesMax} bytes`);
    await expect.poll(() => isCut).toBe(true);
  });

  it("that breaks off is the attempt's failure", async () => {
    answer = breakingOff(200);
    await expect(post()).rejects.toThrow(
      /^http:\/\/127\.0\.0\.1:\d+\/work answered 200, but the response broke off \(ECONNRESET\)$/,
    );
  });

  it.each([
    [429, InfrastructureError],
    [503, InfrastructureError],
    [529, InfrastructureError],
    [400, InvalidInputError],
    [500, Error],
  ])("of status %d is judged by it, though its words break off or never end", async (status, errorClass) => {
    let isClosed = false;
    const endless: typeof answer = (_, __, response) => {
      response.writeHead(status, { "retry-after": "7" });
      response.write("half");
      response.on("close", () => {
        isClosed = true;
      });
    };
    for (answer of [breakingOff(status), endless]) {
      const error = await post().catch((cause: unknown) => cause as Error);
      expect(error).toMatchObject({ constructor: errorClass, message: expect.stringContaining("half") });
      if (errorClass === InfrastructureError && answer === endless)
        expect(error).toMatchObject({ hold: { forMs: 7_000 } });
    }
    await expect.poll(() => isClosed).toBe(true);
  });

  it("that never comes is infrastructure, except for a task with one attempt once all was sent", async () => {
    answer = (request) => request.socket.destroy();
    const outcome = async (maxAttempts: number, url?: string) =>
      await post({ maxAttempts }, url).catch((error: unknown) => error);
    expect(await outcome(2)).toBeInstanceOf(InfrastructureError);
    const once = await outcome(1);
    expect(once).not.toBeInstanceOf(InfrastructureError);
    expect((once as Error).message).toMatch(/no answer .*ECONNRESET.*: the endpoint may have done the work/);
    expect(requests).toHaveLength(2);

    const gone = await outcome(1, `http://127.0.0.1:${await freePort()}/`);
    expect(gone).toBeInstanceOf(InfrastructureError);
    expect((gone as Error).message).toMatch(/ECONNREFUSED/);
  });

  it("that never comes is infrastructure while a request is not sent whole, also for a task with one attempt", async () => {
    const resetting = createTcpServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    await new Promise<void>((resolve) => resetting.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(resetting.address() as AddressInfo).port}/`;
    const payload = "x".repeat(64 * 1024 * 1024);
    expect(await post({ maxAttempts: 1, payload }, url).catch((error: unknown) => error)).toBeInstanceOf(
      InfrastructureError,
    );
    resetting.close();
  });

  it("is awaited on a connection of its own by a task with one attempt", async () => {
    answer = (request, _, response) => response.end(String(request.socket.remotePort));
    const handler = httpHandler({ url: `http://127.0.0.1:${port}/` });
    const ports: unknown[] = [];
    for (const maxAttempts of [3, 3, 1, 1]) ports.push(await handler(aTask({ maxAttempts }), aContext()));
    expect(ports[0]).toBe(ports[1]);
    expect(new Set(ports).size).toBe(3);
  });

  it("is not waited for after an abort", async () => {
    const abort = new AbortController();
    const closed = new Promise<void>((resolve) => {
      answer = (request) => {
        request.socket.once("close", resolve);
        abort.abort(new Error("told to"));
      };
    });
    const handler = httpHandler({ url: `http://127.0.0.1:${port}/` });
    await expect(handler(aTask(), aContext({ signal: abort.signal }))).rejects.toThrow("told to");
    await closed;
  });
});

describe("the URL", () => {
  it.each(["ftp://host/", "host:80", "", "/work"])("must be one of HTTP: %j", (url) => {
    expect(() => httpHandler({ url })).toThrow(/http:\/\/host\/path/);
  });

  it("never says its user, password or query, whatever happens", async () => {
    answer = (_, __, response) => response.writeHead(500).end();
    const secret = `ann:secret1@127.0.0.1`;
    const urls = [
      `http://${secret}:${port}/work?key=secret2`,
      `http://${secret}:${await freePort()}/work?key=secret2`,
      `http://ann:secret1@host name/?key=secret2`,
    ];
    for (const url of urls) {
      const error = await post({}, url).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toMatch(/secret|ann/);
    }
  });
});

describe("a task with one attempt, done by an endpoint", () => {
  it.each<[string, typeof answer]>([
    ["cuts its answer", breakingOff(200)],
    ["reads all and closes", (request) => request.socket.destroy()],
  ])("is posted once where the endpoint %s", async (_, does) => {
    answer = does;
    const there = await startTestSwarm();
    const swarm = await connect({ swarm: "test", transport: there.hub.connect() });
    await swarm.agent({ kinds: ["k"], handler: httpHandler({ url: `http://127.0.0.1:${port}/` }) });
    const task = await swarm.submit({ kind: "k", maxAttempts: 1 });
    await expect(task.result()).rejects.toMatchObject({ code: "WAGGLE_TASK_FAILED" });
    expect(requests).toHaveLength(1);
    await swarm.close();
    await there.stop();
  });

  it("is posted again where its connection is refused, and done once the endpoint is there", async () => {
    const there = await startTestSwarm();
    const swarm = await connect({ swarm: "test", transport: there.hub.connect() });
    const later = await freePort();
    await swarm.agent({ kinds: ["k"], handler: httpHandler({ url: `http://127.0.0.1:${later}/` }) });
    const task = await swarm.submit({ kind: "k", maxAttempts: 1 });
    await expect.poll(async () => (await swarm.story(task.id)).attempts.length).toBeGreaterThan(0);
    let posts = 0;
    const late = createServer((_, response) => {
      posts += 1;
      response.end("done");
    });
    await new Promise<void>((resolve) => late.listen(later, "127.0.0.1", resolve));
    expect((await task.result()).text()).toBe("done");
    expect(posts).toBe(1);
    late.closeAllConnections();
    late.close();
    await swarm.close();
    await there.stop();
  });
});
