// What every measured system offers to its processes, and the orders that the benchmark sends to a client process.
// Types alone: the benchmark imports them without the peers' packages.

/** Addresses and settings of one system. The benchmark sends the object as JSON. */
export interface PeerConfig {
  /** URL of the server; several are separated by commas. */
  readonly url?: string;
  readonly port?: number;
  /** Unix socket on which workers of a system without results report ended tasks. */
  readonly socket: string;
  readonly replicas?: number;
  readonly payloadBytes: number;
  /** The compiled SDK of the measured checkout of Waggle. */
  readonly sdk: string;
  readonly swarm: string;
  readonly dataFolder?: string;
  /** Agents per process. Default 1. */
  readonly agents?: number;
  readonly maxConcurrent?: number;
  readonly kinds?: readonly string[];
  /** Users among whom tasks are spread. Default 1. */
  readonly users?: number;
  /** A setting that a peer's driver explains. */
  readonly concurrency?: number;
  readonly prefetch?: number;
  readonly localQueue?: number;
  readonly queueVersion?: number;
  readonly serializer?: string;
}

export interface Client {
  /** Submits one task. Resolves with the end of the task. */
  one(payload: string): Promise<unknown>;
  /** Submits many tasks at once. Resolves with the end of the last task, to the instant at which the system had
   *  accepted all tasks. Default: many calls of `one`. */
  burst?(tasks: number, payload: string): Promise<number>;
  readonly calls?: Calls;
}

/** What a process does beside tasks, by the name in the order. */
export type Calls = Readonly<Record<string, (amount: number) => Promise<unknown>>>;

export interface Peer {
  /** Runs once, before the processes start. */
  setup?(config: PeerConfig): Promise<void>;
  /** A process that serves tasks. Absent if the system has no workers. */
  worker?(config: PeerConfig): Promise<unknown>;
  client(config: PeerConfig): Promise<Client>;
  /** A process of connections that follow all events. Absent if the system has no events. */
  followers?(config: PeerConfig): Calls;
}

export type Order =
  | { readonly op: "closed"; readonly concurrency: number; readonly ms: number }
  | { readonly op: "burst"; readonly tasks: number }
  | { readonly op: "open"; readonly ratePerSecond: number; readonly ms: number }
  | { readonly op: "call"; readonly name: string; readonly amount: number };

/** Latencies in ms. In an open loop, from the instant at which a task was due. */
export interface Timing {
  readonly tasks: number;
  readonly ms: number;
  readonly ratePerSecond: number;
  readonly p50?: number;
  readonly p99?: number;
  readonly max?: number;
  /** From the first submission to the last acceptance. */
  readonly acceptedMs?: number;
  readonly value?: unknown;
}
