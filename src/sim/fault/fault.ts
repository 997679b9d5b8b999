// The faults of a seed as data: a schedule of faults can be printed, repeated and reduced. Not here: the drawing of
// faults (schedule.ts) and their effects (nemesis.ts).

/** Every kind of fault with a line on its effect. `--without` takes the names. */
export const faultKinds = {
  delay: "messages of one node are delayed, with a heavy tail",
  loss: "messages of one node are lost",
  duplicate: "messages of one node arrive twice, the second up to 2 min later",
  reorder: "messages of one node overtake each other",
  cut: "one node receives nothing, or its messages are lost, without an error",
  partition: "some nodes are cut off from the remaining nodes and from the journal",
  isolated: "a coordinator loses the journal and its peers, not agents or clients; at times for long",
  "out-of-touch": "an agent is cut off both ways for longer than H, without an error",
  "agents-silent":
    "messages of some agents are lost for longer than H, with the journal away for nearly as long",
  "answers-lost": "clients receive nothing for a while, and the journal accepts no tasks when they do again",
  clog: "messages of one node are held back, then all arrive",
  "staggered-clog": "messages of many nodes are held back, node after node, then freed in a different order",
  disconnect: "the connection of one node breaks and cannot be restored",
  "server-restart": "every connection breaks, and the journal is away",
  crash: "a process ends at once and is restarted",
  blackout: "every coordinator crashes, and the first to restart has a different wall clock",
  pause: "a process stops and goes on",
  slow: "every step of a process takes long",
  skew: "wall clocks differ by seconds and monotonic clocks drift apart, from the beginning",
  "clock-jump": "a wall clock jumps by seconds, an hour, nearly a day or two days",
  twin: "a second process starts under an agent's id",
  "twin-after-restart": "an agent restarts and receives nothing, and a second process starts under its id",
  transfer: "a coordinator is asked to stop, hands over, and is restarted",
  "ack-lost": "appends are stored and not acknowledged",
  "append-late": "appends are stored long after they were sent, and not acknowledged",
  "append-dropped": "appends are lost",
  "false-refusal": "appends are refused because of a record that does not exist",
  "false-duplicate": "appends are answered as duplicates and not stored",
  "stale-read": "the journal is read as of some records ago: newer records are not found",
  "not-found": "existing records of the journal are not found",
  full: "the journal has no room",
  "journal-off": "the journal's server answers that JetStream is not enabled",
  "no-responders": "the journal does not answer",
  "fail-over":
    "the journal does not answer, and its newest records are not found right before and after; at times a standby starts then",
  "dead-reader": "a coordinator's reader of the journal gets no new records any more",
  "tail-cut": "a power loss takes the newest segment's last records; coordinators hold them",
  "segment-lost": "a power loss takes the newest segment; coordinators hold it",
  gap: "the newest segment loses records in its middle; every coordinator has read them",
  "bit-flip": "a bit of a record flips, and a standby that read the record is restarted",
  foreign: "another client writes into the journal, once or repeatedly",
  "other-branch": "a copy of the swarm, made from a backup, writes its next batch into the journal",
} as const;
export type FaultKind = keyof typeof faultKinds;

/** The fault model's boundary: faults inside the model only, or any faults (docs/fault-model.md). */
export const profiles = ["inside", "outside"] as const;
export type Profile = (typeof profiles)[number];

/** Faults with which the store loses or changes records. */
export const losses = ["tail-cut", "segment-lost", "gap", "bit-flip"] as const satisfies readonly FaultKind[];

export interface Fault {
  readonly kind: FaultKind;
  /** Begin and duration, virtual ms. */
  readonly atMs: number;
  readonly forMs: number;
  /**
   * The target: a node, or `c1/journal` for a coordinator's link to the journal. `leader` is the leader at the begin of
   * the fault, `standby` a coordinator without the lead. `busy` is the agent whose work may take longest. Absent: the
   * server.
   */
  readonly of?: string;
  /** Nodes cut off together, or silenced, ≥ 1. */
  readonly nodes?: readonly string[];
  /** Share of messages, appends, reads, or T, in (0, 1]. */
  readonly share?: number;
  /** Delay, slowness, distance or interval of the fault, ms. */
  readonly ms?: number;
  readonly direction?: "up" | "down";
  /** Number of records, ≥ 1. */
  readonly count?: number;
  /** Bytes of a stream, ≥ 1. */
  readonly bytes?: number;
}

/** Capacity of the store for all segments together: more than any seed fills. */
export const JOURNAL_BYTES = 2 ** 30;
/** Longest period of stale answers of a server, ms: a coordinator rightly believes longer ones (limits.ts). */
export const STALE_MS_MAX = 2_500;
/** Period of true answers after stale answers: long enough for a coordinator to believe them, ms. */
export const FRESH_MS = 5_000;
/** Stands for the current leader. */
export const LEADER = "leader";
/** Stands for a coordinator without the lead. */
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

/** A coordinator's link to the journal. */
export function journalOf(coordinator = ""): string {
  return `${coordinator}/journal`;
}
