// The public names of the package, each reviewed: what is not here may change without notice. At most 45 values.
// The published rules are under `waggledance/rules`, reading the record under `waggledance/audit`, the charts under
// `waggledance/machines`.

export type { Agent, AgentOptions, TypedAgentOptions } from "./agent/agent.ts";
export { currentAttempt } from "./agent/current-attempt.ts";
export { type ExecOptions, execHandler } from "./agent/exec.ts";
export {
  type Handler,
  type HandlerContext,
  type HandlerLog,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "./agent/handler.ts";
export type { HoldScopeOption, InfrastructureErrorOptions } from "./agent/hold-options.ts";
export { type HttpOptions, httpHandler } from "./agent/http.ts";
export type { CodecContext, PayloadCodec } from "./agent/payload-codec.ts";
export type { RefusedSlot, ReleaseOptions } from "./agent/slot-refusal.ts";
export type { SlotReport } from "./agent/slot-usage.ts";
export type { AcquireOptions, ServedTask, Slot, SlotTicket } from "./agent/slots.ts";
export type { StandardSchema } from "./agent/standard-schema.ts";
export type { TypedHandler, TypedHandlerTask } from "./agent/typed-handler.ts";
export {
  defineKind,
  type HandlerResultOf,
  type KindSchemas,
  type PayloadOf,
  type ResultValueOf,
  type TaskInputOf,
  type TypedKind,
} from "./agent/typed-kind.ts";
export type { WrapOptions } from "./agent/wraps.ts";
export type { Health, HealthArea, HealthFinding, HealthLevel, HealthRule } from "./audit/health.ts";
export type { AskOptions } from "./client/asker.ts";
export type { AttemptLog } from "./client/attempt-logs.ts";
export type { Backpressure } from "./client/backpressure.ts";
export type { BulkResult, ManyTasks, TaskRef } from "./client/bulk.ts";
export type { CancelOptions, CancelOutcome } from "./client/cancels.ts";
export type { ResultChunk } from "./client/chunk-log.ts";
export { type ConnectOptions, connect } from "./client/connect.ts";
export type { EventStream, EventsOptions } from "./client/event-stream.ts";
export type {
  Grant,
  Hold,
  HoldOptions,
  HoldTargetOption,
  KindPatch,
  Lead,
  Pause,
  Setting,
  SettingsOptions,
  SwarmOperations,
  TransferOptions,
} from "./client/operations.ts";
export type { ReadStream } from "./client/read-stream.ts";
export type { RescheduleOptions, RescheduleOutcome } from "./client/reschedules.ts";
export type { RetryOptions, RetryOutcome } from "./client/retries.ts";
export type { RevokeOptions, RevokeOutcome } from "./client/revokes.ts";
export type { SubmitAck } from "./client/submit-ack.ts";
export type { SubmitOutcome } from "./client/submit-many.ts";
export type {
  ProjectOptions,
  ProjectStatus,
  ProjectSwarm,
  StatusOptions,
  SubmitOptions,
  Swarm,
} from "./client/swarm.ts";
export {
  ResultGoneError,
  TaskCancelledError,
  TaskEndedError,
  TaskExpiredError,
  TaskFailedError,
  WaitTimedOutError,
} from "./client/task-errors.ts";
export type { ChunksOptions, TaskHandle, TypedTaskHandle, WaitOptions } from "./client/task-handle.ts";
export type { TaskFilterOptions, TaskListOptions, TaskPage, TaskStateName } from "./client/task-lists.ts";
export type { TaskRequest, TypedTaskRequest } from "./client/task-request.ts";
export type { TaskResult, TypedTaskResult } from "./client/task-result.ts";
export type { ReplayOptions, SlotWaitOptions, TaskExplanation, TaskStory } from "./client/task-stories.ts";
export type { TaskUpdate } from "./client/task-updates.ts";
export type { SubmitWarning, TaskWarning } from "./client/task-warnings.ts";
export type {
  BudgetPatch,
  PolicyPatch,
  ProjectPatch,
  RatePatch,
  ResourcePatch,
} from "./core/settings-patch.ts";
export {
  AuditTrimmedError,
  BackpressureError,
  BrokerError,
  BudgetExceededError,
  type ExceededBudget,
  InvalidConfigError,
  InvalidMessageError,
  InvalidValueError,
  InvariantError,
  JournalDamagedError,
  NoAgentsAvailableError,
  NoLeaderError,
  OnHoldError,
  OutcomeUnknownError,
  UnreachableError,
  UnreadableAnswerError,
  WaggleError,
  type WaggleErrorCode,
} from "./errors.ts";
export type {
  AgentStanding,
  SlotStanding,
  SlotWaits,
  TaskObstacle,
  TaskWait,
} from "./protocol/explain-schemas.ts";
export { LossError } from "./protocol/loss-error.ts";
export type { Outcome, StatusResponse, TaskStatus } from "./protocol/schemas.ts";
export type { PolicySettings, SettingsResponse } from "./protocol/settings-schemas.ts";
export type { ListedTask, TaskSort } from "./protocol/task-list-schemas.ts";
export type { TaskState } from "./state/state.ts";
