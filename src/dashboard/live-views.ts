// All open live streams: their number, their topics, and the pace of their messages.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { Clock, Random } from "../clock.ts";
import { limits } from "../limits.ts";
import { HttpRefusal } from "./http-answer.ts";
import type { LiveQuery } from "./requests.ts";
import type { Look } from "./swarm-watch.ts";
import { Topic, type TopicSource } from "./topic.ts";
import { frameOf, Viewer } from "./viewer.ts";
import type { HistoryPoint } from "./wire.ts";

export interface LiveViewsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly sourceOf: (query: LiveQuery) => TopicSource;
  /** Called when the number of viewers becomes 1, or 0. */
  readonly onWatched: (isWatched: boolean) => void;
}

export class LiveViews {
  readonly #deps: LiveViewsDeps;
  readonly #topicByKey = new Map<string, Topic>();
  readonly #viewers = new Set<Viewer>();
  #lost: Look["lost"];
  /** How long the last loss lasted. */
  #lostMs = 0;
  #cancelTick: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: LiveViewsDeps) {
    this.#deps = deps;
  }

  get count(): number {
    return this.#viewers.size;
  }

  /** Answers a request with a stream. @throws HttpRefusal 503 when too many views are open */
  async open(request: IncomingMessage, response: ServerResponse, query: LiveQuery): Promise<void> {
    if (this.#viewers.size >= limits.dashboardLiveViewsMax)
      throw new HttpRefusal(
        503,
        "WAGGLE_BACKPRESSURE",
        `This dashboard shows ${limits.dashboardLiveViewsMax} live views at once, and all are taken: close a tab, or run a second \`waggle dashboard\``,
        { retryAfterMs: limits.dashboardRetryAfterMs },
      );
    const topic = this.#topicOf(query);
    const viewer = new Viewer(response, {
      onCaughtUp: () => topic.catchUp(viewer),
      onClose: () => this.#left(viewer, topic),
    });
    this.#viewers.add(viewer);
    if (this.#viewers.size === 1) this.#begin();
    this.#sendLoss(viewer);
    const header = request.headers["last-event-id"];
    await topic.join(viewer, typeof header === "string" ? header : query.last);
  }

  /** Called once a second. */
  look({ lost, lostMs }: Look, point: HistoryPoint): void {
    this.#lost = lost;
    if (lostMs !== undefined) this.#lostMs = lostMs;
    for (const viewer of this.#viewers) this.#sendLoss(viewer);
    this.#send(frameOf("point", point));
    if (lost === undefined) for (const topic of this.#topicByKey.values()) topic.touch();
    const now = this.#deps.clock.monotonicMs();
    for (const [key, topic] of this.#topicByKey) if (!topic.isKept(now)) this.#topicByKey.delete(key);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTick?.();
    for (const topic of this.#topicByKey.values()) topic.end();
    this.#topicByKey.clear();
  }

  /** `lost` or `back`, unless the viewer knows. A viewer that is behind is notified later. */
  #sendLoss(viewer: Viewer): void {
    const loss = this.#lost === undefined ? "" : `${this.#lost.what}: ${this.#lost.message}`;
    if (viewer.knownLoss === loss) return;
    const frame =
      this.#lost === undefined ? frameOf("back", { lostMs: this.#lostMs }) : frameOf("lost", this.#lost);
    if (viewer.send(frame)) viewer.knownLoss = loss;
  }

  #topicOf(query: LiveQuery): Topic {
    const { clock, random, logger, sourceOf } = this.#deps;
    const key = JSON.stringify([query.view, query.subject]);
    const known = this.#topicByKey.get(key);
    if (known !== undefined) return known;
    const topic = new Topic({
      id: random.id(TOPIC_ID_LENGTH),
      open: () => sourceOf(query),
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs(),
      onError: (error) => logger.debug({ err: error, view: query.view }, "a live view could not be updated"),
    });
    this.#topicByKey.set(key, topic);
    return topic;
  }

  #begin(): void {
    this.#deps.onWatched(true);
    this.#tick();
  }

  #left(viewer: Viewer, topic: Topic): void {
    if (!this.#viewers.delete(viewer)) return;
    topic.leave(viewer);
    if (this.#viewers.size > 0) return;
    this.#cancelTick?.();
    if (!this.#isClosed) this.#deps.onWatched(false);
  }

  /** At most four updates a second. */
  #tick(): void {
    this.#cancelTick = this.#deps.clock.after(limits.dashboardUpdateMs, () => {
      for (const topic of this.#topicByKey.values()) {
        if (topic.leftAt !== undefined) continue;
        topic.flushRows();
        void topic.update(); // reports its own errors
      }
      if (!this.#isClosed && this.#viewers.size > 0) this.#tick();
    });
  }

  #send(frame: string): void {
    for (const viewer of this.#viewers) viewer.send(frame);
  }
}

/** Length of a topic's id: random, so that it differs from the ids of an earlier start. */
const TOPIC_ID_LENGTH = 10;
