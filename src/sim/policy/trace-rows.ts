// One request of a recorded trace. Not here: reading the file (trace-file.ts), replaying it (trace.ts).

export interface TraceRequest {
  /** Since the first one, ms, whole. */
  readonly arrivesAt: number;
  readonly contextTokens: number;
  readonly generatedTokens: number;
}
