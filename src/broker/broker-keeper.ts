// Keeps the broker of a data folder running while a coordinator is connected to it: one that was killed is started
// again, where it was and with what it had, so that whoever was connected comes back by himself. Any number of
// coordinators may; the start lock lets one do it. Not here: servers that were named, which are somebody else's.
//
// Left alone, and said: a broker that `waggle down` stopped, one whose process runs, and one that went on elsewhere.

import { unreachable } from "../assert.ts";
import { type Clock, systemClock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Transport } from "../transport/transport.ts";
import type { Environment } from "./nats-context.ts";
import { type RestartOutcome, restartBroker } from "./start-broker.ts";

/** The part of a pino logger that this needs. */
export interface KeeperLog {
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface KeepBrokerOptions {
  /** Absolute path of the folder (`.waggle`). */
  readonly dataFolder: string;
  /** Where the coordinator is connected: `nats://127.0.0.1:<port>`. */
  readonly url: string;
  readonly env: Environment;
  readonly transport: Pick<Transport, "status" | "onStatus">;
  readonly log: KeeperLog;
  /** Default: the system's. */
  readonly clock?: Clock;
}

/** @returns a function that ends it; a start that is under way goes on to its end */
export function keepBroker(options: KeepBrokerOptions): () => void {
  const keeper = new BrokerKeeper(options);
  const stopFollowing = options.transport.onStatus(() => keeper.follow());
  keeper.follow();
  return () => {
    stopFollowing();
    keeper.end();
  };
}

class BrokerKeeper {
  readonly #options: KeepBrokerOptions;
  readonly #clock: Clock;
  /** Before the next look. Doubles with each, until a connection has held for `limits.brokerSteadyMs`. */
  #pauseMs: number = limits.brokerAwayMs;
  #connectedAt: number;
  #cancel: () => void = () => undefined;
  #isLooking = false;
  #hasEnded = false;
  /** What it said last since the connection was lost. */
  #said = "";

  constructor(options: KeepBrokerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#connectedAt = this.#clock.monotonicMs();
  }

  /** The connection was lost, found or closed. */
  follow(): void {
    this.#cancel();
    const now = this.#clock.monotonicMs();
    if (!this.#isAway) {
      this.#connectedAt = now;
      this.#said = "";
      return;
    }
    if (now - this.#connectedAt >= limits.brokerSteadyMs) this.#pauseMs = limits.brokerAwayMs;
    this.#lookLater();
  }

  end(): void {
    this.#hasEnded = true;
    this.#cancel();
  }

  get #isAway(): boolean {
    return !this.#hasEnded && this.#options.transport.status() === "reconnecting";
  }

  #lookLater(): void {
    this.#cancel();
    this.#cancel = this.#clock.after(this.#pauseMs, () => void this.#look(), { unref: true });
    this.#pauseMs = Math.min(2 * this.#pauseMs, limits.brokerRestartMsMax);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return; // the one that looks comes back to it
    this.#isLooking = true;
    try {
      this.#tell(await restartBroker(this.#options));
    } catch (err) {
      const why = messageOf(err);
      this.#options.log.error(
        { err },
        `the broker has ended and cannot be started again: ${why}; tried again in ${this.#pauseMs / 1000} s`,
      );
    } finally {
      this.#isLooking = false;
      if (this.#isAway) this.#lookLater();
    }
  }

  #tell(outcome: RestartOutcome): void {
    const { dataFolder, url } = this.#options;
    switch (outcome.kind) {
      case "started":
        return this.#say(
          `the broker had ended (process ${outcome.endedPid}): started again at ${outcome.record.url} (process ${outcome.record.pid})`,
        );
      case "answers":
        if (outcome.record.url === url) return; // a rival started it, or it never was away
        return this.#say(
          `the broker was started elsewhere, at ${outcome.record.url}: end this coordinator and start it again with \`waggle up\``,
        );
      case "hangs":
        return this.#say(
          `the broker's process ${outcome.pid} runs and does not answer: end it (\`kill ${outcome.pid}\`), and it is started again`,
        );
      case "stopped":
        return this.#say("the broker was stopped with `waggle down`: `waggle up` starts it again");
      case "unknown":
        return this.#say(`${dataFolder} no longer says which broker it had: \`waggle up\` starts one`);
      default:
        return unreachable(outcome);
    }
  }

  #say(sentence: string): void {
    if (sentence === this.#said) return;
    this.#said = sentence;
    this.#options.log.warn({}, sentence);
  }
}
