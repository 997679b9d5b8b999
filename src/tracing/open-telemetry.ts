// Spans through the optional package @opentelemetry/api. Without the package, or without a tracer that a program
// registered, nothing is recorded. Only this file imports the package, and only in programs that registered something:
// loading the package costs every other process 30 ms of CPU.

import type { Context, Span, Tracer } from "@opentelemetry/api";
import { messageOf, WaggleError } from "../errors.ts";
import { genAi, invokeAgent, schemaUrl, waggle, waitedEvent } from "./attributes.ts";
import type {
  EndedAttempt,
  RunSpan,
  SubmitSpan,
  SubmittedTask,
  TraceContext,
  TracedAttempt,
  Tracing,
} from "./tracing.ts";

type Api = typeof import("@opentelemetry/api");

/** Property of the global object in which version 1 of the package keeps what a program registered: a tracer, a context
 *  manager, a propagator. Each copy of the package in a process reads the same property. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

/** Undefined if the program has registered nothing, or if the package is not installed. */
export async function openTelemetry(): Promise<Tracing | undefined> {
  if (!(REGISTERED in globalThis)) return undefined;
  try {
    return new OpenTelemetry(await import("@opentelemetry/api"));
  } catch {
    return undefined; // the package is optional
  }
}

class OpenTelemetry implements Tracing {
  readonly #api: Api;
  readonly #tracer: Tracer;

  constructor(api: Api) {
    this.#api = api;
    this.#tracer = api.trace.getTracerProvider().getTracer("waggledance", undefined, { schemaUrl });
  }

  submit(task: SubmittedTask): SubmitSpan | undefined {
    const { context, SpanKind } = this.#api;
    const { id, kind, project } = task;
    const attributes = { [waggle.task]: id, [waggle.kind]: kind, [waggle.project]: project };
    const parent = task.traceparent === undefined ? context.active() : this.#parentOf(task);
    const span = this.#tracer.startSpan(`submit ${kind}`, { kind: SpanKind.PRODUCER, attributes }, parent);
    if (!this.#isTraced(span)) return undefined;
    return {
      context: this.#contextOf(span),
      accepted: () => span.end(),
      refused: (error) => {
        this.#failed(span, codeOf(error), messageOf(error));
        span.end();
      },
    };
  }

  run(attempt: TracedAttempt, agent: string): RunSpan | undefined {
    const api = this.#api;
    const { task, kind, project, waitedMs } = attempt;
    const parent = this.#parentOf(attempt);
    const span = this.#tracer.startSpan(
      `run ${kind}`,
      {
        kind: api.SpanKind.CONSUMER,
        attributes: {
          [genAi.operationName]: invokeAgent,
          [genAi.agentId]: agent,
          [genAi.agentName]: kind,
          [waggle.task]: task,
          [waggle.kind]: kind,
          [waggle.project]: project,
          [waggle.attempt]: attempt.attempt,
        },
      },
      parent,
    );
    if (!this.#isTraced(span)) return undefined;
    if (waitedMs !== undefined) span.addEvent(waitedEvent, { [waggle.waitedMs]: waitedMs });
    const active = api.trace.setSpan(parent, span);
    return {
      context: this.#contextOf(span),
      within: (run) => api.context.with(active, run),
      ended: (end) => this.#ended(span, end),
    };
  }

  #ended(span: Span, { outcome, error, tokens }: EndedAttempt): void {
    span.setAttribute(waggle.outcome, outcome);
    if (tokens !== undefined) span.setAttribute(waggle.tokens, tokens);
    if (outcome !== "completed") this.#failed(span, outcome, error);
    span.end();
  }

  #failed(span: Span, type: string, message: string | undefined): void {
    span.setAttribute(genAi.errorType, type);
    const code = this.#api.SpanStatusCode.ERROR;
    span.setStatus(message === undefined ? { code } : { code, message });
  }

  #isTraced(span: Span): boolean {
    return this.#api.trace.isSpanContextValid(span.spanContext());
  }

  /** As W3C Trace Context, whatever propagator the program uses: the fields of a task have one form. */
  #contextOf(span: Span): TraceContext {
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
    const tracestate = traceState?.serialize();
    return {
      traceparent: `00-${traceId}-${spanId}-${flags}`,
      ...(tracestate === undefined || tracestate === "" ? {} : { tracestate }),
    };
  }

  #parentOf({ traceparent, tracestate }: TraceContext): Context {
    const { ROOT_CONTEXT, createTraceState, trace } = this.#api;
    if (traceparent === undefined) return ROOT_CONTEXT;
    const [, traceId = "", spanId = "", flags = ""] = traceparent.split("-");
    return trace.setSpanContext(ROOT_CONTEXT, {
      traceId,
      spanId,
      traceFlags: Number.parseInt(flags, 16),
      isRemote: true,
      ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
    });
  }
}

function codeOf(error: unknown): string {
  if (error instanceof WaggleError) return error.code;
  return error instanceof Error ? error.name : "unknown";
}
