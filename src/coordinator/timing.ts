// All times derived from T, the time-out of leaders. Each coordinator has a T, and announces T with its term. A standby
// waits by the T of the followed term, so coordinators of different settings may run together.

import { limits } from "../limits.ts";

export interface Timing {
  /** T: how long a leader may be silent. */
  readonly timeoutMs: number;
  /** T and the longest jitter: after so much silence a standby campaigns. */
  readonly silenceMsMax: number;
  /** Maximum wait of a campaign for answers of peer coordinators. */
  readonly askMs: number;
  /** The longest pause between two appends of a leader, and between two announcements of a coordinator. */
  readonly heartbeatMs: number;
  /** The leader lease: for so long after an acknowledged append was *sent*, no second coordinator can lead. */
  readonly leaseMs: number;
  /** Isolation after which a leader steps down, though the journal is reachable. */
  readonly isolationMs: number;
  /** Interval of periodic work. */
  readonly pulseMs: number;
  /** A pulse with a longer delay shows a stalled process: silence is counted from the pulse on. */
  readonly pulseLateMs: number;
}

export function timingOf(timeoutMs: number): Timing {
  return {
    timeoutMs,
    silenceMsMax: timeoutMs * (1 + limits.electionJitterShare),
    askMs: timeoutMs * limits.campaignAskShare,
    heartbeatMs: timeoutMs / limits.leaderHeartbeatsPerTimeout,
    leaseMs: timeoutMs * limits.leaderLeaseShare,
    isolationMs: Math.max(timeoutMs, limits.leaderIsolationMs),
    pulseMs: Math.min(limits.pulseMs, timeoutMs / limits.pulsesPerTimeout),
    pulseLateMs: Math.min(limits.pulseLateMs, timeoutMs / limits.leaderHeartbeatsPerTimeout),
  };
}
