// A request of a recorded trace. trace-file.ts reads the file, trace.ts replays it.

export interface TraceRequest {
  /** Time since the first request, whole ms. */
  readonly arrivesAt: number;
  readonly contextTokens: number;
  readonly generatedTokens: number;
}
