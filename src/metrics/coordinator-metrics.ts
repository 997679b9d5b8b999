// The metrics of a coordinator's process (docs/metrics.md). Counters and histograms are fed with committed events, and
// with the times of turns and appends. Gauges are read when somebody asks for the text (gauges.ts). Nothing here
// decides, and the journal records none of it: a restart begins at 0.

import type { Kind, ProjectId } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Event, FailureClass } from "../state/event.ts";
import { BoundedNames } from "./bounded-names.ts";
import { type CoordinatorView, Gauges } from "./gauges.ts";
import { type Counter, type Described, type Histogram, Registry } from "./registry.ts";

export interface CoordinatorMetricsOptions {
  /** Version of the package. */
  readonly version: string;
  /** Whether metrics of agents have one series per agent. Default false. */
  readonly byAgent?: boolean;
}

/** A committed event, with what the counters need beside. */
export interface CountedEvent {
  readonly event: Event;
  /** `_` without a project. */
  readonly project: string;
  /** The kind that an assigned or ended attempt runs as; undefined for other events. */
  readonly kind: Kind | undefined;
}

/** A stored batch. */
export interface StoredBatch {
  readonly events: number;
  readonly bytes: number;
  /** From the first sending to the acknowledgement. */
  readonly appendMs: number;
}

const outcomes = [
  "completed",
  "failed",
  "infrastructure",
  "refused",
  "aborted",
  "invalid",
  "lost",
  "timed-out",
  "stalled",
  "revoked",
] as const satisfies readonly (FailureClass | "completed")[];
type AttemptOutcome = (typeof outcomes)[number];

// Upper bounds of buckets.
const scoreBounds = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
const waitSeconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
const runSeconds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];
const turnSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5];
const appendSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const batchEvents = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

export class CoordinatorMetrics {
  readonly #registry = new Registry();
  readonly #counts = countersIn(this.#registry);
  readonly #gauges: Gauges;
  readonly #kinds = new BoundedNames(limits.metricNamesMax, (kind) => kindSeriesOf(this.#counts, kind));
  readonly #projects = new BoundedNames(limits.metricNamesMax, (project) => ({
    assignments: this.#counts.projectAssignments.with({ project }),
    tokens: this.#counts.tokensUsed.with({ project }),
  }));
  #view: () => CoordinatorView | undefined = () => undefined;

  constructor({ version, byAgent = false }: CoordinatorMetricsOptions) {
    this.#gauges = new Gauges(this.#registry, { version, byAgent });
  }

  /** All metrics, in the order of the text. */
  get described(): readonly Described[] {
    return this.#registry.described;
  }

  /** Where gauges are read. Before the call, the text has only the process. */
  showing(view: () => CoordinatorView): void {
    this.#view = view;
  }

  /** The text, in the format of Prometheus. */
  text(): string {
    this.#gauges.read(this.#view());
    return this.#registry.text();
  }

  // --- fed by a leader ------------------------------------------------------------------------------

  /** A turn was decided. */
  decided(ms: number): void {
    this.#counts.turn.observe(ms / 1000);
  }

  stored({ events, bytes, appendMs }: StoredBatch): void {
    this.#counts.append.observe(appendMs / 1000);
    this.#counts.batchEvents.observe(events);
    this.#counts.journalBytes.add(bytes);
  }

  committed(recorded: readonly CountedEvent[]): void {
    for (const each of recorded) this.#count(each);
  }

  #count({ event, project, kind }: CountedEvent): void {
    switch (event.type) {
      case "TaskSubmitted":
        return this.#kinds.of(event.task.kind).submitted.add();
      case "TaskAssigned": {
        const { receipt } = event;
        if (kind !== undefined) {
          const { assignments, wait } = this.#kinds.of(kind);
          assignments.add();
          wait.observe(receipt.waitedMs / 1000);
        }
        this.#counts.score.observe(receipt.candidates[0]?.score ?? 0);
        return this.#projects.of(project).assignments.add();
      }
      case "TaskCompleted":
        this.#counts.ended.completed.add();
        return this.#attemptEnded(event, kind, "completed");
      case "AttemptFailed":
        return this.#attemptEnded(event, kind, event.failure.class);
      case "TaskFailed":
        this.#counts.ended.failed.add();
        return this.#attemptEnded(event, kind, event.failure.class);
      case "TaskDeadLettered":
        this.#counts.ended["dead-lettered"].add();
        return this.#attemptEnded(event, kind, event.failure.class);
      case "TaskCancelled":
        return this.#counts.ended.cancelled.add();
      case "TaskExpired":
        return this.#counts.ended.expired.add();
      case "AttemptReleased":
      case "TokensCharged":
        return this.#used(event.project, event.tokens);
      case "TasksRefused":
        return this.#counts.refused.with({ reason: event.reason }).add(event.count);
      default:
    }
  }

  #attemptEnded(
    {
      project,
      latencyMs,
      tokens,
    }: { readonly project: ProjectId; readonly latencyMs: number; readonly tokens?: number },
    kind: Kind | undefined,
    outcome: AttemptOutcome,
  ): void {
    this.#used(project, tokens);
    if (kind === undefined) return;
    const { run, endedBy } = this.#kinds.of(kind);
    run.observe(latencyMs / 1000);
    endedBy(outcome).add();
  }

  #used(project: ProjectId, tokens: number | undefined): void {
    if (tokens !== undefined) this.#projects.of(project).tokens.add(tokens);
  }
}

/** The bound series of a kind. */
interface KindSeries {
  readonly submitted: Counter;
  readonly assignments: Counter;
  readonly wait: Histogram;
  readonly run: Histogram;
  readonly endedBy: (outcome: AttemptOutcome) => Counter;
}

type Counters = ReturnType<typeof countersIn>;

function kindSeriesOf(counts: Counters, kind: string): KindSeries {
  const byOutcome = new Map<AttemptOutcome, Counter>();
  return {
    submitted: counts.submitted.with({ kind }),
    assignments: counts.assignments.with({ kind }),
    wait: counts.wait.with({ kind }),
    run: counts.run.with({ kind }),
    endedBy: (outcome) => {
      const known = byOutcome.get(outcome) ?? counts.attempts.with({ kind, outcome });
      byOutcome.set(outcome, known);
      return known;
    },
  };
}

function countersIn(registry: Registry) {
  const ended = registry.counter<"outcome">({
    name: "waggle_tasks_ended_total",
    help: "Ended tasks",
    labels: ["outcome"],
  });
  return {
    submitted: registry.counter<"kind">({
      name: "waggle_tasks_submitted_total",
      help: "Accepted tasks",
      labels: ["kind"],
    }),
    ended: {
      completed: ended.with({ outcome: "completed" }),
      failed: ended.with({ outcome: "failed" }),
      cancelled: ended.with({ outcome: "cancelled" }),
      expired: ended.with({ outcome: "expired" }),
      "dead-lettered": ended.with({ outcome: "dead-lettered" }),
    },
    assignments: registry.counter<"kind">({
      name: "waggle_task_assignments_total",
      help: "Assignments of tasks to agents",
      labels: ["kind"],
    }),
    projectAssignments: registry.counter<"project">({
      name: "waggle_project_assignments_total",
      help: "Assignments of tasks to agents, by project",
      labels: ["project"],
    }),
    score: registry
      .histogram({
        name: "waggle_assignment_score",
        help: "Score of the chosen agent at each assignment, 0 to 1",
        labels: [],
        bounds: scoreBounds,
      })
      .with({}),
    wait: registry.histogram<"kind">({
      name: "waggle_task_wait_seconds",
      help: "Time from the entry into the queue to the assignment",
      labels: ["kind"],
      bounds: waitSeconds,
    }),
    run: registry.histogram<"kind">({
      name: "waggle_task_run_seconds",
      help: "Time from the assignment to the end of the attempt, whatever the outcome",
      labels: ["kind"],
      bounds: runSeconds,
    }),
    attempts: registry.counter<"kind" | "outcome">({
      name: "waggle_attempts_ended_total",
      help: "Ended attempts",
      labels: ["kind", "outcome"],
    }),
    tokensUsed: registry.counter<"project">({
      name: "waggle_tokens_used_total",
      help: "Tokens used, as reported by agents",
      labels: ["project"],
    }),
    refused: registry.counter<"reason">({
      name: "waggle_tasks_refused_total",
      help: "Tasks refused for want of room or budget",
      labels: ["reason"],
    }),
    turn: registry
      .histogram({
        name: "waggle_decision_seconds",
        help: "Time of a turn: decisions, planning and encoding of one batch",
        labels: [],
        bounds: turnSeconds,
      })
      .with({}),
    append: registry
      .histogram({
        name: "waggle_journal_append_seconds",
        help: "Time from sending a batch to the acknowledgement by the journal",
        labels: [],
        bounds: appendSeconds,
      })
      .with({}),
    batchEvents: registry
      .histogram({
        name: "waggle_batch_events",
        help: "Events per batch",
        labels: [],
        bounds: batchEvents,
      })
      .with({}),
    journalBytes: registry
      .counter({
        name: "waggle_journal_appended_bytes_total",
        help: "Bytes appended to the journal",
        labels: [],
      })
      .with({}),
  };
}
