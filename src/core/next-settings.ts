// The next settings from the present settings and an operator's patch: complete, and checked. Pure functions; each
// throws InvalidValueError with the field's name, and then nothing changes. Not here: whether anything differs, and the
// events (decide-settings.ts).

import { InvalidValueError } from "../errors.ts";
import type { Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import { alphaOf } from "../state/alpha.ts";
import type { Grant } from "../state/grant.ts";
import { type Policy, projectTurnRules, ruleSets, userTurnRules } from "../state/policy.ts";
import {
  type BudgetSettings,
  budgetModes,
  type KindSettings,
  type OwnAlpha,
  type ProjectSettings,
  type RateSettings,
  type ResourceSettings,
  rateWindows,
  resultsKept,
} from "../state/settings.ts";
import type {
  BudgetPatch,
  KindPatch,
  PolicyPatch,
  ProjectPatch,
  RatePatch,
  ResourcePatch,
} from "./settings-patch.ts";

const speedExponents: readonly unknown[] = [0, 0.5, 1, 2];

/** @throws InvalidValueError naming the field of the patch */
export function nextPolicy(now: Policy, patch: PolicyPatch): Policy {
  if (patch.rules !== undefined) among(patch.rules, Object.keys(ruleSets), "rules");
  const base = patch.rules === undefined ? now : { ...now, ...ruleSets[patch.rules], rules: patch.rules };
  const {
    projectTurn = base.projectTurn,
    userTurn = base.userTurn,
    agentRule = base.agentRule,
    lambda = base.lambda,
    speedExponent = base.speedExponent,
    autoTune = base.autoTune,
    starvationLimit = base.starvationLimit,
    guaranteeMs = base.guaranteeMs,
    tokensDefault = base.tokensDefault,
    rememberMs = base.rememberMs,
    rememberedTasks = base.rememberedTasks,
    projects = base.projects,
    resources = base.resources,
    slotsDefault = base.slotsDefault,
    agents = base.agents,
    security = base.security,
  } = patch;
  const topN = replaced(base.topN, patch.topN);
  const budget = nextBudget(base.budget, patch.budget);
  checkTurns({ projectTurn, userTurn }, patch);
  among(projectTurn, projectTurnRules, "projectTurn");
  among(userTurn, userTurnRules, "userTurn");
  among(agentRule, ["score", "first-idle"], "agentRule");
  within(lambda, 0, limits.lambdaMax, "lambda");
  among(speedExponent, speedExponents, "speedExponent");
  among(autoTune, [true, false], "autoTune");
  whole(starvationLimit, 0, limits.starvationLimitTicksMax, "starvationLimit");
  whole(guaranteeMs, limits.guaranteeMsMin, limits.guaranteeMsMax, "guaranteeMs");
  if (topN !== undefined) whole(topN, 1, limits.openAttemptsMax, "topN");
  whole(tokensDefault, 1, limits.tokensPerAttemptMax, "tokensDefault");
  whole(rememberMs, limits.rememberMsMin, limits.rememberMsMax, "rememberMs");
  whole(rememberedTasks, limits.rememberedTasksMin, limits.rememberedTasksMax, "rememberedTasks");
  among(projects, ["open", "declared"], "projects");
  among(resources, ["open", "declared"], "resources");
  whole(slotsDefault, 1, limits.slotsPerResourceMax, "slotsDefault");
  among(agents, ["open", "declared"], "agents");
  among(security, ["open", "strict"], "security");
  return {
    rules: base.rules,
    projectTurn,
    userTurn,
    agentRule,
    lambda,
    speedExponent,
    alpha: alphaAfter(base, patch),
    autoTune,
    starvationLimit,
    guaranteeMs,
    ...(topN === undefined ? {} : { topN }),
    ...(budget === undefined ? {} : { budget }),
    tokensDefault,
    rememberMs,
    rememberedTasks,
    projects,
    resources,
    slotsDefault,
    agents,
    security,
  };
}

/** Refuses a combination of known rules that defines no order. */
function checkTurns(
  { projectTurn, userTurn }: Pick<Policy, "projectTurn" | "userTurn">,
  patch: PolicyPatch,
): void {
  if (projectTurn === "none" && userTurn === "clock") {
    const field = patch.projectTurn === undefined ? "userTurn" : "projectTurn";
    const sentence =
      `${field}: where projects take no turns, users cannot take turns by clock: clocks of users of different ` +
      "projects are not comparable; choose load, recency or fifo for users, or a rule for projects";
    throw new InvalidValueError(sentence, { field });
  }
}

function alphaAfter(
  now: Pick<Policy, "alpha" | "autoTune">,
  { alpha, optimizeFor, autoTune = now.autoTune }: PolicyPatch,
): number {
  const isSaid = alpha !== undefined || optimizeFor !== undefined;
  return alphaOf({ optimizeFor, alpha: isSaid ? alpha : now.alpha, autoTune });
}

/** @throws InvalidValueError naming the field of the patch */
export function nextProject(now: ProjectSettings, patch: ProjectPatch): ProjectSettings {
  const { creditWeight = now.creditWeight, results = now.results ?? "whole" } = patch;
  const maxConcurrent = replaced(now.maxConcurrent, patch.maxConcurrent);
  const budget = nextBudget(now.budget, patch.budget);
  const queueMax = replaced(now.queueMax, patch.queueMax) ?? limits.queuedTasksPerProjectMax;
  within(creditWeight, limits.settingWeightMin, limits.settingWeightMax, "creditWeight");
  if (maxConcurrent !== undefined) whole(maxConcurrent, 1, limits.openAttemptsMax, "maxConcurrent");
  whole(queueMax, 1, limits.queuedTasksPerProjectMax, "queueMax");
  among(results, resultsKept, "results");
  const { priorityMagnitudeMax: priorityMax, taskWeightMax: weightMax } = limits;
  const priorityRange = replaced(now.priorityRange, patch.priorityRange);
  const weightRange = replaced(now.weightRange, patch.weightRange);
  if (priorityRange !== undefined) {
    whole(priorityRange.min, -priorityMax, priorityMax, "priorityRange.min");
    whole(priorityRange.max, priorityRange.min, priorityMax, "priorityRange.max");
  }
  if (weightRange !== undefined) {
    within(weightRange.min, 1, weightMax, "weightRange.min");
    within(weightRange.max, weightRange.min, weightMax, "weightRange.max");
  }
  const user = replaced(now.user, patch.user);
  const inboxUsers = replaced(now.inboxUsers, patch.inboxUsers);
  if (inboxUsers !== undefined) whole(inboxUsers.length, 1, limits.grantNamesMax, "inboxUsers");
  return {
    creditWeight,
    ...(maxConcurrent === undefined ? {} : { maxConcurrent }),
    ...(budget === undefined ? {} : { budget }),
    queueMax,
    ...(results === "whole" ? {} : { results }),
    ...(priorityRange === undefined ? {} : { priorityRange }),
    ...(weightRange === undefined ? {} : { weightRange }),
    ...(user === undefined ? {} : { user }),
    ...(inboxUsers === undefined ? {} : { inboxUsers: [...new Set(inboxUsers)].sort() }),
  };
}

/**
 * @param cheaperOf the cheaper kind set for a kind: no kind may lead back to itself
 * @throws InvalidValueError naming the field of the patch
 */
export function nextKind(
  now: KindSettings,
  patch: KindPatch,
  { kind, cheaperOf }: { readonly kind: Kind; readonly cheaperOf: (kind: Kind) => Kind | undefined },
): KindSettings {
  const { importance = now.importance } = patch;
  const cheaper = replaced(now.cheaper, patch.cheaper);
  const cheaperType = replaced(now.cheaperType, patch.cheaperType);
  within(importance, limits.settingWeightMin, limits.settingWeightMax, "importance");
  const chain: Kind[] = [kind];
  for (let at = cheaper; at !== undefined; at = cheaperOf(at)) {
    chain.push(at);
    if (at !== kind) continue;
    const sentence = `cheaper: a kind must not lead back to itself: ${chain.join(" → ")}`;
    throw new InvalidValueError(sentence, { field: "cheaper" });
  }
  return {
    importance,
    ...(cheaper === undefined ? {} : { cheaper }),
    ...(cheaperType === undefined ? {} : { cheaperType }),
  };
}

/**
 * @param policy supplies the values that a first α of the resource, or a first auto-tune, leaves open
 * @throws InvalidValueError naming the field of the patch
 */
export function nextResource(
  now: ResourceSettings | undefined,
  patch: ResourcePatch,
  policy: Pick<Policy, "alpha" | "autoTune">,
): ResourceSettings {
  const slots = said(patch.slots ?? now?.slots, "slots", "the number of slots");
  const maxWaiters = patch.maxWaiters ?? now?.maxWaiters ?? limits.waitersPerResourceMax;
  whole(slots, 1, limits.slotsPerResourceMax, "slots");
  whole(maxWaiters, 0, limits.maxWaitersMax, "maxWaiters");
  const ownAlpha = nextOwnAlpha(now?.ownAlpha, patch, policy);
  return { slots, maxWaiters, ...(ownAlpha === undefined ? {} : { ownAlpha }) };
}

function nextOwnAlpha(
  now: OwnAlpha | undefined,
  { alpha, optimizeFor, autoTune }: ResourcePatch,
  policy: Pick<Policy, "alpha" | "autoTune">,
): OwnAlpha | undefined {
  if (alpha === null) {
    if (optimizeFor === undefined && autoTune === undefined) return undefined;
    const field = optimizeFor === undefined ? "autoTune" : "optimizeFor";
    const sentence = `${field}: not allowed where alpha returns to the policy's, which sets both`;
    throw new InvalidValueError(sentence, { field });
  }
  if (alpha === undefined && optimizeFor === undefined && autoTune === undefined) return now;
  const base = { alpha: now?.value ?? policy.alpha, autoTune: now?.autoTune ?? policy.autoTune };
  if (autoTune !== undefined) among(autoTune, [true, false], "autoTune");
  return {
    value: alphaAfter(base, { alpha, optimizeFor, autoTune }),
    autoTune: autoTune ?? base.autoTune,
  };
}

/** @param now present setting of the same window, if any · @throws InvalidValueError naming the field of the patch */
export function nextRate(now: RateSettings | undefined, patch: RatePatch): RateSettings {
  const { window } = patch;
  const tokensMax = said(patch.tokensMax ?? now?.tokensMax, "tokensMax", "the number of tokens per window");
  const sliding = patch.sliding ?? now?.sliding ?? false;
  among(window, rateWindows, "window");
  whole(tokensMax, 1, limits.tokensMax, "tokensMax");
  among(sliding, [true, false], "sliding");
  return { window, tokensMax, sliding };
}

const grantLists = ["kinds", "roles", "types", "labels", "projects", "resources"] as const;

/**
 * A grant in its one form: lists sorted, no name twice, fields in order.
 * @throws InvalidValueError naming the field of the grant
 */
export function nextGrant(given: Grant): Grant {
  const grant: Record<string, unknown> = {};
  for (const field of grantLists) {
    const names: readonly string[] | undefined = given[field];
    if (names === undefined) continue;
    const list = [...new Set(names)].sort();
    if (list.length > limits.grantNamesMax)
      throw new InvalidValueError(
        `grant.${field}: at most ${limits.grantNamesMax} names, not ${list.length}`,
        {
          field: `grant.${field}`,
        },
      );
    grant[field] = list;
  }
  const { maxConcurrent, tokens } = given;
  if (maxConcurrent !== undefined) {
    whole(maxConcurrent, 0, limits.maxConcurrentMax, "grant.maxConcurrent");
    grant.maxConcurrent = maxConcurrent;
  }
  if (tokens !== undefined) {
    whole(tokens, 0, limits.tokensPerAttemptMax, "grant.tokens");
    grant.tokens = tokens;
  }
  return grant as Grant;
}

function nextBudget(
  now: BudgetSettings | undefined,
  patch: BudgetPatch | null | undefined,
): BudgetSettings | undefined {
  if (patch === undefined) return now;
  if (patch === null) return undefined;
  const tokens = said(patch.tokens ?? now?.tokens, "budget.tokens", "the number of tokens per window");
  const windowMs = said(patch.windowMs ?? now?.windowMs, "budget.windowMs", "the length of a window");
  const mode = patch.mode ?? now?.mode ?? "wait";
  whole(tokens, 1, limits.tokensMax, "budget.tokens");
  whole(windowMs, limits.budgetWindowMsMin, limits.budgetWindowMsMax, "budget.windowMs");
  among(mode, budgetModes, "budget.mode");
  return { tokens, windowMs, mode };
}

/** An optional setting after a patch: absent keeps the value, null removes it. */
function replaced<Value>(now: Value | undefined, said: Value | null | undefined): Value | undefined {
  return said === undefined ? now : (said ?? undefined);
}

function said<Value>(value: Value | undefined, field: string, what: string): Value {
  if (value !== undefined) return value;
  throw new InvalidValueError(`${field}: ${what} is required, because nothing was set before`, { field });
}

function within(value: number, min: number, max: number, field: string): void {
  if (typeof value === "number" && value >= min && value <= max) return;
  throw new InvalidValueError(`${field}: must be a number from ${min} to ${max}, not ${String(value)}`, {
    field,
  });
}

function whole(value: number, min: number, max: number, field: string): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  const sentence = `${field}: must be a whole number from ${min} to ${max}, not ${String(value)}`;
  throw new InvalidValueError(sentence, { field });
}

function among(value: unknown, known: readonly unknown[], field: string): void {
  if (known.includes(value)) return;
  throw new InvalidValueError(`${field}: must be one of ${known.join(", ")}, not ${String(value)}`, {
    field,
  });
}
