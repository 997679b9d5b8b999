// Asks the swarm for its status once a second, for all viewers together, and notices when nobody answers. Without
// viewers it asks for the totals alone. Settings are asked for when a view needs them, and kept for a few seconds.

import type { Logger } from "pino";
import type { Swarm } from "../client/swarm.ts";
import type { Clock } from "../clock.ts";
import { NoLeaderError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import type { LiveMessages } from "./wire.ts";

export interface SwarmWatchDeps {
  readonly swarm: Pick<Swarm, "status" | "settings">;
  /** Whether the broker can be reached: then a missing answer is the leader's. */
  readonly isConnected: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether anybody watches. */
  readonly isWatched: () => boolean;
  readonly onLook: (look: Look) => void;
}

/** One look at the swarm. */
export interface Look {
  /** Wall clock, ms. */
  readonly at: number;
  /** Undefined: nobody answered, or a standby did whose leader is away. */
  readonly totals: Pick<StatusResponse, "tasks" | "metrics"> | undefined;
  readonly lost: LiveMessages["lost"] | undefined;
  /** Set at the first answer after a loss: how long it lasted. */
  readonly lostMs: number | undefined;
}

export class SwarmWatch {
  readonly #deps: SwarmWatchDeps;
  readonly #ended = new AbortController();
  #status: StatusResponse | undefined;
  #notedMs = 0;
  /** One question for all that ask at the same time. */
  #asking: Promise<StatusResponse> | undefined;
  #answerMs: number | undefined;
  #lost: LiveMessages["lost"] | undefined;
  #settings: { readonly atMs: number; readonly answer: Promise<SettingsResponse> } | undefined;
  #polls = 0;
  /** Agents came or left since the last whole status. */
  #isOutdated = false;
  #cancel: (() => void) | undefined;
  #present: Promise<void> | undefined;

  constructor(deps: SwarmWatchDeps) {
    this.#deps = deps;
  }

  /** The newest whole status; undefined until the first answer. */
  get status(): StatusResponse | undefined {
    return this.#status;
  }

  get lost(): LiveMessages["lost"] | undefined {
    return this.#lost;
  }

  /** Round trip of the last question, ms. */
  get answerMs(): number | undefined {
    return this.#answerMs;
  }

  start(): void {
    const { clock } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#present = this.#poll().finally(() => {
      if (this.#ended.signal.aborted) return;
      const restMs = Math.max(0, limits.dashboardPollMs - (clock.monotonicMs() - startedMs));
      this.#cancel = clock.after(restMs, () => this.start(), { unref: true });
    });
  }

  /** A whole status, asked for if necessary. With `mayBeOld` the status of the last second counts as present, and while
   *  nobody answers the last one. @throws as `swarm.status` */
  async whole({ mayBeOld }: { readonly mayBeOld: boolean }): Promise<StatusResponse> {
    const { clock, swarm } = this.#deps;
    const known = this.#status;
    if (known !== undefined) {
      const isRecent = clock.monotonicMs() - this.#notedMs <= limits.dashboardStatusMs;
      if (mayBeOld && (isRecent || this.#lost !== undefined)) return known;
    }
    this.#asking ??= swarm
      .status(this.#asked(limits.dashboardAskMs))
      .then((status) => this.#note(status))
      .finally(() => {
        this.#asking = undefined;
      });
    return await this.#asking;
  }

  /** @throws as `swarm.settings` */
  async settings(): Promise<SettingsResponse> {
    const nowMs = this.#deps.clock.monotonicMs();
    const known = this.#settings;
    if (known !== undefined && nowMs - known.atMs < limits.dashboardSettingsMs) return await known.answer;
    const answer = this.#deps.swarm.settings(this.#asked(limits.dashboardActionMs));
    const asked = { atMs: nowMs, answer };
    this.#settings = asked;
    try {
      return await answer;
    } catch (error) {
      if (this.#settings === asked) this.#settings = undefined;
      throw error;
    }
  }

  /** The next question for settings is asked anew: an action changed them. */
  forgetSettings(): void {
    this.#settings = undefined;
  }

  async close(): Promise<void> {
    this.#ended.abort();
    this.#cancel?.();
    await this.#present;
  }

  async #poll(): Promise<void> {
    const { swarm, clock, isWatched, onLook, logger } = this.#deps;
    const isWhole = isWatched() || this.#isOutdated || this.#polls % limits.dashboardIdlePolls === 0;
    this.#polls += 1;
    const startedMs = clock.monotonicMs();
    const rows = isWhole ? {} : { rows: { table: "rates", from: 0 } as const };
    try {
      const answer = await swarm.status({ ...this.#asked(limits.dashboardAskMs), ...rows });
      this.#answerMs = Math.round((clock.monotonicMs() - startedMs) * 10) / 10;
      if (isWhole) this.#note(answer);
      this.#isOutdated = onlineIn(answer) !== onlineIn(this.#status);
      if (answer.stale === true) return onLook(this.#lostLook(noLeader));
      const lostMs = this.#lost === undefined ? undefined : clock.now() - this.#lost.sinceAt;
      this.#lost = undefined;
      onLook({ at: clock.now(), totals: answer, lost: undefined, lostMs });
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      if (!(error instanceof WaggleError)) logger.error({ err: error }, "the status cannot be read");
      onLook(this.#lostLook(error));
    }
  }

  #lostLook(error: unknown): Look {
    const now = this.#deps.clock.now();
    const message = error instanceof Error ? error.message : String(error);
    const what = this.#deps.isConnected() ? ("leader" as const) : ("server" as const);
    // A coordinator that received the question and says nothing hangs, or has just died.
    const next = error instanceof NoLeaderError ? "waggle up" : "waggle doctor";
    this.#lost = { what, sinceAt: this.#lost?.sinceAt ?? now, message, next };
    return { at: now, totals: undefined, lost: this.#lost, lostMs: undefined };
  }

  #note(status: StatusResponse): StatusResponse {
    this.#status = status;
    this.#notedMs = this.#deps.clock.monotonicMs();
    return status;
  }

  #asked(timeoutMs: number) {
    return { timeoutMs, signal: this.#ended.signal };
  }
}

const noLeader = new NoLeaderError(
  "A standby answered before any leader did: it takes over within seconds if the leader is gone",
);

function onlineIn(status: Pick<StatusResponse, "metrics"> | undefined): number {
  const { totalAgents = 0, offlineAgents = 0 } = status?.metrics ?? {};
  return totalAgents - offlineAgents;
}
