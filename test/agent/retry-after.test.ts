// The time until a provider takes work again, from the headers of real providers.

import { describe, expect, it } from "vitest";
import { retryAfterMs } from "../../src/agent/retry-after.ts";
import { limits } from "../../src/limits.ts";

const now = Date.parse("2026-11-20T18:00:00Z");

describe("the time of a refusal", () => {
  it.each([
    ["seconds", { "retry-after": "12" }, 12_000],
    ["seconds with a fraction", { "retry-after": "0.25" }, 250],
    ["ms (OpenAI, Anthropic)", { "retry-after-ms": "1500", "retry-after": "2" }, 1_500],
    ["an HTTP date", { "retry-after": "Fri, 20 Nov 2026 18:00:30 GMT" }, 30_000],
    [
      "an HTTP date, against the provider's own clock",
      { date: "Fri, 20 Nov 2026 17:00:00 GMT", "retry-after": "Fri, 20 Nov 2026 17:00:05 GMT" },
      5_000,
    ],
    ["a date that is over", { "retry-after": "Fri, 20 Nov 2026 17:00:00 GMT" }, 0],
    ["more than a hold lasts", { "retry-after": "99999999" }, limits.holdMsMax],
    ["seconds since the epoch (GitHub)", { "x-ratelimit-reset": `${now / 1_000 + 60}` }, 60_000],
    ["ms since the epoch", { "x-ratelimit-reset": `${now + 1_500}` }, 1_500],
    ["seconds from now", { "x-ratelimit-reset": "7" }, 7_000],
    ["a duration (OpenAI)", { "x-ratelimit-reset-tokens": "6m0s" }, 360_000],
    ["a date of RFC 3339", { "x-ratelimit-reset-requests": "2026-11-20T18:00:09Z" }, 9_000],
    [
      "the reset of the limit that is used up",
      {
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-requests": "12",
        "x-ratelimit-reset-tokens": "20ms",
        "x-ratelimit-remaining-tokens": "0",
      },
      20,
    ],
    [
      "the latest of several",
      { "x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "4s" },
      4_000,
    ],
    [
      "a date of Anthropic, of the limits without anything remaining",
      {
        "anthropic-ratelimit-requests-reset": "2026-11-20T18:00:50Z",
        "anthropic-ratelimit-requests-remaining": "3",
        "anthropic-ratelimit-tokens-reset": "2026-11-20T18:00:20Z",
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-20T18:00:09Z",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2026-11-20T18:01:00Z",
      },
      20_000,
    ],
    ["seconds (IETF)", { "ratelimit-reset": "30", "ratelimit-remaining": "0" }, 30_000],
    [
      "seconds of a limit with a rest (IETF)",
      { "ratelimit-reset": "30", "ratelimit-remaining": "2" },
      undefined,
    ],
    ["a policy (IETF)", { ratelimit: "limit=100, remaining=0, reset=50" }, 50_000],
    ["a policy with a rest (IETF)", { ratelimit: "limit=100, remaining=4, reset=50" }, undefined],
    ["policies (IETF)", { ratelimit: '"burst";r=0;t=50, "hour";r=0;t=70, "daily";r=9;t=3600' }, 70_000],
    ["a policy without a time (IETF)", { ratelimit: '"burst";r=0' }, undefined],
    ["Retry-After before all else", { "retry-after": "2", "x-ratelimit-reset": "50" }, 2_000],
    ["nothing", {}, undefined],
    ["nonsense", { "retry-after": "soon", "x-ratelimit-reset": "never" }, undefined],
    ["a negative number", { "retry-after": "-5" }, undefined],
    ["a day of the week with a number", { "retry-after": "Fri, 5" }, undefined],
  ])("is read from %s", (_, headers, ms) => {
    expect(retryAfterMs(headers as Record<string, string>, now)).toBe(ms);
  });
});
