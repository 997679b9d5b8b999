// Malformed input from a seed: lines of the NATS protocol, messages for a coordinator, and HTTP requests.

/** Mulberry32: a small generator whose sequence depends on the seed alone. @returns numbers in [0, 1) */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Fuzzer {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  one<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)] as Value;
  }

  /** A line of the protocol, or what is left of it after cuts, repetitions and changed bytes. */
  protocolLine(): Buffer {
    const bytes = Buffer.from(this.one(lines)(this), "latin1");
    return this.#damaged(bytes);
  }

  /** A message for a coordinator: JSON with wrong fields, deeply nested JSON, or no JSON. */
  message(): Buffer {
    const json = this.below(50) === 0 ? this.nested(DEPTH_MAX) : (JSON.stringify(this.#value(0)) ?? "null");
    return this.#random() < 0.7 ? Buffer.from(json) : this.#damaged(Buffer.from(json));
  }

  /** JSON of nested arrays or objects, closed or not, alone or as a field. */
  nested(depthMax: number): string {
    const depth = 1 + this.below(depthMax);
    const [open, close] = this.one([
      ["[", "]"],
      ['{"a":', "}"],
      ['[{"tasks":', "}]"],
    ] as const);
    const json = `${open.repeat(depth)}null${this.below(4) === 0 ? "" : close.repeat(depth)}`;
    return this.below(2) === 0 ? json : `{"v":1,"${this.one(names)}":${json}}`;
  }

  /** A short subject, valid or not, or a subject of up to thousands of tokens. */
  subject(): string {
    if (this.below(40) > 0) return this.one(subjects);
    const tokens = Array.from({ length: 1 + this.below(TOKENS_MAX) }, () => this.one(["a", "a", "b", "*"]));
    return [...tokens, this.one(["a", "", ">"])].join(".");
  }

  #damaged(bytes: Buffer): Buffer {
    const damaged = Buffer.from(bytes);
    for (let times = this.below(4); times > 0 && damaged.length > 0; times -= 1)
      damaged[this.below(damaged.length)] = this.below(256);
    switch (this.below(4)) {
      case 0:
        return damaged.subarray(0, this.below(damaged.length + 1));
      case 1:
        return Buffer.concat([damaged, damaged]);
      default:
        return damaged;
    }
  }

  #value(depth: number): unknown {
    switch (this.below(depth > 4 ? 6 : 9)) {
      case 0:
        return this.one([null, true, false, Number.MAX_VALUE, -1, 0.5, 2 ** 53, 1e-320]);
      case 1:
        return this.one(["", "t1", "a".repeat(this.below(2_000)), "\0", "_INBOX.x", "👾", "../..", "*.>"]);
      case 2:
        return this.below(1_000_000);
      case 3:
        return [];
      case 4:
        return this.one(["$JS.API.STREAM.PURGE.WAGGLE_default_1", "waggle.v1.default.journal.1"]);
      case 5:
        return {};
      case 6:
        return Array.from({ length: this.below(5) }, () => this.#value(depth + 1));
      default: {
        const fields = Array.from({ length: this.below(7) }, () => [this.one(names), this.#value(depth + 1)]);
        return Object.fromEntries(fields);
      }
    }
  }
}

const names = [
  ...["v", "tasks", "id", "kind", "payload", "encoding", "user", "project", "notify", "priority", "weight"],
  ...[
    "incarnation",
    "term",
    "held",
    "seen",
    "results",
    "task",
    "attempt",
    "token",
    "outcome",
    "result",
    "error",
  ],
  ...[
    "kinds",
    "maxConcurrent",
    "labels",
    "resources",
    "from",
    "tail",
    "__proto__",
    "constructor",
    "toString",
  ],
];

const DEPTH_MAX = 20_000;
/** Beyond the longest line of the protocol. */
const TOKENS_MAX = 2_500;

const subjects = ["a", "a.b", "a..b", ".", "*", ">", "a.>", "a.*.b", "$SYS.>", "_INBOX.x", "a b", ""];

const lines: readonly ((from: Fuzzer) => string)[] = [
  (from) => `PUB ${from.subject()} ${from.below(40)}\r\n${"x".repeat(from.below(40))}\r\n`,
  (from) => `PUB ${from.subject()} ${from.subject()} ${from.one(["-1", "1e9", "99999999999", "0"])}\r\n`,
  (from) => `HPUB ${from.subject()} ${from.below(60)} ${from.below(60)}\r\nNATS/1.0\r\n\r\n\r\n`,
  (from) => `SUB ${from.subject()} ${from.one(["q", "", "*"])} ${from.below(100)}\r\n`,
  (from) => `UNSUB ${from.below(100)} ${from.one(["1", "-1", "x", ""])}\r\n`,
  (from) => `CONNECT ${from.one(["{}", "{", "[]", "null", '{"auth_token":{}}', '{"nkey":"U","sig":1}'])}\r\n`,
  (from) =>
    `CONNECT {"auth_token":"${"f".repeat(from.below(128))}","challenge":"${"c".repeat(from.below(300))}"}\r\n`,
  (from) => `CONNECT ${from.nested(1_500)}\r\n`,
  () => "PING\r\n",
  () => "PONG\r\n",
  (from) => `${"x".repeat(from.below(6_000))}\r\n`,
  (from) => String.fromCharCode(...Array.from({ length: from.below(64) }, () => from.below(256))),
  () => "INFO {}\r\nMSG a 1 0\r\n\r\n-ERR\r\n+OK\r\n",
];

/** Paths of requests to the dashboard. */
export const httpPaths = [
  ...[
    "/",
    "/api/status",
    "/api/tasks?limit=-1",
    "/api/task/%00",
    "/..%2f..%2fetc/passwd",
    "/api/events?from=1e99",
  ],
  ...[
    "/%",
    "/api/%E0%A4%A",
    `/${"a".repeat(4_000)}`,
    "/api/settings",
    "/api/actions/pause",
    "//evil.example/",
    "*",
  ],
  ...[
    ...["overview", "agents", "fairness", "resources", "budgets", "system", "session", "history?window=x"],
    ...["tasks?text=%00&state=x", "tasks/t1/contents?project=%2e%2e", "agents/%2f", "fairness/past?at=-1"],
    ...["actions/submit", "actions/cancel", "actions/drain", "actions/__proto__"],
    `events?${"a=b&".repeat(2_000)}`,
  ].map((path) => `/api/${path}`),
];
