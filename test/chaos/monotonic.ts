// The one clock of a recorded history: the machine's monotonic one, which all of its processes share.

/** ms since the machine started. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
