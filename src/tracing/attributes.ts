// Names of the attributes and events of spans. The names of generative AI follow the semantic conventions of
// OpenTelemetry of one version; they are not stable yet, and may change with the version. Names that the conventions
// lack begin with `waggle.`.

/** Version of the semantic conventions that define the names in `genAi`. */
export const semanticConventionsVersion = "1.41.0";

export const schemaUrl = `https://opentelemetry.io/schemas/${semanticConventionsVersion}`;

/** Semantic conventions, "GenAI agent and framework spans" and "General attributes". */
export const genAi = {
  operationName: "gen_ai.operation.name",
  agentId: "gen_ai.agent.id",
  agentName: "gen_ai.agent.name",
  errorType: "error.type",
} as const;

/** Value of `genAi.operationName` for an attempt. */
export const invokeAgent = "invoke_agent";

export const waggle = {
  task: "waggle.task.id",
  kind: "waggle.task.kind",
  project: "waggle.project",
  attempt: "waggle.attempt",
  outcome: "waggle.outcome",
  /** The conventions count input and output apart; an agent reports one sum. */
  tokens: "waggle.tokens",
  waitedMs: "waggle.waited_ms",
} as const;

/** Event of a `run` span: the task waited in its queue before. */
export const waitedEvent = "waggle.waited";
