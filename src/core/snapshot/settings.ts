// Operators' settings in a snapshot, checked field by field and then used unchanged. Events repeat the settings, so the
// order of their fields affects the bytes of later batches.

import { limits } from "../../limits.ts";
import type { Grant } from "../../state/grant.ts";
import type { Policy } from "../../state/policy.ts";
import { projectTurnRules, ruleSets, userTurnRules } from "../../state/policy.ts";
import {
  type BudgetSettings,
  budgetModes,
  type KindSettings,
  type OwnAlpha,
  type ProjectSettings,
  type Range,
  type RateSettings,
  type ResourceSettings,
  rateWindows,
} from "../../state/settings.ts";
import { allOf, type Fields } from "./checked-fields.ts";

const agentRules = allOf<Policy["agentRule"]>({ score: true, "first-idle": true });
const projectsAllowed = allOf<Policy["projects"]>({ open: true, declared: true });

const securities = allOf<Policy["security"]>({ open: true, strict: true });

export function readPolicy(fields: Fields): Policy {
  return fields.checked<Policy>("policy", (policy) => {
    policy.oneOf("rules", Object.keys(ruleSets));
    policy.oneOf("projectTurn", projectTurnRules);
    policy.oneOf("userTurn", userTurnRules);
    policy.oneOf("agentRule", agentRules);
    policy.amount("lambda");
    policy.oneOf("speedExponent", [0, 0.5, 1, 2]);
    policy.amount("alpha", { max: 1 });
    policy.flag("autoTune");
    policy.whole("starvationLimit");
    policy.whole("guaranteeMs", { min: 1 });
    policy.optionalWhole("topN");
    policy.optionalChecked("budget", lookAtBudget);
    policy.whole("tokensDefault");
    policy.whole("rememberMs", { min: 1 });
    policy.whole("rememberedTasks", { min: 1 });
    policy.oneOf("projects", projectsAllowed);
    policy.oneOf("resources", projectsAllowed);
    policy.whole("slotsDefault", { min: 1 });
    policy.oneOf("agents", projectsAllowed);
    policy.oneOf("security", securities);
  });
}

export function readProjectSettings(fields: Fields): ProjectSettings | undefined {
  return fields.optionalChecked<ProjectSettings>("settings", (settings) => {
    settings.amount("creditWeight", { min: Number.MIN_VALUE });
    settings.optionalWhole("maxConcurrent");
    settings.optionalChecked<BudgetSettings>("budget", lookAtBudget);
    settings.whole("queueMax");
    if (settings.has("results")) settings.oneOf("results", ["hash"]);
    settings.optionalChecked<Range>("priorityRange", lookAtRange);
    settings.optionalChecked<Range>("weightRange", lookAtRange);
    settings.optionalText("user");
    settings.optionalNames("inboxUsers");
  });
}

export function readKindSettings(fields: Fields): KindSettings | undefined {
  return fields.optionalChecked<KindSettings>("settings", (settings) => {
    settings.amount("importance", { min: Number.MIN_VALUE });
    settings.optionalText("cheaper");
    settings.optionalText("cheaperType");
  });
}

export function readResourceSettings(fields: Fields): ResourceSettings {
  return fields.checked<ResourceSettings>("settings", (settings) => {
    settings.whole("slots");
    settings.whole("maxWaiters");
    settings.optionalChecked<OwnAlpha>("ownAlpha", (own) => {
      own.amount("value", { max: 1 });
      own.flag("autoTune");
    });
  });
}

export function readRateSettings(fields: Fields): RateSettings {
  return fields.checked<RateSettings>("settings", (settings) => {
    settings.oneOf("window", rateWindows);
    settings.whole("tokensMax");
    settings.flag("sliding");
  });
}

export function readGrantFields(fields: Fields): Grant {
  return fields.checked<Grant>("grant", (grant) => {
    for (const list of ["kinds", "roles", "types", "labels", "projects", "resources"])
      if (grant.has(list)) grant.names(list);
    grant.optionalWhole("maxConcurrent");
    grant.optionalWhole("tokens");
  });
}

function lookAtRange(range: Fields): void {
  const min = range.amount("min", { min: -limits.priorityMagnitudeMax });
  range.amount("max", { min });
}

function lookAtBudget(budget: Fields): void {
  budget.whole("tokens");
  budget.whole("windowMs", { min: 1 });
  budget.oneOf("mode", budgetModes);
}
