// Keeps the broker of a data folder running while a coordinator is connected to it. A killed broker is started
// again at the same port with the same data, so that all clients reconnect. Several coordinators may watch a
// broker; the start lock admits one restart. Never touches servers named by the user.
//
// Some cases are only reported: a broker stopped by `waggle down`, a broker whose process runs, and a broker
// that was started elsewhere.

import { unreachable } from "../assert.ts";
import { backOffMs } from "../back-off.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../clock.ts";
import { messageOf } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Transport } from "../transport/transport.ts";
import type { Environment } from "./nats-context.ts";
import { type RestartOutcome, restartBroker } from "./start-broker.ts";

/** The required part of a pino logger. */
export interface KeeperLog {
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface KeepBrokerOptions {
  /** Absolute path of the folder (`.waggle`). */
  readonly dataFolder: string;
  /** URL of the coordinator's connection: `nats://127.0.0.1:<port>`. */
  readonly url: string;
  readonly env: Environment;
  readonly transport: Pick<Transport, "status" | "onStatus">;
  readonly log: KeeperLog;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Default: the system's. */
  readonly random?: Pick<Random, "next">;
}

const backOff = { pauseMs: limits.brokerAwayMs, pauseMsMax: limits.brokerRestartMsMax };

/** @returns a function that ends the keeper; a pending start completes */
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
  readonly #random: Pick<Random, "next">;
  /** Looks since a connection last held for `limits.brokerSteadyMs`. */
  #looks = 0;
  #connectedAt: number;
  #cancel: () => void = () => undefined;
  #isLooking = false;
  #hasEnded = false;
  /** Last logged sentence since the connection was lost. */
  #said = "";

  constructor(options: KeepBrokerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#connectedAt = this.#clock.monotonicMs();
  }

  /** The connection was lost, restored or closed. */
  follow(): void {
    this.#cancel();
    const now = this.#clock.monotonicMs();
    if (!this.#isAway) {
      this.#connectedAt = now;
      this.#said = "";
      return;
    }
    if (now - this.#connectedAt >= limits.brokerSteadyMs) this.#looks = 0;
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
    this.#looks += 1;
    const pauseMs = backOffMs(backOff, this.#looks, this.#random.next());
    this.#cancel = this.#clock.after(pauseMs, () => void this.#look(), { unref: true });
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return; // the running check schedules the next
    this.#isLooking = true;
    try {
      this.#report(await restartBroker(this.#options));
    } catch (err) {
      const sentence = `the broker has ended and cannot be started again: ${messageOf(err)}; trying again`;
      this.#options.log.error({ err }, sentence);
    } finally {
      this.#isLooking = false;
      if (this.#isAway) this.#lookLater();
    }
  }

  #report(outcome: RestartOutcome): void {
    const { dataFolder, url } = this.#options;
    switch (outcome.kind) {
      case "started":
        return this.#say(
          `the broker had ended (process ${outcome.endedPid}): started again at ${outcome.record.url} (process ${outcome.record.pid})`,
        );
      case "answers":
        if (outcome.record.url === url) return; // another coordinator restarted the broker, or the broker never stopped
        return this.#say(
          `the broker was started elsewhere, at ${outcome.record.url}: end this coordinator and restart it with \`waggle up\``,
        );
      case "hangs":
        return this.#say(
          `the broker's process ${outcome.pid} runs and does not answer: end the process (\`kill ${outcome.pid}\`) to have it restarted`,
        );
      case "stopped":
        return this.#say("the broker was stopped with `waggle down`: `waggle up` starts it again");
      case "unknown":
        return this.#say(`${dataFolder} no longer has a broker record: \`waggle up\` starts a broker`);
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
