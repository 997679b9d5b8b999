// What may go wrong in a seed, as data: a schedule of faults can be printed, repeated and made smaller. Not here: which
// faults a seed meets (schedule.ts), what they do (nemesis.ts).

/** Every kind of fault with one line on what it does. The names are what `--without` takes. */
export const faultKinds = {
  delay: "messages of one node take long, with a heavy tail",
  loss: "messages of one node are lost",
  duplicate: "messages of one node arrive twice, the second up to 2 min later",
  reorder: "messages of one node overtake each other",
  cut: "one node hears nothing, or is not heard, and is not told",
  partition:
    "some nodes hear only each other, and the others only the others; the journal is with the others",
  alone: "a coordinator reaches neither the journal nor its like, and all others; at times for long",
  "out-of-touch": "an agent neither hears nor is heard for longer than H, and is not told",
  unheard:
    "some agents are not heard for longer than H, and nobody answers for the journal for nearly as long",
  untold: "clients hear nothing for a while, and the journal takes no tasks by when they do again",
  clog: "nothing of one node arrives, then all of it does",
  swizzle: "nothing of many nodes arrives, of one after another, then all of it does, in another order",
  disconnect: "one node's connection breaks and cannot be made again",
  "server-restart": "every connection breaks, and the journal is away",
  crash: "a process ends where it stands and is started again",
  blackout: "every coordinator crashes, and the first to start again has another wall clock",
  pause: "a process stands still and goes on",
  slow: "everything that a process does takes long",
  skew: "wall clocks differ by seconds and monotonic ones drift apart, from the beginning",
  "clock-jump": "a wall clock jumps by seconds, an hour, nearly a day or two days",
  twin: "a second process starts under an agent's id",
  usurped: "an agent is started anew and hears nothing, and a second process starts under its id",
  transfer: "a coordinator is told to stop, hands over, and is started again",
  "ack-lost": "appends are stored and not acknowledged",
  "append-late": "appends are stored long after they were sent, and not acknowledged",
  "append-dropped": "appends are lost",
  "false-refusal": "appends are refused for a record that is not there",
  "false-duplicate": "appends are called duplicates and not stored",
  "stale-read": "the journal is read as it was some records ago: what it has is not found",
  "not-found": "records that the journal has are not found when they are asked for",
  full: "the journal has no room",
  "journal-off": "the journal's server says that it is not enabled",
  "no-responders": "nobody answers for the journal",
  "fail-over":
    "nobody answers for the journal, and what it has is not found right before and after; at times a standby starts then",
  "dead-reader": "a coordinator reads the journal on, and hears for good that there is nothing new",
  "tail-cut": "a power loss takes the newest segment's last records, which coordinators hold",
  "segment-lost": "a power loss takes the newest segment, which coordinators hold",
  gap: "the newest segment loses records within, which every coordinator has read",
  "bit-flip": "a bit of a record flips, and a standby that read it is started again",
  foreign: "another client writes into the journal, once or again and again",
  "other-line": "a copy of the swarm, made from a backup, writes its next batch into the journal",
} as const;
export type FaultKind = keyof typeof faultKinds;

/** Faults inside the fault model, or any (docs/fault-model.md). */
export const profiles = ["inside", "outside"] as const;
export type Profile = (typeof profiles)[number];

/** The store loses or changes something. */
export const losses = ["tail-cut", "segment-lost", "gap", "bit-flip"] as const satisfies readonly FaultKind[];

export interface Fault {
  readonly kind: FaultKind;
  /** When it begins and how long it lasts, virtual ms. */
  readonly atMs: number;
  readonly forMs: number;
  /** The node it happens to, `c1/journal` for a coordinator's way to the journal, `leader` for whoever leads when it
   *  begins, `standby` for one that does not, `busy` for the agent whose work may take longest then; absent: the
   *  server. */
  readonly of?: string;
  /** Those that are cut off with each other, or are not heard, ≥ 1. */
  readonly nodes?: readonly string[];
  /** Of messages, appends, reads, or T, in (0, 1]. */
  readonly share?: number;
  /** How late, how slow, how far, how often: ms. */
  readonly ms?: number;
  readonly direction?: "up" | "down";
  /** Of records, ≥ 1. */
  readonly count?: number;
  /** Of a stream, ≥ 1. */
  readonly bytes?: number;
}

/** Of all segments together: more than any seed fills. */
export const JOURNAL_BYTES = 2 ** 30;
/** A server answers from before for so long at most, ms: what lasts longer is believed, and rightly (limits.ts)… */
export const STALE_MS_MAX = 2_500;
/** …and then truly for as long as it takes to believe that, ms. */
export const FRESH_MS = 5_000;
/** Stands for whoever leads. */
export const LEADER = "leader";
/** Stands for one that does not. */
export const STANDBY = "standby";
/** Stands for the agent whose work may take longest. */
export const BUSY = "busy";

export function isFaultKind(name: string): name is FaultKind {
  return Object.hasOwn(faultKinds, name);
}

/** One line for people: `at 12.3 s for 4.0 s: pause c2`. */
export function faultText({
  kind,
  atMs,
  forMs,
  of,
  nodes = [],
  share,
  ms,
  direction,
  count,
  bytes,
}: Fault): string {
  const details = [
    of ?? "",
    nodes.join(" "),
    direction ?? "",
    share === undefined ? "" : `${Math.round(share * 100)} %`,
    ms === undefined ? "" : `${Math.round(ms)} ms`,
    count === undefined ? "" : `${count} records`,
    bytes === undefined ? "" : `${bytes} bytes`,
  ].filter((detail) => detail !== "");
  return `at ${seconds(atMs)} for ${seconds(forMs)}: ${[kind, ...details].join(" ")}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`;
}

/** A coordinator's way to the journal. */
export function journalOf(coordinator = ""): string {
  return `${coordinator}/journal`;
}
