// The clock of a recorded history: the machine's monotonic clock, shared by all processes.

/** ms since the machine started. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
