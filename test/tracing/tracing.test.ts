// Spans through OpenTelemetry: from the submitter over the journal to the agent. The same swarm without a tracer.

import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { HandlerTask } from "../../src/agent/handler.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { genAi, invokeAgent, schemaUrl, waggle, waitedEvent } from "../../src/tracing/attributes.ts";
import { openTelemetry } from "../../src/tracing/open-telemetry.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

const exporter = new InMemorySpanExporter();
const parent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

let testSwarm: TestSwarm;
let swarm: Swarm;

beforeEach(async () => {
  testSwarm = await startTestSwarm();
  swarm = await connect({ swarm: "test", transport: testSwarm.hub.connect() });
});
afterEach(async () => {
  await swarm.close();
  await testSwarm.stop();
  exporter.reset();
});

/** Spans by name, in order of their ends. */
const spansNamed = (name: string): readonly ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name);

async function journaledTask(id: string): Promise<Record<string, unknown>> {
  const { batches } = await testSwarm.client.ask(subjects.query("_", "journal"), {});
  const events = batches.flatMap(({ events }: { events: object[] }) => events);
  return events.find(
    ({ type, task }: { type: string; task: { id: string } }) => type === "TaskSubmitted" && task.id === id,
  ).task;
}

describe("with a tracer", () => {
  const tracer = () => trace.getTracer("test");

  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
    );
  });
  afterAll(() => {
    trace.disable();
    context.disable();
    propagation.disable();
  });

  it("a task is one trace: the caller, submit, run, and the work of the handler", async () => {
    const seen: HandlerTask[] = [];
    await swarm.agent({
      id: "a1",
      kinds: ["count"],
      handler: async (task, { reportTokens }) => {
        seen.push(task);
        await new Promise((resolve) => setImmediate(resolve));
        reportTokens(12);
        tracer().startSpan("call the model").end();
        return "4";
      },
    });
    const caller = tracer().startSpan("caller");
    await context.with(trace.setSpan(context.active(), caller), async () => {
      const handle = await swarm.submit({ id: "t1", kind: "count", payload: "a b c d" });
      expect((await handle.result()).text()).toBe("4");
    });
    caller.end();
    const [submit] = spansNamed("submit count");
    const [run] = spansNamed("run count");
    const [model] = spansNamed("call the model");
    const { traceId } = caller.spanContext();
    for (const span of [submit, run, model]) expect(span?.spanContext().traceId).toBe(traceId);
    expect(submit?.parentSpanContext?.spanId).toBe(caller.spanContext().spanId);
    expect(run?.parentSpanContext?.spanId).toBe(submit?.spanContext().spanId);
    expect(model?.parentSpanContext?.spanId).toBe(run?.spanContext().spanId);
    expect([submit?.kind, run?.kind]).toEqual([SpanKind.PRODUCER, SpanKind.CONSUMER]);
    expect(run?.attributes).toEqual({
      [genAi.operationName]: invokeAgent,
      [genAi.agentId]: "a1",
      [genAi.agentName]: "count",
      [waggle.task]: "t1",
      [waggle.kind]: "count",
      [waggle.project]: "default",
      [waggle.attempt]: 1,
      [waggle.outcome]: "completed",
      [waggle.tokens]: 12,
    });
    expect(run?.events).toMatchObject([
      { name: waitedEvent, attributes: { [waggle.waitedMs]: expect.any(Number) } },
    ]);
    expect(run?.instrumentationScope).toMatchObject({ name: "waggledance", schemaUrl });
    const { traceparent } = await journaledTask("t1");
    expect(traceparent).toBe(`00-${traceId}-${submit?.spanContext().spanId}-01`);
    expect(seen[0]?.traceparent).toBe(`00-${traceId}-${run?.spanContext().spanId}-01`);
  });

  it("the wait of a task is the time in its queue", async () => {
    const handle = await swarm.submit({ kind: "count", payload: "" });
    await new Promise((resolve) => setTimeout(resolve, 60));
    await swarm.agent({ kinds: ["count"], handler: () => "0" });
    await handle.result();
    const waitedMs = spansNamed("run count")[0]?.events[0]?.attributes?.[waggle.waitedMs];
    expect(waitedMs).toBeGreaterThanOrEqual(50);
    expect(waitedMs).toBeLessThan(5_000);
  });

  it("each attempt is a span, and a failed attempt has its error", async () => {
    let calls = 0;
    await swarm.agent({
      kinds: ["count"],
      handler: () => {
        calls += 1;
        if (calls === 1) throw new Error("no words");
        return "2";
      },
    });
    await (await swarm.submit({ kind: "count" })).result();
    const [failed, completed] = spansNamed("run count");
    expect(failed?.status).toEqual({ code: SpanStatusCode.ERROR, message: "no words" });
    expect(failed?.attributes).toMatchObject({ [waggle.attempt]: 1, [genAi.errorType]: "failed" });
    expect(completed?.status.code).toBe(SpanStatusCode.UNSET);
    expect(completed?.attributes).toMatchObject({ [waggle.attempt]: 2, [waggle.outcome]: "completed" });
    expect(failed?.parentSpanContext?.spanId).toBe(completed?.parentSpanContext?.spanId);
  });

  it("a refused submission is a span with the error's code", async () => {
    const refused = swarm.submit({ kind: "nobody", payload: "" }, { failFast: true });
    await expect(refused).rejects.toMatchObject({ code: "WAGGLE_NO_CAPABLE_AGENT" });
    const [submit] = spansNamed("submit nobody");
    expect(submit?.status.code).toBe(SpanStatusCode.ERROR);
    expect(submit?.attributes[genAi.errorType]).toBe("WAGGLE_NO_CAPABLE_AGENT");
  });

  it("a trace that the submitter gave is the parent, with its state", async () => {
    const handle = await swarm.submit({
      id: "t1",
      kind: "count",
      traceparent: parent,
      tracestate: "vendor=1",
    });
    await swarm.agent({ kinds: ["count"], handler: () => "0" });
    await handle.result();
    const [submit] = spansNamed("submit count");
    const [run] = spansNamed("run count");
    expect(submit?.parentSpanContext).toMatchObject({ spanId: "b".repeat(16), isRemote: true });
    expect(run?.parentSpanContext).toMatchObject({ spanId: submit?.spanContext().spanId, isRemote: true });
    expect(run?.spanContext().traceId).toBe("a".repeat(32));
    expect(run?.spanContext().traceState?.serialize()).toBe("vendor=1");
    const traceparent = `00-${"a".repeat(32)}-${submit?.spanContext().spanId}-01`;
    expect(await journaledTask("t1")).toMatchObject({ traceparent, tracestate: "vendor=1" });
  });

  it("the same task submitted again, from another span, is a duplicate", async () => {
    const first = await swarm.submit({ id: "t1", kind: "count" });
    const again = await swarm.submit({ id: "t1", kind: "count" });
    expect([first.ack?.duplicate, again.ack?.duplicate]).toEqual([false, true]);
    expect(spansNamed("submit count")).toHaveLength(2);
  });
});

describe("without a tracer", () => {
  it("a process that registered nothing does not load the package", async () => {
    Reflect.deleteProperty(globalThis, Symbol.for("opentelemetry.js.api.1"));
    expect(await openTelemetry()).toBeUndefined();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager());
    expect(await openTelemetry()).toBeDefined();
    context.disable();
  });

  it("tasks have no trace, and nothing is recorded", async () => {
    const seen: HandlerTask[] = [];
    await swarm.agent({
      kinds: ["count"],
      handler: (task) => {
        seen.push(task);
        return "0";
      },
    });
    await (await swarm.submit({ id: "t1", kind: "count" })).result();
    expect(await journaledTask("t1")).not.toHaveProperty("traceparent");
    expect(seen[0]?.traceparent).toBeUndefined();
    expect(exporter.getFinishedSpans()).toEqual([]);
  });

  it("the trace of a submitter is journaled, reaches the handler, and comes back with the result", async () => {
    const trace = { traceparent: parent, tracestate: "vendor=1" };
    const results = testSwarm.client.listen<{ results: object[] }>(subjects.agent("_", "a1", "result"));
    const seen: HandlerTask[] = [];
    await swarm.agent({ id: "a1", kinds: ["count"], handler: (task) => void seen.push(task) });
    await (await swarm.submit({ id: "t1", kind: "count", ...trace })).result();
    expect(await journaledTask("t1")).toMatchObject(trace);
    expect(seen).toMatchObject([trace]);
    expect((await results.next()).results).toMatchObject([trace]);
  });

  it("a retry keeps the trace, after another leader took over as well", async () => {
    const agent = await testSwarm.agent("wire", { kinds: ["count"] });
    await swarm.submit({ id: "t1", kind: "count", maxAttempts: 1, traceparent: parent });
    const first = await agent.assignment();
    expect(first).toMatchObject({ traceparent: parent, waitedMs: expect.any(Number) });
    await agent.report(first, "failed", { error: "no" });
    await testSwarm.startAnother("c2");
    await testSwarm.coordinator.stop();
    await swarm.retry("t1");
    expect(await agent.assignment()).toMatchObject({ attempt: 2, traceparent: parent });
  });

  it("a trace that is none is refused", async () => {
    await expect(swarm.submit({ kind: "count", traceparent: "00-1-2-3" })).rejects.toMatchObject({
      code: "WAGGLE_INVALID_MESSAGE",
      field: "traceparent",
    });
    const { answers } = await testSwarm.client.submit([{ kind: "count", tracestate: "ä" }]);
    expect(answers).toMatchObject([
      { ok: false, code: "WAGGLE_INVALID_MESSAGE", field: "tasks[0].tracestate" },
    ]);
  });
});
