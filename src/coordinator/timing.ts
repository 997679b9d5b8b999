// All times that follow from T, the time-out of leaders. Each coordinator has a T, and announces it with its term. A
// standby waits by the T of the followed term, so coordinators of different settings may run together.

import { limits } from "../limits.ts";

export interface Timing {
  /** T: how long a leader may be silent. */
  readonly timeoutMs: number;
  /** T and the longest jitter: after so much silence a standby campaigns. */
  readonly silenceMsMax: number;
  /** How long a campaign waits for answers of other coordinators. */
  readonly askMs: number;
  /** The longest pause between two appends of a leader, and between two announcements of a coordinator. */
  readonly heartbeatMs: number;
  /** The leader lease: for so long after an acknowledged append was *sent*, no other coordinator can lead. */
  readonly trustMs: number;
  /** Isolation after which a leader that reaches the journal steps down. */
  readonly deafMs: number;
  /** Interval of periodic work. */
  readonly pulseMs: number;
  /** A pulse later than this means that the process stalled: silence is counted from then on. */
  readonly pulseLateMs: number;
}

export function timingOf(timeoutMs: number): Timing {
  return {
    timeoutMs,
    silenceMsMax: timeoutMs * (1 + limits.electionJitterShare),
    askMs: timeoutMs * limits.campaignAskShare,
    heartbeatMs: timeoutMs / limits.leaderBeatsPerTimeout,
    trustMs: timeoutMs * limits.leaderTrustShare,
    deafMs: Math.max(timeoutMs, limits.leaderDeafMs),
    pulseMs: Math.min(limits.pulseMs, timeoutMs / limits.pulsesPerTimeout),
    pulseLateMs: Math.min(limits.pulseLateMs, timeoutMs / limits.leaderBeatsPerTimeout),
  };
}
