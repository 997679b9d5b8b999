// Figures of a course of events: the same for the record and for each replay. Waits, fairness and percentiles are those
// of the simulations (policy/figures.ts).

import { contendedJain, sojournsMsOf, waitsMsOf } from "../policy/figures.ts";
import type { Log } from "../policy/run-tasks.ts";
import { maximumOf, meanOf, percentileOf } from "../policy/statistics.ts";
import type { Timeline } from "../policy/timeline.ts";
import type { Course, CourseTask, Outcome, SlotRequest } from "./course.ts";

/** Figures of a set of times, ms; all 0 for an empty set. */
export interface TimeFigures {
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

export interface CourseFigures {
  /** Tasks by their standing at the end, and tasks that a bound refused. */
  readonly tasks: Readonly<Record<Outcome | "submitted" | "refused", number>>;
  /** From the arrival of a task to the start of its first attempt. */
  readonly waitMs: TimeFigures;
  /** From the arrival of a task to its end. */
  readonly turnaroundMs: TimeFigures;
  /** Jain's index of the users' grants over their entitlements while two or more users wait; (0, 1]. */
  readonly jain: number;
  /** From the first arrival to the last end, ms; while tasks are unfinished, to the end of the course. */
  readonly makespanMs: number;
  readonly attempts: number;
  /** Attempts that ended with their agent. */
  readonly lost: number;
  /** Tokens reported by attempts. */
  readonly tokens: number;
  /** Sum of the weights of all attempts, in the submitters' own unit. */
  readonly cost: number;
  readonly users: readonly GroupFigures[];
  readonly projects: readonly GroupFigures[];
  readonly kinds: readonly GroupFigures[];
  /** Requests for slots, by resource. */
  readonly resources: readonly GroupFigures[];
}

/** Waits of the tasks of one user, project or kind, or of the requests for one resource. */
export interface GroupFigures {
  readonly name: string;
  /** Tasks, or requests. */
  readonly count: number;
  readonly waitMs: TimeFigures;
}

/** @param endAt end of the course, ms since 1970 */
export function figuresOf(course: Course, endAt: number): CourseFigures {
  const log = course.log(endAt);
  const tasks = log.tasks as readonly CourseTask[];
  return {
    tasks: countsOf(course),
    waitMs: timesOf(waitsMsOf(tasks)),
    turnaroundMs: timesOf(sojournsMsOf(tasks)),
    jain: contendedJain(competing(log)),
    makespanMs: makespanOf(tasks, endAt),
    attempts: course.attempts,
    lost: course.lost,
    tokens: course.tokens,
    cost: course.cost,
    users: groupsOf(tasks, nameOfUser(tasks)),
    projects: groupsOf(tasks, ({ project }) => project),
    kinds: groupsOf(tasks, ({ task }) => task.kind),
    resources: resourcesOf(course.slotRequests),
  };
}

/** The course as bars of a picture. Times in seconds since the first arrival. */
export function timelineOfCourse(course: Course, endAt: number): Timeline {
  const log = course.log(endAt);
  const nameOf = nameOfUser(course.tasks);
  const startAt = log.tasks.reduce((least, { task }) => Math.min(least, task.arrivesAt), endAt);
  const seconds = (at: number) => (at - startAt) / 1_000;
  const bars = log.attempts.map(({ task, agent, startedAt, endsAt }) => ({
    user: nameOf(course.tasks[task.index] as CourseTask),
    task: task.index,
    agent: agent.index,
    arrivedAt: seconds(Math.min(task.arrivesAt, startedAt)),
    startedAt: seconds(startedAt),
    endedAt: seconds(endsAt),
  }));
  return { unit: "s", bars };
}

/** Users of several projects are told apart by their project. */
function nameOfUser(tasks: readonly CourseTask[]): (task: CourseTask) => string {
  const projects = new Set(tasks.map(({ project }) => project));
  return projects.size > 1 ? ({ project, user }) => `${project}/${user}` : ({ user }) => user;
}

function countsOf({ tasks, refused }: Course): CourseFigures["tasks"] {
  const counts = {
    submitted: tasks.length,
    completed: 0,
    failed: 0,
    cancelled: 0,
    expired: 0,
    unfinished: 0,
    refused,
  };
  for (const { outcome } of tasks) counts[outcome] += 1;
  return counts;
}

/** The log with started and waiting tasks. A task that ended in its queue was never granted, so it is left out. */
function competing(log: Log): Log {
  return {
    ...log,
    tasks: log.tasks.filter(({ startedAt, endedAt }) => startedAt !== undefined || endedAt === undefined),
  };
}

function makespanOf(tasks: readonly CourseTask[], endAt: number): number {
  const first = tasks[0];
  if (first === undefined) return 0;
  return maximumOf(tasks.map((task) => task.endedAt ?? endAt)) - first.task.arrivesAt;
}

function groupsOf(tasks: readonly CourseTask[], nameOf: (task: CourseTask) => string): GroupFigures[] {
  const byName = new Map<string, CourseTask[]>();
  for (const task of tasks) {
    const of = byName.get(nameOf(task));
    if (of === undefined) byName.set(nameOf(task), [task]);
    else of.push(task);
  }
  return [...byName]
    .map(([name, of]) => ({ name, count: of.length, waitMs: timesOf(waitsMsOf(of)) }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

function resourcesOf(requests: readonly SlotRequest[]): GroupFigures[] {
  const names = [...new Set(requests.flatMap(({ resources }) => resources))].sort();
  return names.map((name) => {
    const of = requests.filter(({ resources }) => resources.includes(name));
    const waits = of.flatMap(({ requestedAt, grantedAt }) =>
      grantedAt === undefined ? [] : [grantedAt - requestedAt],
    );
    return { name, count: of.length, waitMs: timesOf(waits) };
  });
}

function timesOf(values: readonly number[]): TimeFigures {
  return {
    count: values.length,
    mean: meanOf(values),
    p50: percentileOf(values, 0.5),
    p95: percentileOf(values, 0.95),
    p99: percentileOf(values, 0.99),
    max: maximumOf(values),
  };
}
