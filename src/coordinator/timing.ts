// What T, the time-out of leaders, means for everything that is timed by it. Each coordinator has a T of its own,
// and announces it with the term that it wins: whoever stands by waits for the T of the term that it follows, so
// coordinators of different settings may stand side by side.

import { limits } from "../limits.ts";

export interface Timing {
  /** T: how long a leader may be silent. */
  readonly timeoutMs: number;
  /** T and the longest jitter: after that much silence somebody campaigns. */
  readonly silenceMsMax: number;
  /** …once it has listened for so long to what the others say when asked. */
  readonly askMs: number;
  /** A leader appends, and a coordinator says who it is, at least so often. */
  readonly beatMs: number;
  /** For so long after an append was *sent* that was acknowledged, nobody else can have been elected. */
  readonly trustMs: number;
  /** A leader that nobody can reach for so long, and that reaches the journal, lets another lead. */
  readonly deafMs: number;
  /** How often a coordinator looks at what only time brings. */
  readonly pulseMs: number;
  /** A pulse that comes later than this says that the process stalled: silence is counted anew. */
  readonly pulseLateMs: number;
}

export function timingOf(timeoutMs: number): Timing {
  return {
    timeoutMs,
    silenceMsMax: timeoutMs * (1 + limits.electionJitterShare),
    askMs: timeoutMs * limits.campaignAskShare,
    beatMs: timeoutMs / limits.leaderBeatsPerTimeout,
    trustMs: timeoutMs * limits.leaderTrustShare,
    deafMs: Math.max(timeoutMs, limits.leaderDeafMs),
    pulseMs: Math.min(limits.pulseMs, timeoutMs / limits.pulsesPerTimeout),
    pulseLateMs: Math.min(limits.pulseLateMs, timeoutMs / limits.leaderBeatsPerTimeout),
  };
}
