// Data of the timeline pictures as plain rows: bars, shares of the service over time, waits per user. Many users are
// merged: users with a common part of their names, or all but the heaviest users as `others`.

import { maximumOf, meanOf } from "../../sim/policy/statistics.ts";
import type { Bar, Timeline } from "../../sim/policy/timeline.ts";

interface BarRow {
  readonly rule: string;
  readonly user: string;
  /** Place in the order of beginning, from 0. */
  readonly place: number;
  readonly arrivedAt: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

interface ShareRow {
  readonly rule: string;
  readonly user: string;
  /** Begin of the span; one more row at the end of the last span. */
  readonly at: number;
  /** Share of all service in the span, [0, 1]. */
  readonly share: number;
  /** Position of the user in the chart, from the bottom. */
  readonly order: number;
}

interface WaitRow {
  readonly rule: string;
  readonly user: string;
  readonly mean: number;
  readonly longest: number;
}

export interface Series {
  readonly users: readonly string[];
  readonly unit: string;
  readonly endsAt: number;
  readonly bars: readonly BarRow[];
  /** Number of all bars. */
  readonly countByRule: ReadonlyMap<string, number>;
  readonly shares: readonly ShareRow[];
  readonly waits: readonly WaitRow[];
}

/** More cannot be told apart by colour. */
const USERS_SHOWN = 15;
const HEAVIEST_SHOWN = 9;
/** A waterfall shows so many bars at most… */
const BARS_SHOWN = 400;
/** …and no more bars than leave each bar this share of the width. */
const BAR_WIDTH_SHARE = 1 / 60;
const SPANS = 40;

export function seriesOf(timelines: ReadonlyMap<string, Timeline>): Series {
  const all = [...timelines.values()].flatMap(({ bars }) => bars);
  const shownAs = grouping(all);
  const users = [...new Set(all.map(({ user }) => shownAs(user)))].sort(byName);
  const endsAt = all.reduce((latest, { endedAt }) => Math.max(latest, endedAt), 0);
  const renamed = [...timelines].map(([rule, { bars, focusAt }]) => ({
    rule,
    focusAt,
    bars: bars.map((bar) => ({ ...bar, user: shownAs(bar.user) })),
  }));
  return {
    users,
    unit: [...timelines.values()][0]?.unit ?? "",
    endsAt,
    bars: renamed.flatMap(({ rule, bars, focusAt }) => shown(bars, focusAt).map((bar) => ({ rule, ...bar }))),
    countByRule: new Map(renamed.map(({ rule, bars }) => [rule, bars.length])),
    shares: renamed.flatMap(({ rule, bars }) =>
      sharesOf(bars, users, endsAt).map((row) => ({ rule, ...row })),
    ),
    waits: renamed.flatMap(({ rule, bars }) => waitsOf(bars, users).map((row) => ({ rule, ...row }))),
  };
}

function grouping(bars: readonly Bar[]): (user: string) => string {
  const counts = new Map<string, number>();
  for (const { user } of bars) counts.set(user, (counts.get(user) ?? 0) + 1);
  if (counts.size <= USERS_SHOWN) return (user) => user;
  const stem = (user: string) => user.replace(/-\d+$/, "");
  const stems = new Set([...counts.keys()].map(stem));
  if (stems.size > 1 && stems.size <= USERS_SHOWN) return stem;
  const heaviest = [...counts].sort(([, a], [, b]) => b - a).slice(0, HEAVIEST_SHOWN);
  const kept = new Set(heaviest.map(([user]) => user));
  return (user) => (kept.has(user) ? user : "others");
}

/** As many bars as can be told apart: from shortly before the focus on, or those in the middle. */
function shown(bars: readonly Bar[], focusAt: number | undefined): Omit<BarRow, "rule">[] {
  const busy = bars.reduce((sum, { startedAt, endedAt }) => sum + endedAt - startedAt, 0);
  const span = bars.reduce((latest, { endedAt }) => Math.max(latest, endedAt), 0) || 1;
  const count = Math.min(BARS_SHOWN, Math.ceil(Math.max(1, busy / span) / BAR_WIDTH_SHARE));
  const wanted =
    focusAt === undefined
      ? (bars.length - count) / 2
      : bars.findIndex(({ startedAt }) => startedAt >= focusAt) - count / 6;
  const from = Math.max(0, Math.min(Math.floor(wanted), bars.length - count));
  return bars.slice(from, from + count).map(({ user, arrivedAt, startedAt, endedAt }, at) => ({
    user,
    arrivedAt,
    startedAt,
    endedAt,
    place: from + at,
  }));
}

function sharesOf(bars: readonly Bar[], users: readonly string[], endsAt: number): Omit<ShareRow, "rule">[] {
  const span = endsAt / SPANS;
  const busyByUser = new Map(users.map((user) => [user, new Float64Array(SPANS)]));
  for (const { user, startedAt, endedAt } of bars) {
    const busy = busyByUser.get(user);
    for (let at = Math.floor(startedAt / span); at < SPANS && at * span < endedAt; at += 1) {
      const inSpan = Math.min(endedAt, (at + 1) * span) - Math.max(startedAt, at * span);
      if (busy !== undefined && inSpan > 0) busy[at] = (busy[at] ?? 0) + inSpan;
    }
  }
  return Array.from({ length: SPANS + 1 }, (_, edge) => {
    const at = Math.min(edge, SPANS - 1);
    const total = users.reduce((sum, user) => sum + (busyByUser.get(user)?.[at] ?? 0), 0);
    return users.map((user, order) => ({
      user,
      order,
      at: edge * span,
      share: total === 0 ? 0 : (busyByUser.get(user)?.[at] ?? 0) / total,
    }));
  }).flat();
}

function waitsOf(bars: readonly Bar[], users: readonly string[]): Omit<WaitRow, "rule">[] {
  return users.map((user) => {
    const waits = bars
      .filter((bar) => bar.user === user)
      .map(({ arrivedAt, startedAt }) => startedAt - arrivedAt);
    return { user, mean: meanOf(waits), longest: maximumOf(waits) };
  });
}

/** By the words of a name, then by its number. */
function byName(a: string, b: string): number {
  const [wordA, wordB] = [a.replace(/\d+$/, ""), b.replace(/\d+$/, "")];
  if (wordA !== wordB) return wordA < wordB ? -1 : 1;
  return Number(a.slice(wordA.length)) - Number(b.slice(wordB.length));
}
