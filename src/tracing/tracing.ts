// Spans of a task: `submit` at the submitter, `run` at the agent. The interface that client and agent use; no type of
// OpenTelemetry crosses it, because the package is optional (open-telemetry.ts).

/** Where a span stands in its trace, as in W3C Trace Context. */
export interface TraceContext {
  /** `00-<trace id>-<span id>-<flags>` */
  readonly traceparent?: string | undefined;
  /** The state that tracing systems on the way added (W3C Trace Context, `tracestate`). */
  readonly tracestate?: string | undefined;
}

/** With the trace that the submitter gave, if any. */
export interface SubmittedTask extends TraceContext {
  readonly id: string;
  readonly kind: string;
  readonly project: string;
}

/** The span of a submission: from the call to the acceptance. */
export interface SubmitSpan {
  /** Travels with the task. */
  readonly context: TraceContext;
  accepted(): void;
  refused(error: unknown): void;
}

export interface TracedAttempt extends TraceContext {
  readonly task: string;
  readonly attempt: number;
  readonly kind: string;
  readonly project: string;
  /** The task's wait for the assignment, ms; undefined for a task without a trace. */
  readonly waitedMs?: number | undefined;
}

/** The span of an attempt: from the call of the handler to its end. */
export interface RunSpan {
  /** For work within the attempt, and for the result. */
  readonly context: TraceContext;
  /** Calls `run` with the span as the active one. */
  within<Result>(run: () => Result): Result;
  ended(end: EndedAttempt): void;
}

export interface EndedAttempt {
  readonly outcome: string;
  readonly error?: string | undefined;
  readonly tokens?: number | undefined;
}

export interface Tracing {
  /** Undefined if nothing records the span. */
  submit(task: SubmittedTask): SubmitSpan | undefined;
  /** Undefined if nothing records the span. @param agent the agent's id */
  run(attempt: TracedAttempt, agent: string): RunSpan | undefined;
}
