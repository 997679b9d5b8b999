// The values that the package exports, name by name: a name that comes or goes is reviewed here.

import { expect, it } from "vitest";
import * as audit from "../src/audit.ts";
import * as root from "../src/index.ts";
import * as rules from "../src/rules.ts";

const names = (module: object) => Object.keys(module).toSorted();

it("the root has the calls, the handlers and the errors, at most 45", () => {
  expect(names(root).length).toBeLessThanOrEqual(45);
  expect(names(root)).toMatchInlineSnapshot(`
    [
      "AuditTrimmedError",
      "BackpressureError",
      "BrokerError",
      "BudgetExceededError",
      "InfrastructureError",
      "InvalidConfigError",
      "InvalidInputError",
      "InvalidMessageError",
      "InvalidValueError",
      "InvariantError",
      "JournalDamagedError",
      "LossError",
      "NoAgentsAvailableError",
      "NoLeaderError",
      "OnHoldError",
      "OutcomeUnknownError",
      "ResultGoneError",
      "TaskCancelledError",
      "TaskEndedError",
      "TaskExpiredError",
      "TaskFailedError",
      "UnreachableError",
      "UnreadableAnswerError",
      "WaggleError",
      "WaitTimedOutError",
      "connect",
      "currentAttempt",
      "defineKind",
      "execHandler",
      "httpHandler",
    ]
  `);
});

it("waggledance/rules has the published rules, and ours beside them", () => {
  expect(names(rules)).toMatchInlineSnapshot(`
    [
      "BudgetManager",
      "LucioScheduler",
      "RateLimitWindow",
      "SharedResource",
      "SlidingWindow",
      "alphaByPreset",
      "alphaOf",
      "assignTaskToBestAgent",
      "collectSwarmMetrics",
      "loads",
      "nextAlpha",
      "planSnapshot",
      "priorityScore",
      "schedule",
      "vaporaLoad",
      "vaporaScore",
      "weightOf",
      "weightThousandthsOf",
    ]
  `);
});

it("waggledance/audit reads the record", () => {
  expect(names(audit)).toMatchInlineSnapshot(`
    [
      "describeEvent",
      "describeReceipt",
      "describeWait",
    ]
  `);
});
