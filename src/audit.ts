// `waggledance/audit`: types of the journal's events and receipts, and a line for people about each.

export type { ReplayedAssignment } from "./audit/assignment-replay.ts";
export { describe as describeEvent, describeReceipt } from "./audit/describe.ts";
export { describeWait } from "./audit/describe-wait.ts";
export type { JournaledEvent } from "./audit/journaled-event.ts";
export type { AttemptStory, WaitStory } from "./audit/story.ts";
export type {
  BareEvent,
  BareTaskSpec,
  Event,
  EventOf,
  EventType,
  FailureClass,
  ResultDigest,
  TaskSpec,
} from "./state/event.ts";
export type { CandidateTerms, IneligibleReason, Receipt, SlotReceipt } from "./state/receipt.ts";
