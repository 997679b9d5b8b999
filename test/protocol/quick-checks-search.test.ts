// All checks by hand against their schemas, over more messages than in the suites beside the checks.

import { describe, it } from "vitest";
import { agentTrials } from "../agent/quick-check-trials.ts";
import { requestTrials } from "../requests/quick-check-trials.ts";
import { expectEqualToSchema } from "../support/quick-check-trial.ts";
import { protocolTrials } from "./quick-check-trials.ts";

/** Of each sort. */
const MESSAGES = 100_000;

describe.each([...protocolTrials, ...agentTrials, ...requestTrials])("the check of $name", (trial) => {
  it(`decides as the schema, in ${MESSAGES} messages`, () => expectEqualToSchema(trial, MESSAGES, 2));
});
